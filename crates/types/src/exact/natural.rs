//! Natural numbers of any size, scaled by a power of two: what exact sums are combined in at the end.

/// `digits` (of 32 bits, the lowest first) times 2^(32 * first).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Natural {
    digits: Vec<u32>,
    first: i64,
}

impl Natural {
    /// `digits` (of 32 bits, the lowest first) times 2^(32 * first).
    pub fn new(digits: Vec<u32>, first: i64) -> Self {
        Self { digits, first }.trimmed()
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// The digits, the highest of which is not zero, and the place of the first one.
    pub fn parts(&self) -> (&[u32], i64) {
        (&self.digits, self.first)
    }

    /// Moved by whole digits.
    pub fn moved(self, digits: i64) -> Self {
        Self { first: self.first + digits, ..self }
    }

    /// The sum.
    pub fn plus(&self, other: &Self) -> Self {
        let (first, len) = self.span(other);
        let mut digits = vec![0; len + 1];
        let mut carry = 0;
        for (i, slot) in digits.iter_mut().enumerate() {
            let at = first + i as i64;
            let sum = u64::from(self.digit(at)) + u64::from(other.digit(at)) + carry;
            (*slot, carry) = (sum as u32, sum >> 32);
        }
        Self::new(digits, first)
    }

    /// The difference to a number that is not greater.
    pub fn minus(&self, other: &Self) -> Self {
        let (first, len) = self.span(other);
        let mut digits = vec![0; len];
        let mut borrow = 0;
        for (i, slot) in digits.iter_mut().enumerate() {
            let at = first + i as i64;
            let difference = i64::from(self.digit(at)) - i64::from(other.digit(at)) - borrow;
            (*slot, borrow) = (difference as u32, i64::from(difference < 0));
        }
        Self::new(digits, first)
    }

    /// The product with a small number.
    pub fn times(&self, factor: u64) -> Self {
        self.product(&Self::new(vec![factor as u32, (factor >> 32) as u32], 0))
    }

    /// The square.
    pub fn squared(&self) -> Self {
        self.product(self)
    }

    fn product(&self, other: &Self) -> Self {
        let mut digits = vec![0_u32; self.digits.len() + other.digits.len()];
        for (i, &a) in self.digits.iter().enumerate() {
            let mut carry = 0;
            for (j, &b) in other.digits.iter().enumerate() {
                let sum = u64::from(a) * u64::from(b) + u64::from(digits[i + j]) + carry;
                (digits[i + j], carry) = (sum as u32, sum >> 32);
            }
            digits[i + other.digits.len()] = carry as u32;
        }
        Self::new(digits, self.first + other.first)
    }

    /// Times 2^`bits`, fewer than 32.
    pub fn shifted(&self, bits: u32) -> Self {
        self.times(1 << bits)
    }

    /// The place behind the highest digit.
    pub fn end(&self) -> i64 {
        self.first + self.digits.len() as i64
    }

    /// Divided by a number that is not zero, to the digit at `low` or to its own last one; of what is left only counts
    /// that it is not zero, which the last digit then is not.
    pub fn divided(&self, divisor: u64, low: i64) -> Self {
        let mut digits = vec![0; usize::try_from(self.first - low).unwrap_or(0)];
        let first = self.first - digits.len() as i64;
        digits.extend(&self.digits);
        let mut rest = 0_u128;
        for digit in digits.iter_mut().rev() {
            let dividend = rest << 32 | u128::from(*digit);
            *digit = (dividend / u128::from(divisor)) as u32;
            rest = dividend % u128::from(divisor);
        }
        if let (true, Some(last)) = (rest != 0, digits.first_mut()) {
            *last |= 1;
        }
        Self::new(digits, first)
    }

    fn digit(&self, at: i64) -> u32 {
        usize::try_from(at - self.first).ok().and_then(|i| self.digits.get(i)).copied().unwrap_or(0)
    }

    /// The first place of either, and how many digits both span.
    fn span(&self, other: &Self) -> (i64, usize) {
        let first = match (self.is_zero(), other.is_zero()) {
            (true, _) => other.first,
            (_, true) => self.first,
            _ => self.first.min(other.first),
        };
        let last = match (self.is_zero(), other.is_zero()) {
            (true, _) => other.end(),
            (_, true) => self.end(),
            _ => self.end().max(other.end()),
        };
        (first, (last - first) as usize)
    }

    fn trimmed(mut self) -> Self {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        let zeros = self.digits.iter().take_while(|&&d| d == 0).count();
        self.digits.drain(..zeros);
        self.first = if self.digits.is_empty() { 0 } else { self.first + zeros as i64 };
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(x: u128) -> Natural {
        Natural::new((0..4).map(|i| (x >> (32 * i)) as u32).collect(), 0)
    }

    fn value(n: &Natural) -> u128 {
        let (digits, first) = n.parts();
        digits.iter().enumerate().map(|(i, &d)| u128::from(d) << (32 * (first + i as i64))).sum()
    }

    proptest! {
        #[test]
        fn arithmetic_is_that_of_integers(a: u64, b: u64, c in 1_u64.., bits in 0_u32..32) {
            let (wide, other) = (u128::from(a), u128::from(b));
            prop_assert_eq!(value(&of(wide).plus(&of(other))), wide + other);
            prop_assert_eq!(value(&of(wide.max(other)).minus(&of(wide.min(other)))), wide.abs_diff(other));
            prop_assert_eq!(value(&of(wide).times(b)), wide * other);
            prop_assert_eq!(value(&of(wide).squared()), wide * wide);
            prop_assert_eq!(value(&of(wide).shifted(bits)), wide << bits);
            prop_assert_eq!(value(&of(wide * u128::from(c)).divided(c, 0)), wide);
            let quotient = value(&of(wide).moved(1).divided(c, 0));
            let (exact, rest) = ((wide << 32) / u128::from(c), (wide << 32) % u128::from(c));
            prop_assert_eq!(quotient, if rest == 0 { exact } else { exact | 1 });
        }
    }

    #[test]
    fn places_line_up() {
        let far = Natural::new(vec![1], 40);
        let near = Natural::new(vec![7], -3);
        let sum = far.plus(&near);
        assert_eq!(sum.parts().1, -3);
        assert_eq!(sum.minus(&near), far);
        assert!(sum.minus(&sum).is_zero());
        assert_eq!(Natural::default().plus(&far), far);
    }
}
