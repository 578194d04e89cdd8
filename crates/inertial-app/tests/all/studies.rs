//! Studies of the papers, against what the papers and the theory say.

use inertial::mechanism::{BuildOptions, builtin};
use inertial_app::studies::{leg_on_bench, sampled_rank, slow_motion};

/// Table 6 of paper 003: zeros are zeros up to rounding, all else is far from it.
#[test]
fn a_bench_predicts_the_knee_alone() {
    let [free, fixed] = leg_on_bench::run().unwrap();
    assert_eq!((free.free, fixed.free), (true, false));
    let zero = |x: &f64| *x < 1e-8;
    assert!(free.bench.iter().chain(&free.moving).chain(&free.moment).chain(&free.force).all(zero));
    assert!(fixed.bench.iter().all(zero));
    assert!(zero(&fixed.moving[2]) && fixed.moving[..2].iter().all(|x| *x > 0.01), "{fixed:?}");
    assert!(fixed.moment.iter().chain(&fixed.force).all(|x| *x > 0.01), "{fixed:?}");
    assert!(free.rank > fixed.rank);
}

/// A sampled rank is right only where loops are closed better than the threshold.
#[test]
fn open_loops_raise_the_sampled_rank() {
    let mechanism = builtin::get("2rru-1rrs").unwrap().build(&BuildOptions::default()).unwrap();
    // Each sample gives three rows for 70 parameters: these are plenty.
    let found = sampled_rank::run(&mechanism, 300, 1).unwrap();
    assert_eq!((found.rank, found.parameters - found.rank, found.certified), (25, 45, true));
    assert_eq!(found.rows[0].rank, found.rank);
    let last = found.rows.last().unwrap();
    assert!(last.rank > found.rank && last.residual > 1e-6, "{last:?}");
    assert!(found.rows.windows(2).all(|w| w[0].rank <= w[1].rank && w[0].residual <= w[1].residual));
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
            // Mass and centre are known from gravity, however slow; 1 % is several of their standard errors.
            assert!((row.consistent[0].bodies[0].mass / truth.mass - 1.0).abs() < 0.01);
            for other in &row.consistent[1..] {
                // Each solver ends where cost and bound meet to nine digits; flat directions of slow motion are less sharp.
                let apart = (slow_motion::tensor(other) - slow_motion::tensor(&row.consistent[0])).norm();
                assert!(apart < 1e-2 * truth.rotational.norm(), "{time} s: {apart:e}");
            }
            let distance = (slow_motion::tensor(&row.plain) - slow_motion::tensor(&row.consistent[0])).norm();
            if time <= 1.0 {
                // Both are the same estimate, as far as the solver's gap and the trace of a prior go.
                assert!(distance < 1e-4 * truth.rotational.norm(), "{time} s: {distance:e}");
                assert!(
                    (slow_motion::tensor(&row.plain) - truth.rotational).norm()
                        < 0.1 * truth.rotational.norm()
                );
            }
        }
    }
    // At ten seconds the error of each second moment is several times the moment itself: all three come out positive, and
    // fit with the centre, in well under half of the draws.
    assert!(impossible[0] > DRAWS / 2, "{impossible:?}");
    assert_eq!(impossible[3..], [0, 0]);
}
