//! The global histogram of an array, of several, of several files: merged from what regions keep, exactly.

use sieva_index::stats::RegionStats;
use sieva_types::keys::{f32_of_key, f64_of_key};
use sieva_types::{DType, Error, ErrorKind, Result};

use super::indexed_dtype;
use crate::open::Source;

/// Counts of an array's values by bins whose width is a power of two in stored values (PDC section IV).
#[derive(Clone, Debug, PartialEq)]
pub struct GlobalHistogram {
    stats: RegionStats,
    dtype: DType,
    packing: Option<(f64, f64)>,
}

impl GlobalHistogram {
    /// Number of values in each bin.
    pub fn counts(&self) -> Vec<u64> {
        self.shown().counts
    }

    /// The bins' bounds as decoded values, one more than there are bins. Of integers beyond 2^53 that are not bounds of
    /// `float64` the outer ones are rounded outward, and those within down: see [`GlobalHistogram::whole_edges`].
    pub fn edges(&self) -> Vec<f64> {
        self.shown().edges
    }

    /// The bins' bounds exactly, of an array of integers that are not packed.
    pub fn whole_edges(&self) -> Option<Vec<i128>> {
        if !self.is_whole() {
            return None;
        }
        let Some(h) = &self.stats.histogram else { return Some(Vec::new()) };
        let n = h.counts().len() as i128;
        Some((0..=n).map(|j| (h.first() + j) << h.exponent().max(0)).collect())
    }

    /// Values of -infinity and +infinity, which no bin holds. Stored numbers that unpacking makes infinite are among them
    /// where all of their bin are: a bin that ends at an infinity may hold some.
    pub fn infinities(&self) -> (u64, u64) {
        self.shown().infinities
    }

    /// Least and greatest value exactly, of an array of integers that are not packed.
    pub fn whole_range(&self) -> Option<(i128, i128)> {
        self.stats.bounds.filter(|_| self.is_whole())
    }

    fn is_whole(&self) -> bool {
        self.packing.is_none() && !self.dtype.is_float() && self.dtype != DType::Str
    }

    /// The bins by decoded values, ascending.
    fn shown(&self) -> Shown {
        let Some(h) = &self.stats.histogram else { return Shown::default() };
        let mut edges: Vec<f64> = match self.whole_edges() {
            Some(edges) => {
                let last = edges.len().saturating_sub(1);
                edges.iter().enumerate().map(|(i, &e)| if i < last { below(e) } else { -below(-e) }).collect()
            }
            None => h.edges().into_iter().map(|e| self.decode(e)).collect(),
        };
        let (mut counts, (mut low, mut high)) = (h.counts().to_vec(), h.infinities());
        if self.falls() {
            edges.reverse();
            counts.reverse();
            (low, high) = (high, low);
        }
        while edges.len() > 1 && edges[edges.len() - 2] == f64::INFINITY {
            edges.pop();
            high += counts.pop().unwrap_or(0);
        }
        while edges.len() > 1 && edges[1] == f64::NEG_INFINITY {
            edges.remove(0);
            low += counts.remove(0);
        }
        Shown { edges, counts, infinities: (low, high) }
    }

    /// Number of missing values, NaN included.
    pub fn missing(&self) -> u64 {
        self.stats.missing + self.stats.nan
    }

    /// Number of all values.
    pub fn rows(&self) -> u64 {
        self.stats.rows
    }

    /// Least and greatest decoded value.
    pub fn range(&self) -> Option<(f64, f64)> {
        let (low, high) = self.stats.bounds?;
        let (a, b) = (self.decode(self.stored(low)), self.decode(self.stored(high)));
        Some(if self.falls() { (b, a) } else { (a, b) })
    }

    /// This and `other` together, of an array of the same type and packing.
    ///
    /// # Errors
    /// `type-mismatch` where their bins do not align.
    pub fn merged(&self, other: &Self) -> Result<Self> {
        if (self.dtype, self.packing) != (other.dtype, other.packing) {
            return Err(Error::new(
                ErrorKind::TypeMismatch,
                format!(
                    "histograms of {} and {} data, packed by {:?} and {:?}, have no common bins",
                    self.dtype.name(),
                    other.dtype.name(),
                    self.packing,
                    other.packing
                ),
            ));
        }
        let mut merged = self.clone();
        merged.stats.merge(&other.stats);
        Ok(merged)
    }

    fn falls(&self) -> bool {
        self.packing.is_some_and(|(scale, _)| scale < 0.0)
    }

    fn decode(&self, stored: f64) -> f64 {
        self.packing.map_or(stored, |(scale, offset)| stored * scale + offset)
    }

    fn stored(&self, key: i128) -> f64 {
        match self.dtype {
            DType::F16 | DType::F32 => f32_of_key(key).into(),
            DType::F64 => f64_of_key(key),
            _ => key as f64,
        }
    }
}

/// Bins as they are shown.
#[derive(Default)]
struct Shown {
    edges: Vec<f64>,
    counts: Vec<u64>,
    infinities: (u64, u64),
}

/// The greatest `float64` that is not above an integer of no more than 65 bits.
fn below(x: i128) -> f64 {
    let nearest = x as f64;
    if nearest as i128 > x { nearest.next_down() } else { nearest }
}

impl GlobalHistogram {
    /// Whether there are bins, and not the extremes alone.
    pub(crate) fn has_bins(&self) -> bool {
        self.stats.histogram.is_some()
    }
}

impl Source {
    /// What is known of all values of an array without reading data or asking a network: with bins, or its extremes alone.
    /// `None` where some regions are not known, and of many files, unless a query has looked already.
    pub(crate) fn known_values(&self, array: usize) -> Option<GlobalHistogram> {
        let is_loaded = self.augmented().lock().is_some();
        if !is_loaded && (self.many().is_some() || self.address_beside().is_some()) {
            return None;
        }
        let loaded = self.loaded().ok()?;
        let mut index = loaded.indexes.array(array);
        if index.is_none()
            && self.many().is_none()
            && loaded.used().is_some_and(|s| s.load(&self.schema().arrays[array].path).is_some())
        {
            self.look_up(&loaded, array);
            index = loaded.indexes.array(array);
        }
        let info = &self.schema().arrays[array];
        Some(GlobalHistogram {
            stats: index?.summary()?,
            dtype: indexed_dtype(info),
            packing: info.decoding.packing,
        })
    }

    /// The histogram of a whole array, from what is kept of its regions. Reads no data.
    ///
    /// # Errors
    /// `unknown-array`; `no-index` unless the statistics of all regions are there.
    pub fn global_histogram(&self, name: &str) -> Result<GlobalHistogram> {
        let array = self.resolve(name)?;
        let header = self.array_header(array)?;
        let loaded = self.loaded()?;
        self.look_up(&loaded, array);
        let index = loaded.indexes.array(array);
        let all =
            index.as_ref().and_then(|i| i.summary()).filter(|s| s.histogram.is_some() || s.present() == 0);
        let Some(stats) = all else {
            let known = index.map_or(0, |i| i.grid().len() - i.unknown());
            return Err(Error::new(
                ErrorKind::NoIndex,
                format!(
                    "no histogram of '{}': the statistics of {known} regions are known, not of all",
                    header.path
                ),
            )
            .hint(format!("build_index('{0}') in Python, sieva index SOURCE --var '{0}'", header.path)));
        };
        Ok(GlobalHistogram {
            stats,
            dtype: header.dtype,
            packing: self.schema().arrays[array].decoding.packing,
        })
    }
}
