//! The recursion against the golden figures.

mod golden;

use inertial::identifiability::{Regime, Rpna, Topology};
use inertial::linalg::{First, Number, Second, Shadow};
use inertial::mechanism::{ExactGeometry, Mechanism};

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
        let Some(g) = golden::file(name) else { return };
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
            // The golden count of rotors' parameters is four; three of them always move to the carrier.
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
    let Some(g) = golden::file("robustness_cases") else { return };
    for c in g["cases"].as_array().unwrap() {
        let m = golden::robustness(c);
        let want = c["exact"]["n_base_parameters"].as_u64().unwrap() as usize;
        assert_eq!(recursion::<First>(&m, 0.0).0, want, "{}", c["name"]);
        assert_eq!(recursion::<Second>(&m, 0.0).0, want, "{}", c["name"]);
        assert_eq!(recursion::<Both>(&m, 0.0).0, want, "{}", c["name"]);
    }
}
