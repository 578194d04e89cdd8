//! What every reader must do with any text: give a mechanism, or one line that says why not.

use inertial::Error;
use inertial::mechanism::{BuildOptions, MechanismBuilder};

pub fn survive(outcome: Result<MechanismBuilder, Error>) {
    if let Err(error) = outcome.and_then(|model| model.build(&BuildOptions::default())) {
        let message = error.to_string();
        assert!(!message.is_empty() && !message.contains(['\n', '\r']), "{message:?}");
    }
}
