//! The global histogram of an array, of several, of several files: merged from what regions keep, exactly.

use sieva_index::stats::RegionStats;
use sieva_types::keys::{f32_of_key, f64_of_key};
use sieva_types::{DType, Error, ErrorKind, Result};

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
        let counts = self.stats.histogram.as_ref().map_or_else(Vec::new, |h| h.counts().to_vec());
        if self.falls() { counts.into_iter().rev().collect() } else { counts }
    }

    /// The bins' bounds as decoded values, one more than there are bins.
    pub fn edges(&self) -> Vec<f64> {
        let edges = self.stats.histogram.as_ref().map_or_else(Vec::new, |h| h.edges());
        let decoded = edges.into_iter().map(|e| self.decode(e));
        if self.falls() { decoded.rev().collect() } else { decoded.collect() }
    }

    /// Values of -infinity and +infinity, which no bin holds.
    pub fn infinities(&self) -> (u64, u64) {
        let (low, high) = self.stats.histogram.as_ref().map_or((0, 0), |h| h.infinities());
        if self.falls() { (high, low) } else { (low, high) }
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

impl Source {
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
