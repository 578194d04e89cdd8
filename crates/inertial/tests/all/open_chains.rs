//! Identifiability of open chains: invariance, long chains, couplings and comparison with sampling.

#![allow(clippy::unwrap_used)]

use crate::common::tiny::{Tiny, assert_rate};
use crate::common::{Features, Rng, cases, reference_regressor};
use inertial::identifiability::certificate::CertificateKind;
use inertial::identifiability::{
    Analysis, AnalyzeOptions, Experiment, Measured, Method, Regime, Sampler, Status, analyze,
};
use inertial::linalg::{First, Pivot, rank};
use inertial::mechanism::{
    BuildOptions, ExactGeometry, JointSpec, JointType, LinkSpec, Mechanism, MechanismBuilder, Mimic, Rounding,
};
use inertial::spatial::{Inertia, Pose, transfer_matrix};
use nalgebra::{DMatrix, DVector, Vector3, vector};

/// `--snap 0`, `rank_literal` and the warning agree, and the changes by snapping are reported.
#[test]
fn the_literal_rank_is_that_without_snapping() {
    for case in cases(60, Features::LINEAR) {
        let m = &case.mechanism;
        let meant = analyze(m, &AnalyzeOptions::default()).unwrap();
        let literal = analyze(m, &AnalyzeOptions::default().with(|o| o.snap = 0.0)).unwrap();
        assert_eq!((literal.rank, literal.rank_literal), (meant.rank_literal, meant.rank_literal));
        let told = meant.warnings.iter().any(|w| w.to_string().contains("taken literally"));
        assert_eq!(told, meant.rank != meant.rank_literal);
        assert!(literal.assumed.iter().all(|r| r.moved < 1e-12), "{:?}", literal.assumed);
    }
}

/// Rotates the frame of every link, and shifts it if the joint allows it; returns the pose of each new frame in the old one.
fn reframed(builder: &MechanismBuilder, rng: &mut Rng) -> (MechanismBuilder, Vec<(String, Pose<f64>)>) {
    let mut out = builder.clone();
    let mut frames: Vec<(String, Pose<f64>)> = Vec::new();
    for joint in &mut out.joints {
        let turn = rng.rotation();
        let along = match joint.joint_type {
            JointType::Revolute { axis } | JointType::Cylindrical { axis } => axis * rng.range(-0.5, 0.5),
            JointType::Prismatic { .. } => rng.vector(0.5),
            _ => Vector3::zeros(),
        };
        let own = Pose::new(turn, along);
        let own = if matches!(joint.joint_type, JointType::Floating | JointType::Spherical | JointType::Fixed)
        {
            Pose::new(turn, Vector3::zeros())
        } else {
            own
        };
        let back = |v: &Vector3<f64>| turn.tr_mul(v);
        joint.joint_type = match joint.joint_type {
            JointType::Revolute { axis } => JointType::Revolute { axis: back(&axis) },
            JointType::Prismatic { axis } => JointType::Prismatic { axis: back(&axis) },
            JointType::Helical { axis, pitch } => JointType::Helical { axis: back(&axis), pitch },
            JointType::Cylindrical { axis } => JointType::Cylindrical { axis: back(&axis) },
            JointType::Planar { normal } => JointType::Planar { normal: back(&normal) },
            JointType::Universal { axes } => JointType::Universal { axes: axes.map(|a| back(&a)) },
            other => other,
        };
        let parent = frames.iter().find(|(n, _)| *n == joint.parent).map_or_else(Pose::identity, |f| f.1);
        joint.origin = parent.inverse() * joint.origin * own;
        frames.push((joint.child.clone(), own));
    }
    for link in &mut out.links {
        if let (Some(inertia), Some((_, own))) = (&mut link.inertia, frames.iter().find(|f| f.0 == link.name))
        {
            *inertia = inertia.transformed(&own.inverse());
        }
    }
    for rotor in &mut out.rotors {
        let carrier = frames.iter().find(|f| f.0 == rotor.carrier).map_or_else(Pose::identity, |f| f.1);
        rotor.origin = carrier.inverse() * rotor.origin;
    }
    (out, frames)
}

/// Asserts that parameters that are equivalent in one description are equivalent in the other.
fn assert_same_row_space(a: &Analysis, b: &Analysis, to_b: &dyn Fn(&[f64]) -> Vec<f64>, rng: &mut Rng) {
    assert_eq!(a.rank, b.rank, "{:?} {:?}", a.warnings, b.warnings);
    for _ in 0..3 {
        let given = rng.values(a.parameters, 1.0);
        let noise = rng.values(a.parameters, 1.0);
        let other = a.regrouping.expand(&a.regrouping.regroup(&given).unwrap(), &noise).unwrap();
        let size = other.iter().chain(&given).fold(1.0, |m: f64, x| m.max(x.abs()));
        let [x, y] = [given, other].map(|p| b.regrouping.regroup(&to_b(&p)).unwrap());
        let largest = b.regrouping.combinations.iter().flatten().fold(1.0, |m: f64, c| m.max(c.1.abs()));
        for (x, y) in x.iter().zip(&y) {
            assert!(
                (x - y).abs() <= 1e-12 * size * largest * a.parameters as f64,
                "{x} {y} {size} {largest}"
            );
        }
    }
}

#[test]
fn row_spaces_transform_with_link_frames() {
    let mut rng = Rng(5);
    for case in cases(80, Features::LINEAR) {
        let (other, frames) = reframed(&case.builder, &mut rng);
        let Ok(other) = other.build(&BuildOptions::default()) else { continue };
        let m = &case.mechanism;
        let [a, b] = [m, &other].map(|m| analyze(m, &AnalyzeOptions::default()).unwrap());
        assert!(a.certificate.exact && b.certificate.exact, "{:?} {:?}", a.warnings, b.warnings);
        let to_b = |p: &[f64]| {
            let mut out = p.to_vec();
            for block in m.parameter_blocks().iter().filter(|b| b.len == 10) {
                let name = &m.bodies()[block.body].name;
                let Some((_, own)) = frames.iter().find(|f| f.0 == *name) else { continue };
                let here = DVector::from_column_slice(&p[block.offset..block.offset + 10]);
                let there = transfer_matrix(&own.inverse()) * here;
                out[block.offset..block.offset + 10].copy_from_slice(there.as_slice());
            }
            out
        };
        assert_same_row_space(&a, &b, &to_b, &mut rng);
    }
}

/// Creates a long chain with axes about x, y and z in turn.
fn long_chain(bodies: usize) -> Mechanism {
    let mut b = MechanismBuilder::new("chain", "ground");
    for i in 0..bodies {
        let (name, parent) =
            (format!("b{i}"), if i == 0 { "ground".to_owned() } else { format!("b{}", i - 1) });
        b.links.push(LinkSpec { name: name.clone(), inertia: Some(Inertia::zero()), line: None });
        let mut axis = Vector3::zeros();
        axis[i % 3] = 1.0;
        let hinge = JointType::Revolute { axis };
        let at = Pose::from_translation(vector![0.1, 0.02, 0.3]);
        b = b.joint(JointSpec::new(format!("j{i}"), hinge, parent, name).at(at));
    }
    b.build(&BuildOptions::default()).unwrap()
}

#[test]
fn long_chains_are_certified_joint_by_joint() {
    let m = long_chain(400);
    let answer = analyze(&m, &AnalyzeOptions::default()).unwrap();
    assert!(answer.certificate.exact && answer.rank > 1000, "{:?}", answer.certificate);
    assert!(answer.certificate.error_probability.is_some_and(|p| p <= 1e-15));
    let wrench = AnalyzeOptions::default().with(|o| o.measured = Some(Measured::BaseWrench));
    let small = long_chain(6);
    let recursion = analyze(&small, &wrench).unwrap();
    let sampled = analyze(&small, &wrench.with(|o| o.method = Method::Exact)).unwrap();
    assert_eq!((recursion.method, sampled.method), ("rpna", "exact"));
    assert_eq!(recursion.rank, sampled.rank);
    assert_eq!(recursion.regrouping.base, sampled.regrouping.base);
    assert_eq!(recursion.regrouping.status, sampled.regrouping.status);
}

/// Creates a long chain with randomly rotated and placed frames.
fn random_chain(bodies: usize, rng: &mut Rng) -> Mechanism {
    let mut b = MechanismBuilder::new("chain", "ground");
    for i in 0..bodies {
        let (name, parent) =
            (format!("b{i}"), if i == 0 { "ground".to_owned() } else { format!("b{}", i - 1) });
        b.links.push(LinkSpec { name: name.clone(), inertia: Some(Inertia::zero()), line: None });
        let mut joint =
            JointSpec::new(format!("j{i}"), JointType::Revolute { axis: Vector3::y() }, parent, name)
                .at(rng.pose());
        // Numbers with full precision.
        joint.rounding = Some(Rounding::default());
        b = b.joint(joint);
    }
    b.build(&BuildOptions::default()).unwrap()
}

/// The uncertainty of joint positions must not grow along a chain: joints with full precision are not moved.
#[test]
fn long_chains_in_arbitrary_frames_are_taken_as_written() {
    let m = random_chain(150, &mut Rng(8));
    let answer = analyze(&m, &AnalyzeOptions::default()).unwrap();
    assert!(answer.certificate.exact && answer.assumed.is_empty(), "{:?}", answer.assumed);
    assert_eq!(answer.rank, answer.rank_literal);
}

/// The regressor of a coupled mechanism is that of the free mechanism at `q = G x + c`, times `G`.
#[test]
fn joints_that_follow_several_have_the_rank_of_the_projected_regressor() {
    let mut rng = Rng(12);
    let mut clear = 0;
    for _ in 0..12 {
        let mut b = MechanismBuilder::new("arm", "ground");
        b.gravity = vector![0.0, 0.0, -9.81];
        for i in 0..5 {
            let parent = if i == 0 { "ground".to_owned() } else { format!("b{}", rng.below(i)) };
            let axis = [Vector3::x(), Vector3::y(), Vector3::z()][rng.below(3)];
            let kind = match rng.below(4) {
                0 => JointType::Prismatic { axis },
                _ => JointType::Revolute { axis },
            };
            b = b.link(format!("b{i}"), Inertia::zero());
            let at = Pose::from_translation(vector![0.3, 0.1, 0.2] * f64::from(i as u32 % 2));
            b = b.joint(JointSpec::new(format!("j{i}"), kind, parent, format!("b{i}")).at(at));
        }
        let free = b.build(&BuildOptions::default()).unwrap();
        let leaders = vec![("j1".to_owned(), 0.5), ("j0".to_owned(), -2.0)];
        b.joints[3].mimic = Some(Mimic { leaders, offset: 0.25 });
        let coupled = b.build(&BuildOptions::default()).unwrap();
        let answer = analyze(&coupled, &AnalyzeOptions::default()).unwrap();
        assert!(answer.certificate.exact, "{:?}", answer.warnings);
        let mut g = DMatrix::zeros(5, 4);
        for (row, column) in [(0, 0), (1, 1), (2, 2), (4, 3)] {
            g[(row, column)] = 1.0;
        }
        (g[(3, 1)], g[(3, 0)]) = (0.5, -2.0);
        let states = 40;
        let mut rows = DMatrix::zeros(4 * states, 50);
        for k in 0..states {
            let [x, v, a] = std::array::from_fn(|_| &g * DVector::from_vec(rng.values(4, 1.5)));
            let q = x + DVector::from_vec(vec![0.0, 0.0, 0.0, 0.25, 0.0]);
            let y = reference_regressor(&free, q.as_slice(), v.as_slice(), a.as_slice());
            rows.rows_mut(4 * k, 4).copy_from(&g.tr_mul(&y));
        }
        let found = rank(&rows, 1e-10).unwrap();
        if found.margin() > 1e3 {
            clear += 1;
            assert_eq!(answer.rank, found.rank, "{found:?}");
        }
        // Null vectors of the result leave the projected torques unchanged.
        assert_eq!(answer.null_space.len(), answer.nullity);
        let names = coupled.parameter_names();
        for null in &answer.null_space {
            let column = |name: &str| names.iter().position(|n| n == name).unwrap();
            for row in rows.row_iter() {
                let terms: Vec<f64> = null.combination.iter().map(|(n, x)| x * row[column(n)]).collect();
                // Entries are sums of numbers of the size of the largest entry: the rounding error is 1e-15 of it.
                let size = terms.iter().fold(1e-2 * row.amax(), |m: f64, x| m.max(x.abs()));
                assert!(terms.iter().sum::<f64>().abs() <= 1e-12 * size, "{null:?}");
            }
        }
    }
    assert!(clear > 6, "only {clear} of 12 have a clear gap");
}

/// Null vectors are listed if there are too many combinations to list.
#[test]
fn very_long_chains_list_null_vectors() {
    let answer = analyze(&long_chain(700), &AnalyzeOptions::default()).unwrap();
    assert!(answer.certificate.exact && !answer.regrouping.is_listed());
    assert_eq!(answer.null_space.len(), answer.nullity);
    assert!(answer.regrouping.regroup(&vec![0.0; answer.parameters]).is_err());
    let short = analyze(&long_chain(100), &AnalyzeOptions::default()).unwrap();
    assert_eq!(short.regrouping.status[..500], answer.regrouping.status[..500]);
    assert!(short.regrouping.status.contains(&Status::Unidentifiable));
}

#[test]
fn other_sensors_agree_with_sampling() {
    for case in cases(40, Features::LINEAR) {
        let m = &case.mechanism;
        for measured in [Measured::BaseWrench, Measured::Both] {
            for regime in [Regime::Full, Regime::Static, Regime::Kinetic] {
                let options = AnalyzeOptions::default().with(|o| {
                    o.measured = Some(measured);
                    o.regime = regime;
                });
                let auto = analyze(m, &options).unwrap();
                let exact = analyze(m, &options.with(|o| o.method = Method::Exact)).unwrap();
                assert_eq!(auto.rank, exact.rank, "{measured:?} {regime:?} {:?}", auto.warnings);
                assert_eq!(auto.regrouping.base, exact.regrouping.base);
                assert!(auto.certificate.exact, "{measured:?} {regime:?} {:?}", auto.warnings);
            }
        }
    }
}

#[test]
fn floating_trees_are_proved_without_chance() {
    let mut b = MechanismBuilder::new("free", "ground");
    b = b.link("base", Inertia::zero()).joint(JointSpec::new("root", JointType::Floating, "ground", "base"));
    for (name, parent) in [("a", "base"), ("b", "a"), ("c", "base")] {
        let hinge = JointType::Revolute { axis: Vector3::y() };
        let at = Pose::from_translation(vector![0.1, 0.2, 0.3]);
        b = b
            .link(name, Inertia::zero())
            .joint(JointSpec::new(format!("j{name}"), hinge, parent, name).at(at));
    }
    let answer = analyze(&b.build(&BuildOptions::default()).unwrap(), &AnalyzeOptions::default()).unwrap();
    assert_eq!(answer.rank, 10 + 3 * 7);
    assert_eq!(
        (answer.certificate.kind, answer.certificate.error_probability),
        (CertificateKind::Proved, Some(0.0))
    );
}

/// Checks that sampling modulo a small prime misses the full rank no more often than the bound of Schwartz and Zippel.
fn shortfall<const P: u64>(m: &Mechanism, rank: usize) {
    let geometry = ExactGeometry::new(m, 1e-4).to::<Tiny<P>>();
    let experiment = Experiment::complete(false, Regime::Full);
    let (mut short, runs) = (0u32, 400u32);
    let mut degree = 0.0;
    for seed in 0..runs {
        let mut sampler = Sampler::new(m, &geometry, &experiment, u64::from(seed));
        degree = sampler.degree();
        let found = sampler.row_space(Pivot::First).rank();
        assert!(found <= rank, "modulo {P}: {found}");
        short += u32::from(found < rank);
    }
    assert_rate(short, runs, rank as f64 * degree / P as f64, &format!("modulo {P}"));
}

#[test]
fn tiny_primes_fail_no_more_often_than_the_bound_says() {
    // One joint, for which the bound is nontrivial even with the smallest prime, and three.
    for axes in [vec![Vector3::y()], vec![Vector3::z(), Vector3::y(), Vector3::y()]] {
        let mut b = MechanismBuilder::new("arm", "ground");
        for (i, axis) in axes.into_iter().enumerate() {
            let parent = if i == 0 { "ground".to_owned() } else { format!("b{}", i - 1) };
            let at = Pose::from_translation(vector![0.3, 0.1, 0.2]);
            let hinge = JointType::Revolute { axis };
            b = b.link(format!("b{i}"), Inertia::zero());
            b = b.joint(JointSpec::new(format!("j{i}"), hinge, parent, format!("b{i}")).at(at));
        }
        let m = b.build(&BuildOptions::default()).unwrap();
        let answer = analyze(&m, &AnalyzeOptions::default()).unwrap();
        let geometry = ExactGeometry::new(&m, 1e-4).to::<First>();
        let experiment = Experiment::complete(false, Regime::Full);
        let rank = Sampler::new(&m, &geometry, &experiment, 1).row_space(Pivot::First).rank();
        assert_eq!(rank, answer.rank);
        shortfall::<101>(&m, rank);
        shortfall::<1009>(&m, rank);
        shortfall::<10007>(&m, rank);
    }
}
