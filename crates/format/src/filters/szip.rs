//! SZIP as HDF5 uses it, filter 4: the adaptive entropy coder of CCSDS 121.0-B-3 with the unit-delay predictor.
//!
//! A chunk is its decoded length (4 bytes, little-endian) and one bit stream, most significant bit first. Samples
//! of 32 and 64 bits are coded as byte planes of 8-bit samples, and scanlines are padded to whole blocks. A
//! scanline starts with a sample as it is where the predictor is on; then come blocks: an option number, and
//!
//! * option 0, bit 0: a run of blocks of zeros;
//! * option 0, bit 1 (second extension): pairs of samples as one unary number;
//! * the highest option: samples as they are;
//! * option k + 1: the upper parts of all samples in unary, then their lower k bits.
//!
//! Reference: CCSDS 121.0-B-3, Lossless Data Compression (2020), sections 3 and 4.

use super::bytes::{at_least, le_u32, length_within};
use super::pipeline::Tools;
use super::shuffle::unshuffle;
use sieva_types::{Error, Result};

const NAME: &str = "szip";

const OPTION_BIG_ENDIAN: u32 = 16;
const OPTION_PREDICTOR: u32 = 32;

/// Samples of a block; HDF5 allows 2 to 32.
const MAX_BLOCK: u32 = 256;
/// Samples of a scanline; HDF5 allows up to 4096.
const MAX_SCANLINE: u32 = 1 << 16;
/// Largest sum of a pair in the second extension.
const MAX_PAIR_SUM: u32 = 12;
/// Blocks between the places where a run of zeros to the end of a segment ends.
const SEGMENT: usize = 64;

/// The parameters of an SZIP stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Szip {
    is_big_endian: bool,
    has_predictor: bool,
    block_len: usize,
    sample_bits: u32,
    scanline_len: usize,
}

impl Szip {
    /// From the client data of the HDF5 filter: option mask, samples of a block, bits of a sample, samples of a
    /// scanline. None where these cannot be.
    pub(super) fn from_hdf5(client_data: &[u32]) -> Option<Self> {
        let &[options, block_len, sample_bits, scanline_len, ..] = client_data else {
            return None;
        };
        let is_sensible = (1..=MAX_BLOCK).contains(&block_len)
            && (block_len..=MAX_SCANLINE).contains(&scanline_len)
            && matches!(sample_bits, 1..=24 | 32 | 64);
        is_sensible.then_some(Self {
            is_big_endian: options & OPTION_BIG_ENDIAN != 0,
            has_predictor: options & OPTION_PREDICTOR != 0,
            block_len: block_len as usize,
            sample_bits,
            scanline_len: scanline_len as usize,
        })
    }

    /// The client data that [`crate::filters::Filter::from_hdf5`] makes it from again.
    pub(crate) fn to_hdf5(self) -> [u32; 4] {
        let order = if self.is_big_endian { OPTION_BIG_ENDIAN } else { 0 };
        let predictor = if self.has_predictor { OPTION_PREDICTOR } else { 0 };
        [order | predictor, self.block_len as u32, self.sample_bits, self.scanline_len as u32]
    }

    /// Decodes `input` into the start of `out` and returns the length.
    pub(super) fn decode(&self, input: &[u8], out: &mut [u8], tools: &mut Tools) -> Result<usize> {
        let len = length_within(NAME, "content", le_u32(NAME, input, 0)?.into(), out.len())?;
        let (bits, out) = (&input[4..], &mut out[..len]);
        match self.sample_bits {
            wide @ (32 | 64) => {
                let planes = at_least(&mut tools.planes, len);
                Coder::new(self, 8, bits).decode(planes)?;
                unshuffle((wide / 8) as usize, planes, out);
            }
            narrow => Coder::new(self, narrow, bits).decode(out)?,
        }
        Ok(len)
    }
}

/// The state of decoding one stream.
struct Coder<'a> {
    szip: &'a Szip,
    sample_bits: u32,
    /// Bits of an option number.
    option_bits: u32,
    bits: Bits<'a>,
    /// The mapped samples of one padded scanline.
    scanline: Vec<u32>,
}

impl<'a> Coder<'a> {
    fn new(szip: &'a Szip, sample_bits: u32, stored: &'a [u8]) -> Self {
        let option_bits = match sample_bits {
            0..=8 => 3,
            9..=16 => 4,
            _ => 5,
        };
        let padded = szip.scanline_len.div_ceil(szip.block_len) * szip.block_len;
        Self { szip, sample_bits, option_bits, bits: Bits::new(stored), scanline: vec![0; padded] }
    }

    /// Decodes scanlines until `out` is full.
    fn decode(&mut self, out: &mut [u8]) -> Result<()> {
        let sample_len = match self.sample_bits {
            0..=8 => 1,
            9..=16 => 2,
            _ => 4,
        };
        if !out.len().is_multiple_of(sample_len) {
            let len = out.len();
            return Err(Error::corrupt(format!("{NAME}: {len} bytes of samples of {sample_len} bytes")));
        }
        for part in out.chunks_mut(self.szip.scanline_len * sample_len) {
            let count = part.len() / sample_len;
            self.read_scanline(count)
                .ok_or_else(|| Error::corrupt(format!("{NAME}: the bit stream is damaged or cut off")))?;
            if self.szip.has_predictor {
                unpredict(&mut self.scanline[..count], self.sample_bits);
            }
            write_samples(&self.scanline, sample_len, self.szip.is_big_endian, part);
        }
        Ok(())
    }

    /// Reads blocks until there are `count` samples; the last scanline may end early.
    fn read_scanline(&mut self, count: usize) -> Option<()> {
        let mut at = 0;
        while at < count {
            at += self.read_block(at)?;
        }
        Some(())
    }

    /// Reads what stands at sample `at` of the scanline and returns how many samples that was.
    fn read_block(&mut self, at: usize) -> Option<usize> {
        let block_len = self.szip.block_len;
        let option = self.bits.read(self.option_bits)?;
        let has_reference = self.szip.has_predictor && at == 0;
        if option == 0 {
            let is_pairs = self.bits.read(1)? == 1;
            let first = self.read_reference(has_reference)?;
            return if is_pairs { self.read_pairs(at, first) } else { self.read_zeros(at, first) };
        }
        if option == (1 << self.option_bits) - 1 {
            for i in 0..block_len {
                self.scanline[at + i] = self.bits.read(self.sample_bits)?;
            }
            return Some(block_len);
        }
        let first = self.read_reference(has_reference)?;
        self.read_split(at, first, option - 1)?;
        Some(block_len)
    }

    /// Reads the sample that starts a scanline, if there is one; returns how many samples were read.
    fn read_reference(&mut self, has_reference: bool) -> Option<usize> {
        if has_reference {
            self.scanline[0] = self.bits.read(self.sample_bits)?;
        }
        Some(usize::from(has_reference))
    }

    fn read_zeros(&mut self, at: usize, first: usize) -> Option<usize> {
        let block_len = self.szip.block_len;
        let block = at / block_len;
        let left = self.scanline.len() / block_len - block;
        let blocks = match self.bits.unary()? as usize + 1 {
            5 => left.min(SEGMENT - block % SEGMENT),
            count if count > 5 => count - 1,
            count => count,
        };
        if blocks > left {
            return None;
        }
        let len = blocks * block_len;
        self.scanline[at + first..at + len].fill(0);
        Some(len)
    }

    fn read_pairs(&mut self, at: usize, first: usize) -> Option<usize> {
        let mut i = first;
        while i < self.szip.block_len {
            let code = self.bits.unary()?;
            let sum = pair_sum(code)?;
            let second = code - sum * (sum + 1) / 2;
            // After a reference sample only the second of the first pair counts.
            if i.is_multiple_of(2) {
                self.scanline[at + i] = sum - second;
                i += 1;
            }
            *self.scanline.get_mut(at + i)? = second;
            i += 1;
        }
        Some(self.szip.block_len)
    }

    fn read_split(&mut self, at: usize, first: usize, low_bits: u32) -> Option<()> {
        for sample in &mut self.scanline[at + first..at + self.szip.block_len] {
            *sample = self.bits.unary()?.checked_shl(low_bits)?;
        }
        if low_bits > 0 {
            for sample in &mut self.scanline[at + first..at + self.szip.block_len] {
                *sample |= self.bits.read(low_bits)?;
            }
        }
        Some(())
    }
}

/// The sum of the pair that the second extension numbers `code`: pairs are numbered by sum, then second sample.
fn pair_sum(code: u32) -> Option<u32> {
    (0..=MAX_PAIR_SUM).find(|sum| code < (sum + 1) * (sum + 2) / 2)
}

/// Turns mapped differences back into samples; the first one is as it is.
fn unpredict(samples: &mut [u32], sample_bits: u32) {
    let max = u32::MAX >> (32 - sample_bits);
    let middle = max / 2 + 1;
    let mut value = samples.first().copied().unwrap_or(0);
    for sample in samples.iter_mut().skip(1) {
        let mapped = *sample;
        let half = (mapped >> 1) + (mapped & 1);
        // Differences that could go either way alternate in sign; beyond them only one direction is left.
        let mirror = if value & middle == 0 { 0 } else { max };
        value = if half <= mirror ^ value {
            value.wrapping_add((mapped >> 1) ^ (mapped & 1).wrapping_neg())
        } else {
            mirror ^ mapped
        };
        *sample = value;
    }
}

fn write_samples(samples: &[u32], sample_len: usize, is_big_endian: bool, out: &mut [u8]) {
    match (sample_len, is_big_endian) {
        (1, _) => out.iter_mut().zip(samples).for_each(|(byte, sample)| *byte = *sample as u8),
        (len, false) => {
            for (bytes, sample) in out.chunks_exact_mut(len).zip(samples) {
                bytes.copy_from_slice(&sample.to_le_bytes()[..len]);
            }
        }
        (len, true) => {
            for (bytes, sample) in out.chunks_exact_mut(len).zip(samples) {
                bytes.copy_from_slice(&sample.to_be_bytes()[4 - len..]);
            }
        }
    }
}

/// A reader of bits, most significant first.
struct Bits<'a> {
    stored: &'a [u8],
    at: usize,
    /// The next `held` bits, from the top; the rest is zero.
    word: u64,
    held: u32,
}

impl<'a> Bits<'a> {
    fn new(stored: &'a [u8]) -> Self {
        Self { stored, at: 0, word: 0, held: 0 }
    }

    /// Holds more than 56 bits, or all that are left.
    fn refill(&mut self) {
        while self.held <= 56 {
            let Some(byte) = self.stored.get(self.at) else { return };
            self.word |= u64::from(*byte) << (56 - self.held);
            self.held += 8;
            self.at += 1;
        }
    }

    /// The next `count` bits, 1 to 32.
    fn read(&mut self, count: u32) -> Option<u32> {
        if self.held < count {
            self.refill();
        }
        self.held = self.held.checked_sub(count)?;
        let value = (self.word >> (64 - count)) as u32;
        self.word <<= count;
        Some(value)
    }

    /// The number of zeros before the next one, which is read too.
    fn unary(&mut self) -> Option<u32> {
        let mut zeros = 0_u32;
        while self.word == 0 {
            zeros = zeros.checked_add(self.held)?;
            self.held = 0;
            self.refill();
            if self.held == 0 {
                return None;
            }
        }
        let run = self.word.leading_zeros();
        self.held = self.held.checked_sub(run + 1)?;
        self.word = self.word << run << 1;
        zeros.checked_add(run)
    }
}
