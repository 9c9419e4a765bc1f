//! What a source's store holds.

use std::path::PathBuf;

use serde_json::json;
use sieva_index::store::Store;
use sieva_types::Result;

use super::told::Rate;
use crate::open::Source;

/// What there is of one array.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayStatus {
    /// Path of the array.
    pub path: String,
    /// Regions that it is cut into.
    pub regions: u64,
    /// The shape of the largest one.
    pub region: Vec<u64>,
    /// The bytes of its elements, decoded.
    pub region_bytes: u64,
    /// Of those, regions with a zone map.
    pub with_stats: u64,
    /// Of those, regions with a bitmap index.
    pub with_bitmap: u64,
    /// Bytes of zone maps and histograms.
    pub stats_bytes: u64,
    /// Bytes of bitmap indexes.
    pub bitmap_bytes: u64,
    /// Bytes of the array's data, decoded.
    pub data_bytes: u64,
}

/// A sorted replica.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaStatus {
    /// Path of the array that it is sorted by.
    pub key: String,
    /// The arrays that it carries, the key first.
    pub columns: Vec<String>,
    /// Its directory, a Zarr group.
    pub path: PathBuf,
    /// Bytes that it takes.
    pub bytes: u64,
}

/// What a source's store holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexStatus {
    /// Where it is, or would be.
    pub store: PathBuf,
    /// Whether there is one.
    pub exists: bool,
    /// Whether it was made for another state of the source, so that it is not used.
    pub stale: bool,
    /// Arrays with zone maps or bitmaps.
    pub arrays: Vec<ArrayStatus>,
    /// Sorted replicas.
    pub replicas: Vec<ReplicaStatus>,
    /// What is damaged or not used, and why.
    pub notes: Vec<String>,
}

impl IndexStatus {
    /// As JSON, by the names of docs/reference/json.md.
    pub fn to_json(&self) -> String {
        let arrays = self.arrays.iter().map(|a| {
            json!({
                "path": a.path,
                "regions": a.regions,
                "region": a.region,
                "region_bytes": a.region_bytes,
                "with_zonemap": a.with_stats,
                "with_bitmap": a.with_bitmap,
                "zonemap_bytes": a.stats_bytes,
                "bitmap_bytes": a.bitmap_bytes,
                "data_bytes": a.data_bytes,
            })
        });
        let replicas = self.replicas.iter().map(|r| {
            json!({
                "key": r.key,
                "columns": r.columns,
                "path": r.path.display().to_string(),
                "bytes": r.bytes,
            })
        });
        json!({
            "store": self.store.display().to_string(),
            "exists": self.exists,
            "stale": self.stale,
            "arrays": arrays.collect::<Vec<_>>(),
            "replicas": replicas.collect::<Vec<_>>(),
            "notes": self.notes,
        })
        .to_string()
    }

    /// Adds what one of many files has.
    pub(crate) fn add(&mut self, other: Self, file: &str) {
        if self.store.as_os_str().is_empty() {
            self.store.clone_from(&other.store);
        }
        self.exists |= other.exists;
        self.stale |= other.stale;
        for a in other.arrays {
            let Some(known) = self.arrays.iter_mut().find(|k| k.path == a.path) else {
                self.arrays.push(a);
                continue;
            };
            known.regions += a.regions;
            known.region.iter_mut().zip(&a.region).for_each(|(n, m)| *n = (*n).max(*m));
            known.region_bytes = known.region_bytes.max(a.region_bytes);
            known.with_stats += a.with_stats;
            known.with_bitmap += a.with_bitmap;
            known.stats_bytes += a.stats_bytes;
            known.bitmap_bytes += a.bitmap_bytes;
            known.data_bytes += a.data_bytes;
        }
        self.replicas.extend(other.replicas);
        self.notes.extend(other.notes.into_iter().map(|n| format!("{file}: {n}")));
    }
}

impl Source {
    /// What there is of augmentations. Reads the store only. The catalog is told, as of a build.
    ///
    /// # Errors
    /// Reading errors of the source.
    pub fn index_status(&self) -> Result<IndexStatus> {
        let mut status = self.held_status()?;
        status.notes.extend(self.tell_catalog(Rate::default()));
        Ok(status)
    }

    /// The same, which nobody is told of.
    pub(crate) fn held_status(&self) -> Result<IndexStatus> {
        if let Some(many) = self.many() {
            return many.status();
        }
        self.augmented().forget();
        self.look_again();
        let loaded = self.loaded()?;
        let stale = loaded.stale.as_ref().filter(|_| loaded.used().is_none());
        let other = stale.map(Store::open).transpose()?.flatten();
        let Some(store) = loaded.used().or(other.as_ref()) else {
            let notes = loaded.indexes.notes();
            return Ok(IndexStatus { store: loaded.write.path(), notes, ..IndexStatus::default() });
        };
        let mut notes = loaded.indexes.notes();
        let mut arrays = Vec::new();
        for a in store.arrays() {
            let h = &a.header;
            if let Some(records) = store.load(&h.path) {
                notes.extend(records.damage.iter().map(|d| format!("'{}': {d}", h.path)));
            }
            arrays.push(ArrayStatus {
                path: h.path.clone(),
                regions: a.regions,
                region_bytes: h.region_bytes(),
                region: h.region.iter().zip(&h.shape).map(|(r, n)| *r.min(n)).collect(),
                with_stats: a.with_stats,
                with_bitmap: a.with_bitmap,
                stats_bytes: a.stats_bytes,
                bitmap_bytes: a.head_bytes + a.body_bytes,
                data_bytes: h.shape.iter().product::<u64>().saturating_mul(h.dtype.size() as u64),
            });
        }
        let replicas = store.sorted().iter().map(|e| ReplicaStatus {
            key: e.key.clone(),
            columns: e.columns.clone(),
            path: e.dir.clone(),
            bytes: e.bytes,
        });
        Ok(IndexStatus {
            store: store.place().to_string().into(),
            exists: true,
            stale: stale.is_some(),
            arrays,
            replicas: replicas.collect(),
            notes,
        })
    }
}
