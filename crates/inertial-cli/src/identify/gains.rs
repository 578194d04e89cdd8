//! `inertial identify --gains`: torques that are currents times gains known to a share only.

use std::str::FromStr;

use anyhow::{Context, Result, ensure};
use inertial::consistency::{DEFAULT_TOLERANCE, judge};
use inertial::estimation::{
    Equations, Estimator, Gains, Identification, IdentifyOptions, KnownPayload, PayloadLink, Summary,
    identify,
};
use inertial::spatial::Inertia;
use nalgebra::{Matrix3, Vector3};

use super::{Args, Data, positive};
use crate::logs::saved_summary;
use crate::progress::Work;
use crate::recording::Recording;

/// Drives whose gains are to be found.
#[derive(Debug, clap::Args)]
pub struct GainOptions {
    /// Find the factor of each joint's torque, known before to this share (0.2: 20 %)
    #[arg(long, value_name = "SHARE", value_parser = positive, conflicts_with_all = ["payload", "follow", "summary_out"])]
    pub gains: Option<f64>,
    /// With --gains: logs of the robot with a known payload
    #[arg(long, value_name = "LOG", num_args = 1.., requires_all = ["gains", "known_payload"])]
    loaded: Vec<String>,
    /// The payload of these logs: mass, centre of mass in the link's frame and, if known, inertia about it
    #[arg(long, value_name = "LINK=M,X,Y,Z[,IXX,IYY,IZZ[,IXY,IXZ,IYZ]]", requires = "loaded")]
    known_payload: Option<Payload>,
}

/// A payload as given in the call.
#[derive(Debug, Clone)]
pub struct Payload {
    link: String,
    inertia: Inertia<f64>,
}

impl FromStr for Payload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "expected LINK=MASS,X,Y,Z, and if known IXX,IYY,IZZ or IXX,IYY,IZZ,IXY,IXZ,IYZ, like tool=2.5,0,0,0.1, not '{text}'"
            )
        };
        let (link, numbers) = text.split_once('=').ok_or_else(expected)?;
        let numbers: Vec<f64> =
            numbers.split(',').map(|x| x.trim().parse()).collect::<Result<_, _>>().map_err(|_| expected())?;
        if !matches!(numbers.len(), 4 | 7 | 10) || numbers.iter().any(|x| !x.is_finite()) {
            return Err(expected());
        }
        let moment = |k: usize| numbers.get(k).copied().unwrap_or(0.0);
        let [xx, yy, zz, xy, xz, yz] = [4, 5, 6, 7, 8, 9].map(moment);
        let tensor = Matrix3::new(xx, xy, xz, xy, yy, yz, xz, yz, zz);
        let com = Vector3::new(numbers[1], numbers[2], numbers[3]);
        let inertia = Inertia::from_com(numbers[0], com, tensor);
        let central = Inertia::from_com(numbers[0], Vector3::zeros(), tensor);
        let exists = judge(&central, DEFAULT_TOLERANCE).is_ok_and(|verdict| verdict.is_consistent());
        if numbers[0] <= 0.0 || !exists {
            return Err(format!(
                "'{text}' is no body: expected a mass above zero, and principal moments of inertia none of which exceeds the sum of the others"
            ));
        }
        Ok(Self { link: link.to_owned(), inertia })
    }
}

/// What is to be found, checked before any log is read.
pub struct Search<'a> {
    spread: f64,
    loaded: Option<(PayloadLink, &'a Payload)>,
}

impl<'a> Search<'a> {
    /// Where the call asks for it.
    pub fn new(args: &'a Args, equations: &Equations<'_>, options: &IdentifyOptions) -> Result<Option<Self>> {
        let Some(spread) = args.gains.gains else { return Ok(None) };
        ensure!(options.estimator != Estimator::Irls, "--gains: expected another estimator than irls");
        let loaded = match &args.gains.known_payload {
            Some(payload) => {
                let link = PayloadLink::new(equations, &payload.link).context("--known-payload")?;
                Some((link, payload))
            }
            None => None,
        };
        Ok(Some(Self { spread, loaded }))
    }

    /// Finds the gains, and with them all else. What was read is afterwards as if the gains had been known.
    pub fn estimate(
        &self,
        args: &Args,
        equations: &Equations<'_>,
        data: &mut Data,
        options: &IdentifyOptions,
    ) -> Result<Identification> {
        let mut summary = Summary::empty(equations);
        let _work = Work::on_files(&args.gains.loaded);
        for path in &args.gains.loaded {
            if let Some(saved) = saved_summary(path)? {
                saved.check(equations).with_context(|| path.clone())?;
                summary.merge(&saved)?;
                continue;
            }
            let mut log = Recording::open(&args.log, equations, args.measured, path)?;
            let all = 0..log.len();
            summary.merge(&log.summary(equations, all, None)?)?;
        }
        let known = self.loaded.as_ref().map(|(link, payload)| KnownPayload {
            summary: &summary,
            link,
            payload: payload.inertia,
        });
        let gains = Gains::new(equations, &data.fit, known, self.spread)?;
        data.fit = gains.apply(equations, &data.fit, false)?;
        data.fit.merge(&gains.apply(equations, &summary, true)?)?;
        if let Some(validation) = &mut data.validation {
            *validation = gains.apply(equations, validation, false)?;
        }
        let mut result = identify(equations, &data.fit, data.validation.as_ref(), options)?;
        gains.note(equations, &mut result);
        Ok(result)
    }
}
