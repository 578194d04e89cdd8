//! Limited number of connections; the oldest idle connection is closed if a new one needs its place.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

use super::PIECE;
use crate::shell::lock;

/// Largest number of open connections; others wait to be accepted.
const CONNECTIONS: usize = 256;

/// Time limit for receiving the headers of a request.
const HEADER_TIME: Duration = Duration::from_secs(10);

/// Open connections.
pub struct Connections {
    free: Arc<Semaphore>,
    /// Connections that have not sent a request yet, oldest first.
    waiting: Arc<Mutex<BTreeMap<u64, AbortHandle>>>,
    next: AtomicCounter,
}

/// Counter of connections.
type AtomicCounter = std::sync::atomic::AtomicU64;

impl Default for Connections {
    fn default() -> Self {
        Self {
            free: Arc::new(Semaphore::new(CONNECTIONS)),
            waiting: Arc::default(),
            next: AtomicCounter::new(0),
        }
    }
}

/// Permit for one connection.
pub type Permit = Option<OwnedSemaphorePermit>;

impl Connections {
    /// Waits for a permit. If there is none, the connection that has been idle longest is closed.
    pub async fn permit(&self) -> Permit {
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            return Some(permit);
        }
        if let Some((_, waiting)) = lock(&self.waiting).pop_first() {
            waiting.abort();
        }
        Arc::clone(&self.free).acquire_owned().await.ok()
    }

    /// Answers the request of a connection in the background. The connection is closed after its first response, so it cannot become idle.
    pub fn serve(&self, stream: TcpStream, router: Router, permit: Permit) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (waiting, service) = (Arc::clone(&self.waiting), TowerToHyperService::new(router));
        let has_request = Arc::new(AtomicBool::new(false));
        let request_flag = Arc::clone(&has_request);
        let task = tokio::spawn(async move {
            let service = service_fn(|request| {
                has_request.store(true, Ordering::Relaxed);
                lock(&waiting).remove(&number);
                service.call(request)
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIME)
                .keep_alive(false)
                .max_buf_size(PIECE)
                .serve_connection(TokioIo::new(stream), service);
            // Errors of a connection affect its peer only.
            let _ = connection.await;
            lock(&waiting).remove(&number);
            drop(permit);
        });
        let mut waiting = lock(&self.waiting);
        if !request_flag.load(Ordering::Relaxed) && !task.is_finished() {
            waiting.insert(number, task.abort_handle());
        }
    }
}
