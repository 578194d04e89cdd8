//! Identifiability under conservation laws, compared with closed forms and with explicit momentum equations.

#![allow(clippy::unwrap_used)]

use crate::common::Rng;
use inertial::identifiability::{Analysis, AnalyzeOptions, Measured, Method, TotalMomentum, analyze};
use inertial::linalg::rank;
use inertial::mechanism::{
    Base, BuildOptions, JointSpec, JointType, Limits, MechanismBuilder, WheelSpec, builtin,
};
use inertial::spatial::{Inertia, Pose};
use nalgebra::{DMatrix, Matrix3, Matrix6, Vector3, Vector6};

/// Creates a free base with the given wheels and, if `joint` is given, a second body.
fn robot(rng: &mut Rng, joint: Option<JointType>, wheels: &[Vector3<f64>]) -> MechanismBuilder {
    let mut out = MechanismBuilder::new("satellite", "space")
        .link("base", rng.inertia())
        .joint(JointSpec::new("root", JointType::Floating, "space", "base"));
    out.gravity = Vector3::zeros();
    if let Some(joint) = joint {
        out = out
            .link("arm", rng.inertia())
            .joint(JointSpec::new("elbow", joint, "base", "arm").at(Pose::from_translation(rng.vector(0.5))));
    }
    for (k, axis) in wheels.iter().enumerate() {
        out.wheels.push(WheelSpec {
            name: format!("wheel{k}"),
            carrier: "base".into(),
            axis: *axis,
            inertia: 0.1,
            limits: Limits::default(),
            line: None,
        });
    }
    out
}

fn answer(model: &MechanismBuilder, total_momentum: TotalMomentum) -> Analysis {
    let measured = Some(Measured::Momentum);
    let options = AnalyzeOptions::default().with(|o| {
        o.measured = measured;
        o.total_momentum = total_momentum;
    });
    let found = analyze(&model.build(&BuildOptions::default()).unwrap(), &options).unwrap();
    assert!(found.certificate.exact, "{:?}", found.certificate);
    assert_eq!(found.total_momentum, Some(total_momentum.name()));
    found
}

/// Rank for one body with parameters `m, h, I` about the origin of its frame and centre of mass `c`. At zero linear momentum its
/// origin moves with `v = -ω × c`. A change `δ` of the parameters is not identifiable if, for all reachable `ω`,
///
/// `δm v + ω × δh = ω × (δh - δm c) = 0` and `δI ω + δh × v = 0`.
///
/// - No wheel: the body does not rotate, and the rank is 0.
/// - One wheel: one direction of `ω`. The first condition gives `δh = δm c + a ω`, two equations; the second adds three: 5.
/// - Two wheels: a plane of `ω`. The first condition gives `δh = δm c`, three equations. The second is then `J ω = 0` on the plane,
///   where `J` is `δI` minus a point mass `δm` at `c`: six equations, two of which coincide (`ω₁·J ω₂ = ω₂·J ω₁`): 8.
/// - Three wheels: `δh = δm c` and `J = 0`, nine equations. A point mass at the centre of mass is not identifiable: 9.
#[test]
fn the_rank_of_one_body_depends_on_its_wheels() {
    let mut rng = Rng(1);
    let axes = [vec![], vec![0], vec![0, 1], vec![0, 1, 2], vec![0, 0, 1, 1]];
    for (which, expected) in axes.iter().zip([0, 5, 8, 9, 8]) {
        let drawn: Vec<Vector3<f64>> = (0..3).map(|_| rng.unit::<3>().into()).collect();
        let wheels: Vec<_> = which.iter().map(|&k: &usize| drawn[k]).collect();
        let model = robot(&mut rng, None, &wheels);
        let found = answer(&model, TotalMomentum::Zero);
        assert_eq!(found.rank, expected, "{which:?}");
        assert_eq!(found.warnings.has("only-ratios"), which.is_empty());
        assert_eq!(answer(&model, TotalMomentum::Angular).rank, 9);
        assert_eq!(answer(&model, TotalMomentum::Any).rank, 10);
    }
}

#[test]
fn the_null_vector_of_one_body_with_three_wheels_is_a_point_mass() {
    let mut rng = Rng(2);
    let wheels = [Vector3::x(), Vector3::y(), Vector3::z()];
    let model = robot(&mut rng, None, &wheels);
    let found = answer(&model, TotalMomentum::Zero);
    let body = model.links[0].inertia.unwrap();
    let point = Inertia::from_com(1.0, body.com().unwrap(), Matrix3::zeros()).parameters();
    let base = found.regrouping.regroup(point.as_slice()).unwrap();
    assert!(base.iter().all(|x| x.abs() < 1e-12), "{base:?}");
}

/// Returns the momentum about the origin of the base for each of the ten parameters of a body. The frame of the body has the
/// origin `p` and the axes `r`. The base moves with `v, ω`, the body with `v', ω'` relative to it (all in the axes of the base).
fn momentum_columns(
    r: &Matrix3<f64>,
    p: &Vector3<f64>,
    [v, w]: [&Vector3<f64>; 2],
    [dv, dw]: [&Vector3<f64>; 2],
) -> DMatrix<f64> {
    let (omega, origin) = (w + dw, v + w.cross(p) + dv);
    let mut out = DMatrix::zeros(6, 10);
    for k in 0..10 {
        let mut ten = [0.0; 10];
        ten[k] = 1.0;
        let body = Inertia::from_parameters(&ten.into());
        let h = r * body.first_moment;
        let linear = origin * body.mass + omega.cross(&h);
        // About the origin of the body, then about that of the base.
        let own = r * body.rotational * r.transpose() * omega + h.cross(&origin);
        let angular = own + p.cross(&linear);
        out.column_mut(k).copy_from_slice(&[linear.as_slice(), angular.as_slice()].concat());
    }
    out
}

/// Computes the rank for two bodies by singular values, from the columns above alone.
fn two_body_rank(
    model: &MechanismBuilder,
    joint: &JointType,
    wheels: &[Vector3<f64>],
    rng: &mut Rng,
) -> usize {
    let (base, arm) = (model.links[0].inertia.unwrap(), model.links[1].inertia.unwrap());
    let truth: Vec<f64> = base.parameters().iter().chain(arm.parameters().iter()).copied().collect();
    let at = model.joints[1].origin.translation;
    let states = 60;
    let mut rows = DMatrix::zeros(6 * states, 20);
    for t in 0..states {
        let (q, dq) = (rng.range(-3.0, 3.0), rng.range(-1.0, 1.0));
        let zero = Vector3::zeros();
        let (r, p, dv, dw) = match joint {
            JointType::Revolute { axis } => {
                let turn = nalgebra::Rotation3::from_scaled_axis(axis * q);
                (turn.into_inner(), at, zero, axis * dq)
            }
            JointType::Prismatic { axis } => (Matrix3::identity(), at + axis * q, axis * dq, zero),
            _ => unreachable!("one degree of freedom"),
        };
        let columns = |v: &Vector3<f64>, w: &Vector3<f64>, moving: bool| {
            let (dv, dw) = if moving { (dv, dw) } else { (zero, zero) };
            let mut out = DMatrix::zeros(6, 20);
            let of_base = momentum_columns(&Matrix3::identity(), &zero, [v, w], [&zero, &zero]);
            out.columns_mut(0, 10).copy_from(&of_base);
            out.columns_mut(10, 10).copy_from(&momentum_columns(&r, &p, [v, w], [&dv, &dw]));
            out
        };
        let total =
            |c: &DMatrix<f64>| Vector6::from_fn(|i, _| c.row(i).iter().zip(&truth).map(|(a, b)| a * b).sum());
        // The momentum is linear in the velocity of the base, which is found from a linear system.
        let free = total(&columns(&zero, &zero, true));
        let mut inertia = Matrix6::zeros();
        for k in 0..6 {
            let mut unit = [0.0; 6];
            unit[k] = 1.0;
            let (v, w) = (Vector3::from_column_slice(&unit[..3]), Vector3::from_column_slice(&unit[3..]));
            inertia.set_column(k, &total(&columns(&v, &w, false)));
        }
        let stored: Vector3<f64> = wheels.iter().map(|a| a * rng.range(-1.0, 1.0)).sum();
        let mut wanted = Vector6::zeros();
        wanted.fixed_rows_mut::<3>(3).copy_from(&stored);
        let moved = inertia.lu().solve(&(wanted - free)).unwrap();
        let (v, w) = (moved.fixed_rows::<3>(0).into_owned(), moved.fixed_rows::<3>(3).into_owned());
        rows.rows_mut(6 * t, 6).copy_from(&columns(&v, &w, true));
    }
    for mut column in rows.column_iter_mut() {
        let size = column.norm();
        column.unscale_mut(size);
    }
    rank(&rows, 1e-9).unwrap().rank
}

/// Two bodies on a hinge have rank 17 of 20 (three combinations can move across the hinge), on a slide 14.
///
/// The linear part with three wheels is `ω × d + d' = 0` for all `ω` and joint speeds, where `d = δh(q) - δm c(q)` of the whole
/// robot: hence `δh = δm c`. The angular part is then that of a point mass `δm` at the centre of mass `c(q)`. This point moves in
/// both bodies, so that no change of their constant parameters is equivalent to it: `δm = 0`, and the rank is that without the law.
///
/// Without wheels every row is orthogonal to the true parameters: the rank is smaller by one, the scale.
#[test]
fn two_bodies_lose_their_scale_only_without_wheels() {
    let mut rng = Rng(3);
    let three = [Vector3::x(), Vector3::y(), Vector3::z()];
    for (joint, free) in
        [(JointType::Revolute { axis: Vector3::z() }, 17), (JointType::Prismatic { axis: Vector3::y() }, 14)]
    {
        let model = robot(&mut rng, Some(joint), &three);
        assert_eq!(answer(&model, TotalMomentum::Any).rank, free);
        assert_eq!(answer(&model, TotalMomentum::Zero).rank, free);
        assert_eq!(two_body_rank(&model, &joint, &three, &mut rng), free);
        let bare = robot(&mut rng, Some(joint), &[]);
        let found = answer(&bare, TotalMomentum::Zero);
        assert_eq!(found.rank, two_body_rank(&bare, &joint, &[], &mut rng));
        assert!(found.rank < free, "{} {free}", found.rank);
        // The true parameters lie in the null space.
        let truth: Vec<f64> =
            bare.links.iter().flat_map(|l| l.inertia.unwrap().parameters().as_slice().to_vec()).collect();
        let size = found.regrouping.combinations.iter().flatten().fold(0.0, |m: f64, (_, x)| m.max(x.abs()));
        let seen = found.regrouping.regroup(&truth).unwrap();
        assert!(seen.iter().all(|x| x.abs() < 1e-9 * size.max(1.0)), "{seen:?}");
        for wheels in [&three[..1], &three[..2]] {
            let model = robot(&mut rng, Some(joint), wheels);
            let numeric = two_body_rank(&model, &joint, wheels, &mut rng);
            assert_eq!(answer(&model, TotalMomentum::Zero).rank, numeric, "{} wheels", wheels.len());
        }
    }
    // The hinge without wheels: only the scale is lost.
    let bare = robot(&mut rng, Some(JointType::Revolute { axis: Vector3::z() }), &[]);
    assert_eq!(answer(&bare, TotalMomentum::Zero).rank, 16);
}

#[test]
fn the_published_robot_needs_its_wheels_for_its_scale() {
    let mut model = builtin::get("space-dual-arm").unwrap();
    assert_eq!(answer(&model, TotalMomentum::Zero).rank, 52);
    model.wheels.clear();
    let found = answer(&model, TotalMomentum::Zero);
    assert_eq!(found.rank, 51);
    assert_eq!(answer(&model, TotalMomentum::Angular).rank, 52);
    // A robot with unknown masses has the same rank, computed with random masses.
    for link in &mut model.links {
        link.inertia = None;
    }
    let unknown = answer(&model, TotalMomentum::Zero);
    assert_eq!(unknown.rank, 51);
    assert!(unknown.warnings.has("random-masses"), "{:?}", unknown.warnings);
}

/// Two bodies on a hinge have 17 base parameters in forced motion (10 + 7). In free flight without known forces one is lost, the
/// common scale: the parameters of the robot itself cause no wrench.
#[test]
fn a_flight_without_known_forces_shows_ratios() {
    let mut rng = Rng(5);
    let model = robot(&mut rng, Some(JointType::Revolute { axis: Vector3::z() }), &[]);
    let flight = |model: &MechanismBuilder, method| {
        let options = AnalyzeOptions::default().with(|o| {
            o.ballistic = true;
            o.measured = Some(Measured::BaseWrench);
            o.method = method;
        });
        analyze(&model.build(&BuildOptions::default()).unwrap(), &options).unwrap()
    };
    let found = flight(&model, Method::Auto);
    assert!(found.certificate.exact);
    assert_eq!((found.rank, found.nullity), (16, 4));
    // The scale is no transfer across the hinge.
    let transfers = |found: &Analysis| found.bodies.iter().map(|b| b.transfer_freedoms).collect::<Vec<_>>();
    assert_eq!(transfers(&found), [0, 3]);
    assert_eq!(transfers(&flight(&model, Method::Numeric)), [0, 3]);
    assert!(found.warnings.has("only-motion") && !found.warnings.has("random-masses"));
    let truth: Vec<f64> =
        model.links.iter().flat_map(|l| l.inertia.unwrap().parameters().as_slice().to_vec()).collect();
    let largest = truth.iter().fold(0.0_f64, |a, x| a.max(x.abs()));
    let base = found.regrouping.regroup(&truth).unwrap();
    assert!(base.iter().all(|x| x.abs() < 1e-9 * largest), "{base:?}");
    let scale: Vec<_> = found.null_space.iter().filter(|v| v.reason.contains("common scale")).collect();
    assert_eq!(scale.len(), 1);
    let values: Vec<f64> = scale[0].combination.iter().map(|(_, x)| *x).collect();
    assert!(values.iter().zip(&truth).all(|(x, y)| (x - y).abs() < 1e-9 * largest), "{values:?}");
    // With its masses unknown, the ratios are those of a random robot, and the result says so.
    let mut bare = model.clone();
    bare.links.iter_mut().for_each(|link| link.inertia = None);
    let found = flight(&bare, Method::Auto);
    assert_eq!(found.rank, 16);
    assert!(found.warnings.has("random-masses"));
}

/// A given momentum of a mechanism with loops was ignored: the rank for any momentum was certified, which is one too high at zero.
#[test]
fn a_given_momentum_of_loops_is_refused() {
    let model = builtin::get("four-bar").unwrap();
    let floating = BuildOptions::default().with(|o| o.base = Some(Base::Floating));
    let machine = model.build(&floating).unwrap();
    let with = |total| {
        analyze(
            &machine,
            &AnalyzeOptions::default().with(|o| {
                o.measured = Some(Measured::Momentum);
                o.total_momentum = total;
            }),
        )
    };
    assert!(with(TotalMomentum::Any).unwrap().certificate.exact);
    for total in [TotalMomentum::Zero, TotalMomentum::Angular] {
        let message = with(total).unwrap_err().to_string();
        assert!(message.contains("mechanism with loops"), "{message}");
    }
}
