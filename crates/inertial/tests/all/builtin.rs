//! Built-in models build and have the documented dimensions.

#![allow(clippy::unwrap_used, clippy::default_trait_access)]

use inertial::mechanism::{Base, builtin};

#[test]
fn every_builtin_model_builds() {
    // Velocity coordinates of the tree, links, rotors, loops.
    let expected = [
        ("puma560", 6, 6, 0, 0),
        ("puma560-rotors", 6, 6, 6, 0),
        ("scara", 4, 4, 0, 0),
        ("scara-rotors", 4, 4, 4, 0),
        ("cheetah-leg", 3, 3, 3, 0),
        ("quadruped", 18, 13, 12, 0),
        ("arm7", 7, 7, 0, 0),
        ("planar-2r", 2, 2, 0, 0),
        ("four-bar", 3, 3, 0, 1),
        ("2rru-1rrs", 9, 7, 0, 2),
        ("2prs-1psr", 11, 7, 0, 2),
        ("space-dual-arm", 12, 7, 0, 0),
        ("space-dual-arm-offset", 12, 7, 0, 0),
    ];
    assert_eq!(builtin::names().collect::<Vec<_>>(), expected.map(|e| e.0));
    for (name, nv, links, rotors, loops) in expected {
        let m = builtin::get(name).unwrap().build(&Default::default()).unwrap();
        assert_eq!(m.name(), name);
        let found = (m.nv(), m.link_bodies(), m.bodies().len() - m.link_bodies(), m.loops().len());
        assert_eq!(found, (nv, links, rotors, loops), "{name}");
        assert!(m.links().iter().all(|l| l.name == "ground" || l.inertia.is_some()), "{name}");
        assert!(m.warnings().is_empty(), "{name}: {:?}", m.warnings());
        assert!(builtin::description(name).is_some());
        let floats = name == "quadruped" || name.starts_with("space-dual-arm");
        assert_eq!(m.base() == Base::Floating, floats, "{name}");
    }
    let error = builtin::get("pumpa").unwrap_err().to_string();
    assert!(
        error.starts_with("there is no built-in model \"pumpa\"; there are puma560, puma560-rotors, "),
        "{error}"
    );
}
