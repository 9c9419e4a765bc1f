//! A result as bytes, made once: to know their checksum before they are put, and to put them again where a request fails.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use sieva::{Error, Query, Result, unnamed_file};
use sieva_encode::{ColumnPlace, EncodeOptions, Encoded, Format, is_over_spool_limit};
use sieva_store::objects::Body;
use xxhash_rust::xxh3::Xxh3;

use crate::overlap::RowsAt;
use crate::watch::Limits;
use crate::zones::ZoneMaps;

/// Bytes that are made at once.
pub(crate) const PIECE: usize = 8 << 20;

/// A result.
pub(crate) struct Made {
    file: File,
    size: u64,
    /// Of all bytes.
    pub checksum: String,
    /// Rows.
    pub rows: u64,
    /// What has the same name has the same bytes.
    pub id: String,
    /// Why it is the data of an ask, and not what its code makes of them.
    pub told: Option<Error>,
    /// Where the values of its columns lie, if they lie one behind the other.
    pub places: Vec<ColumnPlace>,
    /// Which rows it has, where that is known.
    pub rows_at: Option<RowsAt>,
    /// What lies beside it where it is put by itself.
    pub zone_maps: Option<ZoneMaps>,
}

impl Made {
    /// The result of a query, in a file without a name of the directory `spool`.
    ///
    /// # Errors
    /// What the query says; `io-error` of the file; `memory-limit` for a result that is larger than one may be.
    pub fn new(query: Arc<Query>, format: Format, spool: &Path, limits: &Limits) -> Result<Self> {
        let mut options = EncodeOptions { spool: Some(spool.to_owned()), ..EncodeOptions::default() };
        options.spool_limit = limits.size.unwrap_or(u64::MAX).min(options.spool_limit);
        let encoded = Encoded::new(query, format, &options).map_err(|e| match limits.size {
            Some(_) if is_over_spool_limit(&e) => limits.too_large(),
            _ => e,
        })?;
        if limits.size.is_some_and(|most| encoded.size().is_ok_and(|size| size > most)) {
            return Err(limits.too_large());
        }
        let failed = |e: std::io::Error| Error::io(format!("cannot write to '{}'", spool.display()), &e);
        let mut file = unnamed_file(spool).map_err(failed)?;
        let (mut sum, mut at) = (Xxh3::new(), 0);
        let mut piece = vec![0; PIECE.min(usize::try_from(encoded.size()?).unwrap_or(PIECE)).max(1)];
        loop {
            let n = encoded.read_at(at, &mut piece)?;
            if n == 0 {
                break;
            }
            sum.update(&piece[..n]);
            file.write_all(&piece[..n]).map_err(failed)?;
            at += n as u64;
        }
        let checksum = digest(&sum);
        let (rows, id, places) = (encoded.rows(), encoded.id().to_owned(), encoded.places());
        let (told, rows_at, zone_maps) = (None, None, None);
        Ok(Self { file, size: at, checksum, rows, id, told, places, rows_at, zone_maps })
    }

    /// The same with its zone maps, where it has `from` bytes at least and is of a format that has such.
    ///
    /// # Errors
    /// `cancelled`.
    pub fn with_zone_maps(mut self, from: Option<u64>, scratch: &Path, limits: &Limits) -> Result<Self> {
        self.zone_maps = ZoneMaps::of(&self.file, self.size, from, scratch, &limits.building())?;
        Ok(self)
    }
}

impl Body for Made {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(out, offset).map_err(|e| Error::io("cannot read a result again", &e))
    }
}

/// A checksum as it is written.
pub(crate) fn digest(sum: &Xxh3) -> String {
    format!("{:032x}", sum.digest128())
}
