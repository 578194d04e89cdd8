//! Recursion, compared with the golden figures.

#![allow(clippy::unwrap_used)]

use crate::common::{Features, cases};
use crate::golden;
use inertial::identifiability::rpna::Transfer;
use inertial::identifiability::{Regime, Rpna, Topology};
use inertial::linalg::{Echelon, First, Number, Pivot, Second, Shadow};
use inertial::mechanism::{BuildOptions, ExactGeometry, Mechanism};

type Both = Shadow<2_305_843_009_213_692_601>;

fn recursion<T: Number>(mechanism: &Mechanism, snap: f64) -> (usize, Vec<(usize, usize, usize)>) {
    let geometry = ExactGeometry::new(mechanism, snap).to::<T>();
    let topology = Topology::new(&geometry).unwrap();
    let result = Rpna::new(&geometry, &topology, Regime::Full);
    let spans =
        result.bodies.iter().zip(&result.joints).map(|(b, j)| (b.velocity, b.identifiable, j.freedoms));
    (mechanism.parameter_count() - result.nullity(&topology), spans.collect())
}

#[test]
fn golden_models_in_all_variants() {
    for name in golden::MODELS {
        let g = golden::file(name);
        for v in g["variants"].as_array().unwrap() {
            let flag = |k: &str| v[k].as_bool().unwrap();
            let floating = v["base"] == "floating";
            let m = golden::model(&g, floating, flag("gravity"), flag("rotors"));
            let want = v["n_base_parameters"].as_u64().unwrap() as usize + if floating { 10 } else { 0 };
            let label = format!("{name} {} gravity {} rotors {}", v["base"], v["gravity"], v["rotors"]);
            let (rank, spans) = recursion::<First>(&m, 1e-4);
            assert_eq!(rank, want, "{label}");
            assert_eq!(recursion::<Second>(&m, 1e-4).0, want, "{label}");
            assert_eq!(recursion::<Both>(&m, 1e-4).0, want, "{label}");
            assert_eq!(recursion::<f64>(&m, 1e-4).0, want, "{label}");
            assert_eq!(recursion::<First>(&m, 0.0).0, want, "{label}");
            let skip = usize::from(floating);
            let dims = |k: &str| {
                v[k].as_array().unwrap().iter().map(|d| d.as_u64().unwrap() as usize).collect::<Vec<_>>()
            };
            let (dv, dk, dt) = (dims("dim_V"), dims("dim_K"), dims("dim_T"));
            // The golden count has four parameters per rotor; three of them always move to the carrier.
            let extra = if flag("rotors") { 3 } else { 0 };
            for (body, &(v, k, t)) in m.bodies()[skip..].iter().zip(&spans[skip..]) {
                let i = body.name.trim_start_matches("link").parse::<usize>().unwrap() - 1;
                assert_eq!((v, k, t + extra), (dv[i], dk[i], dt[i]), "{label}, {}", body.name);
            }
        }
    }
}

#[test]
fn robustness_cases_are_exact_without_snapping() {
    let g = golden::file("robustness_cases");
    for c in g["cases"].as_array().unwrap() {
        let m = golden::robustness(c);
        let want = c["exact"]["n_base_parameters"].as_u64().unwrap() as usize;
        assert_eq!(recursion::<First>(&m, 0.0).0, want, "{}", c["name"]);
        assert_eq!(recursion::<Second>(&m, 0.0).0, want, "{}", c["name"]);
        assert_eq!(recursion::<Both>(&m, 0.0).0, want, "{}", c["name"]);
    }
}

/// The two bases of appendix G are complementary: the rows of one vanish on the vectors of the other, and together they span the
/// space.
#[test]
fn system_bases_are_complementary() {
    let mut covered = 0;
    for case in cases(80, Features { mimics: false, ..Features::LINEAR }) {
        let m = &case.mechanism;
        let geometry = ExactGeometry::new(m, 1e-4).to::<First>();
        let Ok(topology) = Topology::new(&geometry) else { continue };
        covered += 1;
        let found = Rpna::new(&geometry, &topology, Regime::Full);
        let dense = |sparse: &Transfer<First>| {
            let mut out = vec![First::new(0); m.parameter_count()];
            for block in m.parameter_blocks() {
                if let Some((_, x)) = sparse.iter().find(|(b, _)| *b == block.body) {
                    out[block.offset..block.offset + block.len]
                        .copy_from_slice(&x.as_slice()[10 - block.len..]);
                }
            }
            out
        };
        let null: Vec<_> = found.null_vectors(&geometry, &topology).map(|(_, x)| dense(&x)).collect();
        let rows: Vec<_> = found.identifiable_rows(&geometry, &topology).iter().map(dense).collect();
        let rank = |vectors: &[Vec<First>]| {
            let mut span = Echelon::new(m.parameter_count(), Pivot::First);
            vectors.iter().filter(|v| span.insert(v)).count()
        };
        assert_eq!((rank(&null), rank(&rows)), (null.len(), rows.len()));
        assert_eq!(null.len() + rows.len(), m.parameter_count());
        for (x, y) in null.iter().flat_map(|x| rows.iter().map(move |y| (x, y))) {
            let sum = x.iter().zip(y).fold(First::new(0), |s, (&a, &b)| s + a * b);
            assert_eq!(sum, First::new(0));
        }
    }
    assert!(covered > 40, "{covered}");
}

/// A rotor that turns like its joint about a parallel axis adds no base parameter (section 8); any other rotor adds one.
#[test]
fn direct_drives_add_nothing() {
    let g = golden::file("puma560");
    for (ratio, floating, gravity, want) in
        [(1.0, true, true, 52), (-1.0, true, true, 58), (2.0, true, true, 58), (1.0, false, true, 36)]
    {
        let mut b = golden::builder(&g, floating, gravity);
        b.rotors.iter_mut().for_each(|r| r.ratio = ratio);
        let m = b.build(&BuildOptions::default()).unwrap();
        assert_eq!(recursion::<First>(&m, 1e-4).0, want, "ratio {ratio} floating {floating}");
        assert_eq!(recursion::<f64>(&m, 1e-4).0, want, "ratio {ratio} floating {floating}");
    }
}
