//! Writes the JSON schemas of all outcomes into a folder.

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("docs/schema"), PathBuf::from);
    for (name, schema) in inertial_app::schema::schemas() {
        std::fs::write(folder.join(format!("{name}.json")), inertial_app::schema::text(&schema))?;
    }
    Ok(())
}
