//! Inverse dynamics and the regressor of base parameters as C99: header, source and self-test.

mod dynamics;
mod graph;

use std::fmt::Write as _;

use inertial::dynamics::InverseDynamics;
use inertial::identifiability::{AnalyzeOptions, analyze};
use inertial::mechanism::Mechanism;
use inertial::unknowns::base_names;

use super::robot::{Friction, Robot};
use super::{File, Operations};
use crate::choice::Inertias;
use crate::{Located, Model, Result, ensure};
use dynamics::{Bodies, Mobility};
use graph::{Array, Graph, Value};

/// Number of samples of the self-test.
const SAMPLES: usize = 4;

/// Tolerance of the self-test, relative to the largest value of a sample.
const TOLERANCE: f64 = 1e-12;

/// Relative tolerance for equal forces: a tenth of the tolerance of the self-test.
const EQUAL: f64 = 1e-13;

/// Writes the three files, and counts the operations of the functions.
pub(super) fn files(
    model: &Model,
    robot: &Robot,
    name: &str,
    inertias: Inertias,
) -> Result<(Vec<File>, Vec<Operations>)> {
    let mechanism = &robot.mechanism;
    ensure!(mechanism.nv() > 0, "{}: has no moving joint", model.label);
    ensure!(
        mechanism.loops().is_empty(),
        "{}: C code is not available for robots with loops: remove the loops from the model, or call the library",
        model.label
    );
    let analysis = analyze(mechanism, &AnalyzeOptions::default()).at(&model.label)?;
    let regrouping = analysis.regrouping.listed().at(&model.label)?;
    let values = regrouping.regroup(&mechanism.parameters())?;
    // Equivalent robot with zeros in all parameters except the base parameters, which saves products.
    let short = mechanism.clone().with_parameters(&regrouping.expand(&values, &[])?)?;
    // Base parameters belong to the snapped geometry. If the file rounds its geometry, their forces differ slightly.
    let exact = inertias == Inertias::Base && have_equal_forces(mechanism, &short)?;
    let short = if exact { short } else { mechanism.clone() };
    let base = Base { values, names: base_names(mechanism, &regrouping), columns: regrouping.base };
    let mut code = Code { prefix: identifier(name), robot, short, base, operations: Vec::new() };
    let source = code.source(name);
    let files = vec![
        File { name: format!("{name}.h"), text: code.header() },
        File { name: format!("{name}.c"), text: source },
        File { name: format!("{name}_test.c"), text: code.test(name)? },
    ];
    Ok((files, code.operations))
}

/// Returns whether two robots of the same geometry have the same forces, up to rounding error.
fn have_equal_forces(one: &Mechanism, other: &Mechanism) -> Result<bool> {
    let (mut numbers, n) = (Numbers(2), one.nv());
    for _ in 0..SAMPLES {
        let mut q = one.neutral();
        one.integrate(&mut q, &numbers.take(n));
        let (v, a) = (numbers.take(n), numbers.take(n));
        let force = |of: &Mechanism| -> Result<Vec<f64>> {
            let (dynamics, mut tau) = (InverseDynamics::new(of), vec![0.0; n]);
            dynamics.rnea(&mut dynamics.scratch(), &q, &v, &a, &mut tau)?;
            Ok(tau)
        };
        let (first, second) = (force(one)?, force(other)?);
        let largest = first.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        if first.iter().zip(&second).any(|(a, b)| (a - b).abs() > EQUAL * largest) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Base parameters: names, values and columns of the regressor.
struct Base {
    names: Vec<String>,
    values: Vec<f64>,
    columns: Vec<usize>,
}

struct Code<'r> {
    prefix: String,
    robot: &'r Robot,
    /// Robot with the inertias from which the forces are computed.
    short: Mechanism,
    base: Base,
    /// Operation counts of the functions written so far.
    operations: Vec<Operations>,
}

/// Converts a name to a C identifier.
pub(super) fn identifier(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let word: String = name.chars().map(letter).collect();
    if word.starts_with(|c: char| c.is_ascii_lowercase()) { word } else { format!("robot_{word}") }
}

/// Converts a text to one that is safe inside a C comment.
fn remark(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || " _-.,:+()".contains(c) { c } else { '_' };
    text.chars().map(plain).collect()
}

impl Code<'_> {
    fn mechanism(&self) -> &Mechanism {
        &self.robot.mechanism
    }

    fn constant(&self, name: &str) -> String {
        format!("{}_{name}", self.prefix.to_ascii_uppercase())
    }

    fn header(&self) -> String {
        let (m, p) = (self.mechanism(), &self.prefix);
        let guard = self.constant("H");
        let (nq, nv, nb) = (self.constant("NQ"), self.constant("NV"), self.constant("BASE_PARAMETERS"));
        let gravity: Vec<String> = m.gravity().iter().map(|g| format!("{g:?}")).collect();
        let list = |names: Vec<String>| {
            let lines = names.iter().enumerate().map(|(k, name)| format!(" *   {k}: {}\n", remark(name)));
            joined(lines)
        };
        let mut out = format!(
            "/* Dynamics of {}, written by inertial {}.\n *\n * SI units. Gravity is {} m/s^2 in the world frame. The functions are C99, allocate nothing,\n * \
             keep no state and can be called from several threads. Link with the mathematics library (-lm).\n *\n * Positions q:\n{} *\n * Velocities v, \
             accelerations a and forces tau:\n{} *\n * Quaternions are x, y, z, w, of any length but zero. Twists are in the frame of the body.\n */\n",
            remark(m.name()),
            env!("CARGO_PKG_VERSION"),
            gravity.join(" "),
            list(m.position_names()),
            list(m.velocity_names()),
        );
        let _ = write!(
            out,
            "#ifndef {guard}\n#define {guard}\n\n#define {nq} {}\n#define {nv} {}\n#define {nb} {}\n\n\
             #ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n",
            m.nq(),
            m.nv(),
            self.base.columns.len()
        );
        let counts = |function: &str| {
            let found = self.operations.iter().find(|o| o.function == function);
            found.map_or(String::new(), |o| {
                format!("{} products, {} sums, {} sines and cosines", o.products, o.sums, o.functions)
            })
        };
        let _ = write!(
            out,
            "/* Forces of a motion, with the inertias of drives and without friction: {}. */\n\
             void {p}_inverse_dynamics(const double q[{nq}], const double v[{nv}], const double a[{nv}], double tau[{nv}]);\n\n\
             /* Forces that hold the robot against gravity: {}. */\nvoid {p}_gravity(const double q[{nq}], double tau[{nv}]);\n\n\
             /* Friction and offsets of the joints, to be added. */\nvoid {p}_friction(const double v[{nv}], double tau[{nv}]);\n\n",
            counts("inverse_dynamics"),
            counts("gravity")
        );
        if !self.base.columns.is_empty() {
            let _ = write!(
                out,
                "/* Regressor of the base parameters, row by row: {nv} rows of {nb} entries. With the inertias of\n   drives, \
                 {p}_armature, the forces are y * {p}_base_parameters + {p}_armature * a. */\n\
                 void {p}_regressor(const double q[{nq}], const double v[{nv}], const double a[{nv}], double y[{nv} * {nb}]);\n\n\
                 extern const double {p}_base_parameters[{nb}];\nextern const double {p}_armature[{nv}];\n\n"
            );
        }
        out.push_str("#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
        out
    }

    fn source(&mut self, file: &str) -> String {
        let (m, p) = (&self.robot.mechanism, &self.prefix);
        let (nq, nv, nb) = (self.constant("NQ"), self.constant("NV"), self.constant("BASE_PARAMETERS"));
        let mut out = format!("#include \"{file}.h\"\n\n#include <math.h>\n\n");
        let motion = format!("const double q[{nq}], const double v[{nv}], const double a[{nv}]");
        let all = [Array::Position, Array::Velocity, Array::Acceleration];
        let forces = |values: Vec<Value>| -> Vec<(String, Value)> {
            values.into_iter().enumerate().map(|(k, value)| (format!("tau[{k}]"), value)).collect()
        };
        let mut operations = Vec::new();
        let mut count = |function: &'static str, graph: &Graph, outputs: &[(String, Value)]| {
            let [products, sums, functions] = graph.operations(outputs);
            operations.push(Operations { function, products, sums, functions });
        };
        let mut bodies = Bodies::new(&self.short, Mobility::Moving);
        let tau = forces(bodies.inverse_dynamics(&self.robot.armature, Mobility::Moving));
        count("inverse_dynamics", bodies.graph(), &tau);
        let heading = format!("void {p}_inverse_dynamics({motion}, double tau[{nv}])");
        out.push_str(&function(&heading, bodies.graph(), &tau, &all));
        let mut bodies = Bodies::new(&self.short, Mobility::Resting);
        let tau = forces(bodies.inverse_dynamics(&self.robot.armature, Mobility::Resting));
        count("gravity", bodies.graph(), &tau);
        let heading = format!("void {p}_gravity(const double q[{nq}], double tau[{nv}])");
        out.push_str(&function(&heading, bodies.graph(), &tau, &all[..1]));
        out.push_str(&self.friction());
        if !self.base.columns.is_empty() {
            let width = self.base.columns.len();
            let mut bodies = Bodies::new(m, Mobility::Moving);
            let entries = bodies.regressor(&self.base.columns);
            let places = entries
                .into_iter()
                .map(|(row, column, value)| (format!("y[{}]", row * width + column), value))
                .collect::<Vec<_>>();
            count("regressor", bodies.graph(), &places);
            let heading = format!("void {p}_regressor({motion}, double y[{nv} * {nb}])");
            let clear = format!(
                "    int i;\n    for (i = 0; i < {nv} * {nb}; i++) {{\n        y[i] = 0.0;\n    }}\n"
            );
            let text = function(&heading, bodies.graph(), &places, &all);
            out.push_str(&text.replacen("{\n", &format!("{{\n{clear}"), 1));
            let values = self.base.values.iter().zip(&self.base.names);
            let lines = joined(values.map(|(x, name)| format!("    {x:?}, /* {} */\n", remark(name))));
            let _ = write!(out, "const double {p}_base_parameters[{nb}] = {{\n{lines}}};\n\n");
            let armature = joined(self.robot.armature.iter().map(|x| format!("    {:?},\n", x + 0.0)));
            let _ = writeln!(out, "const double {p}_armature[{nv}] = {{\n{armature}}};");
        }
        self.operations = operations;
        out
    }

    fn friction(&self) -> String {
        let (p, nv) = (&self.prefix, self.constant("NV"));
        let mut body = String::new();
        let mut reads = false;
        for (k, friction) in self.robot.friction.iter().enumerate() {
            let Friction { viscous, forward, backward, stribeck, offset } = friction;
            let mut parts = Vec::new();
            if *viscous != 0.0 {
                parts.push(format!("{viscous:?} * v[{k}]"));
            }
            if *forward != 0.0 || *backward != 0.0 {
                parts.push(format!("(v[{k}] > 0.0 ? {forward:?} : v[{k}] < 0.0 ? {:?} : 0.0)", -backward));
            }
            if let Some([height, speed, exponent]) = stribeck {
                parts.push(format!(
                    "(v[{k}] > 0.0 ? {height:?} : v[{k}] < 0.0 ? {:?} : 0.0) * exp(-pow(fabs(v[{k}]) / {speed:?}, {exponent:?}))",
                    -height
                ));
            }
            reads |= !parts.is_empty();
            if *offset != 0.0 || parts.is_empty() {
                parts.push(format!("{:?}", offset + 0.0));
            }
            let _ = writeln!(body, "    tau[{k}] = {};", parts.join(" + "));
        }
        let unused = if reads { "" } else { "    (void)v;\n" };
        format!("void {p}_friction(const double v[{nv}], double tau[{nv}])\n{{\n{unused}{body}}}\n\n")
    }

    /// Returns a program that compares the functions with values of the library.
    fn test(&self, file: &str) -> Result<String> {
        let (m, p) = (self.mechanism(), &self.prefix);
        let (nq, nv, nb) = (self.constant("NQ"), self.constant("NV"), self.constant("BASE_PARAMETERS"));
        let (n, width) = (m.nv(), self.base.columns.len());
        let dynamics = InverseDynamics::new(m);
        let mut scratch = dynamics.scratch();
        let mut numbers = Numbers(1);
        let mut table: [Vec<Vec<f64>>; 6] = Default::default();
        for _ in 0..SAMPLES {
            let mut q = m.neutral();
            m.integrate(&mut q, &numbers.take(n));
            let (v, a) = (numbers.take(n), numbers.take(n));
            let (mut tau, mut gravity, still) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
            dynamics.rnea(&mut scratch, &q, &v, &a, &mut tau)?;
            dynamics.rnea(&mut scratch, &q, &still, &still, &mut gravity)?;
            // The armature of the exported values replaces that of the model file.
            let change = self.robot.armature.iter().zip(m.armature());
            tau.iter_mut().zip(&a).zip(change).for_each(|((t, a), (new, old))| *t += (new - old) * a);
            let full = dynamics.torque_regressor(&mut scratch, &q, &v, &a)?;
            let rows = full.chunks_exact(m.parameter_count().max(1));
            let y = rows.flat_map(|row| self.base.columns.iter().map(|&c| row[c])).collect();
            for (column, values) in table.iter_mut().zip([q, v, a, tau, gravity, y]) {
                column.push(values);
            }
        }
        let mut out = format!(
            "/* Self-test of {file}.c: compares with numbers of the library. Exit status 0 if all agree. */\n\
             #include \"{file}.h\"\n\n#include <math.h>\n#include <stdio.h>\n\n#define SAMPLES {SAMPLES}\n\n"
        );
        let sizes = [&nq, &nv, &nv, &nv, &nv, &format!("{nv} * {nb}")].map(Clone::clone);
        for (((name, size), rows), k) in
            ["q", "v", "a", "tau", "gravity", "regressor"].iter().zip(&sizes).zip(&table).zip(0..)
        {
            if k == 5 && width == 0 {
                continue;
            }
            let rows: Vec<String> = rows.iter().map(|row| format!("    {{\n{}    }}", lines(row))).collect();
            let _ = write!(
                out,
                "static const double {name}[SAMPLES][{size}] = {{\n{}\n}};\n\n",
                rows.join(",\n")
            );
        }
        let _ = write!(
            out,
            "static int differs(const char *what, int sample, const double *found, const double *expected, int count)\n{{\n    \
             double size = 0.0, error = 0.0;\n    int i;\n    for (i = 0; i < count; i++) {{\n        size = fmax(size, fabs(expected[i]));\n        \
             if (!(fabs(found[i] - expected[i]) <= error)) {{\n            error = fabs(found[i] - expected[i]);\n        }}\n    }}\n    \
             if (error <= {TOLERANCE:?} * size) {{\n        return 0;\n    }}\n    \
             printf(\"%s of sample %d: off by %g of %g\\n\", what, sample, error, size);\n    return 1;\n}}\n\n\
             int main(void)\n{{\n    static double force[{nv}];\n"
        );
        let mut calls = vec![
            (
                format!("{p}_inverse_dynamics(q[i], v[i], a[i], force)"),
                "inverse dynamics",
                "force",
                "tau",
                nv.clone(),
            ),
            (format!("{p}_gravity(q[i], force)"), "gravity", "force", "gravity", nv.clone()),
        ];
        if width > 0 {
            let _ = writeln!(out, "    static double y[{nv} * {nb}];");
            let call = format!("{p}_regressor(q[i], v[i], a[i], y)");
            calls.push((call, "regressor", "y", "regressor", format!("{nv} * {nb}")));
        }
        out.push_str("    int i, failures = 0;\n    for (i = 0; i < SAMPLES; i++) {\n");
        for (call, what, found, expected, count) in calls {
            let _ = writeln!(
                out,
                "        {call};\n        failures += differs(\"{what}\", i, {found}, {expected}[i], {count});"
            );
        }
        let _ = write!(
            out,
            "        {p}_friction(v[i], force);\n    }}\n    puts(failures == 0 ? \"all agree\" : \"failed\");\n    return failures != 0;\n}}\n"
        );
        Ok(out)
    }
}

/// Formats numbers as lines of an initializer.
fn lines(numbers: &[f64]) -> String {
    joined(numbers.chunks(4).map(|line| {
        let words: Vec<String> = line.iter().map(|x| format!("{:?},", x + 0.0)).collect();
        format!("        {}\n", words.join(" "))
    }))
}

fn joined(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().concat()
}

/// Returns a function with its statements; unused parameters are marked.
fn function(heading: &str, graph: &Graph, outputs: &[(String, Value)], parameters: &[Array]) -> String {
    let (text, read) = graph.statements(outputs);
    let unused = parameters.iter().filter(|array| !read.contains(array));
    let unused = joined(unused.map(|array| format!("    (void){};\n", array.name())));
    format!("{heading}\n{{\n{unused}{text}}}\n\n")
}

/// Reproducible sequence of numbers between −1 and 1.
struct Numbers(u64);

impl Numbers {
    fn take(&mut self, count: usize) -> Vec<f64> {
        let next = |_| {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
        };
        (0..count).map(next).collect()
    }
}
