//! The open file.

use std::sync::Arc;

use sieva_format::Warnings;
use sieva_format::decoding::Decoding;
use sieva_format::layout::Layout;
use sieva_format::schema::Schema;
use sieva_format::{ArraySource, ObjectChunks};
use sieva_store::RangedRead;
use sieva_types::{Error, ErrorKind, Result};

use crate::builder::{Builder, Built, Fetch, Planned};
use crate::header::is_structural;
use crate::names::{Unique, sanitised};
use crate::scan::{self, Hdu};
use crate::{image, table, tiled};

/// An open FITS file.
///
/// An image is the array `EXTNAME` or `hduN` (the primary HDU is `hdu0`), a table the group of that name with an array
/// for each column; `hduN` and `hduN/column` always lead there too. Of HDUs that share an EXTNAME the second and
/// later ones get their EXTVER behind the name (`SCI_2`). Dimensions of images are phony and shared by
/// length; the rows of a table are its dimension `row`.
pub struct FitsSource {
    store: Arc<dyn RangedRead>,
    schema: Schema,
    planned: Vec<Planned>,
}

impl FitsSource {
    /// Reads the headers of `store`, and gives arrays' dimensions the names that a user wants (array path and names,
    /// outermost first).
    ///
    /// A file whose data are cut off opens, with a word in [`Schema::warnings`]; reading what is missing fails.
    ///
    /// # Errors
    /// `unknown-format` where it is not a FITS file, `unsupported` where it is a compressed one, `corrupt-file` where
    /// its first header is damaged or cut off, `io-error` where reading fails; of `dims`: as [`Schema::name_dims`].
    pub fn open(store: Arc<dyn RangedRead>, dims: &[(String, Vec<String>)]) -> Result<Self> {
        let built = build(&*store).map_err(|e| locate(e, &*store))?;
        let Built { schema, planned, decodings } = built;
        let mut source = Self { store, schema, planned };
        source.name_dims(dims, decodings).map_err(|e| locate(e, &*source.store))?;
        Ok(source)
    }

    fn name_dims(&mut self, given: &[(String, Vec<String>)], decodings: Vec<Decoding>) -> Result<()> {
        for (path, names) in given {
            let path = path.trim_start_matches('/');
            let alias = self.schema.aliases.iter().find(|(alias, _)| alias == path).map(|(_, i)| *i);
            let path = alias.map_or(path, |i| &self.schema.arrays[i].path).to_owned();
            self.schema.name_dims(&path, names)?;
        }
        self.schema.resolve();
        // Resolving reads CF attributes; what stored numbers mean is told by FITS keywords here.
        for (array, decoding) in self.schema.arrays.iter_mut().zip(decodings) {
            array.decoding = decoding;
        }
        Ok(())
    }

    fn planned(&self, array: usize) -> Result<&Planned> {
        self.planned.get(array).ok_or_else(|| {
            let message = format!("array {array} asked for, the file has {}", self.planned.len());
            Error::new(ErrorKind::Internal, message)
        })
    }
}

fn build(store: &dyn RangedRead) -> Result<Built> {
    if is_gzip(store) {
        let message = "the file is compressed as a whole: nothing in it can be read in place";
        return Err(Error::new(ErrorKind::Unsupported, message)
            .hint("run gunzip on it, or compress its tiles instead with fpack"));
    }
    if store.len() < scan::BLOCK && !starts_as_fits(store) {
        let message = "not a FITS file: it does not begin with SIMPLE  =";
        return Err(Error::new(ErrorKind::UnknownFormat, message));
    }
    let mut warnings = Warnings::default();
    let hdus = scan::scan(store, &mut warnings)?;
    let attrs = hdus.first().map(|h| h.header.attrs(|name| !is_structural(name))).unwrap_or_default();
    let mut builder = Builder::new(attrs);
    let mut names = Unique::default();
    for hdu in &hdus {
        let name = hdu.header.text("EXTNAME").map(sanitised).filter(|name| !name.is_empty());
        let version = hdu.header.int("EXTVER").and_then(|v| u64::try_from(v).ok()).unwrap_or(1);
        let name = names.name(name.unwrap_or_else(|| format!("hdu{}", hdu.number)), version);
        if let Err(e) = add(&mut builder, hdu, name.clone()) {
            builder.schema.left_out.push((name, e));
        }
    }
    Ok(builder.finish(warnings.into_vec()))
}

/// Adds what an HDU holds.
fn add(builder: &mut Builder, hdu: &Hdu, name: String) -> Result<()> {
    let header = &hdu.header;
    if scan::is_random_groups(header, &hdu.axes) {
        builder.leave_out(name, "random groups, which are not supported");
        return Ok(());
    }
    if hdu.number == 0 {
        if header.is_true("SIMPLE") {
            return image::add_image(builder, hdu, name);
        }
        builder.leave_out(name, "SIMPLE is F: the file says that it does not follow the standard");
        return Ok(());
    }
    match header.text("XTENSION").unwrap_or_default() {
        "IMAGE" | "IUEIMAGE" => return image::add_image(builder, hdu, name),
        "BINTABLE" | "A3DTABLE" if header.is_true("ZIMAGE") => return tiled::add_tiled(builder, hdu, name),
        "BINTABLE" | "A3DTABLE" if header.is_true("ZTABLE") => {
            builder.leave_out(name, "a tile-compressed table, which is not supported");
        }
        "BINTABLE" | "A3DTABLE" => table::add_table(builder, hdu, name, false),
        "TABLE" => table::add_table(builder, hdu, name, true),
        other => builder.leave_out(name, format!("an extension of type '{other}', which is not supported")),
    }
    Ok(())
}

/// Puts the file's name before what was found wrong in it; errors of the store name it themselves.
fn locate(e: Error, store: &dyn RangedRead) -> Error {
    if e.kind() == ErrorKind::Io || e.message().contains(store.name()) {
        return e;
    }
    e.at(format!("'{}'", store.name()))
}

impl ArraySource for FitsSource {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn layout(&self, array: usize) -> Result<Arc<Layout>> {
        self.planned(array)?.layout.clone().map_err(|e| locate(e, &*self.store))
    }

    fn store(&self) -> &Arc<dyn RangedRead> {
        &self.store
    }

    fn object_chunks(&self) -> Option<&dyn ObjectChunks> {
        Some(self)
    }
}

impl ObjectChunks for FitsSource {
    fn fetch_chunk(&self, array: usize, number: u64, most: u64, out: &mut Vec<u8>) -> Result<bool> {
        out.clear();
        let planned = self.planned(array)?;
        let bytes = planned.layout.as_ref().map_or(0, |layout| layout.chunk_bytes);
        if bytes > most {
            let message = format!("a tile takes {bytes} bytes, the limit is {most}");
            return Err(Error::new(ErrorKind::MemoryLimit, message)
                .hint("raise the limit with --memory (memory= in Python)"));
        }
        match &planned.fetch {
            Fetch::Direct => {
                let message = format!("array {array} has no chunks");
                return Err(Error::new(ErrorKind::Internal, message));
            }
            Fetch::Blocks(blocks) => blocks.fetch(&*self.store, number, out)?,
            Fetch::Tiles(tiled) => tiled.fetch(&*self.store, number, out)?,
        }
        Ok(true)
    }

    fn will_need_chunks(&self, array: usize, numbers: &[u64]) {
        let Ok(planned) = self.planned(array) else { return };
        let ranges: Vec<_> = match &planned.fetch {
            Fetch::Direct => return,
            Fetch::Blocks(blocks) => numbers.iter().map(|&n| blocks.place(n).0).collect(),
            Fetch::Tiles(tiled) => tiled.ranges(&*self.store, numbers),
        };
        if !ranges.is_empty() {
            self.store.will_need(&ranges);
        }
    }
}

fn starts_as_fits(store: &dyn RangedRead) -> bool {
    let mut magic = [0; 9];
    store.len() >= 9 && store.read_exact_at(0, &mut magic).is_ok() && &magic == b"SIMPLE  ="
}

/// Whether it is a gzip file whose name says that a FITS file is in it.
fn is_gzip(store: &dyn RangedRead) -> bool {
    let name = store.name().to_ascii_lowercase();
    let mut magic = [0; 2];
    [".fits.gz", ".fit.gz", ".fts.gz", ".fz.gz"].iter().any(|end| name.ends_with(end))
        && store.len() >= 2
        && store.read_exact_at(0, &mut magic).is_ok()
        && magic == [0x1f, 0x8b]
}

/// Whether `store` begins as a FITS file does. A whole FITS file in gzip counts too, told by its name: opening it says
/// what to do.
pub fn is_fits(store: &dyn RangedRead) -> bool {
    starts_as_fits(store) || is_gzip(store)
}
