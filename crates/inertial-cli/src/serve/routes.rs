//! HTTP routes of the server.

use std::fs::File;
use std::io::Read;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use hyper::body::{Frame, SizeHint};
use serde::Serialize;

use inertial::mechanism::{Base, RotorModel};
use inertial_app::choice::{Choice, Estimator};
use inertial_app::unknowns::Unknowns;
use inertial_report::page::{CSS, SERVE};

use super::guard::Guard;
use super::jobs::Jobs;

/// Size limit (bytes) of the headers of a request.
const HEADER_BYTES: usize = 32 << 10;

/// Size limit (bytes) of a request for a job.
const MOST_CHOICES: usize = 16 << 10;

type Context = State<Arc<Jobs>>;

/// Returns the router of all routes, protected by the guard.
pub fn router(guard: Arc<Guard>, jobs: Arc<Jobs>) -> Router {
    Router::new()
        .route("/{token}/", get(page))
        .route("/{token}/jobs", post(open))
        .route("/{token}/jobs/{job}", get(status).delete(close))
        .route("/{token}/jobs/{job}/run", post(run))
        .route("/{token}/jobs/{job}/files/{file}", get(file))
        .route("/{token}/jobs/{job}/{role}/{name}", put(upload))
        .fallback(|| async { refuse(StatusCode::NOT_FOUND, "no such page") })
        .with_state(jobs)
        .layer(middleware::from_fn_with_state(guard, checked))
}

async fn checked(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    if let Some(reason) = guard.refusal(request.uri(), request.headers()) {
        return refuse(StatusCode::FORBIDDEN, reason);
    }
    let size: usize = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if size > HEADER_BYTES {
        return refuse(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "the headers are larger than 32 kB");
    }
    let mut response = next.run(request).await;
    let always = [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // The address contains the token, so it must not be sent to other sites.
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in always {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn refuse(status: StatusCode, reason: &str) -> Response {
    (status, json(&serde_json::json!({ "error": reason }))).into_response()
}

fn json(value: &impl Serialize) -> Response {
    let text = serde_json::to_string(value).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

fn answer(result: anyhow::Result<serde_json::Value>) -> Response {
    match result {
        Ok(value) => json(&value),
        Err(error) => refuse(StatusCode::BAD_REQUEST, &format!("{error:#}")),
    }
}

async fn page() -> Response {
    let policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
                  img-src data:; form-action 'none'; base-uri 'none'";
    let headers =
        [(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::CONTENT_SECURITY_POLICY, policy)];
    // The page offers the choices of the program, with its defaults.
    let unknowns = Unknowns::default();
    let text = SERVE
        .replace("{{style}}", CSS)
        .replace("{{base}}", &choices::<Base>(None))
        .replace("{{rotors}}", &choices::<RotorModel>(None))
        .replace("{{friction}}", &choices(Some(unknowns.friction)))
        .replace("{{estimator}}", &choices(Some(Estimator::Consistent)))
        .replace("{{offset}}", &choices(Some(unknowns.offset)));
    (headers, text).into_response()
}

/// Returns the HTML options of a list, with one selected.
fn choices<T: Choice>(chosen: Option<T>) -> String {
    let option = |(value, word, _): &(T, &str, &str)| {
        let selected = if chosen == Some(*value) { " selected" } else { "" };
        format!("<option{selected}>{word}</option>")
    };
    T::ALL.iter().map(option).collect()
}

async fn open(State(jobs): Context) -> Response {
    answer(jobs.open().map(|job| serde_json::json!({ "job": job })))
}

async fn upload(
    State(jobs): Context,
    Path((_, job, role, name)): Path<(String, String, String, String)>,
    body: Body,
) -> Response {
    let done = jobs.upload(&job, &role, &name, body).await;
    let mut response = answer(done.map(|()| serde_json::json!({})));
    if response.status() != StatusCode::OK {
        // The rest of the request is not read.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn run(State(jobs): Context, Path((_, job)): Path<(String, String)>, body: Body) -> Response {
    let read = axum::body::to_bytes(body, MOST_CHOICES);
    let Ok(Ok(bytes)) = tokio::time::timeout(std::time::Duration::from_secs(10), read).await else {
        return refuse(StatusCode::BAD_REQUEST, "the options are too long or incomplete");
    };
    let started = parse(&bytes).and_then(|request| jobs.start(&job, &request));
    answer(started.map(|()| serde_json::json!({})))
}

fn parse(bytes: &Bytes) -> anyhow::Result<super::jobs::Request> {
    Ok(serde_json::from_slice(bytes)?)
}

async fn status(State(jobs): Context, Path((_, job)): Path<(String, String)>) -> Response {
    match jobs.status(&job) {
        Some(status) => json(&status),
        None => refuse(StatusCode::NOT_FOUND, "no such job"),
    }
}

async fn close(State(jobs): Context, Path((_, job)): Path<(String, String)>) -> Response {
    if jobs.close(&job) { json(&serde_json::json!({})) } else { refuse(StatusCode::NOT_FOUND, "no such job") }
}

async fn file(State(jobs): Context, Path((_, job, name)): Path<(String, String, String)>) -> Response {
    let Some(path) = jobs.file(&job, &name) else {
        return refuse(StatusCode::NOT_FOUND, "no such file");
    };
    let Ok((file, left)) = File::open(path).and_then(|file| file.metadata().map(|m| (file, m.len()))) else {
        return refuse(StatusCode::NOT_FOUND, "the file no longer exists");
    };
    let kind = match name.as_str() {
        "report.html" => "text/html; charset=utf-8",
        "result.json" => "application/json",
        _ => "application/octet-stream",
    };
    let mut response = ([(header::CONTENT_TYPE, kind)], Body::new(FileBody { file, left })).into_response();
    if name == "report.html" {
        // The report contains text of uploaded files, so it must not access this server.
        let policy = HeaderValue::from_static("sandbox allow-scripts allow-downloads");
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    } else {
        let value = HeaderValue::from_static("attachment");
        response.headers_mut().insert(header::CONTENT_DISPOSITION, value);
    }
    response
}

/// Response body that reads a file at the speed of the client, with one block of memory per request.
struct FileBody {
    file: File,
    left: u64,
}

/// Block size (bytes).
const BLOCK: usize = 64 << 10;

impl hyper::body::Body for FileBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut task::Context<'_>,
    ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        let mut block = vec![0; BLOCK.min(usize::try_from(self.left).unwrap_or(BLOCK))];
        Poll::Ready(match self.file.read(&mut block) {
            Ok(0) => None,
            Ok(count) => {
                block.truncate(count);
                self.left -= count as u64;
                Some(Ok(Frame::data(block.into())))
            }
            Err(error) => Some(Err(error)),
        })
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
