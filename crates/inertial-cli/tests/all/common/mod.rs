//! Runs the built program.

#![allow(dead_code)]

#[path = "../../../../inertial/tests/all/common/conic.rs"]
pub mod conic;
#[path = "../../../../inertial/tests/all/common/data.rs"]
pub mod data;
#[path = "../../../../../fuzz/mutation.rs"]
pub mod mutation;
pub mod page;
#[path = "../../../../inertial/tests/all/common/python.rs"]
pub mod python;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub struct Run {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}{}", self.stdout, self.stderr))
    }
}

/// Runs the program.
pub fn run<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Run {
    finish(command().args(args).stdin(Stdio::null()).output().unwrap())
}

/// Runs the program with a text on its standard input.
pub fn run_with_input(args: &[&str], input: &[u8]) -> Run {
    let mut child = command()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may stop reading early.
    let _ = child.stdin.take().unwrap().write_all(input);
    finish(child.wait_with_output().unwrap())
}

pub fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_inertial"))
}

fn finish(output: Output) -> Run {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Run { status: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Runs a call that must fail with exit status 2, nothing on standard output, and one line on standard error.
pub fn refused<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> String {
    one_line(&run(args))
}

pub fn one_line(run: &Run) -> String {
    assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    let line = run.stderr.trim_end().strip_prefix("inertial: ").unwrap_or_else(|| panic!("{}", run.stderr));
    assert!(!line.contains("panicked"), "{line}");
    line.to_owned()
}

/// Temporary folder of one test.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = Path::read_dir(self.0.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Returns a URDF with two links: one with the given inertial, one massless.
pub fn urdf(inertial: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<!-- kept -->\n<robot name=\"two\">\n  <link name=\"base\"/>\n  <link name=\"arm\">\n    \
         {inertial}\n  </link>\n  <joint name=\"hinge\" type=\"revolute\">\n    <parent link=\"base\"/>\n    <child \
         link=\"arm\"/>\n    <axis xyz=\"0 0 1\"/>\n    <limit lower=\"-1\" upper=\"1\" effort=\"1\" velocity=\"1\"/>\n  \
         </joint>\n</robot>\n"
    )
}

/// Returns an `<inertial>` with a diagonal tensor.
pub fn inertial(mass: &str, x: &str, y: &str, z: &str) -> String {
    format!(
        "<inertial>\n      <origin xyz=\"0.1 0 0\" rpy=\"0 0 0\"/>\n      <mass value=\"{mass}\"/>\n      <inertia \
         ixx=\"{x}\" ixy=\"0\" ixz=\"0\" iyy=\"{y}\" iyz=\"0\" izz=\"{z}\"/>\n    </inertial>"
    )
}
