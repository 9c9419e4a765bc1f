//! Exact sums as bytes: the two floats whose sum it is, where there are such, else all digits.

use super::sum::{DIGIT_MASK, ExactSum};
use super::two_sum;
use crate::Result;
use crate::wire::{Reader, Writer};

/// No sum of float64 values has more digits: those of the largest values, and of as many of them as there are rows.
const MOST_DIGITS: usize = 72;

/// A sum in its one form.
#[derive(Clone, Debug, PartialEq)]
pub enum Sum {
    /// The nearest float, and what it lacks.
    Pair(f64, f64),
    /// Any other.
    Wide(ExactSum),
}

impl Sum {
    /// The sum of no values.
    pub const NOTHING: Self = Self::Pair(0.0, 0.0);

    /// The form of the sum of two floats; none where it is beyond them.
    pub fn of_pair(high: f64, low: f64) -> Option<Self> {
        let (high, low) = two_sum(high, low);
        // A zero has no sign here.
        (high + low).is_finite().then_some(Self::Pair(high + 0.0, low + 0.0))
    }

    /// The form of a sum.
    pub fn of(sum: ExactSum) -> Self {
        let high = sum.value();
        if high.is_finite() {
            let mut rest = sum.clone();
            rest.add(-high);
            let low = rest.value();
            rest.add(-low);
            if rest.magnitude().0.iter().all(|&d| d == 0) {
                return Self::Pair(high + 0.0, low + 0.0);
            }
        }
        Self::Wide(sum)
    }

    /// The sum itself.
    pub fn exact(self) -> ExactSum {
        match self {
            Self::Pair(..) => {
                let mut sum = ExactSum::default();
                self.add_to(&mut sum);
                sum
            }
            Self::Wide(sum) => sum,
        }
    }

    /// Adds it to another sum.
    pub fn add_to(&self, sum: &mut ExactSum) {
        match self {
            Self::Pair(high, low) => [*high, *low].into_iter().for_each(|x| sum.add(x)),
            Self::Wide(own) => sum.merge(own),
        }
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = self.clone().exact();
        other.add_to(&mut sum);
        Self::of(sum)
    }

    /// Writes it.
    pub fn write(&self, w: &mut Writer) {
        match *self {
            Self::Pair(high, low) => {
                w.byte(u8::from(high != 0.0) + u8::from(low != 0.0));
                [high, low].into_iter().filter(|x| *x != 0.0).for_each(|x| w.float(x));
            }
            Self::Wide(ref sum) => {
                w.byte(3);
                sum.write(w);
            }
        }
    }

    /// What [`Sum::write`] wrote.
    pub fn read(r: &mut Reader<'_>) -> Result<Self> {
        let code = r.byte()?;
        if code == 3 {
            return ExactSum::read(r).map(Self::Wide);
        }
        let high = if code > 0 { r.float()? } else { 0.0 };
        let low = if code > 1 { r.float()? } else { 0.0 };
        let is_one =
            two_sum(high, low) == (high, low) && (high != 0.0) == (code > 0) && (low != 0.0) == (code > 1);
        if code > 3 || !is_one {
            return Err(r.damaged(format!("{high} and {low} are no sum")));
        }
        Ok(Self::Pair(high, low))
    }
}

impl ExactSum {
    fn write(&self, w: &mut Writer) {
        let (digits, is_negative) = self.magnitude();
        let is_there = |d: &i64| *d != 0;
        let (first, digits) = match (digits.iter().position(is_there), digits.iter().rposition(is_there)) {
            // What is infinite stays so, whatever comes.
            (Some(begin), Some(last)) if self.is_finite() => (self.first + begin, &digits[begin..=last]),
            _ => (0, &[][..]),
        };
        let [above, below] = self.infinite.map(u8::from);
        w.byte(above | below << 1 | u8::from(is_negative && !digits.is_empty()) << 2);
        w.uint(first as u64);
        w.list(digits, |w, &d| w.uint(d as u64));
    }

    fn read(r: &mut Reader<'_>) -> Result<Self> {
        let flags = r.byte()?;
        let first = r.index()?;
        let is_negative = flags & 4 != 0;
        let digits = r.list(|r| match r.uint()? as i64 {
            d @ 0..=DIGIT_MASK => Ok(if is_negative { -d } else { d }),
            d => Err(r.damaged(format!("{d} is no digit"))),
        })?;
        if flags > 7 || first.saturating_add(digits.len()) > MOST_DIGITS {
            return Err(r.damaged("a sum of more digits than there are"));
        }
        Ok(Self { digits, first, pending: 1, infinite: [flags & 1 != 0, flags & 2 != 0] })
    }
}
