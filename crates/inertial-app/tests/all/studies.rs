//! Studies of the papers, compared with the printed results and with the theory.

use inertial::mechanism::{BuildOptions, builtin};
use inertial_app::studies::{leg_on_bench, sampled_rank, slow_motion};

/// Table 6 of paper 003: zero entries are zero up to rounding error, all others are far from zero.
#[test]
fn a_bench_predicts_the_knee_alone() {
    let [free, fixed] = leg_on_bench::run().unwrap().rows;
    assert_eq!((free.free, fixed.free), (true, false));
    let zero = |x: &f64| *x < 1e-8;
    assert!(free.bench.iter().chain(&free.moving).chain(&free.moment).chain(&free.force).all(zero));
    assert!(fixed.bench.iter().all(zero));
    assert!(zero(&fixed.moving[2]) && fixed.moving[..2].iter().all(|x| *x > 0.01), "{fixed:?}");
    assert!(fixed.moment.iter().chain(&fixed.force).all(|x| *x > 0.01), "{fixed:?}");
    assert!(free.rank > fixed.rank);
}

/// The sampled rank is correct only if the closure errors are smaller than the threshold.
#[test]
fn open_loops_raise_the_sampled_rank() {
    let mechanism = builtin::get("2rru-1rrs").unwrap().build(&BuildOptions::default()).unwrap();
    // Each sample gives three rows for 70 parameters, so 300 samples suffice.
    let found = sampled_rank::run(&mechanism, 300, 1).unwrap();
    assert_eq!((found.rank, found.parameters - found.rank, found.certified), (25, 45, true));
    assert_eq!(found.rows[0].rank, found.rank);
    let last = found.rows.last().unwrap();
    assert!(last.rank > found.rank && last.residual > 1e-6, "{last:?}");
    assert!(found.rows.windows(2).all(|w| w[0].rank <= w[1].rank && w[0].residual <= w[1].residual));
}

/// All formulations of the principal axes reach the certified minimum if the motion is fast.
#[test]
fn formulations_of_the_axes_reach_the_certified_minimum() {
    let row = slow_motion::run(1.0, 1).unwrap();
    let found: Vec<_> =
        row.formulations.iter().map(|f| (f.formulation.variables(), f.formulation.constraints())).collect();
    // Mass, centre of mass, moments, and three, four or nine coordinates of the axes.
    assert_eq!(found, [(10, 0), (11, 1), (16, 6)]);
    for solution in &row.formulations {
        let excess = solution.cost / row.least_cost - 1.0;
        // The solver stops at a predicted decrease of 1e-12 of the cost; the bound leaves room for slow convergence.
        assert!((-1e-8..1e-6).contains(&excess), "{:?}: {excess:e}", solution.formulation);
    }
}

#[test]
#[ignore = "long: repeated experiments"]
fn slow_motion_has_impossible_least_squares_and_possible_bodies() {
    const DRAWS: usize = 6;
    let truth = slow_motion::truth();
    let mut impossible = [0; slow_motion::TIMES.len()];
    for seed in 0..DRAWS as u64 {
        for (k, &time) in slow_motion::TIMES.iter().enumerate() {
            let row = slow_motion::run(time, 100 + seed).unwrap();
            assert_eq!(row.time, time);
            impossible[k] += usize::from(!row.plain.bodies[0].consistent);
            assert!(row.consistent[0].bodies[0].consistent, "{time} s");
            // Mass and centre of mass are determined by gravity at any speed; 1 % is several of their standard errors.
            assert!((row.consistent[0].bodies[0].mass / truth.mass - 1.0).abs() < 0.01);
            for other in &row.consistent[1..] {
                // Each solver stops when cost and bound agree to nine digits; flat directions of slow motion are less accurate.
                let apart = (slow_motion::tensor(other) - slow_motion::tensor(&row.consistent[0])).norm();
                assert!(apart < 1e-2 * truth.rotational.norm(), "{time} s: {apart:e}");
            }
            let distance = (slow_motion::tensor(&row.plain) - slow_motion::tensor(&row.consistent[0])).norm();
            if time <= 1.0 {
                // Both are the same estimate, up to the duality gap and the small weight of the prior.
                assert!(distance < 1e-4 * truth.rotational.norm(), "{time} s: {distance:e}");
                assert!(
                    (slow_motion::tensor(&row.plain) - truth.rotational).norm()
                        < 0.1 * truth.rotational.norm()
                );
            }
        }
    }
    // At ten seconds the error of each second moment is several times the moment itself. In well under half of the
    // draws all three are positive and consistent with the centre.
    assert!(impossible[0] > DRAWS / 2, "{impossible:?}");
    assert_eq!(impossible[3..], [0, 0]);
}
