//! Samples of the posterior of consistent bodies, compared with a closed-form distribution, the stated coverage, and standard
//! errors.

#![allow(clippy::unwrap_used)]

use crate::common::Rng;
use crate::common::logs::{FRICTION, model, normal, simulate};
use inertial::estimation::{Equations, Estimator, IdentifyOptions, PosteriorOptions, identify};
use inertial::mechanism::DEFAULT_SNAP;
use inertial::optimize::sampling::Sampler;
use inertial::optimize::{Cone, ConicLeastSquares};
use inertial::spatial::{Inertia, Parameters, PseudoInertia};
use nalgebra::{DMatrix, DVector, Matrix4};

fn parameters(p: &Matrix4<f64>) -> DVector<f64> {
    DVector::from_column_slice(PseudoInertia(*p).to_inertia().parameters().as_slice())
}

fn pseudo(x: &DVector<f64>) -> Matrix4<f64> {
    PseudoInertia::from(&Inertia::from_parameters(&Parameters::from_column_slice(x.as_slice()))).0
}

/// Without data the posterior is the prior: `det(P)^w exp(-w tr(C P))` is a Wishart distribution with `2 w + 5` degrees of
/// freedom and scale `C⁻¹/(2 w)`.
#[test]
fn without_data_the_posterior_is_wishart() {
    const STEPS: usize = 100_000;
    let mut rng = Rng(5);
    for weight in [0.5, 1.0, 4.0] {
        let f = Matrix4::from_fn(|_, _| rng.range(-1.0, 1.0));
        let body = f * f.transpose() + Matrix4::identity() * 0.2;
        let cone = Cone { offset: 0, prior_weight: weight, prior: body.try_inverse().unwrap() };
        let mut problem = ConicLeastSquares::body(DMatrix::zeros(10, 10), DVector::zeros(10), 0.0);
        problem.cones = vec![cone];
        let mut sampler = Sampler::new(&problem, &parameters(&body), 1).unwrap();
        (0..1000).for_each(|_| sampler.step());
        let (mut sum, mut squares) = (Matrix4::zeros(), Matrix4::zeros());
        for _ in 0..STEPS {
            sampler.step();
            let p = pseudo(sampler.point());
            sum += p;
            squares += p.component_mul(&p);
        }
        let degrees = 2.0 * weight + 5.0;
        let scale = body / (2.0 * weight);
        let mean = sum / STEPS as f64;
        let variance = squares / STEPS as f64 - mean.component_mul(&mean);
        for (i, j) in (0..4).flat_map(|i| (i..4).map(move |j| (i, j))) {
            let exact = degrees * scale[(i, j)];
            let spread = degrees * (scale[(i, j)].powi(2) + scale[(i, i)] * scale[(j, j)]);
            // Neighbouring points of the chain are dependent: some fifty steps count as one independent point, with a standard
            // error of 2.2 % of a standard deviation. The bound is five times that. Variances of skewed values are less certain.
            assert!((mean[(i, j)] - exact).abs() < 0.11 * spread.sqrt(), "{weight} {i}{j}: {mean} {exact}");
            assert!((variance[(i, j)] / spread - 1.0).abs() < 0.25, "{weight} {i}{j}: {variance} {spread}");
        }
    }
}

/// Intervals of 95 % contain the truth in 95 % ± 4 % of 500 experiments with bodies within a few standard errors of the boundary.
///
/// True values are uniform in a box around a body without thickness, and the prior is flat: the stated coverage is then exact.
#[test]
fn intervals_cover_as_stated_near_the_boundary() {
    const DRAWS: usize = 500;
    const POINTS: usize = 1500;
    let mut rng = Rng(11);
    // A plate: one second moment is zero.
    let plate = Inertia::from_com(
        2.0,
        nalgebra::vector![0.1, -0.05, 0.02],
        nalgebra::Matrix3::from_diagonal(&nalgebra::vector![0.02, 0.03, 0.05]),
    );
    let centre = DVector::from_column_slice(plate.parameters().as_slice());
    // Standard errors of independent measurements of the ten parameters.
    let noise = DVector::from_iterator(
        10,
        centre.iter().enumerate().map(|(k, x)| if k == 0 { 0.02 } else { 0.002 + 0.05 * x.abs() }),
    );
    let gram = DMatrix::from_diagonal(&noise.map(|s| s.powi(-2)));
    let mut covered = [0; 10];
    let mut impossible = 0;
    for draw in 0..DRAWS {
        let truth = loop {
            let x = DVector::from_fn(10, |k, _| centre[k] + 4.0 * noise[k] * rng.range(-1.0, 1.0));
            if pseudo(&x).cholesky().is_some() {
                break x;
            }
        };
        let measured = DVector::from_fn(10, |k, _| truth[k] + noise[k] * normal(&mut rng));
        impossible += usize::from(pseudo(&measured).cholesky().is_none());
        let problem = ConicLeastSquares::body(gram.clone(), &gram * &measured, 0.0);
        // Any interior start is sufficient after some hundred steps.
        let start = &centre + parameters(&Matrix4::from_diagonal(&nalgebra::vector![0.02, 0.02, 0.02, 0.1]));
        let mut sampler = Sampler::new(&problem, &start, draw as u64).unwrap();
        (0..300).for_each(|_| sampler.step());
        let mut points = vec![Vec::new(); 10];
        for _ in 0..POINTS {
            (0..3).for_each(|_| sampler.step());
            points.iter_mut().zip(sampler.point().iter()).for_each(|(list, x)| list.push(*x));
        }
        for ((list, truth), covered) in points.iter_mut().zip(truth.iter()).zip(&mut covered) {
            list.sort_by(f64::total_cmp);
            let end = |share: f64| list[(share * (POINTS - 1) as f64).round() as usize];
            *covered += usize::from(end(0.025) <= *truth && *truth <= end(0.975));
        }
    }
    // Many least-squares estimates are infeasible, as intended near the boundary.
    assert!(impossible > DRAWS / 4, "{impossible}");
    for (k, covered) in covered.into_iter().enumerate() {
        let share = covered as f64 / DRAWS as f64;
        assert!((share - 0.95).abs() < 0.04, "parameter {k}: {share}");
    }
}

/// Credible intervals extend two standard errors to either side if the data determine a robot well.
#[test]
fn strong_data_give_gaussian_intervals() {
    let arm = model("planar-2r");
    let equations = Equations::new(&arm, FRICTION, DEFAULT_SNAP).unwrap();
    let mut rng = Rng(3);
    let mut log = simulate(&arm, FRICTION, 2000, &mut rng);
    log.tau.iter_mut().for_each(|x| *x += 0.05 * normal(&mut rng));
    let summary = log.summary(&equations);
    let options = IdentifyOptions::default().with(|o| o.posterior = Some(PosteriorOptions::default()));
    let found = identify(&equations, &summary, None, &options).unwrap();
    let posterior = found.posterior.as_ref().unwrap();
    assert!(posterior.effective_points >= 400.0 && !found.warnings.has("rough-intervals"));
    assert_eq!(posterior.level, 0.95);
    for (parameter, interval) in found.base_parameters.iter().zip(&posterior.intervals) {
        assert_eq!(parameter.name, interval.name);
        let half = 0.5 * (interval.upper - interval.lower) / parameter.std_error;
        // 1.96, with 5 % error of a quantile from 400 points and the effect of the prior.
        assert!((half - 1.96).abs() < 0.35, "{interval:?} {parameter:?}");
        assert!(interval.lower < parameter.value && parameter.value < interval.upper);
    }
    // The mass of a body that a planar arm does not excite has a wide interval around that of the model.
    let mass = posterior.intervals.iter().find(|i| i.name == "link1.m").unwrap();
    let truth = arm.bodies()[0].inertia.mass;
    assert!(mass.lower < truth && truth < mass.upper && mass.upper > 1.5 * mass.lower, "{mass:?} {truth}");
    // The same seed gives the same points.
    assert_eq!(identify(&equations, &summary, None, &options).unwrap().posterior, found.posterior);
    let plain = IdentifyOptions::default().with(|o| o.estimator = Estimator::Wls);
    assert!(identify(&equations, &summary, None, &plain).unwrap().posterior.is_none());
}
