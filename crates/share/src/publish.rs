//! What can be published: a file as it is, or the result of a query.

use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sieva::{Error, ErrorKind, Query, Result, local};
use sieva_encode::Format;
use sieva_store::objects::Body;

use crate::group::Group;
use crate::made::Made;
use crate::names;
use crate::published::{PublishOptions, Published, Publishing, checksum};
use crate::watch::Limits;
use crate::zones::{self, ZoneMaps};

impl Group {
    /// Publishes a file as it is, under a name of a user, in place of what is there: for those, too, who have no sieva.
    ///
    /// # Errors
    /// `invalid-value` for what is no name; `stale-source` for a file that is changed meanwhile; those of the file and the store.
    pub fn publish(
        &self,
        user: &str,
        name: &str,
        path: impl AsRef<Path>,
        options: &PublishOptions,
    ) -> Result<Published> {
        check(user, name)?;
        let body = Still::open(path.as_ref())?;
        let checksum = checksum(&body, &options.cancel)?;
        let (size, scratch, building) = (body.size(), std::env::temp_dir(), limits(options).building());
        let from = self.zone_maps_from(options.zone_maps_from);
        let zone_maps = ZoneMaps::of(&body.file, size, from, &scratch, &building)?;
        let zone_maps = zone_maps.as_ref();
        let new = Publishing { body: &body, checksum, sql: None, rows: None, zone_maps };
        self.put_published(user, name, new, options)
    }

    /// Publishes the result of a query as a file of a format, made in a file without a name of the directory `spool` first.
    ///
    /// # Errors
    /// As [`Group::publish`]; what the query says.
    pub fn publish_result(
        &self,
        user: &str,
        name: &str,
        query: &Arc<Query>,
        format: Format,
        spool: &Path,
        options: &PublishOptions,
    ) -> Result<Published> {
        check(user, name)?;
        let limits = limits(options);
        let made = Made::new(Arc::clone(query), format, spool, &limits)?;
        let made = made.with_zone_maps(self.zone_maps_from(options.zone_maps_from), spool, &limits)?;
        let (checksum, rows, zone_maps) = (made.checksum.clone(), Some(made.rows), made.zone_maps.as_ref());
        let new = Publishing { body: &made, checksum, sql: Some(query.text().to_owned()), rows, zone_maps };
        self.put_published(user, name, new, options)
    }
}

fn check(user: &str, name: &str) -> Result<()> {
    names::check("a user", user)?;
    names::check_object(name)?;
    // Where what lies beside something else is.
    let beside = zones::BESIDE.trim_end_matches('/');
    if name.ends_with(beside) {
        let message = format!("'{name}' would be the zone maps of something else");
        return Err(Error::new(ErrorKind::InvalidValue, message)
            .hint(format!("publish it by a name that does not end in '{beside}': --as NAME")));
    }
    Ok(())
}

fn limits(options: &PublishOptions) -> Limits {
    Limits { cancel: Arc::clone(&options.cancel), ..Limits::default() }
}

/// A file that has to stay as it is while it is put.
pub(crate) struct Still {
    file: File,
    path: PathBuf,
    state: (u64, i64, i64),
}

impl Still {
    pub fn open(path: &Path) -> Result<Self> {
        let file = local::told("opening", path, local::open_regular(path))?;
        let meta = local::told("opening", path, file.metadata())?;
        Ok(Self { file, path: path.to_owned(), state: state(&meta) })
    }
}

fn state(meta: &Metadata) -> (u64, i64, i64) {
    (meta.len(), meta.mtime(), meta.mtime_nsec())
}

impl Body for Still {
    fn size(&self) -> u64 {
        self.state.0
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let read = self.file.read_exact_at(out, offset);
        let now = local::told("reading", &self.path, self.file.metadata())?;
        if state(&now) != self.state {
            let message = format!("'{}' was changed while it was published", self.path.display());
            return Err(
                Error::new(ErrorKind::StaleSource, message).hint("publish it again when it is complete")
            );
        }
        local::told("reading", &self.path, read)
    }
}
