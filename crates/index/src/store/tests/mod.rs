//! Tests of the store as a whole.

#![allow(clippy::unwrap_used, clippy::panic)]

mod damage;
mod hostile;
mod killed;
mod publishing;
mod regions;
mod round_trip;
mod trust;

use std::path::{Path, PathBuf};

use sieva_types::{DType, KeySet};

use super::*;

/// An array of 100 regions.
fn header(path: &str) -> ArrayHeader {
    ArrayHeader {
        path: path.into(),
        dtype: DType::F32,
        shape: vec![10, 1000],
        region: vec![1, 100],
        missing: KeySet { ranges: vec![(-7, -7)], nan: true },
    }
}

fn fingerprint() -> Fingerprint {
    Fingerprint { len: 12_345, version: "1700000000000000000".into(), content: 0xfeed }
}

fn stats(region: u64, stats: &[u8]) -> Record<'_> {
    Record { region, content: Some(region * 3), stats, bitmap: None }
}

/// A segment, not published, of records of one array.
fn segment(dir: &Path, path: &str, records: &[Record<'_>]) -> SegmentName {
    let mut writer = SegmentWriter::create(dir).unwrap();
    records.iter().for_each(|record| writer.put(&header(path), record).unwrap());
    writer.finish(false).unwrap()
}

/// Lists one more segment.
fn add(dir: &Path, segment: SegmentName) {
    let change = |old: &Listing| {
        let mut new = old.clone();
        new.segments.push(segment.clone());
        new
    };
    Store::publish(dir, &fingerprint(), &change, false).unwrap();
}

/// Lists nothing but this.
fn replace(dir: &Path, listing: &Listing) {
    Store::publish(dir, &fingerprint(), &|_| listing.clone(), false).unwrap();
}

fn open(dir: &Path) -> Store {
    Store::open(dir).unwrap().unwrap()
}

/// Writes a manifest with this listing, whatever it lists.
fn write(dir: &Path, listing: Listing) {
    let (home, manifest) = (Home::from(dir), manifest::Manifest { fingerprint: fingerprint(), listing });
    manifest.write(&home.create().unwrap(), &home, false, || ()).unwrap();
}

/// Names of all that is in a directory, sorted.
fn names_in(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A fresh place for a store, which is not there yet.
fn place() -> (crate::scratch::Scratch, PathBuf) {
    let parent = crate::scratch::Scratch::new();
    let dir = parent.path().join("x.nc.sieva");
    (parent, dir)
}
