//! What everything that reads a user's bytes must do with any bytes: give a result, or one line that says why not.
//!
//! The tests of `inertial-app` run every target on damaged seeds, `scripts/fuzz.sh` runs them with cargo-fuzz.

use std::fs::File;
use std::path::PathBuf;
use std::sync::OnceLock;

use inertial::dynamics::{Workspace, mass_matrix};
use inertial::mechanism::read::{self, Format};
use inertial::mechanism::write::urdf::write_bodies;
use inertial::mechanism::{BodyKind, BuildOptions};
use inertial_app::choice::{Coupling, Estimator, Friction, Offset};
use inertial_app::{
    Context, Disk, Error, Model, ModelOptions, NoProgress, columns, follow, identify, simulate,
};

/// Reads bytes; returns whether they were usable.
pub type Target = fn(&[u8]) -> bool;

/// Every target, with the folder of its seeds.
pub const TARGETS: [(&str, Target); 20] = [
    ("urdf", model),
    ("mjcf", model),
    ("sdf", model),
    ("usd", scene),
    ("xacro", macros),
    ("mechanism", model),
    ("csv", log),
    ("gzip", log),
    ("parquet", log),
    ("numpy", log),
    ("matlab", log),
    ("mcap", log),
    ("sqlite", log),
    ("hdf5", log),
    ("ros1", log),
    ("map", map),
    ("joint-model", joint_model),
    ("bounds", bounds),
    ("trajectory", trajectory),
    ("stream", stream),
];

/// Reads, builds, uses and writes a model.
pub fn model(bytes: &[u8]) -> bool {
    let text = &String::from_utf8_lossy(bytes);
    let model = read::model(text, &read::no_includes);
    let robot = match model.and_then(|model| model.build(&BuildOptions::default())) {
        Ok(robot) => robot,
        Err(error) => return refused(&error.into()),
    };
    let mut mass = vec![0.0; robot.nv() * robot.nv()];
    mass_matrix(&robot, &mut Workspace::new(&robot), &robot.neutral(), &mut mass).unwrap();
    if read::detect(text) == Format::Urdf {
        let links = robot.bodies().iter().filter(|b| b.kind == BodyKind::Link);
        let same: Vec<_> = links.map(|b| (b.name.as_str(), b.inertia)).collect();
        if let Ok(written) = write_bodies(text, &BuildOptions::default(), &same, &[]) {
            read::model(&written.text, &read::no_includes).unwrap();
        }
    }
    true
}

/// Reads, builds and uses a scene of USD.
pub fn scene(bytes: &[u8]) -> bool {
    let model = read::usd::read(bytes, &read::no_includes);
    let robot = match model.and_then(|model| model.build(&BuildOptions::default())) {
        Ok(robot) => robot,
        Err(error) => return refused(&error.into()),
    };
    let mut mass = vec![0.0; robot.nv() * robot.nv()];
    mass_matrix(&robot, &mut Workspace::new(&robot), &robot.neutral(), &mut mass).unwrap();
    true
}

/// Expands macros, then uses the model.
pub fn macros(bytes: &[u8]) -> bool {
    let text = &String::from_utf8_lossy(bytes);
    match read::xacro::expand(text, "robot.xacro", &[], &read::xacro::NoFiles) {
        Ok(expanded) => model(expanded.text.as_bytes()),
        Err(error) => refused(&error.into()),
    }
}

/// Lists the columns of a log, then identifies a robot from it.
pub fn log(bytes: &[u8]) -> bool {
    let log = written("log", bytes);
    let listing = columns::Options::default().with(|o| o.log.clone_from(&log));
    judged(columns::run(Some(robot()), &listing, &context(&Disk::default())));
    let mut options = plain();
    options.logs = vec![log];
    identified(&options)
}

/// Reads a log of the test by a column map.
pub fn map(bytes: &[u8]) -> bool {
    let mut options = plain();
    options.log.columns = Some(written("map.toml", bytes));
    options.log.trust_units = true;
    identified(&options)
}

/// Identifies a robot with a joint model.
pub fn joint_model(bytes: &[u8]) -> bool {
    let mut options = plain();
    options.unknowns.joint_model = Some(written("joints.toml", bytes));
    identified(&options)
}

/// Identifies a robot with bounds of its bodies.
pub fn bounds(bytes: &[u8]) -> bool {
    let mut options = plain();
    options.estimate.estimator = None;
    options.estimate.bounds = Some(written("bounds.toml", bytes));
    identified(&options)
}

/// Identifies a robot from a summary.
pub fn summary(bytes: &[u8]) -> bool {
    let mut options = plain();
    options.logs = vec![written("log.summary", bytes)];
    identified(&options)
}

/// Simulates a robot along a trajectory.
pub fn trajectory(bytes: &[u8]) -> bool {
    let trajectory = written("trajectory", bytes);
    let options = simulate::Options::default().with(|o| {
        o.trajectory = trajectory;
        o.ignore_limits = true;
    });
    // No more rows are written than these: a trajectory may be long.
    let mut rows = Rows(1000);
    judged(simulate::run(robot(), &options, &context(&Disk::default()), Some(&mut rows)))
}

/// Follows a stream.
pub fn stream(bytes: &[u8]) -> bool {
    let file = File::open(written("stream", bytes)).unwrap();
    let plain = plain();
    let options = follow::Options::default().with(|o| {
        o.unknowns = plain.unknowns;
        o.estimate = plain.estimate;
        o.log = plain.log;
        o.every = 1e9;
    });
    judged(follow::run(robot(), Box::new(file), "stream", &options, &context(&Disk::default()), &mut |_| {
        Ok(())
    }))
}

/// The options of the fastest identification, from a log of two joints.
pub fn plain() -> identify::Options {
    let mut options = identify::Options::default();
    options.unknowns.friction = Friction::None;
    options.unknowns.offset = Offset::No;
    options.unknowns.coupling = Coupling::None;
    options.estimate.estimator = Some(Estimator::Ols);
    options.logs = vec![written("plain.csv", include_bytes!("seeds/csv/comma.csv"))];
    options
}

/// The robot that the logs are of.
pub fn robot() -> &'static Model {
    static ROBOT: OnceLock<Model> = OnceLock::new();
    ROBOT
        .get_or_init(|| Model::load("builtin:planar-2r", &ModelOptions::default(), &Disk::default()).unwrap())
}

/// A context without an observer.
pub fn context(disk: &Disk) -> Context<'_> {
    Context { inputs: disk, progress: &NoProgress }
}

fn identified(options: &identify::Options) -> bool {
    judged(identify::run(robot(), options, &context(&Disk::default())))
}

/// Returns whether an outcome is a result.
pub fn judged<T>(outcome: Result<T, Error>) -> bool {
    match outcome {
        Ok(_) => true,
        Err(error) => refused(&error),
    }
}

/// Checks the reason of a refusal.
pub fn refused(error: &Error) -> bool {
    let reason = error.to_string();
    // Other control characters of inputs are replaced where a reason is printed.
    assert!(!reason.is_empty() && !reason.contains('\n'), "{reason:?}");
    false
}

/// Writes bytes to a file of this thread.
fn written(name: &str, bytes: &[u8]) -> String {
    thread_local! {
        static FOLDER: tempfile::TempDir = tempfile::tempdir().unwrap();
    }
    let path: PathBuf = FOLDER.with(|folder| folder.path().join(name));
    std::fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

/// Takes so many rows and then no more.
pub struct Rows(pub usize);

impl simulate::RowSink for Rows {
    fn names(&mut self, _: &[String]) -> inertial_app::Result<()> {
        Ok(())
    }

    fn row(&mut self, _: &[f64]) -> inertial_app::Result<()> {
        self.0 = self.0.checked_sub(1).ok_or(Error::Interrupted)?;
        Ok(())
    }
}
