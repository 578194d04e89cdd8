//! Dense linear algebra: the one place that calls faer.
//!
//! Matrices are nalgebra's; the decompositions are faer's, because nalgebra's are wrong on some rank-deficient
//! matrices. Every rank carries its margin.

mod dense;
mod ldl;

pub use dense::{
    Cholesky, PivotedQr, Rank, Svd, SymmetricEigen, null_space, rank, singular_values, symmetric_eigen,
    symmetric_eigenvalues,
};
pub(crate) use ldl::{ldl, ldl_solve};
