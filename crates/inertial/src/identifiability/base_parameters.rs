//! Base parameters: a minimal set of parameters, and the combination of parameters that each of them represents.

use crate::linalg::{Double, Gf, Number, Shadow, Wide};
use crate::{Error, Result};

/// Maximum total number of coefficients for which combinations are listed. Beyond it the null vectors are a shorter
/// description.
const MOST_COEFFICIENTS: usize = 1_000_000;

/// Rounding error of the entries of null vectors of a geometry in double precision. A rotation matrix from a file has
/// errors of 2e-16 in each entry; a chain of a few rotations stays below 150 times that.
const DOUBLES: f64 = 3e-14;

/// Error of restored relations, relative to [`DOUBLES`], up to which they only removed the rounding of doubles.
const SAME_DOUBLES: f64 = 2.0;

/// Ratio of the smallest entry that remains to the rounding error below which entries are dropped. Entries between the
/// two may be intended or not, so nothing is dropped if there are any.
const PLAIN: f64 = 100.0;

/// Largest entry that remains after rounding errors are dropped. Real mechanisms have ratios up to 1e6 (a 50 µm
/// eccentric on a 50 m boom).
const LARGEST: f64 = 1e10;

/// Product of the largest entry that remains with the rounding error. Entries with a rounding error as pivot have a
/// product of order one.
const LARGEST_PRODUCT: f64 = 0.1;

/// Product of an entry with the rounding error above which its pivot is a rounding error.
const HUGE_PRODUCT: f64 = 0.3;

/// Error of the entries of null vectors, relative to the distance by which the geometry was moved to restore relations.
const REPAIR_ERROR: f64 = 10.0;

/// Scale of the entries of null vectors.
#[derive(Debug, Clone)]
pub struct EntryScale {
    /// Powers of two that bring the entries of each column to one scale.
    pub units: Vec<f64>,
    /// Rounding error of entries of order one.
    pub error: f64,
    /// Whether small entries may be intended, because the geometry was moved to restore relations.
    moved: bool,
}

impl EntryScale {
    /// Creates the scale of a geometry in double precision.
    pub fn of_doubles(units: Vec<f64>) -> Self {
        Self { units, error: DOUBLES, moved: false }
    }

    /// Creates the scale of a geometry that was moved by `distance` to restore relations. Numbers of the file that are
    /// intended to be zero moved as well.
    pub fn of_repaired(units: Vec<f64>, distance: f64) -> Self {
        let error = DOUBLES.max(REPAIR_ERROR * distance);
        Self { units, error, moved: error > SAME_DOUBLES * DOUBLES }
    }
}

/// Treatment of entries of null vectors that are as small as rounding errors of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SmallEntries {
    /// All entries are kept: there are no such entries, or every digit of the file is significant.
    Kept,
    /// Entries were dropped as rounding errors.
    Dropped,
    /// A pivot may be a rounding error.
    Doubtful,
}

/// Identifiability of one parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Parameter that is identifiable by itself.
    Identifiable,
    /// Parameter that appears in combinations only.
    Combined,
    /// Parameter that appears in no combination.
    Unidentifiable,
}

/// Regrouping of the parameters into base parameters.
///
/// If `Y_b` are the columns of the base parameters, then `Y π = Y_b β` with `β = regroup(π)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Regrouping {
    /// Number of parameters.
    pub parameters: usize,
    /// Columns of the base parameters, ascending.
    pub base: Vec<usize>,
    /// Combination of each base parameter: columns and coefficients. Its own column comes first, with coefficient one.
    /// Empty if there are too many coefficients to list.
    pub combinations: Vec<Vec<(usize, f64)>>,
    /// Status of each column.
    pub status: Vec<Status>,
}

/// Number whose value can be printed.
pub trait PrintedNumber: Number {
    /// Returns the value, without rounding if it is a short fraction or decimal.
    fn written(self) -> f64;

    /// Returns the value rounded to 31 digits, or to the precision of the number if that is lower.
    fn rounded(self) -> Double;
}

impl PrintedNumber for f64 {
    fn written(self) -> f64 {
        self
    }

    fn rounded(self) -> Double {
        self.into()
    }
}

impl<const N: usize> PrintedNumber for Wide<N> {
    fn written(self) -> f64 {
        self.into()
    }

    fn rounded(self) -> Double {
        let high = f64::from(self);
        Double::from(high) + Double::from(f64::from(self - Self::from(high)))
    }
}

impl<const P: u64, V: Number + Into<f64>> PrintedNumber for Shadow<P, V> {
    fn written(self) -> f64 {
        let value: f64 = self.value.into();
        // Shadow values are accurate to many more digits than this; an accidental agreement with a fraction is
        // unlikely.
        let close = |x: f64| (x - value).abs() <= 1e-9 * value.abs();
        if let Some((n, d)) = self.exact.fraction() {
            let x = n as f64 / d as f64;
            if close(x) {
                return x;
            }
        }
        // A number that has cancelled completely has no significant digits.
        if value == 0.0 || !value.is_finite() {
            return value;
        }
        let exponent = value.abs().log10().floor() as i32;
        for digits in 9..=15 {
            let e = exponent + 1 - digits;
            let n = (value / 10f64.powi(e)).round() as i64;
            if Gf::from_decimal(n, 1, e) == self.exact {
                return f64::from_decimal(n, 1, e);
            }
        }
        value
    }

    fn rounded(self) -> Double {
        let value: f64 = self.value.into();
        value.into()
    }
}

/// Dependent columns with the null vectors that express them by earlier columns: the null space in echelon form.
#[derive(Debug, Clone)]
pub struct Dependence<T> {
    order: Vec<usize>,
    place: Vec<usize>,
    /// Null vectors by position in the order; each has its last entry, with value one, at that position.
    vectors: Vec<Option<Vec<(usize, T)>>>,
    tolerance: f64,
    /// Factors of the columns: the vectors are in these units.
    units: Option<Vec<f64>>,
    /// Treatment of entries that are as small as rounding errors.
    pub(super) small_entries: SmallEntries,
}

impl<T: PrintedNumber> Dependence<T> {
    /// Creates the echelon form from null vectors of a geometry whose numbers are rounded to double precision.
    ///
    /// An entry that is zero in the intended geometry can be 1e-16 in a file. Such entries are dropped if that leaves
    /// no doubt: the remaining entries are much larger, and the number of base parameters does not change.
    pub fn of_rounded(
        order: Vec<usize>,
        null_vectors: &[Vec<(usize, T)>],
        tolerance: f64,
        scale: &EntryScale,
    ) -> Self {
        let (units, error) = (&scale.units, scale.error);
        let mut exact = Self::new(order.clone(), null_vectors.iter().cloned(), tolerance);
        if scale.moved {
            // Entries that are large only before the reduction matter for double precision, but not for the geometry.
            exact.reduce(MOST_COEFFICIENTS);
        }
        let (least, largest) = exact.extremes(units);
        let is_huge = largest > LARGEST || largest * error > HUGE_PRODUCT;
        if !is_huge && (least >= error || scale.moved) {
            return exact;
        }
        let factors: Option<Vec<T>> = units.iter().map(|&u| power_of_two::<T>(u).inverse()).collect();
        let scaled = |vector: &Vec<(usize, T)>| -> Vec<(usize, T)> {
            let Some(factors) = &factors else { return vector.clone() };
            let mut out: Vec<(usize, T)> = vector.iter().map(|&(c, x)| (c, x * factors[c])).collect();
            let largest = out.iter().max_by(|a, b| a.1.weight().total_cmp(&b.1.weight()));
            let factor = largest.and_then(|(_, x)| x.inverse()).unwrap_or_else(T::one);
            out.iter_mut().for_each(|(_, x)| *x *= factor);
            out
        };
        let mut rounded = Self::new(order, null_vectors.iter().map(scaled), error.max(tolerance));
        let (least, greatest) = rounded.extremes(&vec![1.0; units.len()]);
        let same_size = rounded.vectors.iter().flatten().count() == exact.vectors.iter().flatten().count();
        let same_base = || rounded.base() == exact.base();
        let is_clear = least >= PLAIN * error && greatest <= LARGEST.min(LARGEST_PRODUCT / error);
        if same_size && is_clear && (is_huge || same_base()) {
            rounded.units = Some(units.clone());
            rounded.small_entries = SmallEntries::Dropped;
            return rounded;
        }
        if is_huge {
            exact.small_entries = SmallEntries::Doubtful;
        }
        exact
    }

    /// Returns the smallest and the largest entry of the null vectors relative to their own column.
    fn extremes(&self, units: &[f64]) -> (f64, f64) {
        let mut out = (f64::INFINITY, 0.0f64);
        for vector in self.vectors.iter().flatten() {
            let Some(&(own, _)) = vector.last() else { continue };
            for &(p, x) in vector {
                let size = x.weight() * (units[self.order[own]] / units[self.order[p]]);
                out = (out.0.min(size), out.1.max(size));
            }
        }
        out
    }

    /// Creates the echelon form from a basis of the null space, given as sparse vectors of (column, value).
    ///
    /// Columns are taken in the order of `order`, which contains each column once. A base parameter is a column that
    /// does not depend on earlier columns. Entries up to `tolerance` (vectors are of order one) count as zero.
    pub fn new(
        order: Vec<usize>,
        null_vectors: impl IntoIterator<Item = Vec<(usize, T)>>,
        tolerance: f64,
    ) -> Self {
        let width = order.len();
        let mut place = vec![0; width];
        order.iter().enumerate().for_each(|(i, &c)| place[c] = i);
        let mut work = Work::new(width, tolerance);
        let mut vectors: Vec<Option<Vec<(usize, T)>>> = vec![None; width];
        for vector in null_vectors {
            work.load(vector.into_iter().map(|(c, x)| (place[c], x)));
            while let Some((last, factor)) = work.last() {
                if let Some(other) = &vectors[last] {
                    work.add(other, -factor);
                } else {
                    vectors[last] = Some(work.take(factor.inverse().unwrap_or_else(T::one)));
                }
            }
            work.clear();
        }
        Self { order, place, vectors, tolerance, units: None, small_entries: SmallEntries::Kept }
    }

    /// Returns the columns of the base parameters, ascending.
    pub fn base(&self) -> Vec<usize> {
        (0..self.order.len()).filter(|&c| self.vectors[self.place[c]].is_none()).collect()
    }

    /// Returns the base parameters with their combinations; combinations are omitted if they are too many.
    /// `zero_columns` returns for each column whether it is zero in every row.
    pub fn regrouping(mut self, zero_columns: impl FnOnce() -> Vec<bool>) -> Regrouping {
        if !self.reduce(MOST_COEFFICIENTS) {
            return self.unlisted(&zero_columns());
        }
        let width = self.order.len();
        let base = self.base();
        let mut row = vec![usize::MAX; width];
        base.iter().enumerate().for_each(|(r, &c)| row[c] = r);
        let mut combinations: Vec<Vec<(usize, f64)>> = base.iter().map(|&c| vec![(c, 1.0)]).collect();
        let mut status = vec![Status::Identifiable; width];
        for c in 0..width {
            let Some(vector) = &self.vectors[self.place[c]] else { continue };
            status[c] = if vector.len() > 1 { Status::Combined } else { Status::Unidentifiable };
            for &(p, x) in vector.iter().filter(|&&(p, _)| self.order[p] != c) {
                status[self.order[p]] = Status::Combined;
                combinations[row[self.order[p]]].push((c, (-x).written()));
            }
        }
        let mut out = Regrouping { parameters: width, base, combinations, status };
        if let Some(units) = &self.units {
            out.rescale(units);
        }
        out
    }

    /// Reduces the null vectors so that each dependent column is a combination of base columns only, starting from the
    /// first. Returns `false` if this takes more than `most` coefficients.
    fn reduce(&mut self, most: usize) -> bool {
        let mut work = Work::new(self.order.len(), self.tolerance);
        let mut total = 0;
        for i in 0..self.order.len() {
            let Some(vector) = self.vectors[i].take() else { continue };
            work.load(vector.iter().copied());
            for &(p, _) in &vector {
                if let (true, Some(other)) = (p != i, &self.vectors[p]) {
                    let factor = work.dense[p];
                    work.add(other, -factor);
                }
            }
            let reduced = work.take(T::one());
            total += reduced.len();
            self.vectors[i] = Some(reduced);
            if total > most {
                return false;
            }
        }
        true
    }

    /// Returns one null vector for each dependent column. The basis depends on the null space and the column order
    /// only.
    pub fn null_space(mut self) -> Vec<Vec<T>> {
        self.reduce(usize::MAX);
        let dense = |vector: &Vec<(usize, T)>| {
            let mut out = vec![T::zero(); self.order.len()];
            vector.iter().for_each(|&(p, x)| out[self.order[p]] = x);
            out
        };
        self.vectors.iter().flatten().map(dense).collect()
    }

    /// Returns base parameters and statuses without combinations. A column with a zero entry in every null vector is
    /// identifiable.
    fn unlisted(&self, zero_columns: &[bool]) -> Regrouping {
        let base = self.base();
        let mut status = vec![Status::Identifiable; self.order.len()];
        for &(p, _) in self.vectors.iter().flatten().flatten() {
            status[self.order[p]] = Status::Combined;
        }
        for (status, _) in status.iter_mut().zip(zero_columns).filter(|(_, is_zero)| **is_zero) {
            *status = Status::Unidentifiable;
        }
        Regrouping { parameters: self.order.len(), base, combinations: Vec::new(), status }
    }
}

impl Regrouping {
    /// Returns the number of base parameters.
    pub fn rank(&self) -> usize {
        self.base.len()
    }

    /// Changes the units of the parameters: new parameters are the old ones times `factors`.
    pub fn rescale(&mut self, factors: &[f64]) {
        for (combination, &own) in self.combinations.iter_mut().zip(&self.base) {
            for (column, x) in combination.iter_mut() {
                *x *= factors[own] / factors[*column];
            }
        }
    }

    /// Returns parameter changes that leave every base parameter unchanged, by column: one for each remaining
    /// parameter, with value one there. Empty if the combinations are not listed.
    pub fn null_vectors(&self) -> Vec<Vec<(usize, f64)>> {
        if !self.is_listed() {
            return Vec::new();
        }
        let mut by_column: Vec<Vec<(usize, f64)>> = vec![Vec::new(); self.parameters];
        for (&own, combination) in self.base.iter().zip(&self.combinations) {
            for &(column, x) in combination.iter().filter(|(column, _)| *column != own) {
                by_column[column].push((own, -x));
            }
        }
        let free = |c: &usize| self.base.binary_search(c).is_err();
        let mut out = Vec::with_capacity(self.parameters - self.base.len());
        for column in (0..self.parameters).filter(free) {
            let mut vector = std::mem::take(&mut by_column[column]);
            vector.push((column, 1.0));
            vector.sort_unstable_by_key(|(c, _)| *c);
            out.push(vector);
        }
        out
    }

    /// Returns whether the combinations are listed.
    pub fn is_listed(&self) -> bool {
        self.combinations.len() == self.base.len()
    }

    /// Returns the regrouping itself, or an error if its combinations are too many to list.
    pub fn listed(self) -> Result<Self> {
        self.check_listed().map(|()| self)
    }

    pub(crate) fn check_listed(&self) -> Result<()> {
        if self.is_listed() {
            return Ok(());
        }
        Err(Error::Numeric(format!(
            "the combinations of {} base parameters have more than {MOST_COEFFICIENTS} coefficients, too many to list",
            self.base.len()
        )))
    }

    /// Computes the values of the base parameters from all parameters.
    pub fn regroup(&self, parameters: &[f64]) -> Result<Vec<f64>> {
        self.check_listed()?;
        check("parameter vector", parameters.len(), self.parameters)?;
        Ok(self.combinations.iter().map(|c| c.iter().map(|&(k, x)| x * parameters[k]).sum()).collect())
    }

    /// Returns parameters with the given base parameter values: those of `prior` (zero if empty) with the base columns
    /// adjusted.
    pub fn expand(&self, base: &[f64], prior: &[f64]) -> Result<Vec<f64>> {
        self.check_listed()?;
        check("base parameter vector", base.len(), self.base.len())?;
        let mut out = vec![0.0; self.parameters];
        if !prior.is_empty() {
            check("prior parameter vector", prior.len(), self.parameters)?;
            out.copy_from_slice(prior);
        }
        for ((&column, combination), &value) in self.base.iter().zip(&self.combinations).zip(base) {
            // A combination contains no base column except its own.
            let rest: f64 = combination.iter().filter(|(c, _)| *c != column).map(|&(c, x)| x * out[c]).sum();
            out[column] = value - rest;
        }
        Ok(out)
    }
}

fn check(what: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::Dimension { what, expected, found }) }
}

/// Converts a power of two to another number type.
fn power_of_two<T: Number>(x: f64) -> T {
    let two = T::one() + T::one();
    let exponent = x.log2().round() as i32;
    let base = if exponent < 0 { two.inverse().unwrap_or_else(T::one) } else { two };
    (0..exponent.unsigned_abs()).fold(T::one(), |power, _| power * base)
}

/// Dense accumulator that records which entries were modified.
struct Work<T> {
    dense: Vec<T>,
    touched: Vec<usize>,
    tolerance: f64,
}

impl<T: Number> Work<T> {
    fn new(width: usize, tolerance: f64) -> Self {
        Self { dense: vec![T::zero(); width], touched: Vec::new(), tolerance }
    }

    fn clear(&mut self) {
        for p in self.touched.drain(..) {
            self.dense[p] = T::zero();
        }
    }

    fn load(&mut self, entries: impl Iterator<Item = (usize, T)>) {
        for (p, x) in entries {
            self.dense[p] = x;
            self.touched.push(p);
        }
    }

    fn add(&mut self, other: &[(usize, T)], factor: T) {
        for &(p, x) in other {
            if self.dense[p].is_zero() {
                self.touched.push(p);
            }
            self.dense[p] += x * factor;
        }
        // This entry cancels by construction; set it to zero exactly.
        if let Some(&(p, _)) = other.last() {
            self.dense[p] = T::zero();
        }
    }

    fn is_zero(&self, p: usize) -> bool {
        self.dense[p].weight() <= self.tolerance
    }

    fn last(&self) -> Option<(usize, T)> {
        let last = self.touched.iter().copied().filter(|&p| !self.is_zero(p)).max()?;
        Some((last, self.dense[last]))
    }

    /// Moves the entries into a sorted sparse vector and clears the accumulator.
    fn take(&mut self, factor: T) -> Vec<(usize, T)> {
        self.touched.sort_unstable();
        self.touched.dedup();
        let mut out = Vec::with_capacity(self.touched.len());
        for &p in &self.touched {
            if !self.is_zero(p) {
                out.push((p, self.dense[p] * factor));
            }
            self.dense[p] = T::zero();
        }
        self.touched.clear();
        out
    }
}
