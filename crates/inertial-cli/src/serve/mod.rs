//! `inertial serve`: a page on this machine where the user uploads a model and logs and gets the report.
//!
//! The server is reachable only from this machine, with the token of its address. Jobs are run with the commands of
//! the program, each in a separate process that is stopped after a time limit, so that a bad upload does not affect
//! other jobs.

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

/// Serve a page on this machine for use in a browser: upload a model and logs, and get the report and the corrected model
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Port to listen on; 0 selects a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Size limit of an uploaded file, in MB
    #[arg(long, value_name = "MB", default_value_t = 500)]
    max_upload: u64,
    /// Time limit of one job, in seconds
    #[arg(long, value_name = "S", default_value_t = 600)]
    time_limit: u64,
    /// Number of jobs that run at once; others wait
    #[arg(long, value_name = "N", default_value_t = 2)]
    parallel: usize,
    /// Seconds without data after which an upload is aborted
    #[arg(long, value_name = "S", default_value_t = 10, hide = true)]
    quiet: u64,
}

/// Buffer size (bytes) of an upload, used for receiving and for writing to the disk. With the defaults of the
/// libraries, 400 kB and 2 MB, fifty uploads would use a hundred megabytes.
const PIECE: usize = 64 << 10;

/// Number of threads that answer requests.
const WORKERS: usize = 2;

/// Number of threads that write to the disk; each needs its own memory, and few suffice for one disk.
const WRITERS: usize = 4;

pub fn run(args: &Args, shell: &Shell) -> Result<Answer> {
    ensure!(args.max_upload > 0, "--max-upload must be above zero");
    ensure!(args.time_limit > 0, "--time-limit must be above zero");
    ensure!((1..=64).contains(&args.parallel), "--parallel must be from 1 to 64");
    threads::ensure_available(WORKERS + WRITERS + 1).context("cannot start the threads of the server")?;
    #[cfg(unix)]
    {
        // Uploads and results, including those written by jobs, are readable by this user only.
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    }
    let folder = Folder::new().context("cannot create the temporary folder")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(WRITERS)
        .enable_all()
        .build()?;
    let served = runtime.block_on(listen(args, &folder, shell));
    // Running jobs end with the runtime, and their files are removed with the folder.
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
    // Installed before the address is printed, so that a signal leaves no files behind.
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
        let permit = connections.permit().await;
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut ended => return Ok(()),
        };
        match accepted {
            Ok((stream, _)) => connections.serve(stream, router.clone(), permit),
            // Out of file handles, or a peer that already disconnected; other connections may follow.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Returns a future that completes with the first signal to stop the server.
#[cfg(unix)]
fn signals() -> Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    // The terminal was closed; with `nohup` the server continues.
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
