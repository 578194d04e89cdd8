//! Page of `design`: the motion within its limits, and its expected accuracy.

use inertial::consistency::significant;
use inertial::dynamics::{ClosedMechanism, InverseDynamics};
use inertial::excitation::{Motion as States, Trajectory as DesignedTrajectory, flight_forces};
use inertial::mechanism::Mechanism;
use inertial::simulation::{FreeFlyer, PoseRule};
use inertial_app::curves::{Floats, Motion, coordinate_units};
use inertial_app::design::Outcome;
use inertial_app::{Context, Model, Result};
use serde::Serialize;

use super::{Origin, Page, Robot};

/// Largest number of points of each curve, more than the width of a screen.
const POINTS: f64 = 4000.0;

/// Designed motion over time.
#[derive(Debug, Serialize)]
pub struct Trajectory {
    /// Time between points (s).
    pub step: f64,
    /// Coordinates of the motion.
    pub joints: Vec<Joint>,
}

/// Coordinate of a designed motion.
#[derive(Debug, Serialize)]
pub struct Joint {
    /// Name of the coordinate.
    pub joint: String,
    /// Position, speed, acceleration and the force according to the model.
    pub quantities: Vec<Quantity>,
}

/// Quantity with its limits, reduced by the margin.
#[derive(Debug, Serialize)]
pub struct Quantity {
    /// Name of the quantity.
    pub name: &'static str,
    /// Unit of the quantity.
    pub unit: &'static str,
    /// Values over time.
    pub values: Floats,
    /// Lower and upper limit, if present.
    pub limits: [Option<f64>; 2],
}

/// Creates the page of a design.
pub fn of_design(model: &Model, outcome: &Outcome, origin: Origin, context: &Context<'_>) -> Result<Page> {
    let (mechanism, certificate) = (&model.mechanism, &outcome.certificate);
    let mut page = Page::new("Design", model, origin);
    let weak = certificate.weak().count();
    let duration = outcome.trajectory.duration();
    page.lead = format!(
        "A motion of {duration} s within the limits excites {} of the {} base parameters of this robot{}.",
        certificate.rank,
        certificate.structural_rank,
        match weak {
            0 => ", all of them well".to_owned(),
            1 => "; one unknown is weak (expected standard error above 30 %)".to_owned(),
            n => format!("; {n} unknowns are weak (expected standard error above 30 %)"),
        }
    );
    page.tile(&format!("{duration} s"), "duration");
    page.tile(&format!("{} of {}", certificate.rank, certificate.structural_rank), "base parameters excited");
    page.tile(&significant(certificate.scaled_condition, 4), "condition number, columns of equal length");
    page.tile(&weak, "weak unknowns");
    page.warnings = outcome.warnings.iter().map(|w| super::sentence(&w.to_string())).collect();
    page.fact("seed", outcome.seed.to_string());
    page.design = Some(serde_json::to_value(outcome)?);
    page.robot = Some(Robot::new(mechanism, None)?.with_shapes(model, context));
    let (trajectory, motion) = sampled(mechanism, outcome)?;
    (page.trajectory, page.motions) = (Some(trajectory), vec![motion]);
    Ok(page)
}

/// Computes positions and forces if the whole motion is given.
fn prescribed(
    mechanism: &Mechanism,
    trajectory: &DesignedTrajectory,
    rate: f64,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let [q, v, a] = States::new(mechanism, trajectory)?.sample(rate)?;
    let (nq, nv) = (mechanism.nq().max(1), mechanism.nv().max(1));
    let mut forces = vec![0.0; v.len()];
    let dynamics = InverseDynamics::new(mechanism);
    let mut scratch = dynamics.scratch();
    for (s, tau) in forces.chunks_exact_mut(nv).enumerate() {
        let (q, own) = (&q[s * nq..(s + 1) * nq], s * nv..(s + 1) * nv);
        dynamics.rnea(&mut scratch, q, &v[own.clone()], &a[own], tau)?;
    }
    Ok((q, forces))
}

/// Computes positions and forces if loops determine the motion of the other joints.
fn closed(mechanism: &Mechanism, trajectory: &DesignedTrajectory, rate: f64) -> Result<(Vec<f64>, Vec<f64>)> {
    let closed = ClosedMechanism::new(mechanism)?;
    let (names, places) = (closed.independent_names(), closed.independent_positions());
    let (count, n) = (trajectory.samples(rate)?, trajectory.joints().len());
    let (nq, nv, dof) = (mechanism.nq(), mechanism.nv(), closed.dof());
    let all = mechanism.position_names();
    let of = |among: &dyn Fn(&String) -> Option<usize>| -> Vec<Option<usize>> {
        trajectory.joints().iter().map(among).collect()
    };
    let rates = of(&|name| names.iter().position(|other| other == name));
    let positions = of(&|name| places.iter().position(|&q| all[q] == *name));
    let rest: Vec<f64> = places.iter().map(|&q| closed.assembled()[q]).collect();
    let mut targets: Vec<f64> = rest.iter().copied().cycle().take(count * rest.len()).collect();
    let [mut v, mut a] = [vec![0.0; count * dof], vec![0.0; count * dof]];
    let [mut x, mut dx, mut ddx] = [vec![0.0; n], vec![0.0; n], vec![0.0; n]];
    for i in 0..count {
        trajectory.evaluate(i as f64 / rate, &mut x, &mut dx, &mut ddx);
        for j in 0..n {
            if let (Some(rate), Some(position)) = (rates[j], positions[j]) {
                targets[i * rest.len() + position] = x[j];
                (v[i * dof + rate], a[i * dof + rate]) = (dx[j], ddx[j]);
            }
        }
    }
    let mut workspace = closed.workspace();
    let mut q = vec![0.0; count * nq];
    closed.follow(&mut workspace, closed.assembled(), &targets, &mut q)?;
    let (mut forces, mut tau) = (vec![0.0; count * nv], vec![0.0; dof]);
    for i in 0..count {
        let own = i * dof..(i + 1) * dof;
        closed.inverse_dynamics(
            &mut workspace,
            &q[i * nq..(i + 1) * nq],
            &v[own.clone()],
            &a[own],
            &mut tau,
        )?;
        closed.independent().iter().zip(&tau).for_each(|(k, tau)| forces[i * nv + k] = *tau);
    }
    Ok((q, forces))
}

/// Computes positions and forces if the base moves in response to joints and wheels.
fn flight_motion(
    mechanism: &Mechanism,
    trajectory: &DesignedTrajectory,
    rate: f64,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let (nv, wheels) = (mechanism.nv(), mechanism.wheels().len());
    let mut flyer = FreeFlyer::new(mechanism)?.with_rule(PoseRule::Trapezoid);
    let names = (mechanism.position_names(), mechanism.velocity_names());
    let places: Vec<_> = trajectory
        .joints()
        .iter()
        .map(|name| {
            let at = |all: &[String]| all.iter().position(|n| n == name);
            (at(&names.0), at(&names.1), mechanism.wheels().iter().position(|w| w.name == *name))
        })
        .collect();
    let n = places.len();
    let (mut x, mut dx, mut ddx) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
    let (mut q, mut all) = (mechanism.assembly().to_vec(), Vec::new());
    let mut now = 0.0;
    for i in 0..trajectory.samples(rate)? {
        let next = i as f64 / rate;
        flyer.advance(now, next, &mut q, |t, q, v, wheels| {
            trajectory.evaluate(t, &mut x, &mut dx, &mut ddx);
            for (k, place) in places.iter().enumerate() {
                match *place {
                    (Some(iq), Some(iv), _) => (q[iq], v[iv]) = (x[k], dx[k]),
                    (_, _, Some(w)) => wheels[w] = dx[k],
                    _ => {}
                }
            }
        })?;
        now = next;
        all.extend_from_slice(&q);
    }
    // The list of coordinates does not contain the wheel torques.
    let forces = flight_forces(mechanism, trajectory, rate)?;
    let joints = forces.chunks_exact(nv + wheels).flat_map(|row| row[..nv].to_vec()).collect();
    Ok((all, joints))
}

fn sampled(mechanism: &Mechanism, designed: &Outcome) -> Result<(Trajectory, Motion)> {
    let trajectory = &designed.trajectory;
    let rate = designed.rate.min(POINTS / trajectory.duration());
    let (nq, nv) = (mechanism.nq().max(1), mechanism.nv().max(1));
    let wheel = |name: &String| mechanism.wheels().iter().any(|w| w.name == *name);
    let (q, forces) = if trajectory.joints().iter().any(wheel) {
        flight_motion(mechanism, trajectory, rate)?
    } else if !mechanism.loops().is_empty() {
        closed(mechanism, trajectory, rate)?
    } else {
        prescribed(mechanism, trajectory, rate)?
    };
    let count = q.len() / nq;
    let joints = trajectory.joints().len();
    let mut states = vec![[vec![], vec![], vec![]]; joints];
    let mut now = [vec![0.0; joints], vec![0.0; joints], vec![0.0; joints]];
    for s in 0..count {
        let [x, dx, ddx] = &mut now;
        trajectory.evaluate(s as f64 / rate, x, dx, ddx);
        for (j, state) in states.iter_mut().enumerate() {
            state.iter_mut().zip(&now).for_each(|(to, from)| to.push(from[j] as f32));
        }
    }
    let (names, units) = (mechanism.velocity_names(), coordinate_units(mechanism));
    let joint = |(name, states): (&String, [Vec<f32>; 3])| {
        let limits = designed.coordinates.iter().find(|c| c.name == *name);
        let v = names.iter().position(|n| n == name);
        let turns =
            v.map_or(!matches!(name.as_str(), "base.x" | "base.y" | "base.z"), |v| units[v].0 == "N m");
        let both = |x: Option<f64>| [x.map(|x| -x), x].map(|x| x.filter(|x| x.is_finite()));
        let [position, velocity, acceleration] = states.map(Floats);
        let finite = |x: Option<f64>| x.filter(|x| x.is_finite());
        let unit = |turn, slide| if turns { turn } else { slide };
        let mut quantities = vec![
            Quantity {
                name: "position",
                unit: unit("rad", "m"),
                values: position,
                limits: [finite(limits.map(|l| l.lower)), finite(limits.map(|l| l.upper))],
            },
            Quantity {
                name: "speed",
                unit: unit("rad/s", "m/s"),
                values: velocity,
                limits: both(limits.map(|l| l.velocity)),
            },
            Quantity {
                name: "acceleration",
                unit: unit("rad/s²", "m/s²"),
                values: acceleration,
                limits: both(limits.map(|l| l.acceleration)),
            },
        ];
        if let Some(v) = v {
            quantities.push(Quantity {
                name: "model force",
                unit: units[v].0,
                values: Floats(forces.iter().skip(v).step_by(nv).map(|x| *x as f32).collect()),
                limits: both(designed.effort.get(v).copied()),
            });
        }
        Joint { joint: name.clone(), quantities }
    };
    let joints = trajectory.joints().iter().zip(states).map(joint).collect();
    let positions = (0..nq).map(|k| Floats(q.iter().skip(k).step_by(nq).map(|x| *x as f32).collect()));
    Ok((
        Trajectory { step: 1.0 / rate, joints },
        Motion { name: "the motion".into(), step: 1.0 / rate, length: count, q: positions.collect() },
    ))
}
