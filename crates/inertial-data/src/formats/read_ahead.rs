//! Read-ahead of a file in a separate thread.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::thread;

/// Number of bytes per piece, and maximum number of waiting pieces.
const PIECE: usize = 1 << 20;
const WAITING: usize = 2;

/// Stream that another thread reads (and decompresses) while this one parses; read by this thread if no other can be started.
pub(crate) struct ReadAhead {
    pieces: Pieces,
    piece: Vec<u8>,
    next: usize,
}

/// Source of the pieces.
enum Pieces {
    Thread(Receiver<io::Result<Vec<u8>>>),
    Stream(Box<dyn Read + Send>),
}

impl ReadAhead {
    pub fn new(stream: impl Read + Send + 'static) -> Self {
        let (sender, pieces) = sync_channel(WAITING);
        // The stream is passed only to a running thread: a stream moved into a thread that cannot be started would be lost.
        let (hand_over, handed) = channel();
        // The thread ends with the stream, or when the receiver is dropped.
        let started = thread::Builder::new().spawn(move || {
            let Ok(mut stream) = handed.recv() else { return };
            loop {
                let piece = read_piece(&mut stream);
                let last = !matches!(&piece, Ok(piece) if !piece.is_empty());
                if sender.send(piece).is_err() || last {
                    return;
                }
            }
        });
        let pieces = if started.is_ok() {
            // A started thread waits for the stream.
            let _ = hand_over.send(stream);
            Pieces::Thread(pieces)
        } else {
            Pieces::Stream(Box::new(stream))
        };
        Self { pieces, piece: Vec::new(), next: 0 }
    }
}

/// Reads a full piece, or the result of one read if the stream has no more data yet (a terminal, a pipe).
fn read_piece(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut piece = vec![0; PIECE];
    let mut filled = 0;
    while filled < PIECE {
        match stream.read(&mut piece[filled..]) {
            Ok(0) => break,
            Ok(count) => {
                filled += count;
                // A buffered file or decompressor returns available data; less than a buffer means that the stream is waiting.
                if count < SHORT {
                    break;
                }
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    piece.truncate(filled);
    Ok(piece)
}

/// Size below which a read comes from a growing stream.
const SHORT: usize = 1 << 12;

impl Read for ReadAhead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.next == self.piece.len() {
            self.piece = match &mut self.pieces {
                // The thread has ended after the last piece.
                Pieces::Thread(pieces) => pieces.recv().unwrap_or_else(|_| Ok(Vec::new()))?,
                Pieces::Stream(stream) => read_piece(stream)?,
            };
            self.next = 0;
        }
        let count = out.len().min(self.piece.len() - self.next);
        out[..count].copy_from_slice(&self.piece[self.next..self.next + count]);
        self.next += count;
        Ok(count)
    }
}
