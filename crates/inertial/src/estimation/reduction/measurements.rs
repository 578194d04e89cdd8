//! Measured motion and forces.

use crate::dynamics::Samples;
use crate::estimation::equations::Equations;
use crate::estimation::reduction::blocks::BlockPlan;
use crate::estimation::reduction::row_filter::RowFilter;
use crate::{Error, Result};

/// Larger numbers are no measurements in SI units; regressors multiply up to three of them, and factors hold sums of squares.
const LARGEST: f64 = 1e50;

/// Measured motion and forces, sample after sample.
#[derive(Debug, Clone, Copy)]
pub struct Measurements<'a> {
    pub(crate) samples: Samples<'a>,
    pub(crate) tau: &'a [f64],
    /// The forces as the sensors gave them; those of the fit where they are not kept apart.
    pub tau_raw: Option<&'a [f64]>,
    /// Forces to use; all where absent.
    pub keep: Option<&'a [bool]>,
    /// Further columns of the log, those of [`crate::estimation::JointModel::columns`], sample after sample.
    pub columns: Option<&'a [f64]>,
    /// The part of the samples that is independent: filtering to a band of `f` Hz leaves `2 f / rate` of them.
    pub independent: f64,
    /// Weights against outliers.
    pub huber: Option<Huber<'a>>,
    /// The low-pass of both sides; then the independent part is that of its rows.
    pub filter: Option<&'a RowFilter>,
    /// Samples before the first and after the last at which rows are centred: those are of the parts of a log before and
    /// after this one.
    pub beyond: [usize; 2],
    /// Blocks of the log, counted from the first sample at which a row is centred; by default the samples are a whole log.
    pub blocks: Option<BlockPlan>,
}

/// Rows whose residual is beyond 1.345 standard deviations count less, by Huber's weight.
#[derive(Debug, Clone, Copy)]
pub struct Huber<'a> {
    /// The unknowns so far.
    pub values: &'a [f64],
    /// Standard deviation of each row's noise.
    pub noise: &'a [f64],
}

impl<'a> Measurements<'a> {
    /// Creates measurements of which all samples count and are independent.
    ///
    /// `tau` has one force for each velocity coordinate of the samples (each independent coordinate where there are loops), and
    /// six more numbers where the wrench on a fixed base is measured.
    pub fn new(samples: Samples<'a>, tau: &'a [f64]) -> Self {
        Self {
            samples,
            tau,
            tau_raw: None,
            keep: None,
            columns: None,
            independent: 1.0,
            huber: None,
            filter: None,
            beyond: [0; 2],
            blocks: None,
        }
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Positions of all samples.
    pub fn q(&self) -> &'a [f64] {
        self.samples.q()
    }

    /// Velocities of all samples.
    pub(crate) fn v(&self) -> &'a [f64] {
        self.samples.v
    }

    /// Accelerations of all samples.
    pub(crate) fn a(&self) -> &'a [f64] {
        self.samples.a
    }

    /// Numbers per position.
    pub(crate) fn nq(&self) -> usize {
        self.q().len() / self.len().max(1)
    }

    /// Numbers per velocity.
    pub(crate) fn nv(&self) -> usize {
        self.v().len() / self.len().max(1)
    }

    /// Further numbers per sample.
    pub(crate) fn columns_per_sample(&self) -> usize {
        self.columns.map_or(0, |c| c.len() / self.len().max(1))
    }

    /// Refuses measurements that do not fit the equations.
    pub(crate) fn check(&self, equations: &Equations<'_>) -> Result<()> {
        let (count, rows) = (self.len(), equations.channels.len());
        let moving = count * equations.coordinates();
        expect("v of the measurements", self.v().len(), moving)?;
        expect("a of the measurements", self.a().len(), moving)?;
        expect("tau of the measurements", self.tau.len(), count * rows)?;
        expect("raw tau of the measurements", self.tau_raw.map_or(count * rows, <[f64]>::len), count * rows)?;
        expect("keep of the measurements", self.keep.map_or(count * rows, <[bool]>::len), count * rows)?;
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

    /// Refuses numbers that are not finite, or so large that their squares would not be.
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

    /// The part of the rows that is independent.
    pub(crate) fn independent_rows(&self) -> f64 {
        self.filter.map_or(self.independent, RowFilter::independent)
    }

    /// Samples on both sides of a row's centre that it is made of.
    pub(crate) fn reach(&self) -> usize {
        self.filter.map_or(0, RowFilter::half)
    }
}

fn expect(what: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::Dimension { what, expected, found }) }
}
