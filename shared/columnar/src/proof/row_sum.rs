//! Sums of row hashes.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::str::FromStr;

use super::mix::finish_row;

/// The sum of the hashes of a set of rows, mod 2^128. Its text is 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RowSum(pub u128);

impl RowSum {
    /// The sum of no rows.
    pub const ZERO: RowSum = RowSum(0);
}

/// Closes the rows whose columns have all been added to `states` and sums their hashes.
pub fn finish(states: &[u64]) -> RowSum {
    RowSum(states.iter().fold(0, |sum, state| sum.wrapping_add(finish_row(*state))))
}

impl Add for RowSum {
    type Output = RowSum;

    fn add(self, other: RowSum) -> RowSum {
        RowSum(self.0.wrapping_add(other.0))
    }
}

impl Sub for RowSum {
    type Output = RowSum;

    fn sub(self, other: RowSum) -> RowSum {
        RowSum(self.0.wrapping_sub(other.0))
    }
}

impl AddAssign for RowSum {
    fn add_assign(&mut self, other: RowSum) {
        *self = *self + other;
    }
}

impl SubAssign for RowSum {
    fn sub_assign(&mut self, other: RowSum) {
        *self = *self - other;
    }
}

impl Sum for RowSum {
    fn sum<I: Iterator<Item = RowSum>>(sums: I) -> RowSum {
        sums.fold(RowSum::ZERO, Add::add)
    }
}

impl fmt::Display for RowSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for RowSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowSum({self})")
    }
}

/// A text that is no row sum.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a row sum: 32 lower-case hexadecimal digits are expected")]
pub struct RowSumParseError(String);

impl FromStr for RowSum {
    type Err = RowSumParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        match u128::from_str_radix(text, 16) {
            Ok(sum) if digits => Ok(RowSum(sum)),
            _ => Err(RowSumParseError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_wrap_and_can_be_taken_back() {
        let (a, b) = (RowSum(u128::MAX - 3), RowSum(10));
        assert_eq!(a + b, RowSum(6));
        assert_eq!(a + b - b, a);
        assert_eq!([a, b].into_iter().sum::<RowSum>(), a + b);
    }

    #[test]
    fn text_is_32_digits_and_nothing_else_parses() {
        assert_eq!(RowSum(255).to_string(), "000000000000000000000000000000ff");
        for sum in [RowSum(0), RowSum(255), RowSum(u128::MAX)] {
            assert_eq!(sum.to_string().parse(), Ok(sum));
        }
        for text in ["", "ff", "000000000000000000000000000000FF", "+00000000000000000000000000000ff"] {
            assert!(text.parse::<RowSum>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_row_without_values_still_counts() {
        assert_ne!(finish(&[0]), RowSum::ZERO);
        assert_ne!(finish(&[0, 0]), finish(&[0]));
        assert_eq!(finish(&[]), RowSum::ZERO);
    }
}
