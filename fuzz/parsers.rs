//! Parsers of everything that a user may provide, each on its own: tens of microseconds per input instead of a whole job.
//!
//! The targets of `targets.rs` run jobs on damaged inputs; these read an input to its end and stop. Both must give a result or one line.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use inertial::estimation::Bounds;
use inertial::mechanism::BuildOptions;
use inertial::mechanism::read;
use inertial::mesh::Mesh;
use inertial_app::unknowns::Unknowns;
use inertial_app::{Disk, Error, InMemoryInputs, simulate, summary_file};
use inertial_data::{
    ColumnMap, CsvReader, FixedLag, Log, Options, Reader, Source, open_as, with_standard_names,
};

use crate::targets::{Rows, Target, context, judged, refused, robot};

/// Every parser, with the folder of its seeds and the number of inputs that the tests try.
pub const PARSERS: [(&str, Target, usize); 23] = [
    ("urdf", model, 2000),
    ("mjcf", model, 2000),
    ("sdf", model, 2000),
    ("usd", scene, 2000),
    ("xacro", macros, 2000),
    ("mechanism", model, 2000),
    ("mesh", mesh, 2000),
    ("csv", log, 2000),
    ("gzip", log, 2000),
    ("zstd", log, 2000),
    ("parquet", log, 2000),
    ("numpy", log, 2000),
    ("matlab", log, 2000),
    ("mcap", log, 2000),
    ("sqlite", log, 2000),
    ("hdf5", log, 2000),
    ("ros1", log, 2000),
    ("map", map, 2000),
    ("joint-model", joint_model, 2000),
    ("bounds", bounds, 2000),
    ("trajectory", trajectory, 2000),
    ("stream", stream, 2000),
    ("summary", summary, 2000),
];

/// Largest number of values that are read from one log; a small compressed file may contain gigabytes within the limits.
const VALUES: usize = 1 << 20;

fn model(bytes: &[u8]) -> bool {
    let text = &String::from_utf8_lossy(bytes);
    checked(read::model(text, &read::no_includes).and_then(|model| model.build(&BuildOptions::default())))
}

fn scene(bytes: &[u8]) -> bool {
    let model = read::usd::read(bytes, &read::no_includes);
    checked(model.and_then(|model| model.build(&BuildOptions::default())))
}

fn macros(bytes: &[u8]) -> bool {
    let text = &String::from_utf8_lossy(bytes);
    match read::xacro::expand(text, "robot.xacro", &[], &read::xacro::NoFiles) {
        Ok(expanded) => model(expanded.text.as_bytes()),
        Err(error) => refused(&error.into()),
    }
}

fn mesh(bytes: &[u8]) -> bool {
    checked(Mesh::parse(bytes))
}

/// Reads a log to its end: all columns that are numbers, under standard names.
fn log(bytes: &[u8]) -> bool {
    let source = Source::default().with(|s| s.joints = joints());
    judged(
        with_file(bytes, |path| open_as(path, "log".to_owned(), &source).and_then(rows)).map_err(Error::from),
    )
}

/// Applies a column map to a log of the test.
fn map(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let mapped = ColumnMap::parse(&text, "map.toml").and_then(|map| {
        let source = Source::default().with(|s| {
            s.joints = joints();
            s.map = Some(map);
        });
        rows(with_standard_names(Box::new(Columns::new()), &source)?)
    });
    judged(mapped.map_err(Error::from))
}

fn joint_model(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let unknowns = Unknowns::default().with(|u| u.joint_model = Some("joints.toml".to_owned()));
    in_memory("joints.toml", text, |context| unknowns.given_joint_model(robot(), context))
}

fn bounds(bytes: &[u8]) -> bool {
    checked(Bounds::from_toml(&String::from_utf8_lossy(bytes)))
}

/// Reads a trajectory and simulates its first rows.
fn trajectory(bytes: &[u8]) -> bool {
    let options = simulate::Options::default().with(|o| {
        "trajectory".clone_into(&mut o.trajectory);
        o.ignore_limits = true;
    });
    // Tables are read as logs, from files.
    let outcome = with_file(bytes, |path| {
        let options = options.with(|o| o.trajectory = path.display().to_string());
        simulate::run(robot(), &options, &context(&Disk::default()), Some(&mut Rows(3))).map(drop)
    });
    // The sink ends the simulation after some rows.
    outcome.as_ref().is_err_and(|error| error.to_string().ends_with(&Error::Interrupted.to_string()))
        || judged(outcome)
}

/// Smooths the samples of a stream.
fn stream(bytes: &[u8]) -> bool {
    let read = || -> inertial_data::Result<()> {
        let mut reader = CsvReader::new(std::io::Cursor::new(bytes.to_vec()), "stream")?;
        let mut filter: Option<FixedLag<'_>> = None;
        while let Some(rows) = reader.next_block(1)? {
            let filter = match &mut filter {
                Some(filter) => filter,
                none => none.insert(FixedLag::new(&robot().mechanism, &rows, 0.05, &Options::default())?),
            };
            filter.push(&rows)?;
        }
        Ok(())
    };
    judged(read().map_err(Error::from))
}

fn summary(bytes: &[u8]) -> bool {
    judged(summary_file::unpack(bytes))
}

/// Reads the values of a log, which are numbers or missing.
fn rows(mut reader: Box<dyn Reader>) -> inertial_data::Result<()> {
    let numbers: Vec<usize> = (0..reader.names().len()).filter(|&k| reader.is_number(k)).collect();
    reader.select(&numbers);
    let mut values = 0;
    while let Some(rows) = reader.next_rows()? {
        assert_eq!(rows.values.len(), rows.lines.len() * rows.width);
        values += rows.values.len() + rows.lines.len();
        if values > VALUES {
            break;
        }
    }
    reader.notes();
    Ok(())
}

/// Names of the joints of the robot.
fn joints() -> Vec<String> {
    robot().mechanism.joints().iter().map(|joint| joint.name.clone()).collect()
}

/// A log in memory, with the names of the log that the column maps of the seeds describe.
struct Columns {
    names: Vec<String>,
    selected: Vec<usize>,
    done: bool,
}

impl Columns {
    fn new() -> Self {
        let log = Log::collect(CsvReader::new(&include_bytes!("seeds/csv/comma.csv")[..], "log").unwrap());
        let names = log.unwrap().names().to_vec();
        Self { selected: (0..names.len()).collect(), names, done: false }
    }
}

impl Reader for Columns {
    fn file(&self) -> &'static str {
        "log"
    }

    fn names(&self) -> &[String] {
        &self.names
    }

    fn select(&mut self, columns: &[usize]) {
        self.selected = columns.to_vec();
    }

    fn next_rows(&mut self) -> inertial_data::Result<Option<inertial_data::LogRows>> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(None);
        }
        let width = self.selected.len();
        Ok(Some(inertial_data::LogRows { width, values: vec![0.5; 2 * width], lines: vec![2, 3] }))
    }
}

fn checked<T>(outcome: inertial::Result<T>) -> bool {
    judged(outcome.map_err(Error::from))
}

/// Runs a job on a text in memory.
fn in_memory<T>(
    name: &str,
    text: String,
    job: impl FnOnce(&inertial_app::Context<'_>) -> inertial_app::Result<T>,
) -> bool {
    let texts = HashMap::from([(name.to_owned(), text)]);
    let (logs, summaries, others) = (HashMap::new(), HashMap::new(), Disk::default());
    let inputs = InMemoryInputs { texts: &texts, logs: &logs, summaries: &summaries, others: &others };
    judged(job(&inertial_app::Context { inputs: &inputs, progress: &inertial_app::NoProgress }))
}

/// Writes bytes to the same file again, which is faster than a new one, and reads it by its path.
fn with_file<T>(bytes: &[u8], read: impl FnOnce(&PathBuf) -> T) -> T {
    thread_local! {
        static INPUT: (tempfile::TempDir, File, PathBuf) = {
            // A file system in memory, if there is one: others may wait for their disk.
            let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
            let path = folder.path().join("input");
            (folder, File::create(&path).unwrap(), path)
        };
    }
    INPUT.with(|(_, file, path)| {
        let mut file = file;
        file.set_len(0).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.write_all(bytes).unwrap();
        read(path)
    })
}
