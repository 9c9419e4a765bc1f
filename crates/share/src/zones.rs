//! Zone maps beside what is put: who asks an object for a few of its values reads those, and not all of it.
//!
//! They lie where any query looks for those of a remote object, under its key with `.sieva` behind it, and belong to the version of
//! the object that the store told of when it was put: beside another version they are not used.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use sieva::{BuildOptions, CarriedZoneMaps, ErrorKind, Result};
use sieva_store::objects::{Body, Objects};

use crate::publish::Still;

/// Bytes from which on a file carries zone maps: a shorter one is read by as few requests without.
pub(crate) const FROM: u64 = 4 << 20;
/// What stands between an object's key and the names of what lies beside it.
pub(crate) const BESIDE: &str = ".sieva/";

/// Zone maps of a file that is about to be put.
pub(crate) struct ZoneMaps(CarriedZoneMaps);

impl ZoneMaps {
    /// Those of a file of so many bytes, where it has `from` at least; none of what has none.
    ///
    /// # Errors
    /// `cancelled`. What else goes wrong is no reason not to put the file: it is put without them.
    pub fn of(
        file: &File,
        size: u64,
        from: Option<u64>,
        scratch: &Path,
        options: &BuildOptions,
    ) -> Result<Option<Self>> {
        if from.is_none_or(|from| size < from) {
            return Ok(None);
        }
        match CarriedZoneMaps::of(file, scratch, options) {
            Err(e) if e.kind() == ErrorKind::Cancelled => Err(e),
            made => Ok(made.ok().flatten().map(Self)),
        }
    }

    /// The names of their files.
    pub fn names(&self) -> BTreeSet<String> {
        let segments = self.0.segments().map(|(name, _)| name.to_owned());
        segments.chain([CarriedZoneMaps::MANIFEST.to_owned()]).collect()
    }

    /// Puts them beside an object of this version; says how many bytes they have. The manifest comes last: before it they are not
    /// there for anybody.
    ///
    /// # Errors
    /// Those of the store and of reading the file.
    pub fn put(&self, objects: &dyn Objects, key: &str, version: &str) -> Result<u64> {
        let manifest = self.0.manifest(version, sieva_store::is_url(&objects.location(key)))?;
        let mut bytes = manifest.len() as u64;
        for (name, path) in self.0.segments() {
            let segment = Still::open(&path)?;
            objects.put(&beside(key, name), &segment)?;
            bytes += segment.size();
        }
        objects.put(&beside(key, CarriedZoneMaps::MANIFEST), &manifest)?;
        Ok(bytes)
    }
}

/// The key of something beside an object.
pub(crate) fn beside(key: &str, name: &str) -> String {
    format!("{key}{BESIDE}{name}")
}

/// The key of the object that something lies beside; of an object itself its own.
pub(crate) fn carrier(key: &str) -> &str {
    key.split_once(BESIDE).map_or(key, |(carrier, _)| carrier)
}

/// Whether something lies beside an object, and is none itself.
pub(crate) fn is_beside(key: &str) -> bool {
    key.contains(BESIDE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_beside_an_object_is_told_from_objects() {
        let key = beside("data/model/0123.nc", "manifest.json");
        assert_eq!(key, "data/model/0123.nc.sieva/manifest.json");
        assert_eq!(carrier(&key), "data/model/0123.nc");
        assert_eq!(carrier("data/model/0123.nc"), "data/model/0123.nc");
        assert!(is_beside(&key) && !is_beside(carrier(&key)));
    }
}
