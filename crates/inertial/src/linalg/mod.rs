//! Linear algebra: dense in `f64` (the crate `inertial-dense`, the only one that calls faer), and exact over prime
//! fields.
//!
//! Matrices are nalgebra's; the decompositions are faer's, because nalgebra's are wrong on some rank-deficient
//! matrices. Every rank is reported with its margin.

mod double;
mod echelon;
mod field;
mod interpolation;
mod ldl;
mod pivoting;
mod wide;

pub use double::Double;
pub use echelon::{Echelon, Gap, Pivot};
pub use field::{First, Gf, Number, Second, Shadow, SplitMix};
pub use inertial_dense::{
    Cholesky, Definite, PivotedQr, Rank, Svd, SymmetricEigen, Triangle, add_products, null_space, product,
    rank, singular_values, symmetric_eigen, symmetric_eigenvalues, vectorized, window_sums,
};
pub use interpolation::cubic_weights;
pub(crate) use ldl::{ldl, ldl_solve};
pub use pivoting::FullPivots;
pub use wide::Wide;
