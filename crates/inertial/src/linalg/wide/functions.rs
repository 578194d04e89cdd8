//! Elementary functions of [`Wide`] numbers.

use num_traits::One;

use super::Wide;

/// Mantissa of π, least significant limb first.
const PI: [u64; 12] = [
    0xee38_6bfb_5a89_9fa5,
    0x0bff_5cb6_f406_b7ed,
    0xf44c_42e9_a637_ed6b,
    0xe485_b576_625e_7ec6,
    0x4fe1_356d_6d51_c245,
    0x302b_0a6d_f25f_1437,
    0xef95_19b3_cd3a_431b,
    0x514a_0879_8e34_04dd,
    0x020b_bea6_3b13_9b22,
    0x2902_4e08_8a67_cc74,
    0xc4c6_628b_80dc_1cd1,
    0xc90f_daa2_2168_c234,
];

impl<const N: usize> Wide<N> {
    /// Computes the square root; zero for negative numbers.
    #[inline(never)]
    pub fn sqrt(self) -> Self {
        if self.sign <= 0 {
            return Self::ZERO;
        }
        // x = m · 4^k with m in [1/4, 1): Newton's method for 1/√m from 53 bits.
        let half = self.exponent.div_euclid(2) + self.exponent.rem_euclid(2);
        let m = self.scaled(-2 * half);
        let mut y = Self::from(f64::from(m).sqrt().recip());
        let mut correct = 50;
        while correct < Self::BITS {
            y += y * (Self::one() - m * y * y).scaled(-1);
            correct *= 2;
        }
        (m * y).scaled(half)
    }

    /// Divides the number by a small integer.
    fn divided(self, divisor: u64) -> Self {
        let mut limbs = self.limbs;
        let mut rest = 0u128;
        for l in limbs.iter_mut().rev() {
            let t = rest << 64 | u128::from(*l);
            *l = (t / u128::from(divisor)) as u64;
            rest = t % u128::from(divisor);
        }
        Self::normal(limbs, self.exponent, self.sign)
    }

    /// Returns π.
    pub const fn pi() -> Self {
        let mut limbs = [0; N];
        let mut k = 0;
        while k < N {
            limbs[k] = PI[PI.len() - N + k];
            k += 1;
        }
        Self { limbs, exponent: 2, sign: 1 }
    }

    /// Computes the sine and the cosine.
    #[inline(never)]
    pub fn sin_cos(self) -> (Self, Self) {
        /// Number of halvings of the argument before the series.
        const HALVINGS: i64 = 12;
        let quarter_turn = Self::pi().scaled(-1);
        let quarters = (f64::from(self) / f64::from(quarter_turn)).round();
        let x = (self - quarter_turn * Self::from(quarters)).scaled(-HALVINGS);
        let square = x * x;
        // The series are those of the sine and of one minus the cosine: doubling the angle then causes no cancellation.
        let (mut sin, mut short, mut term, mut k) = (x, Self::ZERO, x, 1u64);
        while term.sign != 0 && term.exponent > -Self::BITS - 2 * HALVINGS {
            let even = (term * x).divided(k + 1);
            term = (term * square).divided((k + 1) * (k + 2));
            if k % 4 == 1 {
                (sin, short) = (sin - term, short + even);
            } else {
                (sin, short) = (sin + term, short - even);
            }
            k += 2;
        }
        for _ in 0..HALVINGS {
            let doubled = (sin - sin * short).scaled(1);
            short = (short.scaled(1) - short * short).scaled(1);
            sin = doubled;
        }
        let cos = Self::one() - short;
        match (quarters as i64).rem_euclid(4) {
            0 => (sin, cos),
            1 => (cos, -sin),
            2 => (-sin, -cos),
            _ => (-cos, sin),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pi_by_machins_formula() {
        type Long = Wide<12>;
        let arc = |inverse: u64| {
            let mut power = Long::one().divided(inverse);
            let (mut sum, mut k) = (power, 1);
            while power.sign != 0 && power.exponent > -Long::BITS {
                power = power.divided(inverse * inverse);
                k += 2;
                let term = power.divided(k);
                sum += if k % 4 == 3 { -term } else { term };
            }
            sum
        };
        let error = (arc(5).scaled(2) - arc(239)).scaled(2) - Long::pi();
        assert!(error.sign == 0 || error.exponent <= 12 - Long::BITS);
    }
}
