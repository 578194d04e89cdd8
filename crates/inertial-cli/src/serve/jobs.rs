//! Uploads and the processes that work on them.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use http_body_util::BodyExt;
use inertial::mechanism::{Base, RotorModel};
use inertial_app::choice::{Choice, Estimator, Friction, Offset};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use super::guard::random_name;

/// Limits of a server.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Size limit of one file (bytes).
    pub bytes: u64,
    /// Time without data after which an upload is aborted.
    pub quiet: Duration,
    /// Time limit of one job.
    pub run: Duration,
    /// Number of jobs that run at once.
    pub parallel: usize,
}

/// Largest number of stored jobs; more are rejected until old ones are removed.
const MOST_JOBS: usize = 500;
/// Largest number of files of one job.
const MOST_FILES: usize = 20;
/// Size limit of all stored uploads together, in units of the limit of one file.
const MOST_HELD: u64 = 20;
/// Number of bytes at the beginning of a model from which its format is recognized.
const BEGINNING: u64 = 64 << 10;
/// Time after which jobs are removed.
const KEPT: Duration = Duration::from_secs(3600);
/// Largest number of message lines that are stored for a job.
const MOST_LINES: usize = 200;
/// Size limit (bytes) of the output of a job; a result has some hundred kilobytes.
const MOST_OUTPUT: u64 = 64 << 20;

/// State of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    Uploading,
    Waiting,
    Running,
    Done,
    Failed,
}

#[derive(Debug)]
struct Job {
    folder: PathBuf,
    made: Instant,
    model: Option<String>,
    logs: Vec<String>,
    state: JobState,
    lines: Vec<String>,
    files: Vec<&'static str>,
    seconds: f64,
    /// Total size of the uploads (bytes).
    bytes: u64,
    /// Number of uploads in progress.
    coming: usize,
    /// Handle of the running job.
    task: Option<AbortHandle>,
}

impl Job {
    /// Removes an upload that was rejected or is incomplete.
    fn remove(&mut self, name: &str, path: &Path, bytes: u64) {
        // The folder of the job is removed later in any case.
        let _ = std::fs::remove_file(path);
        self.bytes -= bytes;
        self.logs.retain(|log| log != name);
        self.model.take_if(|model| model == name);
    }
}

/// Status of a job for the page.
#[derive(Debug, Serialize)]
pub struct Status {
    state: JobState,
    /// Messages of the program.
    lines: Vec<String>,
    /// Files that can be downloaded.
    files: Vec<&'static str>,
    /// Running time (s).
    seconds: f64,
}

/// Request of the page. Only these choices are passed to the program, each as one of its own values.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    command: String,
    #[serde(default)]
    estimator: Option<String>,
    #[serde(default)]
    friction: Option<String>,
    #[serde(default)]
    rotors: Option<String>,
    #[serde(default)]
    base: Option<String>,
    #[serde(default)]
    holdout: Option<f64>,
    #[serde(default)]
    offset: Option<String>,
}

/// Jobs of a server.
#[derive(Debug)]
pub struct Jobs {
    folder: PathBuf,
    limits: Limits,
    table: Mutex<HashMap<String, Job>>,
    free: Arc<Semaphore>,
}

impl Jobs {
    /// Creates an empty set of jobs with their folders in `folder`.
    pub fn new(folder: PathBuf, limits: Limits) -> Self {
        Self { folder, limits, table: Mutex::default(), free: Arc::new(Semaphore::new(limits.parallel)) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Job>> {
        // The table is consistent between any two statements that hold the lock.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a job with its own empty folder.
    pub fn open(&self) -> Result<String> {
        let name = random_name()?;
        let folder = self.folder.join(&name);
        let mut jobs = self.lock();
        ensure!(jobs.len() < MOST_JOBS, "too many jobs are open: try again later");
        std::fs::create_dir(&folder)?;
        let job = Job {
            folder,
            made: Instant::now(),
            model: None,
            logs: Vec::new(),
            state: JobState::Uploading,
            lines: Vec::new(),
            files: Vec::new(),
            seconds: 0.0,
            bytes: 0,
            coming: 0,
            task: None,
        };
        jobs.insert(name.clone(), job);
        Ok(name)
    }

    /// Streams a file to the disk, within the time limit of a job. A rejected or incomplete file has no effect.
    pub async fn upload(&self, job: &str, role: &str, name: &str, body: axum::body::Body) -> Result<()> {
        let path = self.admit(job, role, name)?;
        let mut bytes = 0;
        let receive = self.receive(job, name, &path, body, &mut bytes);
        let received = tokio::time::timeout(self.limits.run, receive).await;
        let done = received.unwrap_or_else(|_| {
            bail!("{name}: took longer than {} s (--time-limit)", self.limits.run.as_secs())
        });
        self.change(job, |job| {
            job.coming -= 1;
            if done.is_err() {
                job.remove(name, &path, bytes);
            }
        });
        done
    }

    /// Registers an uploaded file in a job.
    fn admit(&self, id: &str, role: &str, name: &str) -> Result<PathBuf> {
        ensure!(
            is_plain(name),
            "the name of the file has characters other than letters, digits, '.', '_' and '-'"
        );
        let mut jobs = self.lock();
        let job = jobs.get_mut(id).context("no such job")?;
        ensure!(job.state == JobState::Uploading, "the job is already running");
        let names = job.logs.iter().chain(&job.model);
        ensure!(names.clone().count() < MOST_FILES, "a job can have at most {MOST_FILES} files");
        ensure!(!names.into_iter().any(|n| n == name), "{name}: a file with this name was already uploaded");
        match role {
            "model" => {
                ensure!(job.model.is_none(), "a job has only one model");
                job.model = Some(name.to_owned());
            }
            "log" => job.logs.push(name.to_owned()),
            _ => bail!("expected model or log as the kind of a file"),
        }
        job.coming += 1;
        Ok(job.folder.join(name))
    }

    /// Receives a file and counts the bytes held for it.
    async fn receive(
        &self,
        id: &str,
        name: &str,
        path: &Path,
        mut body: axum::body::Body,
        held: &mut u64,
    ) -> Result<()> {
        let mut file = tokio::fs::File::create(path).await?;
        file.set_max_buf_size(super::PIECE);
        loop {
            let frame = tokio::time::timeout(self.limits.quiet, body.frame()).await;
            let Some(frame) = frame.map_err(|_| {
                anyhow::anyhow!("{name}: no data received for {} s", self.limits.quiet.as_secs())
            })?
            else {
                break;
            };
            let Ok(data) = frame.with_context(|| format!("{name}: the upload was interrupted"))?.into_data()
            else {
                continue;
            };
            let bytes = data.len() as u64;
            ensure!(
                *held + bytes <= self.limits.bytes,
                "{name}: is larger than the limit of {} MB (--max-upload)",
                self.limits.bytes >> 20
            );
            self.hold(id, bytes)?;
            *held += bytes;
            file.write_all(&data).await?;
        }
        file.flush().await?;
        Ok(())
    }

    /// Adds to the stored size of a job; fails if all jobs together exceed the limit.
    fn hold(&self, job: &str, bytes: u64) -> Result<()> {
        let mut jobs = self.lock();
        let held: u64 = jobs.values().map(|j| j.bytes).sum();
        ensure!(
            held + bytes <= MOST_HELD * self.limits.bytes,
            "the storage for uploads is full: try again later"
        );
        jobs.get_mut(job).context("the job no longer exists")?.bytes += bytes;
        Ok(())
    }

    /// Starts a job: it waits in a queue and runs in the background.
    pub fn start(self: &Arc<Self>, name: &str, request: &Request) -> Result<()> {
        let (folder, model, arguments) = {
            let mut jobs = self.lock();
            let job = jobs.get_mut(name).context("no such job")?;
            ensure!(job.state == JobState::Uploading, "the job is already running");
            ensure!(job.coming == 0, "a file is still being uploaded");
            let model = job.model.clone().context("send a model first")?;
            let arguments = request.arguments(&job.logs, written_as(&job.folder.join(&model), &model))?;
            job.state = JobState::Waiting;
            (job.folder.clone(), model, arguments)
        };
        let (jobs, id) = (Arc::clone(self), name.to_owned());
        let name = id.clone();
        let task = tokio::spawn(async move {
            let Ok(_turn) = jobs.free.acquire().await else { return };
            jobs.change(&name, |job| job.state = JobState::Running);
            let started = Instant::now();
            let done = jobs.work(&name, &folder, &model, &arguments).await;
            jobs.change(&name, |job| {
                job.seconds = started.elapsed().as_secs_f64();
                job.files = FILES.into_iter().filter(|f| folder.join(f).is_file()).collect();
                job.state = if matches!(done, Ok(true)) { JobState::Done } else { JobState::Failed };
                if let Err(error) = done {
                    job.lines.push(format!("{error:#}"));
                }
                job.task = None;
            });
        });
        self.change(&id, |job| {
            if matches!(job.state, JobState::Waiting | JobState::Running) {
                job.task = Some(task.abort_handle());
            }
        });
        Ok(())
    }

    /// Runs the program; returns whether it gave an answer.
    async fn work(&self, name: &str, folder: &Path, model: &str, arguments: &[String]) -> Result<bool> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .env(crate::SERVER, std::process::id().to_string())
            .current_dir(folder)
            // A model from standard input cannot include files of this machine.
            .stdin(Stdio::from(std::fs::File::open(folder.join(model))?))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("the program cannot be started")?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let result = async {
            let listen = async {
                let mut lines = BufReader::new(stderr.context("cannot read the messages")?).lines();
                while let Some(line) = lines.next_line().await? {
                    let line = line.trim_start_matches("inertial: ").to_owned();
                    self.change(name, |job| {
                        if job.lines.len() < MOST_LINES {
                            job.lines.push(line);
                        }
                    });
                }
                anyhow::Ok(())
            };
            let keep = async {
                let mut file = tokio::fs::File::create(folder.join("result.json")).await?;
                let mut out = stdout.context("cannot read the result")?.take(MOST_OUTPUT);
                tokio::io::copy(&mut out, &mut file).await?;
                file.flush().await?;
                anyhow::Ok(())
            };
            tokio::try_join!(listen, keep)?;
            anyhow::Ok(child.wait().await?)
        };
        let status = tokio::time::timeout(self.limits.run, result)
            .await
            .map_err(|_| anyhow::anyhow!("stopped after {} s (--time-limit)", self.limits.run.as_secs()))??;
        // Exit status 1 is a negative answer, not a failure.
        Ok(matches!(status.code(), Some(0 | 1)))
    }

    fn change(&self, name: &str, f: impl FnOnce(&mut Job)) {
        if let Some(job) = self.lock().get_mut(name) {
            f(job);
        }
    }

    /// Returns the status of a job.
    pub fn status(&self, name: &str) -> Option<Status> {
        self.lock().get(name).map(|job| Status {
            state: job.state,
            lines: job.lines.clone(),
            files: job.files.clone(),
            seconds: job.seconds,
        })
    }

    /// Returns the path of a file that a job wrote.
    pub fn file(&self, name: &str, file: &str) -> Option<PathBuf> {
        let jobs = self.lock();
        let job = jobs.get(name)?;
        job.files.iter().find(|f| **f == file).map(|f| job.folder.join(f))
    }

    /// Removes a job and its folder.
    pub fn close(&self, name: &str) -> bool {
        let job = self.lock().remove(name);
        job.is_some_and(|job| {
            // The process ends with its task.
            if let Some(task) = job.task {
                task.abort();
            }
            std::fs::remove_dir_all(job.folder).is_ok()
        })
    }

    /// Removes old jobs.
    pub fn sweep(&self) {
        let old: Vec<String> = {
            let jobs = self.lock();
            jobs.iter().filter(|(_, j)| j.made.elapsed() > KEPT).map(|(name, _)| name.clone()).collect()
        };
        old.iter().for_each(|name| {
            self.close(name);
        });
    }
}

/// Files that jobs write.
const FILES: [&str; 5] =
    ["report.html", "identified.urdf", "identified.json", "identified.toml", "result.json"];

/// Returns the name of the corrected model, if its format can be written.
fn written_as(path: &Path, name: &str) -> Option<&'static str> {
    let ends = |end: &str| name.to_ascii_lowercase().ends_with(end);
    if ends(".json") {
        return Some("identified.json");
    }
    if ends(".toml") {
        return Some("identified.toml");
    }
    let mut start = Vec::new();
    std::fs::File::open(path).and_then(|f| f.take(BEGINNING).read_to_end(&mut start)).ok()?;
    start.windows(6).any(|w| w == b"<robot").then_some("identified.urdf")
}

/// Returns whether a name is a plain file name and no path, option or hidden file.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=100).contains(&name.len())
        && name.chars().all(plain)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !FILES.contains(&name)
}

impl Request {
    fn arguments(&self, logs: &[String], corrected: Option<&str>) -> Result<Vec<String>> {
        let measured = matches!(self.command.as_str(), "identify" | "validate");
        ensure!(
            measured || matches!(self.command.as_str(), "check" | "analyze"),
            "expected the command check, analyze, identify or validate"
        );
        ensure!(!measured || !logs.is_empty(), "{} needs a log", self.command);
        let mut out = vec![self.command.clone(), "-".to_owned()];
        if measured {
            out.extend(logs.iter().cloned());
        }
        out.extend(["--json", "--report", "report.html"].map(str::to_owned));
        let mut choice = |name: &str, value: &Option<String>, allowed: &[&str]| -> Result<()> {
            if let Some(value) = value {
                let expected = allowed.join(", ");
                ensure!(allowed.contains(&value.as_str()), "--{name}: expected one of {expected}");
                out.extend([format!("--{name}"), value.clone()]);
            }
            Ok(())
        };
        choice("base", &self.base, &words::<Base>())?;
        choice("rotors", &self.rotors, &words::<RotorModel>())?;
        if self.command == "identify" {
            choice("friction", &self.friction, &words::<Friction>())?;
            choice("estimator", &self.estimator, &words::<Estimator>())?;
            out.extend(corrected.into_iter().flat_map(|name| ["--out".to_owned(), name.to_owned()]));
            if let Some(offset) = &self.offset {
                let allowed = words::<Offset>();
                ensure!(
                    allowed.contains(&offset.as_str()),
                    "--offset: expected one of {}",
                    allowed.join(", ")
                );
                out.push(format!("--offset={offset}"));
            }
            if let Some(fraction) = self.holdout {
                ensure!(fraction > 0.0 && fraction < 1.0, "--holdout: expected a fraction between 0 and 1");
                out.extend(["--holdout".to_owned(), fraction.to_string()]);
            }
        }
        Ok(out)
    }
}

/// Returns the words of a choice.
fn words<T: Choice>() -> Vec<&'static str> {
    T::ALL.iter().map(|(_, word, _)| *word).collect()
}
