//! JSON schemas of the outcomes and of files, generated from their types.
//!
//! `cargo run -p inertial-app --example schemas -- docs/schema` writes them; a test compares the files with the types.

use inertial::estimation::Summary;
use inertial::excitation::Trajectory;
use inertial::mechanism::read::file;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::{
    analyze, bench, check, columns, design, export, fleet, flight, follow, payload, regressor, simulate,
    studies, validate,
};

/// Returns the schemas by name.
pub fn schemas() -> Vec<(&'static str, Value)> {
    let one = of::<check::Outcome>();
    let several = of::<check::Several<'_>>();
    let mut checked = either(&one, &several);
    let only = |schema: &Value| json!({"required": difference(schema, &checked["required"])});
    checked["oneOf"] = json!([only(&one), only(&several)]);
    // Stream outcomes add the time, momentum outcomes have additional fields, and payloads name their link.
    let identified = either(&of::<follow::Outcome>(), &of::<flight::Outcome>());
    let identified = either(&identified, &of::<payload::Outcome>());
    [
        (
            "analysis",
            "Output of `inertial analyze --json`: identifiable parameters with their certificate",
            of::<analyze::Outcome>(),
        ),
        (
            "bench",
            "Output of `inertial bench --json`: times of kernels on this machine",
            of::<bench::Outcome>(),
        ),
        ("check", "Output of `inertial check --json`: physical consistency of bodies", checked),
        ("columns", "Output of `inertial columns --json`: columns of a log", of::<columns::Outcome>()),
        (
            "design",
            "Output of `inertial design --json`: a motion and its expected errors",
            of::<design::Outcome>(),
        ),
        (
            "export",
            "Output of `inertial export --json`: texts for controllers, simulators and programs",
            of::<export::Outcome>(),
        ),
        (
            "fleet",
            "Parameters that robots of one type share, and those of each robot",
            of::<fleet::Outcome>(),
        ),
        (
            "identification",
            "Output of `inertial identify --json`: parameters estimated from measurements",
            identified,
        ),
        (
            "leg-on-bench",
            "Output of `inertial demo leg-on-bench --json`: prediction errors of legs identified on a bench",
            of::<studies::leg_on_bench::Outcome>(),
        ),
        ("mechanism", "A mechanism file (JSON, or the same in TOML)", mechanism()),
        (
            "regressor-identification",
            "Output of `inertial identify --regressor --json`: bodies estimated from a regressor",
            of::<regressor::Outcome>(),
        ),
        (
            "sampled-rank",
            "Output of `inertial demo sampled-rank --json`: numerical ranks of a mechanism with loops",
            of::<studies::sampled_rank::Outcome>(),
        ),
        (
            "simulation",
            "Output of `inertial simulate --json`: a log without its samples",
            of::<simulate::Outcome>(),
        ),
        (
            "slow-motion",
            "Output of `inertial demo slow-motion --json`: a body behind a force/torque sensor",
            of::<studies::slow_motion::Outcome>(),
        ),
        (
            "space-robot",
            "Output of `inertial demo space-robot --json`: a repeated published experiment",
            of::<studies::space_robot::Outcome>(),
        ),
        ("summary", "A summary of logs, as `inertial identify --summary-out` writes it", of::<Summary>()),
        ("trajectory", "A trajectory, as `inertial design --out NAME.json` writes it", of::<Trajectory>()),
        (
            "validation",
            "Output of `inertial validate --json`: residuals of a prediction",
            of::<validate::Outcome>(),
        ),
    ]
    .map(|(name, title, schema)| (name, headed(name, title, &schema)))
    .into()
}

/// Returns the text of a schema file.
pub fn text(schema: &Value) -> String {
    format!("{schema:#}\n")
}

/// Returns the schema of the serialized form of a type.
fn of<T: JsonSchema>() -> Value {
    cleaned(SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>())
}

/// Returns the schema of mechanism files, which requires only what their reader requires.
fn mechanism() -> Value {
    cleaned(file::schema(SchemaSettings::draft2020_12().for_deserialize().into_generator()))
}

fn cleaned(schema: Schema) -> Value {
    let mut schema = schema.to_value();
    without_nulls(&mut schema);
    plain(&mut schema);
    schema
}

/// Removes Rust-specific details (widths of numbers, links and line breaks in descriptions), and describes tags.
fn plain(schema: &mut Value) {
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(plain),
        Value::Object(parts) => {
            if parts.contains_key("type") && parts.get("format").is_some_and(Value::is_string) {
                parts.remove("format");
            }
            if let Some(Value::String(text)) = parts.get_mut("description") {
                let words: Vec<&str> = text.split_whitespace().collect();
                *text = words.join(" ").replace("[`", "`").replace("`]", "`");
            }
            if parts.contains_key("const") && !parts.contains_key("description") {
                parts.insert("description".into(), json!("Kind."));
            }
            parts.values_mut().for_each(plain);
        }
        _ => {}
    }
}

/// Adds name and title to a schema.
fn headed(name: &str, title: &str, schema: &Value) -> Value {
    let mut out = Map::new();
    out.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    out.insert("$id".into(), json!(format!("urn:inertial:{name}:1")));
    out.insert("title".into(), json!(title));
    for (key, value) in schema.as_object().into_iter().flatten() {
        if !matches!(key.as_str(), "$schema" | "title" | "description") {
            out.insert(key.clone(), value.clone());
        }
    }
    out.into()
}

/// Removes null from the types of optional fields, which are omitted instead.
fn without_nulls(schema: &mut Value) {
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(without_nulls),
        Value::Object(parts) => {
            let required = parts.get("required").cloned().unwrap_or_default();
            if let Some(Value::Object(fields)) = parts.get_mut("properties") {
                let absent = |name: &str| !contains(&required, name);
                fields.iter_mut().filter(|(name, _)| absent(name)).for_each(|(_, field)| not_null(field));
            }
            parts.values_mut().for_each(without_nulls);
        }
        _ => {}
    }
}

fn not_null(field: &mut Value) {
    let null = json!({"type": "null"});
    if let Some(Value::Array(types)) = field.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [one] = &types[..] {
            field["type"] = one.clone();
        }
    }
    let Some(fields) = field.as_object_mut() else { return };
    if let Some(Value::Array(mut choices)) = fields.remove("anyOf") {
        choices.retain(|choice| *choice != null);
        match &choices[..] {
            [Value::Object(one)] => fields.extend(one.clone()),
            _ => {
                fields.insert("anyOf".into(), choices.into());
            }
        }
    }
}

/// Returns the name of the definition to which a field, or each of its items, refers.
fn definition(field: &Value) -> Option<&str> {
    let part = field.get("$ref").or_else(|| field.get("items")?.get("$ref"))?;
    part.as_str()?.rsplit('/').next()
}

fn contains(list: &Value, name: &str) -> bool {
    list.as_array().is_some_and(|list| list.iter().any(|entry| entry == name))
}

/// Returns the required fields of a schema that are not in a list.
fn difference(schema: &Value, list: &Value) -> Vec<Value> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    required.into_iter().filter(|name| name.as_str().is_some_and(|name| !contains(list, name))).collect()
}

/// Returns the schema of objects of either kind: it has the fields of both, and requires those that both require.
/// Fields of the same name are described by the first kind; if they consist of objects, these are merged likewise.
fn either(one: &Value, other: &Value) -> Value {
    let mut out = one.clone();
    for (name, field) in other["properties"].as_object().into_iter().flatten() {
        let Some(own) = one["properties"].get(name) else {
            out["properties"][name] = field.clone();
            if let Some(part) = definition(field) {
                out["$defs"][part] = other["$defs"][part].clone();
            }
            continue;
        };
        if let (Some(own), Some(part)) = (definition(own), definition(field))
            && own != part
        {
            out["$defs"][own] = either(&one["$defs"][own], &other["$defs"][part]);
        }
    }
    out["required"] = one["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|name| name.as_str().is_some_and(|name| contains(&other["required"], name)))
        .cloned()
        .collect();
    out
}
