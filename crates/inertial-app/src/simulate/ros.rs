//! ROS `trajectory_msgs/JointTrajectory` in YAML, as `ros2 topic echo` prints it and as 'inertial design' writes it.

use inertial_data::Log;

use crate::{Error, Located, Result, bail, ensure};

/// Point of the message.
#[derive(Default)]
struct Point {
    positions: Vec<f64>,
    velocities: Vec<f64>,
    accelerations: Vec<f64>,
    seconds: f64,
}

/// List to which the lines of a block belong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    None,
    Names,
    Positions,
    Velocities,
    Accelerations,
}

/// Reads a message as a log with the columns t, `q.J`, `dq.J` and `ddq.J`.
pub fn read(text: &str, file: &str) -> Result<Log> {
    let mut names: Vec<String> = Vec::new();
    let mut points: Vec<Point> = Vec::new();
    let mut list = List::None;
    let mut in_points = false;
    for (i, line) in text.lines().enumerate() {
        let here = || format!("{file}: line {}", i + 1);
        let content = line.split(" #").next().unwrap_or_default().trim_end();
        let mut rest = content.trim_start();
        if rest.is_empty() || rest.starts_with('#') || rest == "---" || rest == "..." {
            continue;
        }
        let item = rest.strip_prefix('-').filter(|r| r.starts_with(' ') || r.is_empty());
        if let Some(value) = item {
            let value = value.trim();
            if let (false, true) = (value.contains(':'), list != List::None) {
                match (list, points.last_mut()) {
                    (List::Names, _) => names.push(unquoted(value)),
                    (_, Some(point)) => column(point, list).push(number(value).at(here())?),
                    _ => bail!("{}: a value outside of points", here()),
                }
                continue;
            }
            if in_points {
                points.push(Point::default());
            }
            rest = value;
            if rest.is_empty() {
                continue;
            }
        }
        let Some((key, value)) = rest.split_once(':') else {
            bail!("{}: expected 'key: value' of a JointTrajectory, not '{rest}'", here());
        };
        let value = value.trim();
        list = match key.trim() {
            "joint_names" => List::Names,
            "positions" => List::Positions,
            "velocities" => List::Velocities,
            "accelerations" => List::Accelerations,
            _ => List::None,
        };
        match key.trim() {
            "points" => in_points = true,
            "sec" | "secs" if in_points => {
                last(&mut points).at(here())?.seconds += number(value).at(here())?;
            }
            "nanosec" | "nsecs" if in_points => {
                last(&mut points).at(here())?.seconds += 1e-9 * number(value).at(here())?;
            }
            _ => {}
        }
        if list != List::None && !value.is_empty() {
            let inner = value.strip_prefix('[').and_then(|v| v.strip_suffix(']')).ok_or_else(|| {
                Error::Input(format!("{}: expected a list in brackets on one line", here()))
            })?;
            for part in inner.split(',').map(str::trim).filter(|p| !p.is_empty()) {
                match list {
                    List::Names => names.push(unquoted(part)),
                    _ => column(last(&mut points).at(here())?, list).push(number(part).at(here())?),
                }
            }
            list = List::None;
        }
    }
    table(file, &names, &points)
}

fn table(file: &str, names: &[String], points: &[Point]) -> Result<Log> {
    ensure!(!names.is_empty(), "{file}: joint_names is empty");
    ensure!(!points.is_empty(), "{file}: there are no points");
    let mut header = vec!["t".to_owned()];
    let mut columns = vec![points.iter().map(|p| p.seconds).collect::<Vec<_>>()];
    for (stem, what, list) in [
        ("q", "positions", List::Positions),
        ("dq", "velocities", List::Velocities),
        ("ddq", "accelerations", List::Accelerations),
    ] {
        let values = |p: &Point| match list {
            List::Positions => p.positions.clone(),
            List::Velocities => p.velocities.clone(),
            _ => p.accelerations.clone(),
        };
        let rows: Vec<Vec<f64>> = points.iter().map(values).collect();
        if list != List::Positions && rows.iter().all(Vec::is_empty) {
            continue;
        }
        if let Some(i) = rows.iter().position(|r| r.len() != names.len()) {
            bail!("{file}: points[{i}].{what} has {} numbers for {} joints", rows[i].len(), names.len());
        }
        for (j, name) in names.iter().enumerate() {
            header.push(format!("{stem}.{name}"));
            columns.push(rows.iter().map(|r| r[j]).collect());
        }
    }
    Ok(Log::new(file, header, columns)?)
}

fn column(point: &mut Point, list: List) -> &mut Vec<f64> {
    match list {
        List::Velocities => &mut point.velocities,
        List::Accelerations => &mut point.accelerations,
        _ => &mut point.positions,
    }
}

fn last(points: &mut [Point]) -> Result<&mut Point> {
    points.last_mut().ok_or_else(|| Error::Input("a value before the first point".into()))
}

fn number(text: &str) -> Result<f64> {
    text.parse()
        .ok()
        .filter(|x: &f64| x.is_finite())
        .ok_or_else(|| Error::Input(format!("'{text}' is not a finite number")))
}

fn unquoted(text: &str) -> String {
    for quote in ['\'', '"'] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote)) {
            return if quote == '\'' { inner.replace("''", "'") } else { inner.to_owned() };
        }
    }
    text.to_owned()
}
