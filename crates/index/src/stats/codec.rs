//! The bytes of a region's statistics.
//!
//! | field | coded as | present |
//! |---|---|---|
//! | flags: 1 bounds, 2 histogram, 4 sum of stored values, 8 sum of decoded values; other bits 0 | byte | always |
//! | rows, NaNs, missing | 3 varints | always |
//! | least key; greatest key less the least | zigzag varint; varint | flag 1 |
//! | sum of stored values | below | flag 4 |
//! | scale and offset; sum of decoded values | 2 times the 8 bytes of a float64; below | flag 8 |
//! | exponent; numbers of -infinity, +infinity; number of bins | zigzag varint; 3 varints | flag 2 |
//! | first bin; counts | zigzag varint; varints | flag 2, and there are bins |
//!
//! A varint has seven bits of the number a byte, the least significant first, the top bit set in all bytes but the
//! last; zigzag makes 0, -1, 1, -2 into 0, 1, 2, 3. A sum is a byte 4 and the zigzag varint of an integer; or of floats a
//! byte 0 to 2 and so many floats (what is nearest to it, and what that lacks), or 3 and all digits
//! (`sieva_types::exact::Sum`).

use sieva_types::exact::Sum;
use sieva_types::wire::{Reader, Subject, Writer};
use sieva_types::{Error, ErrorKind, Result};

use super::bins::{GREATEST_EXPONENT, LEAST_EXPONENT};
use super::{Decoded, Histogram, MERGED_BINS, RegionStats, Sums, Total};

const BOUNDS: u8 = 1;
const HISTOGRAM: u8 = 2;
const STORED_SUM: u8 = 4;
const DECODED_SUM: u8 = 8;

/// The code of an integer where a sum is expected; those below are of floats.
const INTEGER: u8 = 4;
/// The most bytes that the digits of a sum take in memory.
const SUM_BYTES: usize = 1 << 12;

const SUBJECT: Subject = Subject {
    name: "statistics of a region",
    kind: ErrorKind::CorruptIndex,
    hint: "build them anew: sieva index SOURCE",
};

/// Keys and bins of all types are of less magnitude.
const GREATEST_MAGNITUDE: i128 = 1 << 64;

impl RegionStats {
    /// Appends its bytes to `out`. They do not tell where they end.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let decoded = self.sums.as_ref().and_then(|s| s.decoded.as_ref());
        let flags = [
            (self.bounds.is_some(), BOUNDS),
            (self.histogram.is_some(), HISTOGRAM),
            (self.sums.is_some(), STORED_SUM),
            (decoded.is_some(), DECODED_SUM),
        ];
        out.push(flags.iter().map(|&(is, flag)| if is { flag } else { 0 }).sum());
        [self.rows, self.nan, self.missing].iter().for_each(|&n| put(out, n.into()));
        if let Some((low, high)) = self.bounds {
            put(out, zigzag(low));
            put(out, high.wrapping_sub(low) as u128);
        }
        if let Some(sums) = &self.sums {
            put_sums(out, sums);
        }
        if let Some(histogram) = &self.histogram {
            put_histogram(out, histogram);
        }
    }

    /// The statistics that `bytes`, from first to last, are those of.
    ///
    /// # Errors
    /// `corrupt-index` where the bytes are none that [`RegionStats::encode`] writes, or contradict one another.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut bytes = bytes;
        let (zone, has_histogram) = get_zone(&mut bytes)?;
        let histogram = if has_histogram { Some(get_histogram(&mut bytes)?) } else { None };
        require(bytes.is_empty(), "bytes left over")?;
        let stats = Self { histogram, ..zone };
        let counted = stats.histogram.as_ref().is_none_or(|h| checked_total(h) == Some(stats.present()));
        require(counted, "a histogram of other rows")?;
        Ok(stats)
    }

    /// All but the histogram, and whether one follows: a tenth of the time of [`RegionStats::decode`],
    /// and all that most regions are asked for.
    ///
    /// # Errors
    /// As [`RegionStats::decode`], of what it looks at.
    pub fn decode_zone(bytes: &[u8]) -> Result<(Self, bool)> {
        get_zone(&mut { bytes })
    }
}

/// All but the histogram, and whether there is one.
fn get_zone(bytes: &mut &[u8]) -> Result<(RegionStats, bool)> {
    let flags = byte(bytes)?;
    require(flags & !(BOUNDS | HISTOGRAM | STORED_SUM | DECODED_SUM) == 0, "unknown flags")?;
    let (rows, nan, missing) = (count(bytes)?, count(bytes)?, count(bytes)?);
    require(nan.checked_add(missing).is_some_and(|n| n <= rows), "more special values than rows")?;
    let bounds = if flags & BOUNDS != 0 { Some(get_bounds(bytes)?) } else { None };
    let zone = RegionStats { rows, nan, missing, bounds, sums: None, histogram: None };
    require(zone.bounds.is_some() == (zone.present() > 0), "bounds of nothing, or none")?;
    let sums = get_sums(bytes, flags, &zone)?;
    Ok((RegionStats { sums, ..zone }, flags & HISTOGRAM != 0))
}

fn put_sums(out: &mut Vec<u8>, sums: &Sums) {
    let mut w = Writer::default();
    match &sums.stored {
        Total::Integer(n) => {
            w.byte(INTEGER);
            w.int(*n);
        }
        Total::Float(sum) => sum.write(&mut w),
    }
    if let Some(Decoded { packing: (scale, offset), sum }) = &sums.decoded {
        w.float(*scale);
        w.float(*offset);
        sum.write(&mut w);
    }
    out.extend_from_slice(&w.into_bytes());
}

fn get_sums(bytes: &mut &[u8], flags: u8, zone: &RegionStats) -> Result<Option<Box<Sums>>> {
    if flags & STORED_SUM == 0 {
        require(flags & DECODED_SUM == 0, "a sum of decoded values alone")?;
        return Ok(None);
    }
    let mut r = Reader::new(&SUBJECT, bytes, SUM_BYTES);
    let stored = if bytes.first() == Some(&INTEGER) {
        r.byte()?;
        Total::Integer(r.int()?)
    } else {
        Total::Float(get_sum(&mut r)?)
    };
    require(may_be(&stored, zone), "a sum of other values")?;
    let mut decoded = None;
    if flags & DECODED_SUM != 0 {
        let packing = (r.float()?, r.float()?);
        require(packing.0.is_finite() && packing.1.is_finite(), "a packing by no numbers")?;
        let sum = get_sum(&mut r)?;
        require(zone.present() > 0 || sum == Sum::NOTHING, "a sum of nothing")?;
        decoded = Some(Decoded { packing, sum });
    }
    *bytes = &bytes[bytes.len() - r.left()..];
    Ok(Some(Box::new(Sums { stored, decoded })))
}

/// A sum of floats in its one form.
fn get_sum(r: &mut Reader<'_>) -> Result<Sum> {
    match Sum::read(r)? {
        Sum::Wide(sum) => match Sum::of(sum) {
            sum @ Sum::Wide(_) => Ok(sum),
            Sum::Pair(..) => Err(r.damaged("digits of what are two floats")),
        },
        pair => Ok(pair),
    }
}

/// Whether a sum may be one of so many values between such extremes.
fn may_be(sum: &Total, zone: &RegionStats) -> bool {
    let Some((low, high)) = zone.bounds else {
        return matches!(sum, Total::Integer(0)) || *sum == Total::Float(Sum::NOTHING);
    };
    match sum {
        Total::Integer(sum) => {
            let present = i128::from(zone.present());
            let least = low.checked_mul(present).is_some_and(|least| least <= *sum);
            least && high.checked_mul(present).is_some_and(|most| *sum <= most)
        }
        // Foreign floats may say anything else: the keys do not tell which type they are of.
        Total::Float(_) => true,
    }
}

fn put_histogram(out: &mut Vec<u8>, histogram: &Histogram) {
    put(out, zigzag(histogram.exponent.into()));
    put(out, histogram.infinities.0.into());
    put(out, histogram.infinities.1.into());
    put(out, histogram.counts.len() as u128);
    if !histogram.counts.is_empty() {
        put(out, zigzag(histogram.first));
        histogram.counts.iter().for_each(|&n| put(out, n.into()));
    }
}

fn get_bounds(bytes: &mut &[u8]) -> Result<(i128, i128)> {
    let low = signed(bytes)?;
    let extent = i128::try_from(varint(bytes)?).map_err(|_| damaged("bounds out of range"))?;
    let high = low.checked_add(extent).ok_or_else(|| damaged("bounds out of range"))?;
    require(high < GREATEST_MAGNITUDE, "bounds out of range")?;
    Ok((low, high))
}

fn get_histogram(bytes: &mut &[u8]) -> Result<Histogram> {
    let exponent = signed(bytes)?;
    let range = i128::from(LEAST_EXPONENT)..=i128::from(GREATEST_EXPONENT);
    require(range.contains(&exponent), "exponent out of range")?;
    let infinities = (count(bytes)?, count(bytes)?);
    let len = count(bytes)?;
    require(len <= MERGED_BINS as u64, "too many bins")?;
    if len == 0 {
        require(exponent == i128::from(LEAST_EXPONENT), "exponent out of range")?;
        return Ok(Histogram { infinities, ..Histogram::EMPTY });
    }
    let first = signed(bytes)?;
    let counts = (0..len).map(|_| count(bytes)).collect::<Result<Vec<_>>>()?;
    require(counts.first() != Some(&0) && counts.last() != Some(&0), "empty bins at an end")?;
    Ok(Histogram { exponent: exponent as i32, first, counts, infinities })
}

fn checked_total(histogram: &Histogram) -> Option<u64> {
    let infinities = histogram.infinities.0.checked_add(histogram.infinities.1)?;
    histogram.counts.iter().try_fold(infinities, |total, &n| total.checked_add(n))
}

fn zigzag(n: i128) -> u128 {
    ((n << 1) ^ (n >> 127)) as u128
}

fn put(out: &mut Vec<u8>, mut n: u128) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn byte(bytes: &mut &[u8]) -> Result<u8> {
    let (&first, rest) = bytes.split_first().ok_or_else(|| damaged("cut off"))?;
    *bytes = rest;
    Ok(first)
}

/// A varint of at most 70 bits, more than any field takes.
fn varint(bytes: &mut &[u8]) -> Result<u128> {
    let mut n = 0;
    for shift in (0..70).step_by(7) {
        let b = byte(bytes)?;
        n |= u128::from(b & 0x7f) << shift;
        if b & 0x80 == 0 {
            return Ok(n);
        }
    }
    Err(damaged("a number without an end"))
}

fn count(bytes: &mut &[u8]) -> Result<u64> {
    u64::try_from(varint(bytes)?).map_err(|_| damaged("a count out of range"))
}

fn signed(bytes: &mut &[u8]) -> Result<i128> {
    let n = varint(bytes)?;
    let signed = (n >> 1) as i128 ^ -((n & 1) as i128);
    require((-GREATEST_MAGNITUDE..GREATEST_MAGNITUDE).contains(&signed), "a number out of range")?;
    Ok(signed)
}

fn require(holds: bool, otherwise: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(damaged(otherwise)) }
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::CorruptIndex, format!("statistics of a region: {what}"))
}
