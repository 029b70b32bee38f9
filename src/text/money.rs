//! Exact money: US dollars in whole billionths, and sums in which an unknown price stays unknown.
//!
//! `ARCHITECTURE` 5.6: unknown is a value of its own and is contagious in sums. It never prints as `$0`.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// Above this a reported price is taken for a mistake of the reporter, in dollars.
pub const PRICE_USD_MAX: f64 = 1e6;
const NANOS: f64 = 1e9;

/// An amount of US dollars, exact to a billionth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Money(i64);

impl Money {
    /// Nothing.
    pub const ZERO: Money = Money(0);

    /// Reads a reported or declared amount in dollars; `None` when it is negative, not finite or absurd.
    pub fn from_usd(usd: f64) -> Option<Self> {
        #[expect(clippy::cast_possible_truncation, reason = "the range is checked first")]
        (usd.is_finite() && (0.0..=PRICE_USD_MAX).contains(&usd)).then(|| Money((usd * NANOS).round() as i64))
    }

    /// The amount in dollars, for a JSON number.
    pub fn usd(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "2^53 billionths are nine million dollars")]
        let nanos = self.0 as f64;
        nanos / NANOS
    }

    /// Whether the amount is nothing.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self - other`, not below nothing.
    pub fn saturating_sub(self, other: Self) -> Self {
        Money((self.0 - other.0).max(0))
    }

    /// `self + other`, not above what can be held.
    pub fn saturating_add(self, other: Self) -> Self {
        Money(self.0.saturating_add(other.0))
    }

    /// `count` times `self`, not above what can be held.
    pub fn times(self, count: u64) -> Self {
        Money(self.0.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX)))
    }

    /// `self` as a whole percentage of `budget`, rounded down; `None` for a budget of nothing.
    pub fn percent_of(self, budget: Self) -> Option<i64> {
        (budget.0 > 0)
            .then(|| i64::try_from(i128::from(self.0) * 100 / i128::from(budget.0)).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for Money {
    /// `$0.0123`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${:.4}", self.usd())
    }
}

impl Add for Money {
    type Output = Money;
    fn add(self, other: Money) -> Money {
        Money(self.0 + other.0)
    }
}

impl Sub for Money {
    type Output = Money;
    fn sub(self, other: Money) -> Money {
        Money(self.0 - other.0)
    }
}

/// A sum of charges, of which some may be unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// The sum of the known charges.
    pub known: Money,
    /// How many charges have no known price.
    pub unknown: u32,
}

impl Cost {
    /// Free, and known to be.
    pub const ZERO: Cost = Cost { known: Money::ZERO, unknown: 0 };
    /// One charge without a known price.
    pub const UNKNOWN: Cost = Cost { known: Money::ZERO, unknown: 1 };

    /// A known price.
    pub fn known(price: Money) -> Self {
        Cost { known: price, unknown: 0 }
    }

    /// Whether nothing was paid, and that is known.
    pub fn is_zero(self) -> bool {
        self == Cost::ZERO
    }

    /// Whether some charge has no known price.
    pub fn is_unknown(self) -> bool {
        self.unknown > 0
    }
}

impl fmt::Display for Cost {
    /// `$0.0300`, `unknown`, or `≥ $0.0300 (1 unknown)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.unknown, self.known.is_zero()) {
            (0, _) => self.known.fmt(f),
            (_, true) => f.write_str("unknown"),
            (n, false) => write!(f, "≥ {} ({n} unknown)", self.known),
        }
    }
}

impl Add for Cost {
    type Output = Cost;
    fn add(self, other: Cost) -> Cost {
        Cost { known: self.known + other.known, unknown: self.unknown + other.unknown }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        *self = *self + other;
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Cost>>(charges: I) -> Cost {
        charges.fold(Cost::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(amount: f64) -> Cost {
        Cost::known(Money::from_usd(amount).expect("a price"))
    }

    #[test]
    fn sums_of_cents_are_exact() {
        let total: Cost = (0..3).map(|_| usd(0.01)).sum();
        assert_eq!(total, usd(0.03));
        assert_eq!(total.known.usd().to_string(), "0.03");
        assert_eq!(usd(0.000_600_000_000_000_000_1).known.usd().to_string(), "0.0006");
    }

    #[test]
    fn an_unknown_charge_never_prints_as_nothing() {
        assert_eq!(Cost::UNKNOWN.to_string(), "unknown");
        assert_eq!((usd(0.03) + Cost::UNKNOWN).to_string(), "≥ $0.0300 (1 unknown)");
        assert_eq!(Cost::ZERO.to_string(), "$0.0000");
    }

    #[test]
    fn a_price_that_no_call_can_have_is_refused() {
        for bad in [-0.01, f64::NAN, f64::INFINITY, 2e6] {
            assert_eq!(Money::from_usd(bad), None, "{bad}");
        }
    }
}
