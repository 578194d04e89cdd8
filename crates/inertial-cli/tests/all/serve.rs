//! Tests of `inertial serve` with valid and malicious requests.

#![allow(clippy::unwrap_used)]
#![cfg(unix)]

use crate::common;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::common::mutation::{Random, cases, damaged, seeds};
use crate::common::{Folder, inertial, refused, urdf};
use serde_json::Value;

/// Running server with its address.
struct Server {
    child: Child,
    port: u16,
    token: String,
}

impl Server {
    fn start(place: &Folder, more: &[&str]) -> Self {
        let mut child = common::command()
            .arg("serve")
            .args(more)
            .env("TMPDIR", place.path(""))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let rest = line.trim().strip_prefix("http://127.0.0.1:").unwrap();
        let (port, token) = rest.trim_end_matches('/').split_once('/').unwrap();
        Self { child, port: port.parse().unwrap(), token: token.to_owned() }
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Sends a request unchanged and reads the response.
    fn raw(&self, request: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(self.host()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // The server may respond and close the connection before everything is sent.
        let _ = stream.write_all(request);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let status = text.split_whitespace().nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
        (status, text.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned()))
    }

    fn send(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> (u16, String) {
        let head = format!(
            "{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.raw(&[head.as_bytes(), body].concat())
    }

    fn ask(&self, method: &str, path: &str, body: &[u8]) -> (u16, Value) {
        let headers = format!("Host: {0}\r\nOrigin: http://{0}\r\n", self.host());
        let (status, text) = self.send(method, &format!("/{}/{path}", self.token), &headers, body);
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// Uploads a model, runs a command on it and waits for its end.
    fn job(&self, model: &str, request: &str) -> (String, Value) {
        let job = self.ask("POST", "jobs", b"").1["job"].as_str().unwrap().to_owned();
        assert_eq!(self.ask("PUT", &format!("jobs/{job}/model/robot.urdf"), model.as_bytes()).0, 200);
        assert_eq!(self.ask("POST", &format!("jobs/{job}/run"), request.as_bytes()).0, 200);
        loop {
            let (status, value) = self.ask("GET", &format!("jobs/{job}"), b"");
            assert_eq!(status, 200);
            if value["state"] == "done" || value["state"] == "failed" {
                return (job, value);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn robot() -> String {
    urdf(&inertial("1", "0.1", "0.1", "0.1"))
}

#[test]
fn an_upload_becomes_a_report() {
    let place = Folder::new();
    let server = Server::start(&place, &[]);
    let (status, page) = server.ask("GET", "", b"");
    assert_eq!(status, 200);
    assert!(page.as_str().unwrap().contains("Identify a robot"));
    let (job, end) = server.job(&robot(), r#"{"command": "analyze"}"#);
    assert_eq!(end["state"], "done", "{end}");
    let (status, report) = server.ask("GET", &format!("jobs/{job}/files/report.html"), b"");
    assert_eq!(status, 200);
    assert!(report.as_str().unwrap().contains("inertial/analysis/1"));
    let (_, result) = server.ask("GET", &format!("jobs/{job}/files/result.json"), b"");
    assert_eq!(result["schema"], "inertial/analysis/1");
    assert_eq!(server.ask("DELETE", &format!("jobs/{job}"), b"").0, 200);
    assert_eq!(server.ask("GET", &format!("jobs/{job}"), b"").0, 404);
}

#[test]
fn requests_without_a_valid_token_are_refused() {
    let place = Folder::new();
    let server = Server::start(&place, &[]);
    let (host, token) = (server.host(), &server.token);
    let own = format!("/{token}/");
    for (path, headers) in [
        (own.as_str(), "Host: robots.example\r\n".to_owned()),
        (own.as_str(), String::new()),
        (own.as_str(), format!("Host: {host}\r\nOrigin: http://robots.example\r\n")),
        (own.as_str(), format!("Host: {host}\r\nOrigin: null\r\n")),
        ("/", format!("Host: {host}\r\n")),
        ("/00000000000000000000000000000000/", format!("Host: {host}\r\n")),
        ("/jobs", format!("Host: {host}\r\n")),
    ] {
        let (status, text) = server.send("GET", path, &headers, b"");
        // A request without a host is malformed.
        assert!(status == 403 || (headers.is_empty() && status == 400), "{path} {headers}: {status} {text}");
        assert!(!text.contains("Identify a robot"));
    }
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let place = Folder::new();
    let server = Server::start(&place, &[]);
    for name in
        ["..%2f..%2fescaped", "%2fetc%2fpasswd", "..", ".hidden", "-option", "report.html", "a%00b", "a%20b"]
    {
        let job = server.ask("POST", "jobs", b"").1["job"].as_str().unwrap().to_owned();
        let (status, text) = server.ask("PUT", &format!("jobs/{job}/log/{name}"), b"x");
        assert!(status == 400 || status == 404, "{name}: {status} {text}");
    }
    assert_eq!(server.ask("GET", "jobs/..%2f..%2flock", b"").0, 404);
    let (job, _) = server.job(&robot(), r#"{"command": "check"}"#);
    assert_eq!(server.ask("GET", &format!("jobs/{job}/files/..%2f..%2flock"), b"").0, 404);
    assert_eq!(server.ask("GET", &format!("jobs/{job}/files/robot.urdf"), b"").0, 404);
    assert!(!place.path("escaped").exists());
}

#[test]
fn bad_uploads_end_in_one_line() {
    let place = Folder::new();
    let server = Server::start(&place, &["--max-upload", "1", "--quiet", "1"]);
    let (_, end) = server.job("<robot", r#"{"command": "analyze"}"#);
    assert_eq!(end["state"], "failed");
    assert_eq!(end["lines"].as_array().unwrap().len(), 1, "{end}");
    let include = "<mujoco><include file=\"/etc/passwd\"/></mujoco>";
    assert_eq!(server.job(include, r#"{"command": "check"}"#).1["state"], "failed");

    let open = || server.ask("POST", "jobs", b"").1["job"].as_str().unwrap().to_owned();
    let (status, text) =
        server.ask("PUT", &format!("jobs/{}/model/a.urdf", open()), &vec![b'x'; (1 << 20) + 1]);
    // The connection may break before the response is read; the file is rejected in both cases.
    assert!(status == 400 || status == 0, "{status} {text}");
    // A file that is too large can be replaced by another one.
    let job = open();
    let put = |bytes: &[u8]| server.ask("PUT", &format!("jobs/{job}/model/a.urdf"), bytes).0;
    assert!(matches!(put(&vec![b'x'; (1 << 20) + 1]), 400 | 0));
    assert_eq!(put(robot().as_bytes()), 200);
    let long = format!("Host: {}\r\nX-Long: {}\r\n", server.host(), "x".repeat(33 << 10));
    assert!(matches!(server.send("GET", &format!("/{}/", server.token), &long, b"").0, 431 | 0));
    for request in [
        "",
        "{",
        r#"{"command": "demo"}"#,
        r#"{"command": "check", "out": "x"}"#,
        r#"{"command": "identify"}"#,
    ] {
        let job = open();
        server.ask("PUT", &format!("jobs/{job}/model/a.urdf"), robot().as_bytes());
        assert_eq!(server.ask("POST", &format!("jobs/{job}/run"), request.as_bytes()).0, 400, "{request}");
    }
    // Slow upload: the announced bytes never arrive.
    let job = open();
    let head = format!(
        "PUT /{}/jobs/{job}/model/a.urdf HTTP/1.1\r\nHost: {}\r\nContent-Length: 1000\r\n\r\n<robot",
        server.token,
        server.host()
    );
    assert_eq!(server.raw(head.as_bytes()).0, 400);
    assert_eq!(server.ask("GET", "", b"").0, 200);
}

/// Returns a log of the oscillating hinge of [`robot`].
fn log(rows: usize) -> String {
    let mut out = String::from("t,q.hinge,tau.hinge\n");
    for k in 0..rows {
        let t = 0.005 * k as f64;
        // Vertical axis: inertia about the hinge (0.1 + 0.1²) times the acceleration.
        writeln!(out, "{t},{},{}", 0.5 * (4.0 * t).sin(), -0.11 * 8.0 * (4.0 * t).sin()).unwrap();
    }
    out
}

#[test]
fn logs_become_a_corrected_model() {
    let place = Folder::new();
    let server = Server::start(&place, &[]);
    let job = server.ask("POST", "jobs", b"").1["job"].as_str().unwrap().to_owned();
    let put = |what: &str, text: &str| server.ask("PUT", &format!("jobs/{job}/{what}"), text.as_bytes()).0;
    assert_eq!((put("model/robot.urdf", &robot()), put("log/swing.csv", &log(2000))), (200, 200));
    assert_eq!(put("log/swing.csv", "again"), 400);
    // A rejected file has no effect.
    assert_eq!(server.ask("GET", &format!("jobs/{job}"), b"").1["state"], "uploading");
    let request = r#"{"command": "identify", "estimator": "consistent", "holdout": 0.3}"#;
    assert_eq!(server.ask("POST", &format!("jobs/{job}/run"), request.as_bytes()).0, 200);
    let end = loop {
        let value = server.ask("GET", &format!("jobs/{job}"), b"").1;
        if value["state"] == "done" || value["state"] == "failed" {
            break value;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(end["state"], "done", "{end}");
    let file = |name: &str| server.ask("GET", &format!("jobs/{job}/files/{name}"), b"").1;
    assert!(file("identified.urdf").as_str().unwrap().contains("<!-- kept -->"));
    assert!(file("report.html").as_str().unwrap().contains("inertial/identification/1"));
    let found = file("result.json")["base_parameters"][0]["value"].as_f64().unwrap();
    // The log has no noise; the remaining error is that of the filter and the prior.
    assert!((found - 0.11).abs() < 2e-3, "{found}");
}

/// Returns the peak memory of a process, in megabytes.
fn peak(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? >> 10)
}

#[test]
fn many_at_once_are_all_answered_in_little_memory() {
    let place = Folder::new();
    let server = Server::start(&place, &[]);
    // A comment of some megabytes that the server must not hold in memory.
    let text = robot() + &format!("<!--{}-->", "x".repeat(4 << 20));
    std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..50)
            .map(|_| scope.spawn(|| server.job(&text, r#"{"command": "check"}"#).1["state"].clone()))
            .collect();
        for job in jobs {
            assert_eq!(job.join().unwrap(), "done");
        }
    });
    // Two hundred megabytes were transferred.
    if let Some(held) = peak(server.child.id()) {
        assert!(held < 64, "{held} MB");
    }
}

#[test]
fn stored_uploads_are_limited() {
    let place = Folder::new();
    let server = Server::start(&place, &["--max-upload", "1"]);
    let text = vec![b'x'; 1 << 20];
    let upload = || {
        let job = server.ask("POST", "jobs", b"").1["job"].as_str().unwrap().to_owned();
        (server.ask("PUT", &format!("jobs/{job}/model/a.urdf"), &text).0, job)
    };
    let held: Vec<_> = (0..20).map(|_| upload()).collect();
    assert!(held.iter().all(|(status, _)| *status == 200));
    assert_ne!(upload().0, 200);
    // Freed space can be used again.
    server.ask("DELETE", &format!("jobs/{}", held[0].1), b"");
    assert_eq!(upload().0, 200);
}

#[test]
fn temporary_folders_are_removed() {
    let place = Folder::new();
    let folders = || -> Vec<_> {
        let names = Path::read_dir(&place.path("")).unwrap().map(|e| e.unwrap().file_name());
        names.filter(|n| n.to_string_lossy().starts_with("inertial-serve-")).collect()
    };
    let mut killed = Server::start(&place, &[]);
    killed.job(&robot(), r#"{"command": "check"}"#);
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    let left = folders();
    assert_eq!(left.len(), 1);
    let mut next = Server::start(&place, &[]);
    assert_eq!(folders().len(), 1);
    assert_ne!(folders(), left);
    let interrupted =
        std::process::Command::new("kill").args(["-INT", &next.child.id().to_string()]).status();
    assert!(interrupted.unwrap().success());
    assert_eq!(next.child.wait().unwrap().code(), Some(0));
    assert!(folders().is_empty());
}

/// A job of a server that was killed went on.
#[cfg(target_os = "linux")]
#[test]
fn a_job_ends_when_its_server_is_killed() {
    let place = Folder::new();
    let mut server = Server::start(&place, &[]);
    let job = server.ask("POST", "jobs", b"").1["job"].as_str().unwrap().to_owned();
    // The analysis of a long chain takes some seconds.
    let (mut links, mut joints) = (String::from("<link name=\"l0\"/>"), String::new());
    for k in 1..3000 {
        write!(
            links,
            "<link name=\"l{k}\"><inertial><mass value=\"1\"/><inertia ixx=\"1\" ixy=\"0\" ixz=\"0\" iyy=\"1\" \
             iyz=\"0\" izz=\"1\"/></inertial></link>"
        )
        .unwrap();
        write!(
            joints,
            "<joint name=\"j{k}\" type=\"continuous\"><parent link=\"l{}\"/><child link=\"l{k}\"/><origin \
             xyz=\"0.1 0.2 0.3\" rpy=\"0.4 0.5 0.6\"/><axis xyz=\"0 0 1\"/></joint>",
            k - 1
        )
        .unwrap();
    }
    let model = format!("<robot name=\"long\">{links}{joints}</robot>");
    assert_eq!(server.ask("PUT", &format!("jobs/{job}/model/a.urdf"), model.as_bytes()).0, 200);
    assert_eq!(server.ask("POST", &format!("jobs/{job}/run"), br#"{"command": "analyze"}"#).0, 200);
    let children = || {
        let id = server.child.id();
        std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default()
    };
    let wait = |condition: &dyn Fn() -> bool| {
        let start = std::time::Instant::now();
        while !condition() && start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        condition()
    };
    let state = || server.ask("GET", &format!("jobs/{job}"), b"").1["state"].clone();
    assert!(wait(&|| !children().is_empty() || state() == "done"));
    let child = children().trim().to_owned();
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    if !child.is_empty() {
        let status = format!("/proc/{child}/status");
        // A zombie has ended, although nobody has read its status.
        assert!(wait(&|| std::fs::read_to_string(&status).map_or(true, |text| text.contains("State:\tZ"))));
    }
}

#[test]
fn limits_must_make_sense() {
    assert_eq!(refused(&["serve", "--parallel", "0"]), "--parallel must be from 1 to 64");
    assert_eq!(refused(&["serve", "--max-upload", "0"]), "--max-upload must be above zero");
}

#[test]
fn uploads_are_readable_by_their_user_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Folder::new();
    let server = Server::start(&place, &[]);
    server.job(&robot(), r#"{"command": "check"}"#);
    let mut folders = vec![place.path("")];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in Path::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let mode = path.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode & 0o077, 0, "{} {mode:o}", path.display());
            seen += 1;
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    assert!(seen >= 5, "{seen}");
}

#[test]
fn signals_remove_the_temporary_folder() {
    for signal in ["-TERM", "-HUP", "-INT"] {
        let place = Folder::new();
        let mut server = Server::start(&place, &[]);
        server.job(&robot(), r#"{"command": "check"}"#);
        let reported =
            std::process::Command::new("kill").args([signal, &server.child.id().to_string()]).status();
        assert!(reported.unwrap().success());
        assert_eq!(server.child.wait().unwrap().code(), Some(0), "{signal}");
        assert!(place.names().is_empty(), "{signal}: {:?}", place.names());
    }
}

#[test]
fn a_further_upload_does_not_delete_a_job() {
    let place = Folder::new();
    let server = Server::start(&place, &[]);
    let (job, end) = server.job(&robot(), r#"{"command": "check"}"#);
    assert_eq!(end["state"], "done");
    let (status, answer) = server.ask("PUT", &format!("jobs/{job}/log/late.csv"), b"t");
    assert_eq!((status, &answer["error"]), (400, &Value::from("the job is already running")));
    assert_eq!(server.ask("GET", &format!("jobs/{job}"), b"").1["state"], "done");
}

#[test]
fn requests_with_two_hosts_or_another_authority_are_refused() {
    let place = Folder::new();
    let server = Server::start(&place, &[]);
    let (host, token) = (server.host(), &server.token);
    let ask = |target: &str, headers: &str| server.send("GET", target, headers, b"").0;
    let own = format!("Host: {host}\r\n");
    assert_eq!(ask(&format!("/{token}/"), &own), 200);
    assert_eq!(ask(&format!("http://{host}/{token}/"), &own), 200);
    assert_eq!(ask(&format!("http://robots.example/{token}/"), &own), 403);
    assert_eq!(ask(&format!("/{token}/"), &format!("{own}Host: robots.example\r\n")), 403);
    assert_eq!(ask(&format!("/{token}/"), &format!("Host: robots.example\r\n{own}")), 403);
}

#[test]
fn idle_connections_do_not_block_the_server() {
    let place = Folder::new();
    let server = Server::start(&place, &[]);
    // More connections than the server accepts at once; this process may open a few hundred handles.
    let silent: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(server.host()).unwrap()).collect();
    for _ in 0..3 {
        assert_eq!(server.ask("GET", "", b"").0, 200);
    }
    drop(silent);
}

/// A damaged request is answered or its connection is closed, and the server continues.
#[test]
fn damaged_requests_do_not_stop_it() {
    let place = Folder::new();
    let server = Server::start(&place, &[]);
    let (job, _) = server.job(&robot(), r#"{"command": "check"}"#);
    let fill = |seed: Vec<u8>| {
        let text = String::from_utf8(seed).unwrap();
        text.replace("TOKEN", &server.token).replace("HOST", &server.host()).replace("JOB", &job).into_bytes()
    };
    let seeds: Vec<Vec<u8>> = seeds("request").into_iter().map(fill).collect();
    let mut random = Random(1);
    let (mut answered, cases) = (0, cases(300));
    for case in 0..cases {
        let mut stream = TcpStream::connect(server.host()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let _ = stream.write_all(&damaged(&mut random, &seeds));
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        if let Err(error) = stream.read_to_end(&mut answer) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "request {case}");
        }
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."), "request {case}");
        answered += usize::from(!answer.is_empty());
        if case % 100 == 0 {
            assert_eq!(server.ask("GET", "", b"").0, 200);
        }
    }
    println!("request: {answered} of {cases} damaged inputs are still usable");
    assert_eq!(server.ask("GET", "", b"").0, 200);
}
