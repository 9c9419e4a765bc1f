//! The ways of access to a query's arrays: which are allowed, and what there is.

pub(super) mod bitmap;
pub(super) mod constant;
mod path;
mod per_tile;
pub(super) mod points;
pub(super) mod replica;
mod replica_parts;
mod scan;
pub(crate) mod sorted;
mod source_order;
mod spare;
pub(crate) mod zone_map;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use sieva_index::ArrayIndex;
use sieva_index::sorted::SortedReplica;
use sieva_types::{Error, ErrorKind, Result};

use crate::cost::Costs;
use crate::exec::access_path::spare::Spare;

/// Which ways of evaluating conditions a query may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// The cheapest that gives the answer.
    #[default]
    Auto,
    /// Reading and testing the data, nothing else.
    Scan,
    /// Zone maps, and scanning what they leave open.
    ZoneMap,
    /// Zone maps and bitmap indexes, and scanning where there is none.
    Bitmap,
    /// Sorted replicas, and scanning for the conditions that they do not answer.
    Sorted,
}

impl Access {
    /// All of them with their names.
    pub const NAMED: [(&str, Access); 5] = [
        ("auto", Self::Auto),
        ("scan", Self::Scan),
        ("zonemap", Self::ZoneMap),
        ("bitmap", Self::Bitmap),
        ("sorted", Self::Sorted),
    ];

    /// The access of this name.
    ///
    /// # Errors
    /// `invalid-value`, listing the names.
    pub fn parse(name: &str) -> Result<Self> {
        named(&Self::NAMED, "access", name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(_, a)| *a == self).map_or("", |(name, _)| name)
    }

    pub(crate) fn zonemaps(self) -> bool {
        matches!(self, Self::Auto | Self::ZoneMap | Self::Bitmap)
    }

    pub(crate) fn bitmaps(self) -> bool {
        matches!(self, Self::Auto | Self::Bitmap)
    }

    pub(crate) fn replicas(self) -> bool {
        matches!(self, Self::Auto | Self::Sorted)
    }
}

/// How values at selected positions are fetched (SDQuery section 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FetchWay {
    /// Segments, put together across gaps that cost less to read than a request does.
    #[default]
    Auto,
    /// One read for each segment of consecutive positions (equation 4).
    Direct,
    /// Whole blocks, filtered in memory (equation 1).
    Block,
}

impl FetchWay {
    /// All of them with their names.
    pub const NAMED: [(&str, FetchWay); 3] =
        [("auto", Self::Auto), ("direct", Self::Direct), ("block", Self::Block)];

    /// The way of this name.
    ///
    /// # Errors
    /// `invalid-value`, listing the names.
    pub fn parse(name: &str) -> Result<Self> {
        named(&Self::NAMED, "fetch", name)
    }
}

fn named<T: Copy>(all: &[(&str, T)], what: &str, name: &str) -> Result<T> {
    all.iter().find(|(n, _)| *n == name).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(n, _)| *n).collect();
        Error::new(ErrorKind::InvalidValue, format!("{what} '{name}' is not one of {}", names.join(", ")))
    })
}

/// More notes than these say nothing new.
const MAX_NOTES: usize = 16;

/// A sorted replica with what its columns are in the source.
pub struct Replica {
    /// The replica.
    pub replica: SortedReplica,
    /// Index of the key in the schema's arrays.
    pub key: usize,
    /// Column of the replica for each array of the schema that it carries.
    pub columns: HashMap<usize, usize>,
    /// Memory for those who ask it.
    pub(in crate::exec) spare: Spare,
}

impl Replica {
    /// A replica by the schema's array `key`, and where it carries which arrays.
    pub fn new(replica: SortedReplica, key: usize, columns: HashMap<usize, usize>) -> Self {
        Self { replica, key, columns, spare: Spare::default() }
    }
}

/// What is known of a source besides its data. Shared by its queries.
#[derive(Default)]
pub struct Indexes {
    arrays: RwLock<HashMap<usize, Arc<ArrayIndex>>>,
    /// The sorted replicas.
    pub replicas: Vec<Arc<Replica>>,
    /// What work costs here.
    pub costs: Costs,
    /// The share of its time that a scan may spend on statistics of what it decoded; 0: none.
    pub learn: f64,
    notes: Mutex<Vec<String>>,
}

impl Indexes {
    /// The index of the schema's array `array`.
    pub fn array(&self, array: usize) -> Option<Arc<ArrayIndex>> {
        self.arrays.read().unwrap_or_else(PoisonError::into_inner).get(&array).cloned()
    }

    /// All indexes, by the array's number in the schema.
    pub fn arrays(&self) -> Vec<(usize, Arc<ArrayIndex>)> {
        let arrays = self.arrays.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = arrays.iter().map(|(&i, index)| (i, Arc::clone(index))).collect();
        all.sort_by_key(|(i, _)| *i);
        all
    }

    /// Adds the index of an array, unless there is one already.
    pub fn add(&self, array: usize, index: ArrayIndex) {
        let mut arrays = self.arrays.write().unwrap_or_else(PoisonError::into_inner);
        arrays.entry(array).or_insert_with(|| Arc::new(index));
    }

    /// Bytes and requests of reading augmentations so far.
    pub fn traffic(&self) -> (u64, u64) {
        let replicas = self.replicas.iter().map(|r| (r.replica.bytes_read(), r.replica.requests()));
        let arrays = self.arrays.read().unwrap_or_else(PoisonError::into_inner);
        let records = arrays.values().filter_map(|i| i.records()).map(|r| (r.bytes_read(), r.requests()));
        replicas.chain(records).fold((0, 0), |(a, b), (bytes, requests)| (a + bytes, b + requests))
    }

    /// Tells why an augmentation that exists is not used.
    pub fn note(&self, what: &str) {
        let what = &*sieva_types::printable(what);
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() < MAX_NOTES && !notes.iter().any(|n| n == what) {
            notes.push(what.to_string());
        }
    }

    /// Why augmentations that exist are not used, and what of them is damaged.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        notes.extend(self.arrays().iter().flat_map(|(_, index)| index.damage()));
        notes
    }
}
