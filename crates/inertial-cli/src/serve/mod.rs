//! `inertial serve`: a page on this machine where one drops a model and logs and gets the report.
//!
//! Only this machine can reach it, only with the token of its address. The work itself is done by the program's own
//! commands, each in a process of its own that is stopped when it takes too long, so that a bad upload harms nobody else.

mod connections;
mod folder;
mod guard;
mod jobs;
mod routes;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::net::TcpListener;

use crate::output::Answer;
use crate::shell::Shell;
use crate::threads;
use connections::Connections;
use folder::Folder;
use guard::Guard;
use jobs::{Jobs, Limits};

const HELP: &str = "\
Prints the address to open. The server listens on 127.0.0.1 only and requires the token in that
address, so other machines and other web pages cannot use it. Each job has a temporary folder,
which only you can read; it is removed after an hour, at the end (Ctrl-C, SIGTERM, SIGHUP), or at
the next start if the program was killed. All files together may take twenty times --max-upload;
an upload may take as long as a job.

Examples:
  inertial serve
  inertial serve --port 8080 --max-upload 2000 --parallel 4";

/// Use the program in the browser, on this machine: drop in a model and logs, get the report and the corrected model
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Largest file that is taken, in MB
    #[arg(long, value_name = "MB", default_value_t = 500)]
    max_upload: u64,
    /// Longest time that one job may take, in seconds
    #[arg(long, value_name = "S", default_value_t = 600)]
    time_limit: u64,
    /// Jobs that run at once; others wait
    #[arg(long, value_name = "N", default_value_t = 2)]
    parallel: usize,
    /// Seconds without a byte after which an upload is given up
    #[arg(long, value_name = "S", default_value_t = 10, hide = true)]
    quiet: u64,
}

/// Of an upload that is held in memory at a time, on its way from the connection and again on its way to the disk.
/// The libraries' own limits, 400 kB and 2 MB, would let fifty uploads fill a hundred megabytes.
const PIECE: usize = 64 << 10;

/// Threads that answer.
const WORKERS: usize = 2;

/// Threads that write to the disk; each brings its own memory, and one disk keeps few busy.
const WRITERS: usize = 4;

pub fn run(args: &Args, shell: &Shell) -> Result<Answer> {
    ensure!(args.max_upload > 0, "--max-upload must be above zero");
    ensure!(args.time_limit > 0, "--time-limit must be above zero");
    ensure!((1..=64).contains(&args.parallel), "--parallel must be from 1 to 64");
    threads::ensure_available(WORKERS + WRITERS + 1).context("the system gives no threads for a server")?;
    #[cfg(unix)]
    {
        // Uploads and results, also those that jobs write, are for this user alone.
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    }
    let folder = Folder::new().context("the temporary folder")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(WRITERS)
        .enable_all()
        .build()?;
    let served = runtime.block_on(listen(args, &folder, shell));
    // Jobs that still run end with the runtime, and their files with the folder.
    runtime.shutdown_timeout(Duration::from_secs(2));
    drop(folder);
    served.map(|()| Answer::Yes)
}

async fn listen(args: &Args, folder: &Folder, shell: &Shell) -> Result<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let listener = TcpListener::bind(address).await.with_context(|| format!("port {}", args.port))?;
    let port = listener.local_addr()?.port();
    let guard = Guard::new(port)?;
    let limits = Limits {
        bytes: args.max_upload << 20,
        quiet: Duration::from_secs(args.quiet),
        run: Duration::from_secs(args.time_limit),
        parallel: args.parallel,
    };
    let jobs = Arc::new(Jobs::new(folder.path().to_owned(), limits));
    // Before anybody knows the address: from here on a signal leaves nothing behind.
    let mut ended = std::pin::pin!(signals()?);
    shell.print(&format!("http://127.0.0.1:{port}/{}/\n", guard.token()))?;
    shell.say("open this address in a browser; Ctrl-C stops the server");
    let router = routes::router(Arc::new(guard), Arc::clone(&jobs));
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(30)).await;
            jobs.sweep();
        }
    });
    let connections = Connections::default();
    loop {
        let room = connections.room().await;
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut ended => return Ok(()),
        };
        match accepted {
            Ok((stream, _)) => connections.serve(stream, router.clone(), room),
            // Out of handles, or the peer is gone already: others may still come.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Ends with the first signal that asks the server to stop.
#[cfg(unix)]
fn signals() -> Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    // The terminal was closed; with `nohup` the server goes on.
    let mut hangup = match SignalKind::hangup() {
        kind if crate::signals::is_ignored(kind.as_raw_value()) => None,
        kind => Some(signal(kind)?),
    };
    Ok(async move {
        let closed = async {
            match &mut hangup {
                Some(hangup) => drop(hangup.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => (),
            _ = terminate.recv() => (),
            () = closed => (),
        }
    })
}

#[cfg(not(unix))]
fn signals() -> Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}
