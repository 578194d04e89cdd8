//! Projective geometric algebra: closed forms compared with the algebra, and the algebra with rigid motions.

use inertial::spatial::pga::{Element, Line, Motor, Multivector, Plane, Point};
use inertial::spatial::{Force, Motion, Pose};
use nalgebra::{Vector3, vector};
use proptest::array::uniform;
use proptest::prelude::*;

/// Rounding error of a few dozen operations on numbers below ten.
const ROUNDING: f64 = 1e-12;

fn numbers<const N: usize>() -> impl Strategy<Value = [f64; N]> {
    uniform(-2.0..2.0)
}

fn vector3() -> impl Strategy<Value = Vector3<f64>> {
    numbers::<3>().prop_map(Vector3::from)
}

fn multivector() -> impl Strategy<Value = Multivector> {
    numbers::<16>().prop_map(Multivector)
}

fn line() -> impl Strategy<Value = Line> {
    (vector3(), vector3()).prop_map(|(direction, moment)| Line { direction, moment })
}

fn plane() -> impl Strategy<Value = Plane> {
    (vector3(), -2.0..2.0).prop_map(|(normal, offset)| Plane { normal, offset })
}

/// Returns a strategy for finite and infinite points.
fn point() -> impl Strategy<Value = Point> {
    (vector3(), prop_oneof![Just(1.0), Just(0.0), -2.0..2.0])
        .prop_map(|(position, weight)| Point { position, weight })
}

fn pose() -> impl Strategy<Value = Pose> {
    (vector3(), vector3()).prop_map(|(w, v)| Pose::exp(&Motion::new(w * 1.5, v)))
}

/// Returns the zero plane, the join of elements that span no plane.
fn nowhere() -> Plane {
    Plane { normal: Vector3::zeros(), offset: 0.0 }
}

fn distance(a: &Multivector, b: &Multivector) -> f64 {
    (*a - *b).0.iter().fold(0.0, |m, x| x.abs().max(m))
}

fn near<E: Element<f64>>(a: &E, b: &E) -> bool {
    distance(&a.to_multivector(), &b.to_multivector()) < ROUNDING
}

proptest! {
    #[test]
    fn the_products_are_associative(a in multivector(), b in multivector(), c in multivector()) {
        prop_assert!(distance(&((a * b) * c), &(a * (b * c))) < 1e-10);
        prop_assert!(distance(&a.wedge(&b).wedge(&c), &a.wedge(&b.wedge(&c))) < 1e-10);
        prop_assert!(distance(&a.vee(&b).vee(&c), &a.vee(&b.vee(&c))) < 1e-10);
    }

    #[test]
    fn reverse_turns_products_around_and_dual_is_an_involution(a in multivector(), b in multivector()) {
        prop_assert!(distance(&(a * b).reverse(), &(b.reverse() * a.reverse())) < ROUNDING);
        prop_assert_eq!(a.dual().dual(), a);
    }

    #[test]
    fn planes_square_to_their_normal_and_split_into_inner_and_outer(a in plane(), b in plane()) {
        let (a, b) = (a.to_multivector(), b.to_multivector());
        prop_assert!(distance(&(a * b), &(a.inner(&b) + a.wedge(&b))) < ROUNDING);
        let n = Plane::from_multivector(&a).normal;
        prop_assert!(((a * a).scalar_part() - n.norm_squared()).abs() < ROUNDING);
    }

    #[test]
    fn closed_forms_of_meet_and_join_are_the_products(a in plane(), b in plane(), l in line(), k in line(), p in point(), q in point()) {
        let mv = |e: &Line| e.to_multivector();
        prop_assert!(near(&a.meet(&b), &Line::from_multivector(&a.to_multivector().wedge(&b.to_multivector()))));
        prop_assert!(near(&a.meet_line(&l), &Point::from_multivector(&a.to_multivector().wedge(&mv(&l)))));
        prop_assert!(near(&p.join(&q), &Line::from_multivector(&p.to_multivector().vee(&q.to_multivector()))));
        prop_assert!(near(&l.join(&p), &Plane::from_multivector(&mv(&l).vee(&p.to_multivector()))));
        prop_assert!((mv(&l).wedge(&mv(&k)).pseudoscalar_part() - l.wedge(&k)).abs() < ROUNDING);
        prop_assert!(near(&l.commutator(&k), &Line::from_multivector(&mv(&l).commutator(&mv(&k)).unwrap())));
        prop_assert!(near(&p.velocity(&l), &Point::from_multivector(&p.to_multivector().commutator(&mv(&l)).unwrap())));
    }

    #[test]
    fn what_is_joined_or_met_is_incident(a in plane(), b in plane(), p in point(), q in point(), r in point()) {
        let through = p.join(&q);
        prop_assert!(through.direction.dot(&through.moment).abs() < ROUNDING);
        // A third point on the line spans no plane with it; a plane through three points contains them.
        let third = Point { position: p.position * 2.0 - q.position, weight: 2.0 * p.weight - q.weight };
        prop_assert!(near(&through.join(&third), &nowhere()));
        let face = through.join(&r);
        for x in [&p, &q, &r] {
            prop_assert!(face.incidence(x).abs() < ROUNDING);
        }
        let x = a.meet_line(&through);
        prop_assert!(a.incidence(&x).abs() < 1e-11);
        prop_assert!(near(&through.join(&x), &nowhere()));
        // Corollary 1 of the paper: lines through a common point intersect.
        prop_assert!(through.wedge(&p.join(&r)).abs() < ROUNDING);
        prop_assert!(a.meet(&b).wedge(&a.meet_line(&through).join(&b.meet_line(&a.meet(&b)))).abs() < 1e-10);
    }

    /// Theorem 1 of paper 004: the outer product of two lines is zero if and only if they lie in one plane; otherwise it is the
    /// product of their lengths, their distance and the sine of their angle. Corollary 2: that of infinite lines is zero.
    #[test]
    fn lines_in_one_plane_have_no_outer_product(x in numbers::<3>(), y in numbers::<3>(), d in numbers::<3>(), e in numbers::<3>()) {
        let [x, y, d, e] = [x, y, d, e].map(Vector3::from);
        let lines = [Line::through(&x, d), Line::through(&y, e)];
        // Volume spanned by both directions and the segment between the lines.
        let volume = d.cross(&e).dot(&(y - x));
        prop_assert!((lines[0].wedge(&lines[1]).abs() - volume.abs()).abs() < 10.0 * ROUNDING);
        let infinite = |m| Line { direction: Vector3::zeros(), moment: m };
        prop_assert_eq!(infinite(d).wedge(&Point::infinite(x).join(&Point::infinite(y))), 0.0);
    }

    #[test]
    fn a_motor_moves_as_its_pose(x in pose(), p in point(), l in line(), f in plane()) {
        let m = Motor::from(&x);
        let [one, nil] = m.norm_squared();
        prop_assert!((one - 1.0).abs() < ROUNDING && nil.abs() < ROUNDING);
        let moved = Point { position: x.rotation * p.position + x.translation * p.weight, weight: p.weight };
        prop_assert!(near(&m.transform(&p), &moved));
        prop_assert!(near(&m.transform(&l), &Line::from(x.push_motion(&l.to_motion()))));
        prop_assert!(near(&m.transform(&l), &Line::from(x.push_force(&l.to_force()))));
        prop_assert!((m.transform(&f).incidence(&moved) - f.incidence(&p)).abs() < ROUNDING);
        let back = m.to_pose().unwrap();
        prop_assert!((back.to_matrix() - x.to_matrix()).amax() < ROUNDING);
        let inverse = m.reverse().to_pose().unwrap();
        prop_assert!((inverse.to_matrix() - x.inverse().to_matrix()).amax() < ROUNDING);
    }

    #[test]
    fn motors_compose_with_the_left_factor_first(a in pose(), b in pose()) {
        let (m, n) = (Motor::from(&a), Motor::from(&b));
        prop_assert!(distance(&(n * m).to_multivector(), &(n.to_multivector() * m.to_multivector())) < ROUNDING);
        prop_assert!(((n * m).to_pose().unwrap().to_matrix() - (a * b).to_matrix()).amax() < ROUNDING);
    }

    #[test]
    fn the_outer_product_of_twist_and_wrench_is_the_power(w in vector3(), v in vector3(), n in vector3(), f in vector3()) {
        let (twist, wrench) = (Motion::new(w, v), Force::new(n, f));
        prop_assert!((Line::from(twist).wedge(&Line::from(wrench)) - twist.dot(&wrench)).abs() < ROUNDING);
        let other = Motion::new(n, f);
        prop_assert!(near(&Line::from(twist).commutator(&Line::from(other)), &Line::from(-twist.cross(&other))));
    }

    #[test]
    fn exp_follows_the_twist_and_log_undoes_it(w in vector3(), v in vector3(), scale in prop_oneof![Just(1.0), Just(1e-2), Just(1e-6), Just(0.0)]) {
        let twist = Line { direction: w * (1.5 * scale), moment: v };
        let m = Motor::exp(&twist);
        // The exponential of the pose is taken of the same twist: body and space twists agree at the identity.
        prop_assert!((m.to_pose().unwrap().to_matrix() - Pose::exp(&twist.to_motion()).to_matrix()).amax() < ROUNDING);
        let back = m.log();
        let again = Motor::exp(&back);
        prop_assert!((again.to_pose().unwrap().to_matrix() - m.to_pose().unwrap().to_matrix()).amax() < ROUNDING);
        if twist.direction.norm() < 3.0 {
            prop_assert!(near(&back, &twist), "{:?} {:?}", back, twist);
        }
    }
}

#[test]
fn motors_near_a_full_turn_take_the_short_way_back() {
    let m = Motor::exp(&Line::through(&vector![0.3, -0.2, 0.1], vector![0.0, 0.0, 6.0]));
    assert!((m.log().direction.norm() - (std::f64::consts::TAU - 6.0)).abs() < 1e-12);
}

#[test]
fn basis_elements_follow_the_paper() {
    // Eq. 16 in the paper's basis: e032* = e1, e013* = e2, e021* = e3, e123* = e0.
    for k in 0..3 {
        let mut e = Vector3::zeros();
        e[k] = 1.0;
        let dual = Plane::from_multivector(&Point::infinite(e).to_multivector().dual());
        assert_eq!(dual, Plane { normal: e, offset: 0.0 });
    }
    let origin = Point::finite(Vector3::zeros()).to_multivector().dual();
    assert_eq!(Plane::from_multivector(&origin), Plane { normal: Vector3::zeros(), offset: 1.0 });
    // I² = 0 and e0² = 0: the metric is degenerate.
    let i = Multivector::<f64>::blade(15);
    assert_eq!(i * i, Multivector::zero());
}
