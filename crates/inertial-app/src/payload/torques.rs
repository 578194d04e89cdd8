//! Identification of a payload from joint torques: from the difference that it makes.

use std::ops::Range;

use inertial::estimation::{
    Equations, Excerpt, Identification, KnownJoints, PayloadLink, Summary, Term, TermKnowledge, Unloaded,
    diagnose_payload, identify_payload, validate,
};
use inertial::mechanism::DEFAULT_SNAP;

use super::Options;
use crate::choice::{Friction, Offset};
use crate::curves::{Curves, LogSegment};
use crate::estimate::Subject;
use crate::lag::{EXCERPT, with_corrected_lag};
use crate::logs::LogOptions;
use crate::model::joint_file::JointValues;
use crate::progress::Quiet;
use crate::recording::Recording;
use crate::summary_file::saved_summary;
use crate::{Context, Located, Model, Note, Result, ensure_option};

/// Use of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Log with the payload, for the fit.
    Loaded,
    /// Log without the payload.
    Unloaded,
    /// Log with the payload, for validation.
    Validation,
}

/// Robot without its payload.
struct Robot<'m> {
    equations: Equations<'m>,
    link: PayloadLink,
    /// Values of the unknowns and knowledge of the joint terms according to the model; `None` if there is a log without the payload.
    known: Option<(Vec<f64>, Vec<TermKnowledge>)>,
}

impl<'m> Robot<'m> {
    /// Creates the equations of the robot; `joints` are known joint terms.
    fn new(model: &'m Model, own: &Options, joints: &JointValues, context: &Context<'_>) -> Result<Self> {
        let mut joint_model = own.unknowns.given_joint_model(model, context)?;
        ensure_option!(
            !joint_model.stribeck,
            "friction",
            "expected friction that is linear in its unknowns for a payload, not stribeck"
        );
        joint_model.search_couplings = false;
        // Most models do not contain rotor inertias, although the joint torques do.
        joint_model.terms.rotor_inertia |= model.options.rotors.is_none();
        let mechanism = &model.mechanism;
        let (equations, known) = if own.unloaded.is_empty() {
            joint_model.terms.viscous = true;
            joint_model.terms.coulomb = !joint_model.asymmetric;
            let all = Equations::with_all_terms(mechanism, joint_model, DEFAULT_SNAP).at(&model.label)?;
            let KnownJoints { equations, values, known, .. } =
                all.with_known_joints(&joints.joints).at(&joints.file)?;
            let terms = equations.terms.iter().zip(&known);
            let terms = terms.map(|((_, term), known)| knowledge(model, own, *term, *known)).collect();
            (equations, Some((values, terms)))
        } else {
            (Equations::new(mechanism, joint_model, DEFAULT_SNAP).at(&model.label)?, None)
        };
        let link = PayloadLink::new(&equations, &own.link).at(&model.label)?;
        Ok(Self { equations, link, known })
    }
}

/// Returns the knowledge of a joint term. Terms that the options request are estimated, those that they exclude are not.
fn knowledge(model: &Model, own: &Options, term: Term, known: bool) -> TermKnowledge {
    let friction = own.unknowns.friction;
    let requested = match term {
        Term::Viscous if friction != Friction::Auto => Some(friction.is_viscous()),
        Term::Coulomb if friction != Friction::Auto => Some(friction.is_coulomb()),
        Term::Offset if own.unknowns.offset != Offset::Auto => Some(own.unknowns.offset == Offset::Yes),
        Term::RotorInertia if model.options.rotors.is_some() => Some(model.wants_rotors()),
        _ => None,
    };
    match (requested, known) {
        (Some(false), _) => TermKnowledge::Fixed,
        (None, true) => TermKnowledge::Presumed,
        (Some(true), _) | (None, false) => TermKnowledge::Unknown,
    }
}

/// Logs of the robot with and without the payload.
struct Data {
    loaded: Summary,
    unloaded: Summary,
    validation: Summary,
    excerpt: Excerpt,
    /// Whether all inputs are logs that can be read again, not summaries or standard input.
    again: bool,
    /// Logs with the payload that are read again, with their parts for fit and validation.
    drawn: Vec<(Recording, Range<usize>, Range<usize>)>,
}

impl Data {
    fn read(
        equations: &Equations<'_>,
        own: &Options,
        log: &LogOptions,
        context: &Context<'_>,
    ) -> Result<Self> {
        let empty = || Summary::empty(equations);
        let mut out = Self {
            loaded: empty(),
            unloaded: empty(),
            validation: empty(),
            excerpt: Excerpt::default(),
            again: true,
            drawn: Vec::new(),
        };
        let samples = (EXCERPT / own.logs.len().max(1)).max(1);
        let all =
            |paths: &[String], role: Role| paths.iter().map(|path| (path.clone(), role)).collect::<Vec<_>>();
        let logs = [
            all(&own.logs, Role::Loaded),
            all(&own.unloaded, Role::Unloaded),
            all(&own.validate, Role::Validation),
        ];
        let _work = context.work_on(own.logs.iter().chain(&own.unloaded).chain(&own.validate));
        for (path, role) in logs.into_iter().flatten() {
            out.again &= path != "-";
            if let Some(summary) = saved_summary(context, &path)? {
                out.again = false;
                ensure_option!(
                    own.holdout.is_none() || role != Role::Loaded,
                    "holdout",
                    "{path} is a summary: holding out a part needs the log itself"
                );
                summary.check(equations).at(&path)?;
                own.log.check_summary(&path, &summary)?;
                match role {
                    Role::Loaded => &mut out.loaded,
                    Role::Unloaded => &mut out.unloaded,
                    Role::Validation => &mut out.validation,
                }
                .merge(&summary)?;
                continue;
            }
            let mut recording = Recording::open(context, log, equations, None, &path)?;
            let (first, last) = match (role, own.holdout) {
                (Role::Loaded, Some(fraction)) => recording.hold_out(fraction)?,
                (Role::Validation, _) => (0..0, 0..recording.len()),
                _ => (0..recording.len(), 0..0),
            };
            let excerpt = (role == Role::Loaded).then_some((&mut out.excerpt, samples));
            let fitted = recording.summary_and_excerpt(context, equations, first.clone(), None, excerpt)?;
            if role == Role::Unloaded { &mut out.unloaded } else { &mut out.loaded }.merge(&fitted)?;
            out.validation.merge(&recording.summary(context, equations, last.clone(), None)?)?;
            if role != Role::Unloaded && own.draw {
                out.drawn.push((recording, first, last));
            }
        }
        Ok(out)
    }

    /// Estimates the payload.
    fn estimate(
        &self,
        robot: &Robot<'_>,
        model: &Model,
        own: &Options,
        context: &Context<'_>,
    ) -> Result<Identification> {
        let Robot { equations, link, known } = robot;
        let known = match known {
            Some((values, terms)) => Unloaded::Model { values, terms },
            None => Unloaded::Log(&self.unloaded),
        };
        let options = own.estimate.options(model, Subject::Body, context)?;
        let mut result =
            identify_payload(equations, link, &self.loaded, known, &options).at(own.logs.join(", "))?;
        if self.validation.samples > 0 {
            let validation = validate(equations, &self.validation, &result.values).at("validation")?;
            result.validation_relative_rms = Some(validation.relative_rms);
            result.validation = validation.joints;
        }
        diagnose_payload(equations, &mut result, &self.excerpt)?;
        Ok(result)
    }

    /// Returns the measured and predicted torques.
    fn curves(
        &mut self,
        equations: &Equations<'_>,
        result: &Identification,
        context: &Context<'_>,
    ) -> Result<Curves> {
        let pieces = self.drawn.iter_mut().map(|(log, first, last)| {
            let parts = [(first, "fit", &result.fit), (last, "validation", &result.validation)];
            let parts = parts.into_iter().filter(|(range, ..)| range.start < range.end);
            (
                log,
                parts
                    .map(|(range, part, residuals)| LogSegment::new(range.clone(), part, residuals))
                    .collect(),
            )
        });
        Curves::collect(context, equations, &result.values, pieces.collect())
    }
}

/// Identifies the payload. A significant lag of the torques is corrected.
pub(super) fn from_torques(
    model: &Model,
    own: &Options,
    context: &Context<'_>,
) -> Result<(Identification, Curves)> {
    // A log without the payload replaces what is known about the joints.
    let joints = if own.unloaded.is_empty() { model.joint_values(context)? } else { JointValues::default() };
    let robot = Robot::new(model, own, &joints, context)?;
    let mut preparation = LogOptions { poses: true, ..own.log.clone() };
    if let Some(lag) = joints.lag.filter(|_| own.log.lag.is_none()) {
        preparation.lag = Some(lag.value);
        context.note(&Note::LagOfJointFile {
            seconds: lag.value,
            std_error: lag.std_error,
            file: joints.file.clone(),
        });
    }
    let estimate = |log: &LogOptions, context: &Context<'_>| -> Result<(Data, Identification)> {
        let data = Data::read(&robot.equations, own, log, context)?;
        let result = data.estimate(&robot, model, own, context)?;
        Ok((data, result))
    };
    let first = estimate(&preparation, context)?;
    let again = preparation.lag.is_none() && first.0.again;
    let (mut data, result) = with_corrected_lag(again, first, context, |lag| {
        // Notes about the logs were already emitted.
        let quiet = Quiet { progress: context.progress };
        estimate(
            &LogOptions { lag: Some(lag), ..preparation.clone() },
            &Context { progress: &quiet, ..*context },
        )
    })?;
    let curves = data.curves(&robot.equations, &result, context)?;
    Ok((result, curves))
}
