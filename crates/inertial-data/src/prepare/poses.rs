//! Poses at rest: logs of a robot that was held still in one pose after the other.

use std::ops::Range;

use crate::clean::first_pass::{LogStatistics, STILL};
use crate::clean::spool::Spool;
use crate::columns::layout::Layout;
use crate::prepare::record::Record;
use crate::{AbsentColumn, Error, Result};

/// Change of a joint between two rows, relative to its range of motion, that counts as a jump to another pose.
const JUMP: f64 = 0.02;
/// Maximum changes before and after a jump, relative to it, of a robot at rest.
const BESIDE: f64 = 0.1;
/// Minimum share of the changes that are jumps between rows at rest, and minimum share of the poses that are at rest.
const MOST: f64 = 0.9;
/// Maximum range of a joint within a pose, relative to its range of motion; smaller changes are noise.
const REST: f64 = 0.01;
/// Minimum number of rows of a pose in a log with times: shorter ones may belong to the motion between poses.
const SHORTEST: usize = 3;
/// Correlation of consecutive changes from which rows belong to a motion.
const SMOOTH: f64 = 0.5;
/// Minimum number of poses.
const FEWEST: usize = 4;
/// Number of rows read at once.
const BLOCK: usize = 1 << 13;

/// Finds the rows of each pose; `None` if the rows belong to a motion. `is_timed` is whether the rows have times.
pub(super) fn find(
    layout: &Layout,
    statistics: &LogStatistics,
    rows: &mut Spool,
    is_timed: bool,
) -> Result<Option<Vec<Range<usize>>>> {
    // Places and ranges of the moving joints.
    let mut joints = Vec::new();
    for joint in &layout.joints {
        let place = if joint.joint_type.nq() == 1 { layout.q[joint.q] } else { None };
        let Some(place) = place else { return Ok(None) };
        let channel = &statistics.channels[place];
        let [range, logged] = [channel.range, channel.logged].map(|(low, high)| high - low);
        // Turns that were unwrapped between poses are not motion.
        let range = if logged > 0.0 { range.min(logged) } else { range };
        if range > STILL {
            joints.push((1 + place, range, channel.jump));
        }
    }
    // The largest change is known only for angles.
    let may_jump = joints.iter().any(|(_, range, jump)| *jump > JUMP * range || *jump == 0.0);
    let count = rows.len();
    if !may_jump || count < FEWEST {
        return Ok(None);
    }
    let (mut changes, mut products, mut squares) = (Vec::with_capacity(count), 0.0, 0.0);
    let (mut last, mut before) = (Vec::new(), vec![0.0; joints.len()]);
    each(rows, layout, &mut |_, row| {
        let now: Vec<f64> = joints.iter().map(|(place, range, _)| row[*place] / range).collect();
        if !last.is_empty() {
            let change: Vec<f64> = now.iter().zip(&last).map(|(a, b)| a - b).collect();
            products += change.iter().zip(&before).map(|(a, b)| a * b).sum::<f64>();
            squares += change.iter().map(|a| a * a).sum::<f64>();
            changes.push(change.iter().fold(0.0, |most: f64, a| most.max(a.abs())));
            before = change;
        }
        last = now;
        Ok(())
    })?;
    let jumps: Vec<usize> = (0..changes.len()).filter(|&k| changes[k] > JUMP).collect();
    let beside = |k: usize| {
        let neighbours = [k.checked_sub(1), Some(k + 1)].into_iter().flatten();
        neighbours.filter_map(|n| changes.get(n)).all(|change| *change < BESIDE * changes[k])
    };
    let alone = jumps.iter().filter(|&&k| beside(k)).count();
    let ends = jumps.iter().map(|k| k + 1).chain([count]);
    let mut start = 0;
    let parts: Vec<Range<usize>> = ends.map(|end| std::mem::replace(&mut start, end)..end).collect();
    let shortest = if is_timed { SHORTEST } else { 1 };
    let held: Vec<Range<usize>> = parts.into_iter().filter(|part| part.len() >= shortest).collect();
    if jumps.len() + 1 >= FEWEST && alone as f64 >= MOST * jumps.len() as f64 {
        let resting = at_rest(&held, &joints, layout, rows)?;
        let enough = resting.len() >= FEWEST && resting.len() as f64 >= MOST * held.len() as f64;
        if enough {
            return Ok(Some(resting));
        }
    }
    // Without times every row may be a pose; in a motion, consecutive changes are correlated.
    let is_table = !is_timed && products < SMOOTH * squares;
    Ok(is_table.then(|| (0..count).map(|k| k..k + 1).collect()))
}

/// Returns the parts in which no joint moves.
fn at_rest(
    parts: &[Range<usize>],
    joints: &[(usize, f64, f64)],
    layout: &Layout,
    rows: &mut Spool,
) -> Result<Vec<Range<usize>>> {
    let mut ranges = vec![(f64::INFINITY, f64::NEG_INFINITY); joints.len()];
    let (mut out, mut next) = (Vec::new(), 0);
    each(rows, layout, &mut |k, row| {
        let Some(part) = parts.get(next).filter(|part| part.contains(&k)) else { return Ok(()) };
        for ((low, high), (place, ..)) in ranges.iter_mut().zip(joints) {
            (*low, *high) = (low.min(row[*place]), high.max(row[*place]));
        }
        if k + 1 == part.end {
            if ranges.iter().zip(joints).all(|((low, high), (_, range, _))| high - low <= REST * range) {
                out.push(part.clone());
            }
            ranges.fill((f64::INFINITY, f64::NEG_INFINITY));
            next += 1;
        }
        Ok(())
    })?;
    Ok(out)
}

/// Creates one record for each pose: mean values, at rest.
pub(super) fn records(
    layout: &Layout,
    record: &Record,
    rows: &mut Spool,
    poses: &[Range<usize>],
) -> Result<Spool> {
    let mut out = Spool::new(record.width);
    let (mut sums, mut counts) = (vec![0.0; layout.width()], vec![0usize; layout.width()]);
    let (mut q, mut next) = (vec![0.0; layout.nq()], 0);
    each(rows, layout, &mut |k, row| {
        let Some(pose) = poses.get(next).filter(|pose| pose.contains(&k)) else { return Ok(()) };
        for ((sum, count), x) in sums.iter_mut().zip(&mut counts).zip(&row[1..]) {
            if !x.is_nan() {
                *sum += x;
                *count += 1;
            }
        }
        if k + 1 < pose.end {
            return Ok(());
        }
        next += 1;
        let missing = (0..layout.width()).filter(|&place| counts[place] == 0 && layout.is_used(place));
        let marks = missing.fold(0, |bits, place| bits | layout.mark_bit(place));
        let means: Vec<f64> =
            sums.iter().zip(&counts).map(|(sum, count)| sum / (*count).max(1) as f64).collect();
        layout.positions(&means, &mut q);
        let mut line = q.clone();
        line.resize(layout.nq() + 2 * layout.nv(), 0.0);
        for _ in ["filtered", "raw"] {
            line.extend(record.measured.iter().filter_map(|&v| layout.tau[v]).map(|place| means[place]));
        }
        for _ in ["filtered", "raw"] {
            line.extend(layout.extra.iter().map(|&place| means[place]));
        }
        line.push(marks as f64);
        sums.fill(0.0);
        counts.fill(0);
        out.push(&line)
    })?;
    Ok(out)
}

/// Creates the error about a motion without times.
pub(super) fn no_times(layout: &Layout) -> Error {
    let message = "there is no column t (time in seconds), and the positions change too little from row to row to be poses at rest";
    Error::absent(layout.place(), message, AbsentColumn::Time)
}

/// Passes each row, time first, with its index.
fn each(rows: &mut Spool, layout: &Layout, take: &mut dyn FnMut(usize, &[f64]) -> Result<()>) -> Result<()> {
    let (mut first, mut block) = (0, Vec::new());
    while first < rows.len() {
        let end = (first + BLOCK).min(rows.len());
        block.clear();
        rows.read(first..end, &mut block)?;
        for (i, row) in block.chunks_exact(layout.width() + 1).enumerate() {
            take(first + i, row)?;
        }
        first = end;
    }
    Ok(())
}
