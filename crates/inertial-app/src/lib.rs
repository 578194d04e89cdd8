//! Jobs of `inertial`: one module per job, with typed options as input and an outcome as output.
//!
//! Every job has `Options`, which can be validated and read from JSON, and a function
//! `run(&model, &options, &context)` that returns an `Outcome`. Outcomes define the wire format: serialized as JSON
//! they are the result objects of the program. This crate does not parse a command line, print, or end the process. A [`Context`]
//! contains the source of inputs ([`Inputs`]) and the observer of the work ([`Progress`]). [`Disk`] reads files, and
//! [`InMemoryInputs`] adds models, logs and summaries that a caller holds in memory.
//!
//! | module | question |
//! | --- | --- |
//! | [`check`] | Can these inertial parameters belong to physical bodies? |
//! | [`analyze`] | Which parameters can any experiment reveal, and in which combinations? |
//! | [`design`] | Which motion reveals them best, within the limits? |
//! | [`simulate`] | What would the sensors read during a motion? |
//! | [`identify`] | What are the parameters, given logs of motion and forces? |
//! | [`regressor`] | What are the parameters, given a regressor that was computed elsewhere? |
//! | [`payload`] | What does a link carry? |
//! | [`gains`] | What are the gains of the drives, and the parameters? |
//! | [`flight`] | What are the parameters of a free-flying robot, given its momentum? |
//! | [`follow`] | What are the parameters, according to the samples of a stream so far? |
//! | [`fleet`] | What do robots of one type have in common? |
//! | [`columns`] | Which columns does a log have, and how is each interpreted? |
//! | [`export`] | How are values passed to controllers, simulators and programs? |
//! | [`studies`] | What do the experiments of the papers give on simulated robots? |
//! | [`validate`] | How well does a model predict what was measured? |
//! | [`bench`](mod@bench) | How fast is each kernel on this machine? |

pub mod analyze;
pub mod bench;
pub mod check;
pub mod choice;
pub mod columns;
pub mod curves;
pub mod design;
#[cfg(not(target_family = "wasm"))]
pub mod disk;
mod encoding;
mod error;
pub mod estimate;
pub mod export;
pub mod fleet;
pub mod flight;
pub mod follow;
pub mod gains;
pub mod identify;
mod inputs;
mod lag;
pub mod logs;
pub mod model;
pub mod note;
pub mod payload;
mod progress;
mod recording;
pub mod regressor;
pub mod schema;
pub mod setting;
pub mod simulate;
pub mod studies;
pub mod summary_file;
pub mod unknowns;
pub mod validate;

#[cfg(not(target_family = "wasm"))]
pub use disk::Disk;
pub use error::{Error, Located, Result};
pub(crate) use error::{bail, ensure, ensure_option};
pub use inputs::{Checksum, InMemoryInputs, Inputs};
pub use model::{Model, ModelOptions};
pub use note::Note;
pub use progress::{Context, NoProgress, Progress, Unit};
