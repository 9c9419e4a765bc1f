//! What is known of many files is what is known of each: every file keeps its own augmentations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sieva_format::layout::{Parts, Placement};
use sieva_index::stats::RegionStats;
use sieva_index::store::ArrayHeader;
use sieva_index::{ArrayIndex, PieceLoader, PieceTable, RegionGrid};
use sieva_types::{Error, ErrorKind, Result};

use super::Many;
use crate::augment::{BuildOptions, BuildReport, IndexKind, IndexStatus, Progress, VerifyReport, homes};
use crate::open::Source;

/// Pieces of which one tells how those are cut that have an index: they are built for all alike.
const TELLING: usize = 4;

impl Many {
    /// How an array in pieces is cut into regions: as the index of the first pieces is that have one, else as by itself.
    ///
    /// # Errors
    /// As [`Many::plain_region`].
    pub(crate) fn region(&self, array: usize, parts: &Parts) -> Result<Vec<u64>> {
        let plain = self.plain_region(array, parts)?;
        let pieces = self.joined.pieces(array).iter().take(TELLING);
        let stored = pieces.filter(|&&(file, _)| self.has_store(file)).find_map(|&(file, own)| {
            let index = self.files.file(file as usize).ok()?.index_of(own as usize)?;
            index.is_sized().then(|| index.header().region.clone())
        });
        Ok(stored.map_or(plain, |region| whole(region, parts)))
    }

    /// Whether a file has augmentations of its own, as far as is known without looking into them.
    fn has_store(&self, file: u32) -> bool {
        let path: &std::path::Path = self.joined.names()[file as usize].as_ref();
        homes(path, &self.files.options).read.iter().any(|home| home.path().is_dir())
    }

    /// How an array in pieces is cut by itself: as its first piece is.
    ///
    /// # Errors
    /// `unsupported` where files keep it in different ways, or it has no dimension; those of opening the first one.
    fn plain_region(&self, array: usize, parts: &Parts) -> Result<Vec<u64>> {
        let path = || self.path(array);
        let refuse =
            |why: &str| Error::new(ErrorKind::Unsupported, format!("'{}' {why}: it is not indexed", path()));
        if !self.joined.is_plain(array) {
            return Err(refuse("is packed or typed differently from file to file"));
        }
        let rank = sieva_format::ArraySource::schema(&*self.joined).arrays[array].shape.len();
        let (true, Some(&(file, own))) = (rank > 0, self.joined.pieces(array).first()) else {
            return Err(refuse("has no dimension"));
        };
        Ok(whole(self.files.file(file as usize)?.array_header(own as usize)?.region, parts))
    }

    fn path(&self, array: usize) -> String {
        sieva_format::ArraySource::schema(&*self.joined).arrays[array].path.clone()
    }

    /// What is known of an array of this header: that of its pieces, found as it is asked for.
    pub(crate) fn index(&self, array: usize, header: &ArrayHeader) -> Option<ArrayIndex> {
        let layout = sieva_format::ArraySource::layout(&*self.joined, array).ok()?;
        let Placement::Parts(parts) = &layout.placement else { return None };
        let pieces = self.joined.pieces(array).to_vec();
        let stored = pieces.iter().map(|&(file, _)| self.has_store(file));
        let sized = self.plain_region(array, parts).is_ok_and(|plain| plain != header.region);
        let table = PieceTable {
            axis: parts.axis,
            starts: parts.starts.clone(),
            is_new: parts.is_new,
            stored: stored.collect(),
            known: self.known_stats(header, &pieces),
            load: self.loader(header.clone(), pieces, (parts.axis, parts.is_new)),
        };
        Some(ArrayIndex::of_pieces(header.clone(), table).ok()?.with_sized(sized))
    }

    /// What the catalog knows of whole pieces; empty where it knows nothing.
    fn known_stats(&self, header: &ArrayHeader, pieces: &[(u32, u32)]) -> Vec<Option<RegionStats>> {
        match &self.files.known {
            Some(known) => known.statistics(header, pieces),
            None => Vec::new(),
        }
    }

    fn loader(&self, whole: ArrayHeader, pieces: Vec<(u32, u32)>, along: (usize, bool)) -> PieceLoader {
        let (files, joined) = (Arc::clone(&self.files), Arc::clone(&self.joined));
        Arc::new(move |piece| {
            let &(file, own) = pieces.get(piece)?;
            let (file, own) = (file as usize, own as usize);
            // What is known of another state says nothing; reading tells that it has changed.
            let index = files.unchanged(file)?.index_of(own)?;
            let mut region = whole.region.clone();
            if along.1 {
                region.remove(along.0);
            }
            let header = index.header();
            let shape = joined.shape_in(file, own);
            // A file that is shorter than its regions may say so by smaller ones: they are the same blocks.
            let cut =
                |region: &[u64]| -> Vec<u64> { region.iter().zip(&shape).map(|(r, n)| *r.min(n)).collect() };
            let alike = (header.dtype, &header.missing, &header.shape)
                == (whole.dtype, &whole.missing, &shape)
                && cut(&header.region) == cut(&region)
                && RegionGrid::new(&shape, &region).is_ok_and(|g| g.len() == index.grid().len());
            alike.then_some(index)
        })
    }

    /// The files that hold these arrays (none named: any), with the names of the arrays in each.
    pub(crate) fn holding(&self, source: &Source, arrays: &[String]) -> Result<BTreeMap<usize, Vec<String>>> {
        let mut files: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        if arrays.is_empty() {
            files.extend((0..self.joined.names().len()).map(|file| (file, Vec::new())));
            return Ok(files);
        }
        for name in arrays {
            for array in source.meant(name)? {
                for &(file, _) in self.joined.pieces(array) {
                    files.entry(file as usize).or_default().push(self.path(array));
                }
            }
        }
        Ok(files)
    }

    /// Refuses sorted replicas: those of single files serve no query over many, and take as much room as the data.
    pub(crate) fn check_kinds(&self, options: &BuildOptions) -> Result<()> {
        if !options.kinds.contains(&IndexKind::Sorted) {
            return Ok(());
        }
        let n = self.joined.names().len();
        let files = if n == 1 { "file" } else { "files" };
        let message = format!(
            "sorted replicas of a source that is joined of {n} {files}: queries of such a source do not use them"
        );
        Err(Error::new(ErrorKind::Unsupported, message).hint(
            "leave --kind (kinds=) away, which builds zone maps and bitmaps for them; or name one file without joining, \
             and build a replica for queries of that file alone",
        ))
    }

    /// Builds augmentations file by file.
    ///
    /// # Errors
    /// `unsupported` for sorted replicas.
    pub(crate) fn build(
        &self,
        source: &Source,
        arrays: &[String],
        options: &BuildOptions,
    ) -> Result<BuildReport> {
        self.check_kinds(options)?;
        let files = self.holding(source, arrays)?;
        let mut report = BuildReport::default();
        let before = Arc::new(AtomicU64::new(0));
        for (file, names) in files {
            let member = self.files.file(file)?;
            let size = member.reader().store().len();
            let each = self.reporting(options, &before, size);
            let name = &self.joined.names()[file];
            let did = member.build_index(&names, &each).map_err(|e| {
                if e.message().contains(name.as_str()) { e } else { e.at(format!("'{name}'")) }
            })?;
            report.add(did, name);
            before.fetch_add(size, Relaxed);
        }
        self.files.forget();
        Ok(report)
    }

    /// Progress in bytes of files, as if what is still to come were like all files together.
    fn reporting(&self, options: &BuildOptions, before: &Arc<AtomicU64>, size: u64) -> BuildOptions {
        let total = sieva_format::ArraySource::store(&*self.joined).len();
        let (before, progress) = (Arc::clone(before), options.progress.clone());
        let shown = progress.map(|progress| -> Arc<dyn Fn(Progress) + Send + Sync> {
            Arc::new(move |p: Progress| {
                let share = p.done as f64 / p.total.max(1) as f64 * size as f64;
                progress(Progress { done: (before.load(Relaxed) + share as u64).min(total), total });
            })
        });
        BuildOptions { progress: shown, ..options.clone() }
    }

    /// What all files have together.
    pub(crate) fn status(&self) -> Result<IndexStatus> {
        let mut all = IndexStatus::default();
        for (n, name) in self.joined.names().iter().enumerate() {
            all.add(self.files.file(n)?.index_status()?, name);
        }
        Ok(all)
    }

    /// Checks what each file has.
    pub(crate) fn verify(&self, f: impl Fn(&Source) -> Result<VerifyReport>) -> Result<VerifyReport> {
        let mut all = VerifyReport::default();
        let mut none = None;
        for (n, name) in self.joined.names().iter().enumerate() {
            match f(&self.files.file(n)?) {
                Err(e) if e.kind() == ErrorKind::NoIndex => none = Some(e),
                found => all.add(found?, name),
            }
        }
        match none {
            Some(none) if all == VerifyReport::default() => Err(none),
            _ => Ok(all),
        }
    }

    /// Removes what each file has.
    pub(crate) fn drop_index(&self) -> Result<bool> {
        let mut dropped = false;
        for n in 0..self.joined.names().len() {
            dropped |= self.files.file(n)?.drop_index()?;
        }
        self.files.forget();
        Ok(dropped)
    }

    /// Removes sorted replicas of arrays in the files that hold them.
    pub(crate) fn drop_replicas(&self, source: &Source, arrays: &[String]) -> Result<usize> {
        let mut dropped = 0;
        for (file, names) in self.holding(source, arrays)? {
            dropped += self.files.file(file)?.drop_replicas(&names)?;
        }
        self.files.forget();
        Ok(dropped)
    }
}

/// The region of an array that is put together from pieces with regions like this.
fn whole(mut region: Vec<u64>, parts: &Parts) -> Vec<u64> {
    if parts.is_new {
        region.insert(parts.axis, 1);
    }
    region
}
