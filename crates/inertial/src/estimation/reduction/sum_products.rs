//! Sums of products of long columns.

/// Returns the scalar product, with four parallel sums: the compiler must not reorder a single sum.
#[inline(always)]
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a4, b4) = (a.chunks_exact(4), b.chunks_exact(4));
    let tail: f64 = a4.remainder().iter().zip(b4.remainder()).map(|(x, y)| x * y).sum();
    let mut sums = [0.0; 4];
    for (x, y) in a4.zip(b4) {
        (0..4).for_each(|i| sums[i] += x[i] * y[i]);
    }
    sums.iter().sum::<f64>() + tail
}

/// Returns the scalar products [`dot`] with several columns, to the last bit; their sums are computed in parallel.
#[inline(always)]
pub(crate) fn dots(a: &[f64], columns: [&[f64]; 4]) -> [f64; 4] {
    let a4 = a.chunks_exact(4);
    let rest = a4.remainder();
    let [b, c, d, e] = columns.map(|column| column[..a.len()].chunks_exact(4));
    let tails = [&b, &c, &d, &e].map(|b| -> f64 { rest.iter().zip(b.remainder()).map(|(x, y)| x * y).sum() });
    let mut sums = [[0.0; 4]; 4];
    for ((((x, b), c), d), e) in a4.zip(b).zip(c).zip(d).zip(e) {
        for (sums, y) in sums.iter_mut().zip([b, c, d, e]) {
            (0..4).for_each(|i| sums[i] += x[i] * y[i]);
        }
    }
    std::array::from_fn(|k| sums[k].iter().sum::<f64>() + tails[k])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_products_are_those_of_each_column() {
        let number = |k: usize| ((k * k * 31 + 7 * k) % 101) as f64 / 37.0 - 1.0;
        for length in [0, 1, 3, 4, 5, 51, 64] {
            let weights: Vec<f64> = (0..length).map(number).collect();
            let columns: [Vec<f64>; 4] =
                std::array::from_fn(|c| (0..length).map(|k| number(k + 13 * c + 5)).collect());
            let expected = columns.each_ref().map(|column| dot(&weights, column).to_bits());
            let found = dots(&weights, columns.each_ref().map(|column| &column[..]));
            assert_eq!(found.map(f64::to_bits), expected);
        }
    }
}
