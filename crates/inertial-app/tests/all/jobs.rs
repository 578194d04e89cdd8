//! Jobs called as a library: typed options, inputs in memory, an observer.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::sync::Mutex;

use inertial::Coded as _;
use inertial_app::choice::{Estimator, Friction};
use inertial_app::{
    Context, Disk, Error, InMemoryInputs, Model, ModelOptions, NoProgress, Note, Progress, check, design,
    identify, simulate,
};
use inertial_data::{CsvReader, Log};

fn model(name: &str) -> Model {
    Model::load(&format!("builtin:{name}"), &ModelOptions::default(), &Disk::default()).unwrap()
}

/// Returns a log of a robot with oscillating joints, as CSV.
fn simulated(model: &Model) -> Vec<u8> {
    let names: Vec<&str> = model.mechanism.joints().iter().map(|j| j.name.as_str()).collect();
    let mut motion = format!("t,{}\n", names.iter().map(|n| format!("q.{n}")).collect::<Vec<_>>().join(","));
    for k in 0..400 {
        let t = 0.02 * f64::from(k);
        let row = (0..names.len()).map(|j| {
            let w = 1.0 + 0.37 * j as f64;
            (0.4 * (w * t).sin() + 0.2 * (2.3 * w * t).cos()).to_string()
        });
        motion.extend([format!("{t},{}\n", row.collect::<Vec<_>>().join(","))]);
    }
    let logs = HashMap::from([("motion".to_owned(), as_log(motion.into_bytes(), "motion"))]);
    let (texts, summaries) = (HashMap::new(), HashMap::new());
    let inputs =
        InMemoryInputs { texts: &texts, logs: &logs, summaries: &summaries, others: &Disk::default() };
    let options = simulate::Options::default().with(|o| {
        o.trajectory = "motion".into();
        o.noise = vec!["tau=0.01".parse().unwrap()];
        o.ignore_limits = true;
    });
    let mut out = simulate::Csv::new(Vec::new());
    simulate::run(model, &options, &Context { inputs: &inputs, progress: &NoProgress }, Some(&mut out))
        .unwrap();
    out.into_inner()
}

fn as_log(csv: Vec<u8>, name: &str) -> Log {
    Log::collect(CsvReader::new(std::io::Cursor::new(csv), name).unwrap()).unwrap()
}

#[test]
fn schema_files_follow_from_the_types() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    for (name, schema) in inertial_app::schema::schemas() {
        let file = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
        let hint = "cargo run --release -p inertial-app --example schemas -- docs/schema writes it anew";
        assert!(file == inertial_app::schema::text(&schema), "docs/schema/{name}.json: {hint}");
    }
}

#[test]
fn logs_in_memory_and_in_files_give_equal_results() {
    let model = model("planar-2r");
    let csv = simulated(&model);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.csv").display().to_string();
    std::fs::write(&path, &csv).unwrap();
    let options = identify::Options::default().with(|o| o.logs = vec![path.clone()]);
    let from_file =
        identify::run(&model, &options, &Context { inputs: &Disk::default(), progress: &NoProgress })
            .unwrap();
    let logs = HashMap::from([(path.clone(), as_log(csv, &path))]);
    let (texts, summaries) = (HashMap::new(), HashMap::new());
    let inputs =
        InMemoryInputs { texts: &texts, logs: &logs, summaries: &summaries, others: &Disk::default() };
    let from_memory =
        identify::run(&model, &options, &Context { inputs: &inputs, progress: &NoProgress }).unwrap();
    assert_eq!(serde_json::to_string(&from_file).unwrap(), serde_json::to_string(&from_memory).unwrap());
    // The summary of the logs is sufficient for the estimate.
    let summaries = HashMap::from([("earlier".to_owned(), from_file.summary.clone())]);
    let inputs =
        InMemoryInputs { texts: &texts, logs: &logs, summaries: &summaries, others: &Disk::default() };
    let options = identify::Options::default().with(|o| o.logs = vec!["earlier".into()]);
    let again = identify::run(&model, &options, &Context { inputs: &inputs, progress: &NoProgress }).unwrap();
    assert_eq!(again.result.values, from_file.result.values);
}

/// Observer that stores the notes, and stops the work if requested.
struct Observer {
    stops: bool,
    notes: Mutex<Vec<Note>>,
}

impl Progress for Observer {
    fn note(&self, note: &Note) {
        self.notes.lock().unwrap().push(note.clone());
    }

    fn is_stopped(&self) -> bool {
        self.stops
    }
}

#[test]
fn an_observer_gets_the_notes_and_can_stop_the_work() {
    let model = model("planar-2r");
    let logs = HashMap::from([("log".to_owned(), as_log(simulated(&model), "log"))]);
    let (texts, summaries) = (HashMap::new(), HashMap::new());
    let inputs =
        InMemoryInputs { texts: &texts, logs: &logs, summaries: &summaries, others: &Disk::default() };
    let options = identify::Options::default().with(|o| o.logs = vec!["log".into()]);
    let run = |stops: bool| {
        let observer = Observer { stops, notes: Mutex::default() };
        let done = identify::run(&model, &options, &Context { inputs: &inputs, progress: &observer });
        (done, observer.notes.into_inner().unwrap())
    };
    let (done, notes) = run(false);
    assert!(done.is_ok());
    // The filter settings are reported with the name of the log.
    assert!(notes.iter().any(|n| n.code() == "log" && n.to_string().starts_with("log: ")), "{notes:?}");
    assert!(matches!(run(true).0, Err(Error::Interrupted)));
}

#[test]
fn options_are_read_from_json_and_check_themselves() {
    let text = r#"{"logs": ["a.csv"], "holdout": 0.3, "unknowns": {"friction": "coulomb+viscous", "offset": true},
                   "estimate": {"estimator": "consistent", "solver": "manifold"}, "log": {"cutoff": 20}}"#;
    let options: identify::Options = serde_json::from_str(text).unwrap();
    assert_eq!(options.unknowns.friction, Friction::Both);
    assert_eq!(options.estimate.estimator, Some(Estimator::Consistent));
    let again: identify::Options = serde_json::from_str(&serde_json::to_string(&options).unwrap()).unwrap();
    assert_eq!(again, options);
    for wrong in
        [r#"{"fricton": "none"}"#, r#"{"unknowns": {"friction": "much"}}"#, r#"{"log": {"cutoff": "soon"}}"#]
    {
        assert!(serde_json::from_str::<identify::Options>(wrong).is_err(), "{wrong}");
    }
    // The message spells the option as in the interface of the caller.
    let wrong = identify::Options::default().with(|o| o.holdout = Some(1.5));
    let error = wrong.check().unwrap_err();
    assert_eq!(error.message(&|name| format!("{name}=")), "holdout=: expected a fraction between 0 and 1");
    let wrong = design::Options::default().with(|o| o.duration = -1.0);
    assert_eq!(wrong.check().unwrap_err().to_string(), "duration: -1: expected a number above zero");
}

#[test]
fn an_impossible_body_is_corrected_in_the_model_text() {
    let text = r#"<robot name="r"><link name="base"/><link name="a"><inertial><origin xyz="0 0 0"/><mass value="1"/>
        <inertia ixx="1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
        <joint name="j" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/></joint></robot>"#;
    let model = Model::from_text("r", text.to_owned(), inertial::mechanism::BuildOptions::default()).unwrap();
    let options = check::Options::default();
    let context = Context { inputs: &Disk::default(), progress: &NoProgress };
    let outcome = check::run(&model, &options, &context).unwrap();
    assert!(!outcome.consistent);
    let corrected = outcome.corrected(&model, &options).unwrap();
    let again = Model::from_text("r", corrected, model.options).unwrap();
    assert!(check::run(&again, &options, &context).unwrap().consistent);
}
