//! Masks made of flags, of other masks, and bit by bit: the validity of columns.
//!
//! The words are the bitmap of an Arrow array (Arrow columnar format, "Validity bitmaps": least significant bit first), so
//! that a column's validity is handed on as it is.

use std::ops::Range;

use super::Mask;

/// Flags that are packed by one multiplication.
const PACKED: usize = 8;

impl Mask {
    /// `len` bits that are all ones, or all zeros.
    pub fn filled(len: usize, ones: bool) -> Self {
        if ones { Self::ones(len) } else { Self::zeros(len) }
    }

    /// `len` bits, each as `bit` tells.
    pub fn from_fn(len: usize, mut bit: impl FnMut(usize) -> bool) -> Self {
        let word = |first: usize| {
            (first..len.min(first + 64)).fold(0, |word, i| word | u64::from(bit(i)) << (i - first))
        };
        Self { words: (0..len).step_by(64).map(word).collect(), len }
    }

    /// The mask, or `None` where all of its bits are set: how a column says that none of its values is missing.
    pub fn unless_all(self) -> Option<Self> {
        (!self.all()).then_some(self)
    }

    /// The words in the byte order of Arrow and of files: the first position is the lowest bit of the first byte.
    pub fn into_words(mut self) -> Vec<u64> {
        self.words.iter_mut().for_each(|word| *word = word.to_le());
        self.words
    }

    /// Bytes that it takes, room for more included.
    pub fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    /// Its bits.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = bool> + '_ {
        (0..self.len).map(|i| self.get(i))
    }

    /// The positions whose bit is not set, ascending.
    pub fn zeros_iter(&self) -> impl Iterator<Item = usize> + '_ {
        let ones = self.words.iter().enumerate().flat_map(|(i, &word)| {
            let mut rest = !word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
                rest &= rest - 1;
                Some(64 * i + bit)
            })
        });
        ones.take_while(|&i| i < self.len)
    }

    /// Turns every bit around.
    pub fn invert(&mut self) {
        self.words.iter_mut().for_each(|word| *word = !*word);
        self.trim();
    }

    /// Adds a bit.
    pub fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        self.len += 1;
        if bit {
            self.set(self.len - 1);
        }
    }

    /// Makes room for so many bits more.
    pub fn reserve_exact(&mut self, more: usize) {
        let words = (self.len + more).div_ceil(64);
        self.words.reserve_exact(words.saturating_sub(self.words.len()));
    }

    /// Adds the bits of `other`.
    pub fn append(&mut self, other: &Self) {
        let at = self.len;
        self.len += other.len;
        self.words.resize(self.len.div_ceil(64), 0);
        self.or_range(at, other, 0, other.len);
    }

    /// The bits of some positions in a row.
    pub fn slice(&self, range: Range<usize>) -> Self {
        let mut part = Self::zeros(range.len());
        part.or_range(0, self, range.start, range.len());
        part
    }

    /// The bits at some positions.
    pub fn take(&self, positions: &[usize]) -> Self {
        Self::from_fn(positions.len(), |i| self.get(positions[i]))
    }

    /// Its bits from position `at` on, to be looked at.
    pub fn bits(&self, at: usize) -> Bits<'_> {
        Bits { words: &self.words, at }
    }
}

impl From<&[bool]> for Mask {
    fn from(flags: &[bool]) -> Self {
        let word = |flags: &[bool]| {
            let (packs, rest) = flags.as_chunks::<PACKED>();
            let whole = packs.iter().enumerate().map(|(i, pack)| pack_flags(pack) << (PACKED * i));
            let single =
                rest.iter().enumerate().map(|(i, &flag)| u64::from(flag) << (PACKED * packs.len() + i));
            whole.chain(single).fold(0, |word, bits| word | bits)
        };
        Self { words: flags.chunks(64).map(word).collect(), len: flags.len() }
    }
}

/// Eight flags as eight bits, the first the lowest.
fn pack_flags(flags: &[bool; PACKED]) -> u64 {
    // Each factor moves one byte's flag into its place in the highest byte; no two meet, so nothing is carried.
    u64::from_le_bytes(flags.map(u8::from)).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Bits of a mask from a position on.
#[derive(Clone, Copy, Debug)]
pub struct Bits<'a> {
    words: &'a [u64],
    at: usize,
}

impl<'a> Bits<'a> {
    /// Bits of words, 64 each, least significant first.
    pub fn new(words: &'a [u64]) -> Self {
        Self { words, at: 0 }
    }

    /// Bit `i`.
    #[inline(always)]
    pub fn get(self, i: usize) -> bool {
        let i = self.at + i;
        self.words[i / 64] >> (i % 64) & 1 == 1
    }

    /// Those from position `at` on.
    #[must_use]
    pub fn from(self, at: usize) -> Self {
        Self { at: self.at + at, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flags(mask: &Mask) -> Vec<bool> {
        mask.iter().collect()
    }

    proptest! {
        #[test]
        fn masks_are_as_lists_of_flags(
            a in prop::collection::vec(any::<bool>(), 0..300),
            b in prop::collection::vec(any::<bool>(), 0..300),
            cut in 0..300_usize,
            n in 0..300_usize,
        ) {
            let (x, y) = (Mask::from(&a[..]), Mask::from(&b[..]));
            prop_assert_eq!(flags(&x), a.clone());
            prop_assert_eq!(&Mask::from_fn(a.len(), |i| a[i]), &x);
            let mut pushed = Mask::default();
            a.iter().for_each(|&bit| pushed.push(bit));
            prop_assert_eq!(&pushed, &x);
            pushed.append(&y);
            let both: Vec<bool> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(&pushed, &Mask::from(&both[..]));
            let range = cut.min(a.len())..cut.saturating_add(n).min(a.len());
            prop_assert_eq!(flags(&x.slice(range.clone())), a[range.clone()].to_vec());
            let places: Vec<usize> = range.clone().rev().collect();
            prop_assert_eq!(flags(&x.take(&places)), places.iter().map(|&i| a[i]).collect::<Vec<_>>());
            prop_assert!(range.clone().all(|i| x.bits(range.start).from(i - range.start).get(0) == a[i]));
            let zeros: Vec<usize> = (0..a.len()).filter(|&i| !a[i]).collect();
            prop_assert_eq!(x.zeros_iter().collect::<Vec<_>>(), zeros);
            let mut turned = x.clone();
            turned.invert();
            prop_assert_eq!(turned.count() + x.count(), a.len() as u64);
            prop_assert_eq!(x.clone().unless_all().is_none(), a.iter().all(|&bit| bit));
        }
    }

    #[test]
    fn words_are_arrows_bitmap() {
        let words =
            Mask::from(&[true, false, false, true, false, false, false, false, true][..]).into_words();
        assert_eq!(words[0].to_ne_bytes()[..2], [0b1001, 1]);
    }
}
