//! Inputs and outputs of a simulation over time: integration, interpolation, noise.

#![allow(clippy::unwrap_used, clippy::default_trait_access)]

use crate::common::Rng;
use inertial::mechanism::{JointSpec, JointType, MechanismBuilder};
use inertial::simulation::{Curve, Extrapolation, PrescribedMotion, Sensors};
use inertial::spatial::Inertia;
use nalgebra::Vector3;

#[test]
fn rates_of_positions_agree_with_integration() {
    let mut rng = Rng(5);
    for round in 0..60 {
        let joint = rng.joint();
        let (nq, nv) = (joint.nq(), joint.nv());
        let mut q = rng.values(nq, 1.0);
        joint.normalize(&mut q);
        let v = rng.values(nv, 1.0);
        let mut rates = vec![0.0; nq];
        joint.position_rates(&q, &v, &mut rates);
        let h = 1e-5;
        let moved = |h: f64| {
            let mut q = q.clone();
            joint.integrate(&mut q, &v.iter().map(|v| v * h).collect::<Vec<_>>());
            q
        };
        for ((plus, minus), rate) in moved(h).iter().zip(moved(-h)).zip(&rates) {
            // The error of central differences is about h² = 1e-10.
            assert!(((plus - minus) / (2.0 * h) - rate).abs() < 1e-9, "{round} {joint:?}");
        }
    }
}

#[test]
fn the_integrator_follows_an_eccentric_orbit_and_gives_up_at_a_pole() {
    // Kepler's problem with eccentricity 0.9 returns to its start after a period.
    let mut y = [0.1, 0.0, 0.0, (1.9f64 / 0.1).sqrt()];
    let orbit = |_: f64, y: &[f64], rate: &mut [f64]| {
        let r3 = (y[0] * y[0] + y[1] * y[1]).powf(1.5);
        rate.copy_from_slice(&[y[2], y[3], -y[0] / r3, -y[1] / r3]);
        Ok(())
    };
    let start = y;
    Extrapolation::new(4, 1e-13).advance(0.0, std::f64::consts::TAU, &mut y, orbit).unwrap();
    for (y, start) in y.iter().zip(start) {
        assert!((y - start).abs() < 1e-9, "{y} {start}");
    }
    // The solution of y' = y² is infinite at t = 1.
    let error = Extrapolation::new(1, 1e-10).advance(0.0, 2.0, &mut [1.0], |_, y, rate| {
        rate[0] = y[0] * y[0];
        Ok(())
    });
    let message = error.unwrap_err().to_string();
    let t = message
        .strip_prefix("the motion cannot be followed beyond t = ")
        .unwrap()
        .strip_suffix(" s")
        .unwrap();
    assert!((t.parse::<f64>().unwrap() - 1.0).abs() < 1e-6, "{message}");
}

#[test]
fn curves_interpolate_samples() {
    let times: Vec<f64> = (0..40).map(|k| 0.05 * f64::from(k) + 0.01 * f64::from(k % 3)).collect();
    let truth = |t: f64| [(2.0 * t).sin(), 2.0 * (2.0 * t).cos(), -4.0 * (2.0 * t).sin()];
    let column = |k: usize| times.iter().map(|&t| truth(t)[k]).collect::<Vec<_>>();
    let spline = Curve::new(&times, column(0), None, None).unwrap();
    let quintic = Curve::new(&times, column(0), Some(column(1)), Some(column(2))).unwrap();
    let part = Curve::new(&times, column(0), Some(column(1)), None).unwrap();
    for k in 0..=390 {
        let t = (times[39] * f64::from(k) / 390.0).min(times[39]);
        // Errors of order h⁴ (spline: h³, h² in its derivatives), h⁶ and so on, with h up to 0.07 and derivatives of 2ⁿ.
        for (curve, bounds) in
            [(&spline, [1e-5, 1e-3, 0.05]), (&quintic, [1e-9, 1e-7, 1e-5]), (&part, [1e-6, 1e-4, 0.01])]
        {
            let at = curve.at(&times, t);
            for i in 0..3 {
                assert!((at[i] - truth(t)[i]).abs() < bounds[i], "{t} {i}: {} {}", at[i], truth(t)[i]);
            }
        }
    }
    for (k, &t) in times.iter().enumerate() {
        assert_eq!(quintic.at(&times, t), truth(t), "{k}");
        assert_eq!(spline.at(&times, t)[0], if k == 39 { spline.at(&times, t)[0] } else { truth(t)[0] });
    }
    // The curve is at rest beyond its ends.
    assert_eq!(spline.at(&times, 9.0), [truth(times[39])[0], 0.0, 0.0]);
    assert!(Curve::new(&[0.0, 0.0], vec![0.0; 2], None, None).is_err());
    assert!(Curve::new(&[0.0, 1.0], vec![0.0; 3], None, None).is_err());
    // Polynomials through few points.
    for n in 2..6 {
        let x: Vec<f64> = (0..n).map(|k| f64::from(k * k)).collect();
        let degree = (n - 1).min(3);
        let power = Curve::new(&x, x.iter().map(|x| x.powi(degree)).collect(), None, None).unwrap();
        let t = 0.6 * x[x.len() - 1];
        let [y, dy, _] = power.at(&x, t);
        assert!((y - t.powi(degree)).abs() < 1e-9 * (1.0 + y.abs()), "{n}: {y}");
        assert!((dy - f64::from(degree) * t.powi(degree - 1)).abs() < 1e-9 * (1.0 + dy.abs()), "{n}: {dy}");
    }
}

#[test]
fn prescribed_motions_reproduce_every_joint_type() {
    // Samples of a motion with rotations in space, with and without velocities, at and between the samples.
    let m = MechanismBuilder::new("thing", "world")
        .link("body", Inertia::zero())
        .joint(JointSpec::new("free", JointType::Floating, "world", "body"))
        .link("ball", Inertia::zero())
        .joint(JointSpec::new("socket", JointType::Spherical, "body", "ball"))
        .link("slider", Inertia::zero())
        .joint(JointSpec::new("table", JointType::Planar { normal: Vector3::z() }, "ball", "slider"))
        .build(&Default::default())
        .unwrap();
    let count = 201;
    let step = 0.01;
    let mut rng = Rng(3);
    // The motion is integrated from smooth velocities, so that positions and velocities are consistent.
    let phases = rng.values(m.nv(), 3.0);
    let velocity = |t: f64| -> Vec<f64> { phases.iter().map(|p| (1.5 * t + p).sin()).collect() };
    let change = |t: f64| -> Vec<f64> { phases.iter().map(|p| 1.5 * (1.5 * t + p).cos()).collect() };
    let mut integrator = Extrapolation::new(m.nq(), 1e-13);
    let mut q = m.neutral();
    let mut advance = |from: f64, to: f64, q: &mut Vec<f64>| {
        integrator
            .advance(from, to, q, |t, q, rates| {
                let v = velocity(t);
                for j in m.joints() {
                    j.joint_type.position_rates(&q[j.q_range()], &v[j.v_range()], &mut rates[j.q_range()]);
                }
                Ok(())
            })
            .unwrap();
    };
    let times: Vec<f64> = (0..count).map(|k| step * f64::from(k)).collect();
    let (mut rows, mut halfway) = (vec![q.clone()], Vec::new());
    for k in 1..count {
        let t = step * f64::from(k - 1);
        advance(t, t + 0.5 * step, &mut q);
        halfway.push(q.clone());
        advance(t + 0.5 * step, t + step, &mut q);
        // A quaternion and its negative are the same rotation: the sign may change within a log.
        rows.push(
            q.iter()
                .enumerate()
                .map(|(i, x)| if k % 7 == 0 && (3..11).contains(&i) { -x } else { *x })
                .collect(),
        );
    }
    for (with_v, with_a, bounds) in [
        (true, true, [1e-11, 1e-9, 1e-7]),
        (true, false, [1e-9, 1e-7, 1e-4]),
        (false, false, [1e-7, 1e-5, 1e-2]),
    ] {
        let mut prescribed = PrescribedMotion::sampled(&m, times.clone());
        for (j, joint) in m.joints().iter().enumerate() {
            let positions = joint.q_range().map(|k| rows.iter().map(|r| r[k]).collect()).collect();
            let of = |f: &dyn Fn(f64) -> Vec<f64>| -> Vec<Vec<f64>> {
                joint.v_range().map(|k| times.iter().map(|&t| f(t)[k]).collect()).collect()
            };
            let (v, a) = (of(&velocity), of(&change));
            prescribed.joint(j, positions, with_v.then_some(&v[..]), with_a.then_some(&a[..])).unwrap();
        }
        let (mut q, mut v, mut a) = (m.neutral(), vec![0.0; m.nv()], vec![0.0; m.nv()]);
        for k in 2..times.len() - 3 {
            for (t, expected) in [(times[k], &rows[k]), (times[k] + 0.5 * step, &halfway[k])] {
                prescribed.state(t, &mut q, &mut v, &mut a, &mut []).unwrap();
                let (mut away, mut v_away, mut a_away) = (0.0f64, 0.0f64, 0.0f64);
                let mut difference = vec![0.0; m.nv()];
                for j in m.joints() {
                    j.joint_type.difference(
                        &q[j.q_range()],
                        &expected[j.q_range()],
                        &mut difference[j.v_range()],
                    );
                }
                for i in 0..m.nv() {
                    away = away.max(difference[i].abs());
                    v_away = v_away.max((v[i] - velocity(t)[i]).abs());
                    a_away = a_away.max((a[i] - change(t)[i]).abs());
                }
                assert!(
                    away < bounds[0] && v_away < bounds[1] && a_away < bounds[2],
                    "{with_v} {with_a} {k}: {away:.1e} {v_away:.1e} {a_away:.1e}"
                );
            }
        }
    }
}

#[test]
fn sensors_have_the_noise_that_was_asked_for() {
    let names: Vec<String> =
        ["t", "base.qx", "base.qy", "base.qz", "base.qw", "base.vx", "q.a", "tau.a", "tau.b"]
            .map(String::from)
            .into();
    let set = |list: &[(&str, f64)]| list.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect::<Vec<_>>();
    let noise = set(&[("base.q", 0.01), ("tau", 2.0), ("tau.b", 0.5), ("base.v", 0.1)]);
    let make =
        |seed| Sensors::new(&names, &noise, &set(&[("tau.b", -3.0)]), &set(&[("q", 0.25)]), seed).unwrap();
    let truth = [1.0, 0.0, 0.0, 0.0, 1.0, 5.0, 0.4, 10.0, 20.0];
    let mut sensors = make(7);
    let count = 20_000;
    let (mut sums, mut squares, mut tilt) = ([0.0; 9], [0.0; 9], 0.0);
    let mut first = None;
    for _ in 0..count {
        let mut row = truth;
        sensors.measure(&mut row);
        first.get_or_insert(row);
        let length: f64 = row[1..5].iter().map(|x| x * x).sum();
        assert!((length - 1.0).abs() < 1e-12);
        tilt += (2.0 * row[1]).powi(2);
        for k in 0..9 {
            sums[k] += row[k] - truth[k];
            squares[k] += (row[k] - truth[k]).powi(2);
        }
    }
    let n = f64::from(count);
    let deviation = |k: usize| (squares[k] / n - (sums[k] / n).powi(2)).sqrt();
    // The standard error of a standard deviation is σ/√(2n), 0.5 %; that of a mean is σ/√n.
    for (k, sd) in [(5, 0.1), (7, 2.0), (8, 0.5)] {
        assert!((deviation(k) / sd - 1.0).abs() < 0.02, "{k}: {}", deviation(k));
    }
    assert!((sums[8] / n + 3.0).abs() < 0.02 && (sums[7] / n).abs() < 0.06);
    assert!(((tilt / n).sqrt() / 0.01 - 1.0).abs() < 0.02);
    assert_eq!((sums[0], first.unwrap()[6]), (0.0, 0.5));
    // The same seed gives the same numbers, another seed others. The noise of a column does not depend on the other columns.
    let one = |mut sensors: Sensors, mut row: Vec<f64>| {
        sensors.measure(&mut row);
        row
    };
    assert_eq!(one(make(7), truth.into()), first.unwrap());
    assert_ne!(one(make(8), truth.into()), first.unwrap());
    let alone = Sensors::new(&names[7..8], &set(&[("tau", 2.0)]), &[], &[], 7).unwrap();
    assert_eq!(one(alone, vec![10.0]), [first.unwrap()[7]]);
    for (key, value, message) in
        [("tua", 1.0, "there is no column tua"), ("tau", -1.0, "is -1"), ("tau", f64::NAN, "NaN")]
    {
        let error = Sensors::new(&names, &set(&[(key, value)]), &[], &[], 0).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}
