//! Motions of free-flying robots: derivatives, designs, and parts of the published method (paper 002, section V).

#![allow(clippy::unwrap_used)]

use crate::common::{Rng, assert_close};
use inertial::dynamics::{Workspace, forward_kinematics, kinetic_energy};
use inertial::excitation::cycloid::{SeededFlight, direction_combinations};
use inertial::excitation::pruning::{PruneOptions, PruningRule, prune, select};
use inertial::excitation::{
    Basis, CollisionModel, Criterion, DefaultLimits, Design, Flight, FlightOptions, ModelAggregation,
    MomentumState, MomentumStateGradient, design_flight, flight_forces,
};
use inertial::identifiability::{AnalyzeOptions, Measured, Regrouping, analyze};
use inertial::linalg::Triangle;
use inertial::mechanism::{
    BuildOptions, JointSpec, JointType, Limits, LinkSpec, Mechanism, MechanismBuilder, Mimic, WheelSpec,
};
use inertial::simulation::FreeFlyer;
use inertial::spatial::Pose;
use nalgebra::{DMatrix, Vector3, Vector6};

/// Creates a floating base with a few bodies on joints of every type, a coupled joint, and wheels on base and arm.
fn robot(rng: &mut Rng, size: usize, mut joint: impl FnMut(&mut Rng) -> JointType) -> Mechanism {
    let limits = Limits::default().with(|l| {
        l.lower = -2.0;
        l.upper = 2.0;
        l.velocity = 0.4;
        l.effort = f64::INFINITY;
    });
    let mut out = MechanismBuilder::new("flyer", "space");
    out.gravity = Vector3::zeros();
    for k in 0..=size {
        let name = format!("link{k}");
        out.links.push(LinkSpec { name: name.clone(), inertia: Some(rng.inertia()), line: None });
        let (kind, parent, at) = match k {
            0 => (JointType::Floating, "space".to_owned(), Pose::identity()),
            _ => (joint(rng), format!("link{}", rng.below(k)), rng.pose()),
        };
        let mut spec = JointSpec::new(format!("joint{k}"), kind, parent, &name).at(at);
        spec.limits = limits;
        if k == 3 && kind.nv() == 1 && out.joints[1].joint_type.nv() == 1 {
            spec.mimic = Some(Mimic::new("joint1", -1.5, 0.2));
        }
        out.joints.push(spec);
    }
    for k in 0..4 {
        out.wheels.push(WheelSpec {
            name: format!("wheel{k}"),
            carrier: format!("link{}", if k == 3 { size } else { 0 }),
            axis: rng.unit::<3>().into(),
            inertia: rng.range(0.01, 0.1),
            limits: Limits::default().with(|l| l.velocity = 20.0),
            line: None,
        });
    }
    out.build(&BuildOptions::default()).unwrap()
}

fn regrouping(robot: &Mechanism) -> Regrouping {
    let options = AnalyzeOptions::default().with(|o| o.measured = Some(Measured::Momentum));
    analyze(robot, &options).unwrap().regrouping
}

fn base_columns(robot: &Mechanism) -> Vec<usize> {
    regrouping(robot).base
}

#[test]
fn an_instant_is_that_of_the_simulator() {
    let mut rng = Rng(1);
    for case in 0..6 {
        let robot = robot(&mut rng, 1 + case % 5, Rng::joint);
        let (q, mut v) = (rng.positions(&robot), rng.values(robot.nv(), 1.0));
        let wheels = rng.values(4, 10.0);
        let mut instant = MomentumState::new(&robot, &base_columns(&robot)).unwrap();
        instant.set(&q, &v, &wheels).unwrap();
        FreeFlyer::new(&robot).unwrap().respond(&q, &mut v, &wheels).unwrap();
        let twist = instant.base_twist();
        let found: Vec<f64> = twist.linear.iter().chain(&twist.angular).copied().collect();
        assert_close(&found, &v[..6], 1e-10, "twist of the base");
    }
}

#[test]
fn instants_differentiate() {
    let mut rng = Rng(2);
    for case in 0..8 {
        let robot = robot(&mut rng, 1 + case % 5, Rng::joint);
        let columns = base_columns(&robot);
        let (q, v) = (rng.positions(&robot), rng.values(robot.nv(), 1.0));
        let wheels = rng.values(4, 10.0);
        let g = DMatrix::from_fn(columns.len(), 6, |_, _| rng.range(-1.0, 1.0));
        let y = DMatrix::from_fn(6, robot.nv(), |_, _| rng.range(-1.0, 1.0));
        let w = Vector6::from_fn(|_, _| rng.range(-1.0, 1.0));
        let mut instant = MomentumState::new(&robot, &columns).unwrap();
        let mut value = |q: &[f64], v: &[f64], wheels: &[f64]| {
            instant.set(q, v, wheels).unwrap();
            (&instant.k * &g).trace() - y.dot(instant.momentum_matrix())
                + w.dot(&instant.base_twist().to_vector())
        };
        let h = 1e-5;
        let mut slopes = [Vec::new(), Vec::new(), Vec::new()];
        for k in 0..robot.nv() {
            let moved = |h: f64| {
                let (mut q, mut step) = (q.clone(), vec![0.0; robot.nv()]);
                step[k] = h;
                robot.integrate(&mut q, &step);
                q
            };
            slopes[0].push((value(&moved(h), &v, &wheels) - value(&moved(-h), &v, &wheels)) / (2.0 * h));
            let faster = |h: f64| {
                let mut v = v.clone();
                v[k] += h;
                v
            };
            slopes[1].push((value(&q, &faster(h), &wheels) - value(&q, &faster(-h), &wheels)) / (2.0 * h));
        }
        for k in 0..4 {
            let spun = |h: f64| {
                let mut wheels = wheels.clone();
                wheels[k] += h;
                wheels
            };
            slopes[2].push((value(&q, &v, &spun(h)) - value(&q, &v, &spun(-h))) / (2.0 * h));
        }
        instant.set(&q, &v, &wheels).unwrap();
        let mut gradient = MomentumStateGradient::new(&robot);
        instant.pull(&g, Some(&y), Some(&w), &mut gradient);
        // The coordinates of the base have no effect: its motion follows from the momentum.
        let [dq, dv, dw] = slopes;
        // Central differences of numbers of about a hundred have errors of h² and ε/h, some 1e-9.
        assert_close(&gradient.q[6..], &dq[6..], 1e-7, "by positions");
        assert_close(&gradient.v[6..], &dv[6..], 1e-7, "by rates");
        assert_close(&gradient.wheels, &dw, 1e-7, "by wheels");
        assert!(dq[..6].iter().chain(&dv[..6]).all(|s| s.abs() < 1e-5));
    }
}

/// Returns a hinge or slider, which are the joints that trajectories move.
fn simple(rng: &mut Rng) -> JointType {
    let axis = rng.axis();
    if rng.chance(0.3) { JointType::Prismatic { axis } } else { JointType::Revolute { axis } }
}

#[test]
fn motions_differentiate() {
    let mut rng = Rng(3);
    let robot = robot(&mut rng, 3, simple);
    let columns = base_columns(&robot);
    let basis = Basis::VelocityKnots { knots: (0..=20).map(f64::from).collect() };
    let flight = Flight::new(&robot, &columns, basis, 20.0, 4.0).unwrap();
    let c = rng.values(flight.coefficients(), 0.4);
    let noise: Vec<f64> = (0..robot.nv()).map(|_| rng.range(0.5, 1.0)).collect();
    let some = DMatrix::from_fn(columns.len(), columns.len(), |_, _| rng.range(-1.0, 1.0));
    let weight = &some * some.transpose();
    let information = |c: &[f64]| (&weight * flight.information(c, &noise).unwrap()).trace();
    let found = flight.information_gradient(&c, &noise, &weight).unwrap();
    let mut published = vec![0.0; c.len()];
    flight.published_cost(&c, 0.01, &mut published).unwrap();
    let cost = |c: &[f64]| flight.published_cost(c, 0.01, &mut vec![0.0; c.len()]).unwrap().cost;
    for k in (0..c.len()).step_by(11) {
        let moved = |h: f64| {
            let mut c = c.clone();
            c[k] += h;
            c
        };
        let h = 1e-5;
        let slope = |f: &dyn Fn(&[f64]) -> f64| (f(&moved(h)) - f(&moved(-h))) / (2.0 * h);
        let scale = found.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        assert!((slope(&information) - found[k]).abs() < 1e-6 * scale, "information, {k}");
        let scale = published.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        assert!((slope(&cost) - published[k]).abs() < 1e-5 * scale, "eq. 32, {k}");
    }
    // The information matrix agrees with that of the factor.
    let r = flight.factor(&c, Some(&noise)).unwrap().matrix();
    let m = flight.information(&c, &noise).unwrap();
    assert_close((r.transpose() * r).as_slice(), m.as_slice(), 1e-11, "RᵀR");
}

#[test]
fn a_design_keeps_the_limits_and_beats_its_start() {
    let mut rng = Rng(4);
    let robot = robot(&mut rng, 3, simple);
    let parameters = regrouping(&robot);
    let columns = parameters.base.clone();
    let mut options = FlightOptions::new(vec![1e-4; robot.nv()]).with(|o| {
        o.rate = 5.0;
        o.limits = DefaultLimits::default().with(|l| l.margin = 0.0);
        o.starts = 2;
        o.steps = 0;
    });
    let start = design_flight(&robot, &parameters, &options, &|_| true).unwrap();
    options.steps = 60;
    let better = design_flight(&robot, &parameters, &options, &|_| true).unwrap();
    assert_eq!(better.certificate.rank, columns.len());
    assert!(better.criterion <= start.criterion, "{} {}", better.criterion, start.criterion);
    let basis = Basis::VelocityKnots { knots: (0..=20).map(f64::from).collect() };
    let flight = Flight::new(&robot, &columns, basis, 20.0, 5.0).unwrap();
    for _ in 0..5 {
        let limit = |i: usize| if i % flight.moved.len() < 2 { 0.4 } else { 20.0 };
        let c: Vec<f64> = (0..flight.coefficients()).map(|i| limit(i) * rng.range(-1.0, 1.0)).collect();
        let r = flight.factor(&c, Some(&options.noise)).unwrap();
        let n = columns.len() as f64;
        let random: f64 = -(0..columns.len()).map(|i| r.at(i, i).ln()).sum::<f64>() / n;
        // A decrease of the standard errors by about a third, in logarithms.
        assert!(better.criterion < random - 0.3, "{} {random}", better.criterion);
    }
    let again = design_flight(&robot, &parameters, &options, &|_| true).unwrap();
    assert_eq!(again.trajectory, better.trajectory);
    options.criterion = Criterion::CramerRao;
    let relative = design_flight(&robot, &parameters, &options, &|_| true).unwrap();
    options.criterion = Criterion::Worst;
    let worst = design_flight(&robot, &parameters, &options, &|_| true).unwrap();
    let errors = |d: &Design| d.certificate.base_parameters.iter().map(|e| e.relative).collect::<Vec<_>>();
    let mean = |d: &Design| errors(d).iter().map(|e| e * e).sum::<f64>();
    let largest = |d: &Design| errors(d).into_iter().fold(0.0, f64::max);
    assert!(mean(&relative) < mean(&better));
    assert!(largest(&worst) < largest(&better));
    // A search that stops after the first step still returns a complete design.
    let early = design_flight(&robot, &parameters, &options, &|_| false).unwrap();
    assert!(early.criterion >= worst.criterion && early.certificate.rank == columns.len());
    for design in [&better, &relative, &worst, &early] {
        assert!(design.usage[0].used <= 1.0 + 1e-9, "{:?}", design.usage[0]);
        let trajectory = &design.trajectory;
        let n = trajectory.joints().len();
        let (mut q, mut v, mut a) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        for t in 0..=20_000 {
            trajectory.evaluate(f64::from(t) * 1e-3, &mut q, &mut v, &mut a);
            for (j, name) in trajectory.joints().iter().enumerate() {
                let limit = if name.starts_with("wheel") { 20.0 } else { 0.4 };
                assert!(v[j].abs() <= limit * (1.0 + 1e-12), "{name}");
                assert!(name.starts_with("wheel") || q[j].abs() <= 2.0, "{name}");
            }
        }
        assert!(v.iter().all(|v| v.abs() < 1e-12), "ends at rest");
    }
    // Infeasible options.
    let says = |options: &FlightOptions, robot: &Mechanism, words: &str| {
        let found = design_flight(robot, &parameters, options, &|_| true).map(|_| ());
        let message = found.unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    };
    says(&options.clone().with(|o| o.interval = 0.0), &robot, "intervals");
    says(
        &options.clone().with(|o| {
            o.duration = 2.0;
            o.rate = 1.0;
        }),
        &robot,
        "longer motion",
    );
    says(&options.clone().with(|o| o.noise = vec![0.0; robot.nv()]), &robot, "noise");
}

#[test]
fn wheels_are_needed_and_must_span() {
    let mut builder = inertial::mechanism::builtin::get("space-dual-arm").unwrap();
    let basis = || Basis::VelocityKnots { knots: vec![0.0, 1.0, 2.0] };
    let says = |builder: &MechanismBuilder, words: &str| {
        let robot = builder.build(&BuildOptions::default()).unwrap();
        let message = Flight::new(&robot, &[0], basis(), 2.0, 10.0).map(|_| ()).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    };
    builder.wheels[2].axis = Vector3::new(1.0, 1.0, 0.0);
    says(&builder, "lie in one plane");
    builder.wheels.clear();
    says(&builder, "no reaction wheels");
}

#[test]
fn directions_and_pruning() {
    let all = direction_combinations(9).unwrap();
    assert_eq!(all.len(), 256);
    assert!(all.iter().all(|d| d[0] == 1.0 && d.iter().all(|x| x.abs() == 1.0)));
    assert!((1..256).all(|i| all[i] != all[i - 1]) && direction_combinations(40).is_err());
    // The last direction changes in every interval.
    assert!((1..256).all(|i| all[i][8] == -all[i - 1][8]) && all[64][2] == -1.0 && all[63][2] == 1.0);

    let mut rng = Rng(5);
    let robot = robot(&mut rng, 2, |r| JointType::Revolute { axis: r.axis() });
    let columns = base_columns(&robot);
    let flight = SeededFlight::new(&robot, &columns, direction_combinations(6).unwrap(), 1.0, 10.0).unwrap();
    let first = flight.optimize(&[0.1, -0.2], 0.01, 0).unwrap();
    let seeds = flight.optimize(&[0.1, -0.2], 0.01, 15).unwrap();
    assert!(seeds.cost < first.cost && seeds.range.iter().all(|r| *r > 0.0 && *r <= 0.2));
    let intervals = flight.intervals(&seeds, None).unwrap();
    assert_eq!(intervals.len(), 32);
    let kept = |rule| prune(&intervals, 60, &PruneOptions::default().with(|o| o.rule = rule)).unwrap();
    let [printed, refreshed, counted] =
        [PruningRule::Printed, PruningRule::Refreshed, PruningRule::Counted].map(kept);
    assert!(refreshed.len() <= printed.len(), "{} of {}", refreshed.len(), printed.len());
    assert!(counted.len() < refreshed.len() && counted.is_sorted());
    // With the printed criterion every interval is better than the first: nothing is pruned.
    assert!(printed.len() >= 30);

    let reported = |kept: &[usize]| {
        let mut sum = Triangle::new(columns.len());
        kept.iter().for_each(|&i| sum.merge(&intervals[i]).unwrap());
        (0..columns.len()).map(|i| sum.at(i, i).ln()).sum::<f64>()
    };
    let ours = select(&intervals, 8).unwrap();
    assert_eq!(ours.len(), 8);
    assert!(ours.is_sorted());
    assert!((0..40).all(|_| {
        let mut others: Vec<usize> = (0..32).collect();
        (0..8).for_each(|i| others.swap(i, i + rng.below(32 - i)));
        reported(&others[..8]) <= reported(&ours)
    }));
    assert!(select(&intervals, 33).is_err());
}

/// The seeds of table 3 with combinations in binary order excite as many parameters as figure 4 of the paper states.
#[test]
fn the_published_seeds_excite_as_many_parameters_as_published() {
    let robot =
        inertial::mechanism::builtin::get("space-dual-arm").unwrap().build(&BuildOptions::default()).unwrap();
    let columns = base_columns(&robot);
    let mut first = direction_combinations(9).unwrap();
    first.truncate(67);
    let flight = SeededFlight::new(&robot, &columns, first, 1.0, 10.0).unwrap();
    let rad = |x: [f64; 6]| x.map(f64::to_radians).to_vec();
    let seeds = inertial::excitation::cycloid::Seeds {
        start: rad([40.661, -109.403, -78.782, 125.089, -110.0, 51.228]),
        range: rad([0.524, 2.51, 2.51, 2.513, 2.036, 2.5]),
        condition: 0.0,
        cost: 0.0,
    };
    let intervals = flight.intervals(&seeds, None).unwrap();
    let significant = |length: usize| {
        let mut sum = Triangle::new(columns.len());
        intervals[..length].iter().for_each(|part| sum.merge(part).unwrap());
        let values = inertial::linalg::singular_values(&sum.matrix()).unwrap();
        values.iter().filter(|s| **s > values[0] / 300.0).count()
    };
    // Printed: 11, 20, 38, 46, 52. The paper does not state which 67 combinations were kept; the first two numbers do not depend
    // on it.
    assert_eq!([1, 3].map(significant), [11, 20]);
    for (length, said) in [(20, 38), (40, 46), (67, 52)] {
        assert!(significant(length).abs_diff(said) <= 2, "{length}: {}", significant(length));
    }
}

/// The work of joints and wheels equals the gain of energy; no wrench acts on the base.
#[test]
fn forces_of_a_flight_do_its_work() {
    let mut rng = Rng(8);
    for joint in [simple as fn(&mut Rng) -> JointType, |r| JointType::Revolute { axis: r.axis() }] {
        let robot = robot(&mut rng, 3, joint);
        let basis = Basis::VelocityKnots { knots: (0..=4).map(f64::from).collect() };
        let flight = Flight::new(&robot, &base_columns(&robot), basis, 4.0, 10.0).unwrap();
        let limit = |i: usize| if flight.moved[i % flight.moved.len()].joint.is_some() { 0.4 } else { 20.0 };
        let c: Vec<f64> = (0..flight.coefficients()).map(|i| limit(i) * rng.range(-1.0, 1.0)).collect();
        let trajectory = flight.trajectory(&c).unwrap();
        let rate = 1000.0;
        let forces = flight_forces(&robot, &trajectory, rate).unwrap();
        let flown = inertial::simulation::FlightSamples::new(&robot, &trajectory, rate).unwrap();
        let (nq, nv, n) = (robot.nq(), robot.nv(), trajectory.joints().len());
        let mut workspace = Workspace::new(&robot);
        let (mut x, mut dx, mut ddx) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        let (mut energies, mut powers) = (Vec::new(), Vec::new());
        for (i, row) in forces.chunks_exact(nv + robot.wheels().len()).enumerate() {
            let (q, v) = (&flown.q[i * nq..(i + 1) * nq], &flown.v[i * nv..(i + 1) * nv]);
            trajectory.evaluate(i as f64 / rate, &mut x, &mut dx, &mut ddx);
            let mut energy = kinetic_energy(&robot, &mut workspace, q, v).unwrap();
            let mut power: f64 = row[6..nv].iter().zip(&v[6..]).map(|(f, v)| f * v).sum();
            for (k, wheel) in robot.wheels().iter().enumerate() {
                let spin = dx[trajectory.joints().iter().position(|j| *j == wheel.name).unwrap()];
                let carried = workspace.velocities()[wheel.body].angular.dot(&wheel.axis);
                energy += wheel.inertia * spin * (carried + 0.5 * spin);
                power += row[nv + k] * spin;
            }
            assert!(row[..6].iter().all(|f| f.abs() < 1e-10), "the base is pushed: {:?}", &row[..6]);
            energies.push(energy);
            powers.push(power);
        }
        let most = powers.iter().fold(0.0f64, |m, p| m.max(p.abs()));
        // The power has kinks at the knots, each second; differences across them are not valid.
        for i in (1..energies.len() - 1).filter(|i| i % 1000 != 0) {
            let gained = (energies[i + 1] - energies[i - 1]) * rate / 2.0;
            // Truncation error of differences over a millisecond for waves of a second.
            assert!((gained - powers[i]).abs() < 1e-4 * most, "{i}: {gained} {}", powers[i]);
        }
    }
}

/// Returns options for a flight of 24 s with a short search.
fn short(robot: &Mechanism, steps: usize) -> FlightOptions {
    FlightOptions::new(vec![1e-4; robot.nv()]).with(|o| {
        o.duration = 24.0;
        o.rate = 5.0;
        o.limits = DefaultLimits::default().with(|l| l.acceleration = f64::INFINITY);
        o.starts = 1;
        o.steps = steps;
        o.seed = 3;
    })
}

/// A design with effort and workspace limits keeps them at 1 kHz; a design without limits exceeds them.
#[test]
fn a_flight_keeps_forces_and_room() {
    let mut builder = inertial::mechanism::builtin::get("space-dual-arm-offset").unwrap();
    let free = builder.build(&BuildOptions::default()).unwrap();
    let parameters = regrouping(&free);
    let options = short(&free, 4);
    let radius = 0.2;
    let capsules = CollisionModel::along_links(&free, radius);
    let collisions = CollisionModel::default().with(|r| {
        r.pairs = CollisionModel::candidate_pairs(&free, &capsules);
        r.capsules = capsules;
        r.workspace = Some([Vector3::repeat(-3.2), Vector3::repeat(3.2)]);
    });
    // Highest force of each joint and wheel over samples at 1 kHz.
    let highest = |robot: &Mechanism, design: &Design| {
        let forces = flight_forces(robot, &design.trajectory, 1000.0).unwrap();
        let width = robot.nv() + robot.wheels().len();
        (6..width)
            .map(|k| forces.iter().skip(k).step_by(width).fold(0.0f64, |m, f| m.max(f.abs())))
            .collect::<Vec<f64>>()
    };
    let unlimited = design_flight(&free, &parameters, &options, &|_| true).unwrap();
    let exerted = highest(&free, &unlimited);
    // Seven tenths of the forces of the unlimited design.
    let limits: Vec<f64> = exerted.iter().map(|f| 0.7 * f).collect();
    let joints = builder.joints.iter_mut().filter(|j| j.joint_type.nv() == 1).map(|j| &mut j.limits.effort);
    let efforts = joints.chain(builder.wheels.iter_mut().map(|w| &mut w.limits.effort));
    efforts.zip(&limits).for_each(|(effort, limit)| *effort = *limit);
    let robot = builder.build(&BuildOptions::default()).unwrap();
    let held = design_flight(
        &robot,
        &parameters,
        &options.clone().with(|o| o.collisions = collisions.clone()),
        &|_| true,
    )
    .unwrap();
    assert_eq!(held.certificate.rank, 52);
    let margin = 1.0 - options.limits.margin;
    for (force, limit) in highest(&robot, &held).iter().zip(&limits) {
        assert!(*force <= margin * limit * (1.0 + 1e-12), "{force} of {limit}");
    }
    let torque = held.usage.iter().find(|u| u.limit.starts_with("the torque of")).unwrap();
    assert!(torque.used <= 1.0 && torque.used > 0.5, "{torque:?}");
    // Distances of the arms and the box, from points along the links.
    let flown = inertial::simulation::FlightSamples::new(&robot, &held.trajectory, 1000.0).unwrap();
    let mut workspace = Workspace::new(&robot);
    let mut least = f64::INFINITY;
    for q in flown.q.chunks_exact(robot.nq()).step_by(10) {
        forward_kinematics(&robot, &mut workspace, q).unwrap();
        let points: Vec<Vec<Vector3<f64>>> = collisions
            .capsules
            .iter()
            .map(|c| {
                let at = |k: i32| c.ends[0].lerp(&c.ends[1], f64::from(k) / 20.0);
                (0..=20).map(|k| workspace.poses()[c.body.unwrap()].transform_point(&at(k))).collect()
            })
            .collect();
        let inside = |p: &Vector3<f64>| p.iter().all(|x| x.abs() <= 3.2 - radius + 1e-12);
        assert!(points.iter().flatten().all(inside));
        for &(i, j) in &collisions.pairs {
            for a in &points[i] {
                for b in &points[j] {
                    least = least.min((a - b).norm());
                }
            }
        }
    }
    assert!(least >= 2.0 * radius - 1e-12, "{least}");
    // A workspace that cannot be reached.
    let nowhere = collisions.with(|r| r.workspace = Some([Vector3::repeat(5.0), Vector3::repeat(6.0)]));
    let refused = design_flight(&robot, &parameters, &options.with(|o| o.collisions = nowhere), &|_| true);
    assert!(refused.unwrap_err().to_string().contains("the limits allow no posture"));
}

/// A design for several guesses of the robot has their combined criterion; its worst case is better than that of a design for one
/// guess.
#[test]
fn criteria_of_several_guesses_are_combined() {
    let get = |name: &str| {
        inertial::mechanism::builtin::get(name).unwrap().build(&BuildOptions::default()).unwrap()
    };
    let (guess, truth) = (get("space-dual-arm-offset"), get("space-dual-arm"));
    let parameters = regrouping(&guess);
    let mut options = short(&guess, 10);
    let design = |options: &FlightOptions| design_flight(&guess, &parameters, options, &|_| true);
    let alone = design(&options).unwrap();
    // Mean logarithm of the standard errors, by a factorization.
    let value = |design: &Design, robot: &Mechanism| {
        let motion = &design.trajectory;
        let flight = Flight::new(robot, &parameters.base, motion.basis().clone(), 24.0, 5.0).unwrap();
        let n = flight.moved.len();
        let mut c = vec![0.0; flight.coefficients()];
        for j in 0..n {
            motion.coefficients(j).enumerate().for_each(|(k, x)| c[k * n + j] = x);
        }
        let r = flight.factor(&c, Some(&options.noise)).unwrap();
        -(0..parameters.base.len()).map(|i| r.at(i, i).abs().ln()).sum::<f64>() / parameters.base.len() as f64
    };
    let both = |design: &Design| [&guess, &truth].map(|robot| value(design, robot));
    options.others = vec![truth.clone()];
    let mean = design(&options).unwrap();
    let [a, b] = both(&mean);
    // Rounding error of an information matrix with condition number 1e6 in the mean of 52 logarithms.
    assert!((mean.criterion - 0.5 * (a + b)).abs() < 1e-8, "{} {a} {b}", mean.criterion);
    let [c, d] = both(&alone);
    assert!(a + b < c + d, "{a} {b} {c} {d}");
    options.robust = ModelAggregation::Worst;
    let worst = design(&options).unwrap();
    let [a, b] = both(&worst);
    // The smooth maximum is below the true one by at most ln 2 over its sharpness of 30.
    assert!(worst.criterion <= a.max(b) + 1e-8 && worst.criterion > a.max(b) - 2f64.ln() / 30.0 - 1e-8);
    assert!(a.max(b) < c.max(d), "{a} {b} {c} {d}");
    options.others = vec![robot(&mut Rng(4), 3, simple)];
    assert!(design(&options).unwrap_err().to_string().contains("expected the same robot"));
}
