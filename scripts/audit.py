#!/usr/bin/env python3
"""Damages inputs, injects faults and sends signals, and checks that the program neither hangs nor loses or leaks files.

    scripts/audit.py PROGRAM [--minutes 15] [--seed 1] [--jobs 2] [--parts inputs,faults] [--out counts.json]

Every case runs the program in a separate folder. Each case checks that

- the program terminates within 60 s with status 0, 1 or 2 and without a panic; with status 2 its last line is `inertial: …`
- inputs are unchanged; an existing output is unchanged or complete; either all outputs of a call are replaced or none
- no temporary file is left; after SIGKILL, the next run in the folder removes it
- printed JSON is valid (no NaN, no infinity) and follows the schema that it names

Exits with status 1 if a case fails, and copies failed cases to target/audit. Faults need strace, schemas need jsonschema.
`scripts/audit.sh` builds everything, runs this script and the in-process tests of damaged inputs, and prints the counts.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SEEDS = ROOT / "fuzz" / "seeds"
FINDINGS = ROOT / "target" / "audit"
ROBOT = "builtin:planar-2r"
#: Time limit of a case (s). No case needs more than a second; a case that exceeds the limit counts as hanging.
LONGEST = 60

try:
    import jsonschema
except ImportError:
    jsonschema = None


class Finding(Exception):
    """Failure of a case."""


# Damage

NASTY = [b"0", b"-1", b"1e999", b"NaN", b"inf", b"1e308", b"1e-320", b"1e15", b"18446744073709551615", b"", b'"', b"<", b"/>", b"&#x0;",
         b"<!--", b"{", b"]", b"((((((((", b"null", b"\0", "\ufeffé\U0001f916".encode(), b"\r\n", b"\x1b[2J", b"\xff\xfe"]  # fmt: skip
NUMBER = re.compile(rb"[0-9][0-9.eE+-]*")
WORD = re.compile(rb"[A-Za-z0-9_.+-]+")


def damage(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Returns the data with one random change."""
    at = rng.randrange(len(data) + 1)
    end = min(at + rng.randrange(40), len(data))
    kind = rng.randrange(9)
    if kind == 0 and at < len(data):
        return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
    if kind == 1:
        return data[:at] + data[end:]
    if kind == 2:
        return data[:at] + rng.choice(NASTY) + data[at:]
    if kind in (3, 4):
        places = list((NUMBER if kind == 3 else WORD).finditer(data))
        if places:
            to, source = rng.choice(places), rng.choice(places)
            new = rng.choice(NASTY) if rng.random() < 0.4 else source[0]
            return data[: to.start()] + new + data[to.end() :]
    if kind == 5:
        lines = data.splitlines(keepends=True)
        if lines:
            to = rng.randrange(len(lines))
            return b"".join(lines[:to] + [rng.choice(lines)] + lines[to + rng.randrange(2) :])
    if kind == 6:
        width = rng.choice([1, 2, 4, 8])
        value = rng.choice([0, 1, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**64 - 1]) % 256**width
        return data[:at] + value.to_bytes(width, rng.choice(["little", "big"])) + data[at + width :]
    if kind == 7 and rng.random() < 0.3:
        return data[:at]
    source = rng.randrange(len(other) + 1)
    return data[:at] + other[source : source + rng.randrange(200)] + data[end:]


def damaged(rng: random.Random, kind: str) -> bytes:
    """Returns a random seed of a kind with up to four changes."""
    seeds = sorted((SEEDS / kind).iterdir())
    data, other = (rng.choice(seeds).read_bytes() for _ in range(2))
    for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 4])):
        data = damage(rng, data, other)
    return data


# Runs


def limit(kind: int, value: int):
    """Returns a function that sets a resource limit in the child process."""
    return lambda: resource.setrlimit(kind, (value, value))


def run(command: list[str], folder: pathlib.Path, before=None) -> subprocess.CompletedProcess:
    """Runs a command; a timeout is a finding."""
    try:
        return subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=LONGEST, preexec_fn=before)
    except subprocess.TimeoutExpired as error:
        raise Finding("does not terminate") from error


def judge(done: subprocess.CompletedProcess, allowed=(0, 1, 2), silent: bool = False) -> None:
    """Checks status and messages; `silent` allows a missing message, for runs whose writes fail."""
    stderr = done.stderr.decode(errors="replace")
    # Without memory for stacks, the Rust runtime itself panics.
    if "panicked" in stderr and "stack_overflow.rs" not in stderr:
        raise Finding(f"panics: {stderr[-400:]}")
    if done.returncode not in allowed:
        raise Finding(f"status {done.returncode}: {stderr[-400:]}")
    if done.returncode == 2 and not silent:
        lines = stderr.splitlines()
        if not lines or not lines[-1].startswith("inertial: "):
            raise Finding(f"no error message: {stderr[-400:]}")
    if any(ord(c) < 32 and c not in "\n\t" for c in stderr + done.stdout.decode(errors="replace")):
        raise Finding("control characters in the output")


def refuse(constant: str):
    raise Finding(f"{constant} in the JSON")


SCHEMAS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "docs" / "schema").glob("*.json")}


def judge_json(text: bytes) -> int:
    """Checks JSON against its schema; returns 1, or 0 for empty output."""
    if not text.strip():
        return 0
    data = json.loads(text, parse_constant=refuse)
    name = re.fullmatch(r"inertial/(\w+)/[12]", data["schema"])[1]
    if jsonschema:
        try:
            jsonschema.Draft202012Validator(SCHEMAS[name]).validate(data)
        except jsonschema.ValidationError as error:
            raise Finding(f"schema {name}: {error.json_path}: {error.message[:200]}") from error
    return 1


def note(folder: pathlib.Path, command: str) -> None:
    """Stores the command of a case next to its folder."""
    (folder.parent / "command").write_text(command, encoding="utf-8")


def parts(folder: pathlib.Path) -> dict[str, bytes]:
    """Returns the contents of all files in a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


class Call:
    """A command with its inputs and outputs in one folder."""

    def __init__(self, arguments: str, inputs: dict[str, bytes], outputs: tuple[str, ...]):
        self.arguments, self.inputs, self.outputs = arguments.split(), inputs, outputs

    def prepare(self, folder: pathlib.Path, old: bool) -> None:
        for name, data in self.inputs.items():
            (folder / name).write_bytes(data)
        for name in self.outputs if old else ():
            (folder / name).write_bytes(b"old")

    def judge(self, folder: pathlib.Path, old: bool, status: int, left: bool = False, mixed: bool = False) -> None:
        """Checks the files after a run: all outputs are old, or all are new and complete. `left` allows temporary files, `mixed` allows old
        and new outputs together."""
        found = parts(folder)
        for name, data in self.inputs.items():
            if found.pop(name, None) != data:
                raise Finding(f"the input {name} has changed")
        if left:
            found = {name: data for name, data in found.items() if not name.startswith(".inertial-")}
        states = set()
        for name in self.outputs:
            data = found.pop(name, b"old" if not old else None)
            if data is None:
                raise Finding(f"the output {name} is missing")
            complete = data.endswith({"html": b"</html>\n", "summary": b"}\n", "json": b"}\n"}.get(name.split(".")[-1], b"\n"))
            if data != b"old" and not complete:
                raise Finding(f"the output {name} is incomplete: {data[-40:]!r}")
            states.add(data != b"old")
        if found:
            raise Finding(f"left behind: {', '.join(found)}")
        if status == 0 and False in states:
            raise Finding("status 0 without an output")
        # A call that was killed between two renames has replaced some of its outputs, each of them complete.
        if status in (1, 2) and len(states) > 1 and not mixed:
            raise Finding("some outputs of a failed call are new")


class Audit:
    """Counts of cases and findings."""

    def __init__(self, options: argparse.Namespace):
        self.program, self.seed, self.jobs = str(pathlib.Path(options.program).resolve()), options.seed, options.jobs
        self.counts: dict[str, int] = {}
        self.findings = 0
        FINDINGS.mkdir(parents=True, exist_ok=True)

    def count(self, name: str, number: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + number

    def part(self, name: str, case, seconds: float) -> None:
        """Runs numbered cases for a given time."""
        end = time.monotonic() + seconds

        def one(number: int):
            place = pathlib.Path(tempfile.mkdtemp(prefix="inertial-audit-"))
            folder = place / "folder"
            folder.mkdir()
            try:
                return case(random.Random(f"{self.seed} {name} {number}"), folder), None
            except Finding as finding:
                shutil.copytree(place, FINDINGS / f"{name}-{number}", dirs_exist_ok=True)
                command = place / "command"
                return {}, f"{name} {number}: {command.read_text() if command.exists() else ''}: {finding}"
            finally:
                shutil.rmtree(place, ignore_errors=True)

        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            number = 0
            while time.monotonic() < end:
                for counts, finding in pool.map(one, range(number, number + 16)):
                    for key, value in counts.items():
                        self.count(key, value)
                    if finding:
                        self.findings += 1
                        print(finding, flush=True)
                number += 16
        print(f"{name}: {number} cases", flush=True)

    # Parts

    def inputs(self, rng: random.Random, folder: pathlib.Path) -> dict[str, int]:
        """Runs a command on a damaged input."""
        kind, arguments = rng.choice(DAMAGED)
        data = self.summary(rng) if kind == "summary" else damaged(rng, kind)
        name = {"summary": "x.summary", "trajectory": "x.csv"}.get(kind, "x")
        call = Call(arguments, {name: data, "log.csv": LOG}, ())
        call.prepare(folder, False)
        note(folder, arguments)
        done = run([self.program, *call.arguments], folder, limit(resource.RLIMIT_AS, 8 << 30))
        judge(done)
        found = parts(folder)
        for output in (name for name in found if name.startswith(("page.", "out"))):
            if done.returncode == 2:
                raise Finding(f"a refused call wrote {output}")
            (folder / output).unlink()
        call.judge(folder, False, 2)
        counts = {"damaged inputs": 1, f"status {done.returncode}": 1}
        if "--json" in call.arguments:
            counts["results that follow their schema"] = judge_json(done.stdout)
        if kind == "summary" and done.returncode == 0 and numbers(done.stdout) != numbers(self.reference):
            raise Finding("a damaged summary gives different values")
        return counts

    def summary(self, rng: random.Random) -> bytes:
        data = self.whole_summary
        for _ in range(rng.randrange(1, 3)):
            data = damage(rng, data, data)
        return data

    def faults(self, rng: random.Random, folder: pathlib.Path) -> dict[str, int]:
        """Lets a system call fail."""
        call, old = rng.choice(CALLS), rng.random() < 0.5
        system, errors, most = rng.choice(FAULTS)
        error = rng.choice(errors)
        call.prepare(folder, old)
        # Some faults persist, for example a full disk.
        when = f"{rng.randrange(1, most)}{rng.choice(['', '+'] if error != 'EINTR' else [''])}"
        inject = f"inject={system}:error={error}:when={when}"
        note(folder, f"{inject} {' '.join(call.arguments)}")
        trace = pathlib.Path(tempfile.mkstemp(prefix="inertial-audit-trace-")[1])
        try:
            command = ["strace", "-f", "-qqq", "-o", str(trace), "-e", f"trace={system}", "-e", inject, self.program, *call.arguments]
            done = run(command, folder)
            injected = trace.read_text(errors="replace").count("(INJECTED)")
        finally:
            trace.unlink()
        # Without memory or files, the loader (127 or SIGSEGV) or the allocator (abort) terminates the program.
        ends = (127, -signal.SIGABRT) + ((-signal.SIGSEGV,) if system == "mmap" else ())
        judge(done, (0, 1, 2, *ends) if injected else (0,), silent=system == "write")
        # A persistent fault can also prevent removing a file (a later run does it) or renaming an old output back.
        stays = when.endswith("+")
        call.judge(folder, old, done.returncode, left=stays, mixed=stays and system.startswith("rename"))
        return {"faults injected": injected, "runs with faults": 1 if injected else 0}

    def limits(self, rng: random.Random, folder: pathlib.Path) -> dict[str, int]:
        """Limits memory, open files or file sizes."""
        call, old = rng.choice(CALLS), rng.random() < 0.5
        call.prepare(folder, old)
        kind, value = rng.choice([
            (resource.RLIMIT_AS, rng.randrange(20, 600) << 20),
            (resource.RLIMIT_NOFILE, rng.randrange(3, 16)),
            (resource.RLIMIT_FSIZE, rng.randrange(0, 100_000)),
        ])  # fmt: skip
        note(folder, f"limit {kind} {value} {' '.join(call.arguments)}")
        done = run([self.program, *call.arguments], folder, limit(kind, value))
        judge(done, (0, 1, 2, 127, -signal.SIGABRT))
        call.judge(folder, old, done.returncode)
        return {"runs with small limits": 1}

    def signals(self, rng: random.Random, folder: pathlib.Path) -> dict[str, int]:
        """Sends a signal at a random time."""
        call, old = rng.choice(CALLS), rng.random() < 0.5
        call.prepare(folder, old)
        sent = rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
        note(folder, f"{sent.name} {' '.join(call.arguments)}")
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        child = subprocess.Popen([self.program, *call.arguments], cwd=folder, **quiet)
        time.sleep(rng.random() ** 2 * 0.3)
        child.send_signal(sent)
        try:
            stderr = child.communicate(timeout=LONGEST)[1]
        except subprocess.TimeoutExpired as error:
            child.kill()
            raise Finding(f"signal {sent} does not terminate it") from error
        if b"panicked" in stderr:
            raise Finding(f"panics: {stderr[-400:]!r}")
        call.judge(folder, old, child.returncode, left=sent == signal.SIGKILL)
        counts = {"signals sent": 1, f"signals sent: {sent.name}": 1}
        left = [name for name in parts(folder) if name.startswith(".inertial-")]
        if left:
            judge(run([self.program, *call.arguments], folder))
            if any(name in parts(folder) for name in left):
                raise Finding("the next run does not remove the temporary file of a killed run")
            counts["temporary files that the next run removed"] = len(left)
        return counts

    def served(self, rng: random.Random, folder: pathlib.Path) -> dict[str, int]:
        """Stops a server during requests and a job."""
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": {"TMPDIR": str(folder)}}
        server = subprocess.Popen([self.program, "serve"], cwd=folder, **quiet)
        try:
            port, token = re.match(r"http://127\.0\.0\.1:(\d+)/(\w+)/", server.stdout.readline().decode()).groups()
            host = f"127.0.0.1:{port}"

            def ask(method: str, path: str, body: bytes = b"", cut: bool = False) -> bytes:
                head = f"{method} /{token}/{path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nConnection: close\r\n"
                request = head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body
                with socket.create_connection(("127.0.0.1", int(port)), timeout=LONGEST) as connection:
                    connection.sendall(request[: rng.randrange(len(request))] if cut else request)
                    if cut:
                        return b""
                    answer = b""
                    while piece := connection.recv(65536):
                        answer += piece
                    return answer

            job = re.search(rb'"job":\s*"(\w+)"', ask("POST", "jobs"))[1].decode()
            ask("PUT", f"jobs/{job}/model/robot.urdf", (SEEDS / "urdf" / "arm.urdf").read_bytes())
            for _ in range(4):
                ask("PUT", f"jobs/{job}/log/log.csv", LOG, cut=True)
            ask("POST", f"jobs/{job}/run", b'{"command": "analyze"}')
            time.sleep(rng.random() * 0.1)
        finally:
            server.send_signal(rng.choice([signal.SIGTERM, signal.SIGINT, signal.SIGHUP]))
            try:
                stderr = server.communicate(timeout=LONGEST)[1]
            except subprocess.TimeoutExpired as error:
                server.kill()
                raise Finding("a signal does not terminate the server") from error
        if b"panicked" in stderr:
            raise Finding(f"panics: {stderr[-400:]!r}")
        if list(folder.iterdir()):
            raise Finding(f"the server leaves files: {[p.name for p in folder.iterdir()]}")
        return {"servers stopped": 1, "requests cut off": 4, "signals sent": 1}

    def references(self) -> None:
        """Creates the summary that is damaged later and its result, and checks that all calls work without faults."""
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place)
            for call in CALLS:
                call.prepare(folder, True)
                done = run([self.program, *call.arguments], folder)
                judge(done, (0,))
                call.judge(folder, True, 0)
                for name in parts(folder):
                    (folder / name).unlink()
            (folder / "log.csv").write_bytes(LOG)
            judge(run([self.program, *f"identify {ROBOT} log.csv --summary-out s.summary".split()], folder), (0,))
            self.whole_summary = (folder / "s.summary").read_bytes()
            self.reference = run([self.program, *f"identify {ROBOT} s.summary --json".split()], folder).stdout


def numbers(text: bytes) -> list:
    """Returns the base parameters of a result."""
    return [(p["name"], p["value"], p.get("std_error")) for p in json.loads(text)["base_parameters"]]


LOG = (SEEDS / "csv" / "comma.csv").read_bytes()
URDF = (SEEDS / "urdf" / "arm.urdf").read_bytes()
MOTION = (SEEDS / "trajectory" / "series.json").read_bytes()

#: Kinds of seeds and the commands that read them.
DAMAGED = [
    *((kind, command) for kind in ("urdf", "mjcf", "xacro", "mechanism") for command in (
        "check x --json", "check x --fix --out out.urdf", "analyze x --json", "analyze x --explain --report page.html", "export x --to c --out out.c",
        "export x --to mujoco", "design x --iterations 2 --duration 2 --json", f"identify {ROBOT} log.csv --prior x --json", "validate x log.csv --json")),
    *((kind, command) for kind in ("csv", "gzip", "parquet", "numpy", "matlab", "mcap", "sqlite") for command in (
        f"columns x {ROBOT} --json", f"identify {ROBOT} x --json", f"identify {ROBOT} x --estimator wls --friction none --json --trust-units",
        f"identify {ROBOT} x --report page.html --summary-out out.summary", f"validate {ROBOT} x --threshold 0.1 --json",
        f"identify {ROBOT} log.csv --cutoff 20 --validate x --json", f"simulate {ROBOT} x --ignore-limits --out out.csv --json")),
    *(("stream", f"identify {ROBOT} --follow x {more}") for more in ("", "--friction coulomb+viscous", "--window 0.1 --forget 1")),
    ("map", f"identify {ROBOT} log.csv --columns x --trust-units --json"), ("map", f"columns log.csv {ROBOT} --columns x --json"),
    ("joint-model", f"identify {ROBOT} log.csv --joint-model x --json"), ("joint-model", f"identify {ROBOT} --follow log.csv --joint-model x"),
    ("bounds", f"identify {ROBOT} log.csv --bounds x --json"),
    *(("trajectory", f"simulate {ROBOT} x.csv {more} --out out.csv") for more in ("", "--ignore-limits --json", "--waypoints", "--forward --json")),
    *(("summary", f"identify {ROBOT} x.summary --json"),) * 4,
]  # fmt: skip

#: Calls that write files.
CALLS = [
    Call(f"identify {ROBOT} log.csv --report page.html --summary-out out.summary", {"log.csv": LOG}, ("page.html", "out.summary")),
    Call("check m.urdf --report page.html", {"m.urdf": URDF}, ("page.html",)),
    Call("analyze m.urdf --report page.html", {"m.urdf": URDF}, ("page.html",)),
    Call(f"simulate {ROBOT} m.json --rate 5000 --ignore-limits --out out.csv", {"m.json": MOTION}, ("out.csv",)),
    Call(f"design {ROBOT} --iterations 3 --duration 2 --out out.csv --out out.json --report page.html", {}, ("out.csv", "out.json", "page.html")),
]  # fmt: skip

#: System calls that fail, their errors, and the approximate number of calls per run.
FAULTS = [
    ("write", ["ENOSPC", "EIO", "EDQUOT", "EINTR"], 12),
    ("read", ["EIO", "EINTR"], 40),
    ("pread64", ["EIO"], 6),
    ("openat", ["EMFILE", "EACCES", "ENOMEM"], 20),
    ("fsync", ["EIO", "ENOSPC"], 4),
    ("linkat", ["EACCES", "ENOSPC", "EXDEV"], 4),
    ("renameat", ["EACCES", "EXDEV", "ENOSPC"], 4),
    ("rename", ["EACCES", "EXDEV"], 4),
    ("fchmod", ["EPERM"], 3),
    ("fchown", ["EPERM"], 3),
    ("flock", ["EAGAIN", "ENOLCK"], 3),
    ("getdents64", ["EIO"], 4),
    ("statx", ["EACCES", "EIO"], 30),
    ("mmap", ["ENOMEM"], 60),
    ("clone3", ["EAGAIN", "ENOMEM"], 8),
    ("lseek", ["EIO"], 8),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--parts", default="inputs,faults,limits,signals,served", help="parts to run, separated by commas")
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    # Under nohup, child processes would ignore SIGHUP.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    audit = Audit(options)
    audit.references()
    shares = {"inputs": 0.5, "faults": 0.2, "limits": 0.08, "signals": 0.17, "served": 0.05}
    if not shutil.which("strace"):
        print("note: strace is not installed; no faults are injected")
        del shares["faults"]
    chosen = {name: shares[name] for name in options.parts.split(",") if name in shares}
    for name, share in chosen.items():
        audit.part(name, getattr(audit, name), 60 * options.minutes * share / sum(chosen.values()))
    audit.counts["findings"] = audit.findings
    for name, count in sorted(audit.counts.items()):
        print(f"{name}: {count}")
    if options.out:
        options.out.write_text(json.dumps(audit.counts, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    sys.exit(audit.findings > 0)


if __name__ == "__main__":
    main()
