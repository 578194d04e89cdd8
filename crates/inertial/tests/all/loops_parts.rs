//! Mechanisms with loops whose parts share only the base: the combined result of the parts equals that of the whole.

use inertial::identifiability::{Analysis, AnalyzeOptions, Method, Regime, analyze};
use inertial::mechanism::{JointSpec, JointType, Mechanism, Mimic};
use nalgebra::Vector3;

use crate::common::Rng;
use crate::loops::{by, check_null_vectors};
use crate::machines::{Blueprint, at, symmetric_rotor};

const HINGE: JointType = JointType::Revolute { axis: Vector3::new(0.0, 0.0, 1.0) };

/// Tolerance for two values that are each rounded once from more than fifty digits.
const ROUNDED: f64 = 1e-14;

fn name(leg: usize, link: &str) -> String {
    format!("{link}{leg}")
}

/// Adds a four-bar leg; a parallelogram if `skew` is zero.
fn four_bar_leg(plan: &mut Blueprint, rng: &mut Rng, parent: &str, leg: usize, skew: f64) {
    let (x, z) = (0.5 * leg as f64, 0.1 * leg as f64);
    let (thigh, shank, rod) = (name(leg, "thigh"), name(leg, "shank"), name(leg, "rod"));
    plan.link(&thigh, rng.inertia(), parent, HINGE, at(x, 0.2, z));
    plan.link(&shank, rng.inertia(), &thigh, HINGE, at(x + 0.4, 0.3, z));
    plan.link(&rod, rng.inertia(), parent, HINGE, at(x, 0.35, z));
    plan.close(&name(leg, "knee"), &rod, &shank, HINGE, at(x + 0.4 + skew, 0.45, z));
}

/// Creates three legs on `parent`: a parallelogram, a four-bar with a rotor, and an open leg whose last joint follows the first.
fn three_legs(parent: &str, floating: bool) -> Mechanism {
    let rng = &mut Rng(11);
    let mut plan = Blueprint::new("three legs");
    if floating {
        plan.link(parent, rng.inertia(), "ground", JointType::Floating, at(0.0, 0.0, 1.0));
    }
    four_bar_leg(&mut plan, rng, parent, 0, 0.0);
    plan.link("hip", rng.inertia(), parent, JointType::Revolute { axis: Vector3::x() }, at(0.4, 0.0, 0.1));
    four_bar_leg(&mut plan, rng, "hip", 1, 0.05);
    plan.builder.rotors.push(symmetric_rotor(rng, "thigh1.joint", "hip"));
    plan.link("upper", rng.inertia(), parent, HINGE, at(-0.3, 0.1, 0.0));
    let follower = JointSpec::new("wrist", HINGE, "upper", "lower");
    plan.jointed("lower", rng.inertia(), follower, at(-0.3, 0.5, 0.1));
    let joints = &mut plan.builder.joints;
    joints.last_mut().unwrap().mimic = Some(Mimic::new("upper.joint", -1.5, 0.2));
    plan.build()
}

/// Analyzes the mechanism as a whole, enforced by an order of preference among parameters that are base parameters anyway.
fn as_a_whole(robot: &Mechanism, answer: &Analysis, options: AnalyzeOptions) -> Analysis {
    let choose = [1, 0].map(|i| answer.base_parameters[i].name.clone()).to_vec();
    analyze(robot, &options.with(|o| o.choose = choose)).unwrap()
}

fn assert_same(name: &str, parts: &Analysis, whole: &Analysis) {
    assert!(parts.certificate.upper_by.contains("parts"), "{name}: {}", parts.certificate.upper_by);
    assert!(!whole.certificate.upper_by.contains("parts"), "{name}: {}", whole.certificate.upper_by);
    assert_eq!((parts.rank, parts.rank_literal), (whole.rank, whole.rank_literal), "{name}");
    assert_eq!(
        (parts.certificate.rank_lower, parts.certificate.rank_upper),
        (parts.rank, parts.rank),
        "{name}"
    );
    assert!(parts.certificate.exact && whole.certificate.exact, "{name}");
    assert_eq!(parts.model, whole.model, "{name}");
    assert_eq!(parts.bodies, whole.bodies, "{name}");
    assert_eq!(parts.principles, whole.principles, "{name}");
    assert_eq!(parts.regrouping.base, whole.regrouping.base, "{name}");
    for (a, b) in parts.base_parameters.iter().zip(&whole.base_parameters) {
        assert_eq!((&a.name, a.combination.len()), (&b.name, b.combination.len()), "{name}");
        for ((one, x), (other, y)) in a.combination.iter().zip(&b.combination) {
            assert_eq!(one, other, "{name}: {}", a.name);
            assert!((x - y).abs() <= ROUNDED * y.abs(), "{name}: {} {one}: {x} and {y}", a.name);
        }
    }
}

#[test]
fn parts_on_a_floating_base_give_the_result_of_the_whole() {
    for (method, regime) in
        [(Method::Auto, Regime::Full), (Method::Exact, Regime::Full), (Method::Auto, Regime::Kinetic)]
    {
        let robot = three_legs("base", true);
        let options = AnalyzeOptions::default().with(|o| {
            o.method = method;
            o.regime = regime;
        });
        let answer = analyze(&robot, &options).unwrap();
        assert_same("floating", &answer, &as_a_whole(&robot, &answer, options));
        if method == Method::Auto && regime == Regime::Full {
            check_null_vectors("floating", &robot, &answer);
        }
    }
}

#[test]
fn parts_on_the_ground_give_the_result_of_the_whole() {
    for regime in [Regime::Full, Regime::Static] {
        let robot = three_legs("ground", false);
        let options = AnalyzeOptions::default().with(|o| o.regime = regime);
        let answer = analyze(&robot, &options).unwrap();
        assert_same("fixed", &answer, &as_a_whole(&robot, &answer, options));
    }
}

#[test]
fn singular_values_of_the_whole_agree_with_the_parts() {
    for floating in [true, false] {
        let robot = three_legs(if floating { "base" } else { "ground" }, floating);
        let answer = analyze(&robot, &AnalyzeOptions::default()).unwrap();
        let numeric = analyze(&robot, &by(Method::Numeric)).unwrap();
        assert!(!numeric.certificate.upper_by.contains("parts"));
        assert_eq!(answer.rank, numeric.rank);
    }
}

#[test]
fn a_base_that_stands_still_is_not_divided() {
    let robot = three_legs("base", true);
    let options = AnalyzeOptions::default().with(|o| o.regime = Regime::Static);
    let answer = analyze(&robot, &options).unwrap();
    assert!(!answer.certificate.upper_by.contains("parts"));
    let numeric = analyze(&robot, &options.with(|o| o.method = Method::Numeric)).unwrap();
    assert_eq!(answer.rank, numeric.rank);
}

#[test]
fn ranks_of_legs_on_a_floating_base_add_up() {
    let legs = |count: usize| {
        let rng = &mut Rng(5);
        let mut plan = Blueprint::new("legs");
        plan.link("base", rng.inertia(), "ground", JointType::Floating, at(0.0, 0.0, 1.0));
        (0..count).for_each(|leg| four_bar_leg(&mut plan, rng, "base", leg, 0.0));
        analyze(&plan.build(), &AnalyzeOptions::default()).unwrap()
    };
    let (one, twenty) = (legs(1), legs(20));
    assert_eq!((twenty.nullity, twenty.certificate.exact), (20 * one.nullity, true));
    assert_eq!(twenty.model.dof, 26);
    assert!(twenty.certificate.error_probability.is_some_and(|p| p <= 1e-15));
}
