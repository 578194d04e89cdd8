//! Measured motion and forces.

use crate::dynamics::Samples;
use crate::estimation::equations::Equations;
use crate::estimation::reduction::blocks::BlockPlan;
use crate::estimation::reduction::row_filter::RowFilter;
use crate::{Error, Result};

/// Upper limit of measurements in SI units. Regressors multiply up to three of them, and factors contain sums of squares.
const LARGEST: f64 = 1e50;

/// Measured motion and forces, sample after sample.
#[derive(Debug, Clone, Copy)]
pub struct Measurements<'a> {
    pub(crate) samples: Samples<'a>,
    pub(crate) tau: &'a [f64],
    /// Unfiltered forces of the sensors; the forces of the fit if absent.
    pub tau_raw: Option<&'a [f64]>,
    /// Forces to use; all if absent.
    pub keep: Option<&'a [bool]>,
    /// Whether each force is measured at all, one value per row of the equations; all if absent. The samples of other forces do not
    /// count as samples that are left out.
    pub measured: Option<&'a [bool]>,
    /// Additional columns of the log, those of [`crate::estimation::JointModel::columns`], sample after sample.
    pub columns: Option<&'a [f64]>,
    /// Mean signs of the velocities, one per coordinate, for samples of a low band; the signs of the samples themselves if absent.
    pub(crate) signs: Option<&'a [f64]>,
    /// Share of independent samples: filtering to a band of `f` Hz leaves `2 f / rate`.
    pub independent: f64,
    /// Weights against outliers.
    pub huber: Option<Huber<'a>>,
    /// Low-pass filter of both sides; the independent share is then that of its rows.
    pub filter: Option<&'a RowFilter>,
    /// Number of samples before the first and after the last sample at which rows are centred. They belong to the preceding and
    /// following parts of the log.
    pub beyond: [usize; 2],
    /// Blocks of the log, counted from the first sample at which a row is centred. By default the samples are a whole log.
    pub blocks: Option<BlockPlan>,
}

/// Huber weights: rows whose residual exceeds 1.345 standard deviations have less weight.
#[derive(Debug, Clone, Copy)]
pub struct Huber<'a> {
    /// Current values of the unknowns.
    pub values: &'a [f64],
    /// Standard deviation of the noise of each row.
    pub noise: &'a [f64],
}

impl<'a> Measurements<'a> {
    /// Creates measurements whose samples are all used and independent.
    ///
    /// `tau` has one force for each velocity coordinate of the samples (each independent coordinate if there are loops), and six
    /// more values if the wrench on a fixed base is measured.
    pub fn new(samples: Samples<'a>, tau: &'a [f64]) -> Self {
        Self {
            samples,
            tau,
            tau_raw: None,
            keep: None,
            measured: None,
            columns: None,
            signs: None,
            independent: 1.0,
            huber: None,
            filter: None,
            beyond: [0; 2],
            blocks: None,
        }
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Returns whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the positions of all samples.
    pub fn q(&self) -> &'a [f64] {
        self.samples.q()
    }

    /// Returns the velocities of all samples.
    pub(crate) fn v(&self) -> &'a [f64] {
        self.samples.v
    }

    /// Returns the accelerations of all samples.
    pub(crate) fn a(&self) -> &'a [f64] {
        self.samples.a
    }

    /// Returns the number of values per position.
    pub(crate) fn nq(&self) -> usize {
        self.q().len() / self.len().max(1)
    }

    /// Returns the number of values per velocity.
    pub(crate) fn nv(&self) -> usize {
        self.v().len() / self.len().max(1)
    }

    /// Returns the number of additional values per sample.
    pub(crate) fn columns_per_sample(&self) -> usize {
        self.columns.map_or(0, |c| c.len() / self.len().max(1))
    }

    /// Checks that the measurements fit the equations.
    pub(crate) fn check(&self, equations: &Equations<'_>) -> Result<()> {
        let (count, rows) = (self.len(), equations.channels.len());
        let moving = count * equations.coordinates();
        expect("v of the measurements", self.v().len(), moving)?;
        expect("a of the measurements", self.a().len(), moving)?;
        expect("tau of the measurements", self.tau.len(), count * rows)?;
        expect("raw tau of the measurements", self.tau_raw.map_or(count * rows, <[f64]>::len), count * rows)?;
        expect("keep of the measurements", self.keep.map_or(count * rows, <[bool]>::len), count * rows)?;
        expect("measured forces of the measurements", self.measured.map_or(rows, <[bool]>::len), rows)?;
        let further = equations.joint_model().columns.len();
        expect("further columns of the measurements", self.columns.map_or(0, <[f64]>::len), count * further)?;
        if let Some(huber) = self.huber {
            expect("values of a robust pass", huber.values.len(), equations.len())?;
            expect("noise of a robust pass", huber.noise.len(), rows)?;
        }
        if self.beyond[0] + self.beyond[1] > count {
            return Err(Error::InvalidOption("more samples beyond the rows than there are samples".into()));
        }
        if self.independent > 0.0 && self.independent <= 1.0 {
            return Ok(());
        }
        Err(Error::invalid_value(
            "the independent part of the samples",
            self.independent,
            "a number above 0 and at most 1",
        ))
    }

    /// Checks that all values are finite and small enough for their squares to be finite.
    pub(crate) fn check_finite(&self, equations: &Equations<'_>) -> Result<()> {
        let wrong = |x: &f64| !(x.abs() < LARGEST);
        let row = |values: &[f64], width: usize| values.iter().position(wrong).map(|k| k % width.max(1));
        let (joints, rows) = (equations.coordinates(), equations.channels.len());
        let forces = row(self.tau, rows).or_else(|| row(self.tau_raw?, rows));
        if let Some(row) = forces.or_else(|| row(self.v(), joints)).or_else(|| row(self.a(), joints)) {
            let name = &equations.row_names()[row];
            return Err(Error::NotFinite(format!("the measurements of {name} are not finite")));
        }
        if self.q().iter().chain(self.columns.unwrap_or_default()).any(wrong) {
            return Err(Error::NotFinite("the positions of the measurements are not finite".into()));
        }
        Ok(())
    }

    /// Returns the share of independent rows.
    pub(crate) fn independent_rows(&self) -> f64 {
        self.filter.map_or(self.independent, RowFilter::independent)
    }

    /// Returns the number of samples on either side of the centre of a row that it depends on.
    pub(crate) fn reach(&self) -> usize {
        self.filter.map_or(0, RowFilter::half)
    }
}

fn expect(what: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::Dimension { what, expected, found }) }
}
