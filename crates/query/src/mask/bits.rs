//! A fixed-length bit mask.

/// One bit per position; bits past the end are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mask {
    pub(super) words: Vec<u64>,
    pub(super) len: usize,
}

impl Mask {
    /// `len` zeros.
    pub fn zeros(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)], len }
    }

    /// `len` ones.
    pub fn ones(len: usize) -> Self {
        let mut mask = Self { words: vec![u64::MAX; len.div_ceil(64)], len };
        mask.trim();
        mask
    }

    pub(super) fn trim(&mut self) {
        if !self.len.is_multiple_of(64)
            && let Some(last) = self.words.last_mut()
        {
            *last &= (1 << (self.len % 64)) - 1;
        }
    }

    /// Number of positions.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no positions.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The words, 64 positions each, least significant bit first.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The words, to be written; bits past the end must stay zero.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Number of ones.
    pub fn count(&self) -> u64 {
        count(&self.words)
    }

    /// Number of ones among `n` positions from `at` on.
    pub fn count_range(&self, at: usize, n: usize) -> usize {
        let mut done = 0;
        let mut count = 0;
        while done < n {
            let (i, bit) = ((at + done) / 64, (at + done) % 64);
            let take = (64 - bit).min(n - done);
            count += (self.words[i] >> bit & (u64::MAX >> (64 - take))).count_ones() as usize;
            done += take;
        }
        count
    }

    /// Whether no bit is set.
    pub fn none(&self) -> bool {
        self.words.iter().all(|&w| w == 0)
    }

    /// Whether all bits are set.
    pub fn all(&self) -> bool {
        let (whole, rest) = self.words.split_at(self.len / 64);
        whole.iter().all(|&w| w == u64::MAX) && rest.iter().all(|&w| w == (1 << (self.len % 64)) - 1)
    }

    /// Bit `i`.
    pub fn get(&self, i: usize) -> bool {
        self.words[i / 64] >> (i % 64) & 1 == 1
    }

    /// Sets bit `i`.
    pub fn set(&mut self, i: usize) {
        self.words[i / 64] |= 1 << (i % 64);
    }

    /// Keeps the bits that are also set in `other`.
    pub fn and(&mut self, other: &Mask) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a &= b);
    }

    /// Adds the bits of `other`.
    pub fn or(&mut self, other: &Mask) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a |= b);
    }

    /// Drops the bits that are set in `other`.
    pub fn and_not(&mut self, other: &Mask) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a &= !b);
    }

    /// Clears `n` bits from `at` on.
    pub fn clear_range(&mut self, at: usize, n: usize) {
        self.for_words(at, n, |word, bits, _| *word &= !bits);
    }

    /// Sets `n` bits from `at` on.
    pub fn set_range(&mut self, at: usize, n: usize) {
        self.for_words(at, n, |word, bits, _| *word |= bits);
    }

    /// `self[at..at+n] &= source[from..from+n]`.
    pub fn and_range(&mut self, at: usize, source: &Mask, from: usize, n: usize) {
        self.for_words(at, n, |word, bits, done| *word &= !bits | source.window(from, done, bits));
    }

    /// `self[at..at+n] |= source[from..from+n]`.
    pub fn or_range(&mut self, at: usize, source: &Mask, from: usize, n: usize) {
        self.for_words(at, n, |word, bits, done| *word |= bits & source.window(from, done, bits));
    }

    /// Calls `f(word, which of its bits, number of positions done before)` for each word of a range.
    fn for_words(&mut self, at: usize, n: usize, mut f: impl FnMut(&mut u64, u64, usize)) {
        let mut done = 0;
        while done < n {
            let (i, bit) = ((at + done) / 64, (at + done) % 64);
            let take = (64 - bit).min(n - done);
            let bits = (u64::MAX >> (64 - take)) << bit;
            f(&mut self.words[i], bits, done);
            done += take;
        }
    }

    /// The bits from position `from + done` on, shifted to where `bits` starts.
    fn window(&self, from: usize, done: usize, bits: u64) -> u64 {
        let at = from + done;
        let (i, shift) = (at / 64, at % 64);
        let low = self.words[i] >> shift;
        let high = if shift > 0 { self.words.get(i + 1).map_or(0, |w| w << (64 - shift)) } else { 0 };
        (low | high) << bits.trailing_zeros()
    }

    /// Positions of the ones, ascending.
    pub fn ones_iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                if rest == 0 {
                    return None;
                }
                let bit = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                Some(64 * i + bit)
            })
        })
    }

    /// First and last set position.
    pub fn extent(&self) -> Option<(usize, usize)> {
        let first = self.words.iter().position(|&w| w != 0)?;
        let last = self.words.iter().rposition(|&w| w != 0)?;
        let low = 64 * first + self.words[first].trailing_zeros() as usize;
        Some((low, 64 * last + 63 - self.words[last].leading_zeros() as usize))
    }
}

/// Number of ones.
fn count(words: &[u64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("popcnt") {
        #[target_feature(enable = "popcnt")]
        fn counted(words: &[u64]) -> u64 {
            words.iter().map(|w| u64::from(w.count_ones())).sum()
        }
        // SAFETY: the feature was just detected.
        return unsafe { counted(words) };
    }
    words.iter().map(|w| u64::from(w.count_ones())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mask(bits: &[bool]) -> Mask {
        let mut m = Mask::zeros(bits.len());
        (0..bits.len()).filter(|&i| bits[i]).for_each(|i| m.set(i));
        m
    }

    proptest! {
        #[test]
        fn ranges_agree_with_bools(a in proptest::collection::vec(any::<bool>(), 200),
                                   b in proptest::collection::vec(any::<bool>(), 200),
                                   at in 0..100_usize, from in 0..100_usize, n in 0..=100_usize) {
            let (mut and, mut or, mut clear, mut set) = (mask(&a), mask(&a), mask(&a), mask(&a));
            and.and_range(at, &mask(&b), from, n);
            or.or_range(at, &mask(&b), from, n);
            clear.clear_range(at, n);
            set.set_range(at, n);
            for i in 0..200 {
                let other = (at..at + n).contains(&i).then(|| b[from + i - at]);
                prop_assert_eq!(and.get(i), a[i] && other.unwrap_or(true));
                prop_assert_eq!(or.get(i), a[i] || other.unwrap_or(false));
                prop_assert_eq!(clear.get(i), a[i] && other.is_none());
                prop_assert_eq!(set.get(i), a[i] || other.is_some());
            }
            let m = mask(&a);
            let ones: Vec<usize> = (0..200).filter(|&i| a[i]).collect();
            prop_assert_eq!(m.count_range(at, n), ones.iter().filter(|&i| (at..at + n).contains(i)).count());
            prop_assert_eq!(m.ones_iter().collect::<Vec<_>>(), ones.clone());
            prop_assert_eq!(m.extent(), ones.first().map(|&f| (f, ones[ones.len() - 1])));
        }
    }

    #[test]
    fn ones_have_no_bits_past_the_end() {
        let m = Mask::ones(70);
        assert_eq!(m.count(), 70);
        assert!(m.all() && !m.none());
        for n in [1, 63, 64, 65, 128, 200] {
            let mut m = Mask::ones(n);
            assert!(m.all());
            m.clear_range(n - 1, 1);
            assert!(!m.all() && m.count() == n as u64 - 1);
        }
        assert_eq!(Mask::ones(0).count(), 0);
    }
}
