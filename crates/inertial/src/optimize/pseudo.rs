//! Linear map from ten parameters to the 4×4 pseudo-inertia, its adjoint, and the curvature of `−log det`.
//!
//! Parameters are in the order of [`crate::spatial::PARAMETER_NAMES`]. The map is that of [`crate::spatial::PseudoInertia`],
//! optimized for solvers that apply it thousands of times.

use nalgebra::{Matrix4, SMatrix, SVector, Vector4};

/// Vector of the ten parameters of a body.
pub type Vector10 = SVector<f64, 10>;

/// Matrix over the ten parameters of a body.
pub type Matrix10 = SMatrix<f64, 10, 10>;

/// Rows and columns of the products in the order `Ixy Ixz Iyz`, and their indices among the ten parameters.
const PRODUCTS: [(usize, usize, usize); 3] = [(0, 1, 5), (0, 2, 6), (1, 2, 8)];
/// Indices of the moments `Ixx Iyy Izz`.
const MOMENTS: [usize; 3] = [4, 7, 9];

/// Returns `P = [[½ tr(I) 1 − I, h], [hᵀ, m]]` of ten parameters.
pub fn matrix(x: &[f64]) -> Matrix4<f64> {
    let half = 0.5 * (x[4] + x[7] + x[9]);
    let (a, b, c) = (half - x[4], half - x[7], half - x[9]);
    Matrix4::new(
        a, -x[5], -x[6], x[1], //
        -x[5], b, -x[8], x[2], //
        -x[6], -x[8], c, x[3], //
        x[1], x[2], x[3], x[0],
    )
}

/// Returns the ten parameters of a symmetric matrix.
pub fn parameters(p: &Matrix4<f64>) -> Vector10 {
    let (a, b, c) = (p[(0, 0)], p[(1, 1)], p[(2, 2)]);
    Vector10::from([
        p[(3, 3)],
        p[(0, 3)],
        p[(1, 3)],
        p[(2, 3)],
        b + c,
        -p[(0, 1)],
        -p[(0, 2)],
        a + c,
        -p[(1, 2)],
        a + b,
    ])
}

/// Returns the `g` with `g · x = tr(S P(x))` for all `x`, for a symmetric `S`.
pub fn adjoint(s: &Matrix4<f64>) -> Vector10 {
    let half = 0.5 * (s[(0, 0)] + s[(1, 1)] + s[(2, 2)]);
    let mut g = Vector10::zeros();
    g[0] = s[(3, 3)];
    for i in 0..3 {
        g[1 + i] = 2.0 * s[(i, 3)];
        g[MOMENTS[i]] = half - s[(i, i)];
    }
    for (i, j, k) in PRODUCTS {
        g[k] = -2.0 * s[(i, j)];
    }
    g
}

/// Returns the symmetric `S` with `tr(S P(x)) = g · x` for all `x`.
pub fn adjoint_inverse(g: &Vector10) -> Matrix4<f64> {
    let sum = g[4] + g[7] + g[9];
    let mut s = Matrix4::zeros();
    s[(3, 3)] = g[0];
    for i in 0..3 {
        s[(i, 3)] = 0.5 * g[1 + i];
        s[(3, i)] = s[(i, 3)];
        s[(i, i)] = sum - g[MOMENTS[i]];
    }
    for (i, j, k) in PRODUCTS {
        s[(i, j)] = -0.5 * g[k];
        s[(j, i)] = s[(i, j)];
    }
    s
}

/// Returns the second derivatives of `−log det P`, `tr(M Eᵢ M Eⱼ)`, at `M = P⁻¹`, where `Eᵢ` is the matrix of a unit parameter.
pub fn curvature(m: &Matrix4<f64>) -> Matrix10 {
    let column = |i: usize| -> Vector4<f64> { m.column(i).into_owned() };
    let square = |v: Vector4<f64>| v * v.transpose();
    let product = |v: Vector4<f64>, w: Vector4<f64>| {
        let p = v * w.transpose();
        p + p.transpose()
    };
    let (x, y, z, w) = (column(0), column(1), column(2), column(3));
    let (xx, yy, zz) = (square(x), square(y), square(z));
    let half = (xx + yy + zz) * 0.5;
    let images = [
        square(w),
        product(x, w),
        product(y, w),
        product(z, w),
        half - xx,
        -product(x, y),
        -product(x, z),
        half - yy,
        -product(y, z),
        half - zz,
    ];
    let mut out = Matrix10::zeros();
    for (i, image) in images.iter().enumerate() {
        out.set_column(i, &adjoint(image));
    }
    out
}

/// Returns the map from ten parameters of a matrix `P` to the ten entries of `L⁻¹ P L⁻ᵀ`, with off-diagonal entries multiplied by
/// √2: in units of a body `L Lᵀ`. Its square is the [`curvature`] there.
pub fn relative(body: &nalgebra::Cholesky<f64, nalgebra::Const<4>>) -> Matrix10 {
    // The diagonal of a Cholesky factor is positive.
    let inverse = body.l_dirty().solve_lower_triangular_unchecked(&Matrix4::identity());
    let mut out = Matrix10::zeros();
    for i in 0..10 {
        let unit = Vector10::from_fn(|k, _| f64::from(u8::from(k == i)));
        let own = inverse * matrix(unit.as_slice()) * inverse.transpose();
        let entries = (0..4).flat_map(|a| (0..=a).map(move |b| (a, b)));
        for (row, (a, b)) in entries.enumerate() {
            out[(row, i)] = if a == b { own[(a, b)] } else { std::f64::consts::SQRT_2 * own[(a, b)] };
        }
    }
    out
}

/// Returns `log det` from a Cholesky factor.
pub fn log_det(factor: &nalgebra::Cholesky<f64, nalgebra::Const<4>>) -> f64 {
    2.0 * factor.l_dirty().diagonal().iter().map(|d| d.ln()).sum::<f64>()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::spatial::{Inertia, PseudoInertia};

    #[test]
    fn agrees_with_the_pseudo_inertia_and_its_own_definitions() {
        let unit = |i: usize| Vector10::from_fn(|k, _| f64::from(u8::from(k == i)));
        let e: Vec<Matrix4<f64>> = (0..10).map(|i| matrix(unit(i).as_slice())).collect();
        let f = Matrix4::from_fn(|i, j| ((3 * i + 5 * j * j + 1) % 7) as f64 - 2.5);
        let s = f + f.transpose();
        let p = f * f.transpose();
        for i in 0..10 {
            assert_eq!(e[i], PseudoInertia::from(&Inertia::from_parameters(&unit(i))).0);
            assert!((adjoint(&s)[i] - (s * e[i]).trace()).abs() < 1e-13);
            for j in 0..10 {
                let expected = (p * e[i] * p * e[j]).trace();
                assert!((curvature(&p)[(i, j)] - expected).abs() < 1e-12 * p.norm_squared());
            }
        }
        let body = (p + Matrix4::identity()).cholesky().unwrap();
        let root = relative(&body);
        let expected = curvature(&body.inverse());
        assert!((root.transpose() * root - expected).amax() < 1e-13 * expected.amax());
        assert!((adjoint_inverse(&adjoint(&s)) - s).amax() < 1e-14);
        assert!((matrix(parameters(&s).as_slice()) - s).amax() < 1e-14);
    }
}
