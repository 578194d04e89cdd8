//! Logs matched with the equations: additional columns, wrenches on the base and contacts; for mechanisms with loops,
//! the independent joints.

use std::ops::Range;

use inertial::dynamics::{
    ClosedMechanism, InverseDynamics, Samples, Workspace, forward_kinematics, frame_jacobian,
};
use inertial::estimation::{
    BlockPlan, Equations, Excerpt, Huber, LogSource, Measurements, Prediction, RowFilter, Summary,
    WRENCH_AXES,
};
use inertial::identifiability::Measured;
use inertial::mechanism::{Base, BuildOptions, JointSpec, JointType, Mechanism, MechanismBuilder};
use inertial::spatial::{Force, Inertia, Pose};
use inertial_data::{Prepared, PreparedLog, Requirement};
use nalgebra::Vector3;

use crate::logs::{LogOptions, PREPARED, parts};
use crate::{Context, Located, Result, bail, ensure};

/// Known wrench on a link, in its frame.
struct Contact {
    body: Option<usize>,
    pose: Pose<f64>,
    /// Index of each component among the additional columns; missing components are zero.
    columns: [Option<usize>; 6],
}

/// Consecutive samples of a log with the predicted forces, sample by sample.
pub struct Part<'p> {
    /// Times of the samples.
    pub t: &'p [f64],
    /// Positions of the whole mechanism.
    pub q: &'p [f64],
    /// Velocities; with loops those of the independent coordinates.
    pub v: &'p [f64],
    /// Measured forces of all rows, filtered as in the fit.
    pub tau: &'p [f64],
    /// Whether each of these forces is used.
    pub keep: &'p [bool],
    /// Predicted forces.
    pub prediction: &'p Prediction,
    /// Index of the first sample in the counting of the fit, and distance of the rows that the fit keeps.
    first: usize,
    every: usize,
}

impl Part<'_> {
    /// Returns whether a sample is the centre of a row of the fit.
    pub fn is_fitted(&self, sample: usize) -> bool {
        (self.first + sample).is_multiple_of(self.every)
    }
}

/// Prepared log, matched with the equations.
pub struct Recording {
    log: PreparedLog,
    contacts: Vec<Contact>,
    measured: Option<Measured>,
    path: String,
    preparation: String,
    /// Numbers of columns of the joint formulas, and of all additional columns: these, then the base wrench, then contacts.
    formulas: usize,
    further: usize,
    /// Fraction of the work on the log that is done before a pass begins.
    begun: f64,
}

impl Recording {
    /// Opens a log and matches it with the equations.
    pub fn open(
        context: &Context<'_>,
        options: &LogOptions,
        equations: &Equations<'_>,
        measured: Option<Measured>,
        path: &str,
    ) -> Result<Self> {
        context.file(path);
        let mechanism = equations.mechanism();
        let mut further = equations.joint_model().columns.clone();
        let formulas = further.len();
        if equations.has_base_wrench() {
            further.extend(WRENCH_AXES.map(|axis| format!("wrench.{axis}")));
        }
        let names = if path == "-" {
            Vec::new()
        } else {
            options.reader(context, Some(mechanism), path)?.names().to_vec()
        };
        let contacts = contacts(mechanism, &names, &mut further).at(path)?;
        let joints = if measured == Some(Measured::BaseWrench) {
            Requirement::Optional
        } else {
            Requirement::Required
        };
        let log = match equations.closed() {
            Some(closed) => {
                let joints_only = independent_joints(closed)?;
                options.open_with(context, &joints_only, path, &further, joints)?
            }
            None => options.open_with(context, mechanism, path, &further, joints)?,
        };
        let (path, further, preparation) = (path.to_owned(), further.len(), options.preparation()?);
        Ok(Self { log, contacts, measured, path, preparation, formulas, further, begun: PREPARED })
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.log.len()
    }

    /// Returns the sampling rate (Hz).
    pub fn rate_hz(&self) -> f64 {
        self.log.rate_hz()
    }

    /// Returns the cut-off of the low-pass filter, if there is one.
    pub fn cutoff_hz(&self) -> Option<f64> {
        self.log.cutoff_hz()
    }

    /// Returns the notes about repairs and choices.
    pub fn notes(&self) -> &[String] {
        self.log.notes()
    }

    /// Returns the name given by the user.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Splits the log into the first part, and the last `fraction` for validation.
    pub fn hold_out(&mut self, fraction: f64) -> Result<(Range<usize>, Range<usize>)> {
        Ok(self.log.hold_out(fraction)?)
    }

    /// Starts another pass over the log.
    pub fn restart(&mut self, context: &Context<'_>) {
        context.file(&self.path);
        self.begun = 0.0;
    }

    /// Summarizes some samples, reading them in parts.
    pub fn summary(
        &mut self,
        context: &Context<'_>,
        equations: &Equations<'_>,
        range: Range<usize>,
        huber: Option<Huber<'_>>,
    ) -> Result<Summary> {
        self.summary_and_excerpt(context, equations, range, huber, None)
    }

    /// Summarizes some samples, and adds an excerpt of about the given number of samples.
    pub fn summary_and_excerpt(
        &mut self,
        context: &Context<'_>,
        equations: &Equations<'_>,
        range: Range<usize>,
        huber: Option<Huber<'_>>,
        mut excerpt: Option<(&mut Excerpt, usize)>,
    ) -> Result<Summary> {
        let mut out = Summary::empty(equations);
        let filter = self.log.row_filter().cloned();
        let plan = BlockPlan::of_log(range.len());
        let (mut before, all, step) = (0, range.len(), self.log.rate_hz().recip());
        self.each_part(context, equations, range, filter.as_ref(), |_, _, data| {
            // Shortens the lifetime to the common one.
            let mut data: Measurements<'_> = data;
            (data.huber, data.filter) = (huber, filter.as_ref());
            data.blocks = Some(plan.after(before));
            before += data.len() - data.beyond[0] - data.beyond[1];
            if let Some((excerpt, samples)) = &mut excerpt {
                excerpt.add(equations, &data, step, all / *samples)?;
            }
            Ok(out.continue_with(&Summary::new(equations, &data)?)?)
        })?;
        if all > 0 {
            let preparation = self.preparation.clone();
            out.sources = vec![LogSource { preparation, ..self.log.source().clone() }];
        }
        Ok(out)
    }

    /// Calls `show` with parts of some samples and the forces predicted by the values of the unknowns.
    pub fn predict(
        &mut self,
        context: &Context<'_>,
        equations: &Equations<'_>,
        range: Range<usize>,
        values: &[f64],
        mut show: impl FnMut(&Part<'_>),
    ) -> Result<()> {
        let filter = self.log.row_filter().cloned();
        self.each_part(context, equations, range, filter.as_ref(), |log, forces, data| {
            let [before, after] = data.beyond;
            let inner = before..log.len() - after;
            let mut prediction = equations.predict(&data, values)?;
            let rows = prediction.force.len() / log.len().max(1);
            let cut = |all: &[f64], width: usize| all[inner.start * width..inner.end * width].to_vec();
            // The filter of the fit is applied to measured and predicted forces; friction is shown unfiltered at each speed.
            let (tau, keep) = if let Some(filter) = &filter {
                prediction.force = smoothed(&prediction.force, rows, filter.column_weights(), &inner);
                let keep = usable_rows(&forces.keep, rows, filter, &inner);
                (smoothed(&forces.tau, rows, filter.weights(), &inner), keep)
            } else {
                prediction.force = cut(&prediction.force, rows);
                (cut(&forces.tau, rows), forces.keep[inner.start * rows..inner.end * rows].to_vec())
            };
            prediction.friction = cut(&prediction.friction, rows);
            let (nq, nv) = (data.q().len() / log.len().max(1), log.v.len() / log.len().max(1));
            show(&Part {
                t: &log.t[inner.clone()],
                q: &data.q()[inner.start * nq..inner.end * nq],
                v: &log.v[inner.start * nv..inner.end * nv],
                tau: &tau,
                keep: &keep,
                prediction: &prediction,
                first: inner.start,
                every: filter.as_ref().map_or(1, RowFilter::every),
            });
            Ok(())
        })
    }

    /// Calls `work` with each part; parts overlap by the length of the row filter.
    fn each_part(
        &mut self,
        context: &Context<'_>,
        equations: &Equations<'_>,
        range: Range<usize>,
        filter: Option<&RowFilter>,
        mut work: impl FnMut(&Prepared, &Forces, Measurements<'_>) -> Result<()>,
    ) -> Result<()> {
        for part in parts(equations.mechanism(), range, filter) {
            context.check_interrupted()?;
            let log = self.log.read(part.samples.clone())?;
            let measured = self.measured(equations, &log, part.beyond, &mut work);
            measured.at(&self.path)?;
            let done = part.samples.end as f64 / self.log.len() as f64;
            context.progress.share(self.begun + (1.0 - self.begun) * done);
        }
        Ok(())
    }

    /// Calls `work` with a part of the log in the form of the equations.
    fn measured(
        &self,
        equations: &Equations<'_>,
        log: &Prepared,
        beyond: [usize; 2],
        work: impl FnOnce(&Prepared, &Forces, Measurements<'_>) -> Result<()>,
    ) -> Result<()> {
        let mechanism = equations.mechanism();
        let count = log.len();
        let mut closed_q = Vec::new();
        if let Some(closed) = equations.closed() {
            closed_q.resize(count * mechanism.nq(), 0.0);
            let start = log.t.first().copied().unwrap_or_default();
            closed
                .follow(&mut closed.workspace(), closed.assembled(), &log.q, &mut closed_q)
                .at(format_args!("samples from t = {start} s"))?;
        }
        let q = if equations.closed().is_some() { &closed_q } else { &log.q };
        let forces = self.forces(equations, log, q)?;
        let columns: Vec<f64> = log
            .extra
            .chunks_exact(self.further.max(1))
            .flat_map(|row| &row[..self.formulas])
            .copied()
            .collect();
        let dynamics = InverseDynamics::new(mechanism);
        let samples = match equations.closed() {
            Some(closed) => Samples::closed(closed, count, q, &log.v, &log.a)?,
            None => Samples::new(&dynamics, count, q, &log.v, &log.a)?,
        };
        let mut data = Measurements::new(samples, &forces.tau);
        data.tau_raw = Some(&forces.raw);
        data.keep = Some(&forces.keep);
        data.measured = Some(&forces.measured);
        data.columns = (self.formulas > 0).then_some(&columns[..]);
        (data.independent, data.beyond) = (log.independent(), beyond);
        work(log, &forces, data)
    }

    /// Returns the forces of all rows: torques, the wrench on a fixed base, and the contribution of contacts. `q`
    /// contains the positions of the whole mechanism.
    fn forces(&self, equations: &Equations<'_>, log: &Prepared, q: &[f64]) -> Result<Forces> {
        let (nv, rows) =
            (equations.coordinates(), equations.coordinates() + 6 * usize::from(equations.has_base_wrench()));
        let mut out = Forces::default();
        out.measured.clone_from(&log.measured);
        out.measured.resize(rows, true);
        for s in 0..log.len() {
            out.tau.extend_from_slice(&log.tau[s * nv..(s + 1) * nv]);
            out.raw.extend_from_slice(&log.tau_raw[s * nv..(s + 1) * nv]);
            out.keep.extend_from_slice(&log.keep[s * nv..(s + 1) * nv]);
            if rows > nv {
                let wrench = s * self.further + self.formulas;
                out.tau.extend_from_slice(&log.extra[wrench..wrench + 6]);
                out.raw.extend_from_slice(&log.extra_raw[wrench..wrench + 6]);
                out.keep.extend([log.sound[s]; 6]);
            }
        }
        let floating = equations.mechanism().base() == Base::Floating;
        let base = if floating { 0..6 } else { nv..rows };
        let unwanted = |row: usize| match self.measured {
            None | Some(Measured::Both | Measured::Momentum) => false,
            Some(Measured::JointTorques) => floating && base.contains(&row),
            Some(Measured::BaseWrench) => !base.contains(&row),
        };
        out.keep.iter_mut().enumerate().for_each(|(k, keep)| *keep &= !unwanted(k % rows));
        self.add_contacts(equations, log, q, rows, &mut out)?;
        Ok(out)
    }

    /// Adds the contact wrenches to the forces: `Yπ = τ + Σ Jᵀ w`; with loops `Gᵀ Jᵀ w`, where `G` maps the
    /// independent velocities to all velocities.
    fn add_contacts(
        &self,
        equations: &Equations<'_>,
        log: &Prepared,
        positions: &[f64],
        rows: usize,
        out: &mut Forces,
    ) -> Result<()> {
        if self.contacts.is_empty() {
            return Ok(());
        }
        let (mechanism, dof) = (equations.mechanism(), equations.coordinates());
        let (nq, nv) = (mechanism.nq(), mechanism.nv());
        let mut workspace = Workspace::new(mechanism);
        let mut closed = equations.closed().map(|c| (c, c.workspace()));
        let (mut jacobian, mut pull) = (vec![0.0; 6 * nv], vec![0.0; nv]);
        for s in 0..log.len() {
            let q = &positions[s * nq..(s + 1) * nq];
            let map = match &mut closed {
                Some((closed, workspace)) => Some(closed.velocity_map(workspace, q)?),
                None => None,
            };
            for contact in &self.contacts {
                for (extra, forces) in [(&log.extra, &mut out.tau), (&log.extra_raw, &mut out.raw)] {
                    let at = |k: usize| contact.columns[k].map_or(0.0, |c| extra[s * self.further + c]);
                    let wrench = [at(3), at(4), at(5), at(0), at(1), at(2)];
                    let own = &mut forces[s * rows..(s + 1) * rows];
                    if let Some(body) = contact.body {
                        frame_jacobian(mechanism, &mut workspace, q, body, &contact.pose, &mut jacobian)?;
                        for (v, pull) in pull.iter_mut().enumerate() {
                            *pull = (0..6).map(|r| jacobian[r * nv + v] * wrench[r]).sum();
                        }
                        for (i, tau) in own[..dof].iter_mut().enumerate() {
                            *tau += map.map_or(pull[i], |g| {
                                g.column(i).iter().zip(&pull).map(|(g, pull)| g * pull).sum()
                            });
                        }
                    } else {
                        forward_kinematics(mechanism, &mut workspace, q)?;
                    }
                    if rows > dof {
                        let link =
                            contact.body.map_or(Pose::identity(), |b| workspace.poses()[b]) * contact.pose;
                        let world = link.push_force(&Force {
                            angular: Vector3::new(wrench[0], wrench[1], wrench[2]),
                            linear: Vector3::new(wrench[3], wrench[4], wrench[5]),
                        });
                        let parts = world.linear.iter().chain(world.angular.iter());
                        own[dof..].iter_mut().zip(parts).for_each(|(tau, w)| *tau += w);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns the samples of a window around `s`, out of `count`; shorter at the ends of the log.
fn window(s: usize, weights: usize, count: usize) -> Range<usize> {
    let half = weights / 2;
    s.saturating_sub(half)..(s + half + 1).min(count)
}

/// Returns low-pass filtered values of all rows at some samples; at the ends of the log the truncated weights are normalized.
fn smoothed(all: &[f64], rows: usize, weights: &[f64], inner: &Range<usize>) -> Vec<f64> {
    let (count, half) = (all.len() / rows.max(1), weights.len() / 2);
    let mut out = Vec::with_capacity(inner.len() * rows);
    for s in inner.clone() {
        let window = window(s, weights.len(), count);
        let own = &weights[window.start + half - s..window.end + half - s];
        let total: f64 = own.iter().sum();
        out.extend(
            (0..rows).map(|row| {
                window.clone().zip(own).map(|(k, w)| w * all[k * rows + row]).sum::<f64>() / total
            }),
        );
    }
    out
}

/// Returns whether each filtered row is used: its window lies within the log, and unused samples have little weight.
fn usable_rows(keep: &[bool], rows: usize, filter: &RowFilter, inner: &Range<usize>) -> Vec<bool> {
    let (count, width) = (keep.len() / rows.max(1), filter.weights().len());
    let mut out = Vec::with_capacity(inner.len() * rows);
    let mut samples = Vec::with_capacity(width);
    for s in inner.clone() {
        let window = window(s, width, count);
        for row in 0..rows {
            samples.clear();
            samples.extend(window.clone().map(|k| keep[k * rows + row]));
            out.push(window.len() == width && filter.keeps(&samples));
        }
    }
    out
}

/// Forces of all rows, sample by sample.
#[derive(Default)]
struct Forces {
    tau: Vec<f64>,
    raw: Vec<f64>,
    keep: Vec<bool>,
    /// Whether each force is measured in the log.
    measured: Vec<bool>,
}

/// Finds columns such as `contact.LINK.fx` in a log, and adds them to the additional ones.
fn contacts(mechanism: &Mechanism, names: &[String], further: &mut Vec<String>) -> Result<Vec<Contact>> {
    let mut out: Vec<(String, Contact)> = Vec::new();
    for name in names {
        let Some((link, axis)) = name.strip_prefix("contact.").and_then(|rest| rest.rsplit_once('.')) else {
            continue;
        };
        let Some(axis) = WRENCH_AXES.iter().position(|a| *a == axis) else {
            bail!("column {name}: expected contact.LINK.fx, fy, fz, tx, ty or tz");
        };
        let place = if let Some(k) = out.iter().position(|(n, _)| n == link) {
            k
        } else {
            let Some(found) = mechanism.links().iter().find(|l| l.name == link) else {
                let known: Vec<&str> = mechanism.links().iter().map(|l| l.name.as_str()).collect();
                bail!("column {name}: the model has no link {link}, expected one of {}", known.join(", "));
            };
            out.push((link.to_owned(), Contact { body: found.body, pose: found.pose, columns: [None; 6] }));
            out.len() - 1
        };
        out[place].1.columns[axis] = Some(further.len());
        further.push(name.clone());
    }
    // A force without a moment is accepted, but not a vector with missing components.
    for (link, contact) in &out {
        for part in [0..3, 3..6] {
            let unknown = part.clone().find(|&k| contact.columns[k].is_none());
            let known = part.clone().any(|k| contact.columns[k].is_some());
            if let Some(axis) = unknown.filter(|_| known) {
                bail!(
                    "there is no column contact.{link}.{}, but other columns of that wrench are present",
                    WRENCH_AXES[axis]
                );
            }
        }
    }
    Ok(out.into_iter().map(|(_, contact)| contact).collect())
}

/// Returns a mechanism with the independent joints only, since a log of a mechanism with loops needs only their columns.
fn independent_joints(closed: &ClosedMechanism<'_>) -> Result<Mechanism> {
    let mechanism = closed.mechanism();
    let mut builder = MechanismBuilder::new(mechanism.name(), "ground");
    // The floating joint must carry the others, so that its columns are those of a base.
    let base = mechanism.joints().iter().find(|j| j.joint_type == JointType::Floating);
    let base = base.filter(|_| mechanism.base() == Base::Floating).map(|j| j.name.as_str());
    for joint in mechanism.joints().iter().filter(|j| j.follows.is_none()) {
        let independent = joint.v_range().filter(|v| closed.independent().contains(v)).count();
        ensure!(
            independent == 0 || independent == joint.v_range().len(),
            "joint {} is only partly independent: mark other joints as independent",
            joint.name
        );
        if independent > 0 {
            let parent = base.filter(|base| *base != joint.name).unwrap_or("ground");
            let mut spec = JointSpec::new(&joint.name, joint.joint_type, parent, &joint.name);
            spec.limits = joint.limits;
            builder = builder.link(&joint.name, Inertia::zero()).joint(spec);
        }
    }
    Ok(builder.build(&BuildOptions::default())?)
}
