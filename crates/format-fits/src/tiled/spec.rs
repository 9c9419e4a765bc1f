//! What the keywords of a tile-compressed image say (FITS standard 4.0, section 10.1).

use sieva_types::{DType, Error, ErrorKind, Result};

use crate::header::Header;
use crate::image;
use crate::scan::{Hdu, MAX_RANK};
use crate::tform::Tform;

/// How pixels are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    /// gzip of big-endian pixels.
    Gzip,
    /// The same after the bytes of all pixels were put together by significance.
    ShuffledGzip,
    /// Rice code.
    Rice {
        /// Pixels of a block.
        block: usize,
        /// Bytes of a pixel.
        bytepix: u32,
    },
    /// Pixel lists.
    Plio,
    /// H-transform.
    Hcompress {
        /// Whether decoded pixels are smoothed.
        smooth: bool,
    },
    /// Nothing.
    Plain,
}

/// Which random numbers were taken off before rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dither {
    /// None.
    No,
    /// SUBTRACTIVE_DITHER_1 of this seed.
    One(i64),
    /// SUBTRACTIVE_DITHER_2, which keeps exact zeros.
    Two(i64),
}

/// A number for each tile, or one for all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PerTile {
    /// One for all.
    Fixed(f64),
    /// In a column: its offset in a row, and its type.
    Column(u64, DType),
}

/// A column of places in the heap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptor {
    /// Its offset in a row.
    pub(super) offset: u64,
    /// Whether its two numbers take 8 bytes each.
    pub(super) wide: bool,
    /// Bytes of an element.
    pub(super) size: u64,
}

/// The columns that hold tiles.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Columns {
    pub(super) compressed: Option<Descriptor>,
    /// Tiles that could not be quantised, in gzip.
    pub(super) gzip: Option<Descriptor>,
    /// Tiles that could not be compressed.
    pub(super) plain: Option<Descriptor>,
    pub(super) scale: Option<PerTile>,
    pub(super) zero: Option<PerTile>,
    pub(super) blank: Option<PerTile>,
}

/// A tile-compressed image.
#[derive(Debug)]
pub(super) struct Spec {
    /// The type of a pixel as the image stores it.
    pub(super) stored: DType,
    /// Its shape, outermost first.
    pub(super) shape: Vec<u64>,
    /// Shape of a tile.
    pub(super) tile: Vec<u64>,
    pub(super) codec: Codec,
    pub(super) codec_name: String,
    /// Set where floating-point numbers are stored as integers.
    pub(super) dither: Option<Dither>,
    pub(super) columns: Columns,
}

fn unsupported(message: String) -> Error {
    Error::new(ErrorKind::Unsupported, message)
}

impl Spec {
    /// Reads the keywords of an HDU.
    pub(super) fn new(hdu: &Hdu) -> Result<Spec> {
        let header = &hdu.header;
        let bitpix = header.int("ZBITPIX").and_then(|b| i32::try_from(b).ok());
        let stored = bitpix.and_then(image::dtype);
        let stored = stored.ok_or_else(|| wrong(header, "ZBITPIX", "8, 16, 32, 64, -32 or -64"))?;
        let (shape, tile) = shapes(header)?;
        let codec_name = header.text("ZCMPTYPE").unwrap_or_default().to_owned();
        let codec = codec(header, &codec_name)?;
        let columns = columns(hdu)?;
        let dither = dither(header, stored, &columns)?;
        let bytes = matches!(codec, Codec::Gzip | Codec::ShuffledGzip | Codec::Plain);
        if stored.is_float() && dither.is_none() && !bytes {
            return Err(Error::corrupt(format!("floating-point numbers in {codec_name} without a ZSCALE")));
        }
        Ok(Spec { stored, shape, tile, codec, codec_name, dither, columns })
    }
}

fn wrong(header: &Header, name: &str, expected: &str) -> Error {
    match header.get(name) {
        Some(value) => Error::corrupt(format!("{name} is {value:?}, expected {expected}")),
        None => Error::corrupt(format!("{name} is missing, expected {expected}")),
    }
}

/// Shapes of the image and of a tile, outermost first. A tile is a row where ZTILEn do not say otherwise.
fn shapes(header: &Header) -> Result<(Vec<u64>, Vec<u64>)> {
    let rank = header.int("ZNAXIS").filter(|n| (1..=MAX_RANK as i128).contains(n));
    let rank = rank.ok_or_else(|| wrong(header, "ZNAXIS", &format!("1 to {MAX_RANK}")))?;
    let (mut shape, mut tile) = (Vec::new(), Vec::new());
    for i in (1..=rank).rev() {
        let length =
            |name: &str| header.int(name).and_then(|n| u64::try_from(n).ok()).filter(|&n| n < 1 << 48);
        let (axis, side) = (format!("ZNAXIS{i}"), format!("ZTILE{i}"));
        let len = length(&axis).ok_or_else(|| wrong(header, &axis, "0 or more"))?;
        let whole = if i == 1 { len } else { 1 };
        let side = match header.get(&side) {
            Some(_) => length(&side).filter(|&n| n > 0).ok_or_else(|| wrong(header, &side, "1 or more"))?,
            None => whole,
        };
        shape.push(len);
        tile.push(side.min(len.max(1)).max(1));
    }
    if shape.iter().try_fold(8_u64, |n, &len| n.checked_mul(len.max(1))).is_none_or(|n| n > 1 << 62) {
        return Err(Error::corrupt(format!("an image of shape {shape:?}")));
    }
    Ok((shape, tile))
}

fn codec(header: &Header, name: &str) -> Result<Codec> {
    let setting = |wanted: &str, default: i128| {
        let mut n = 1;
        while let Some(name) = header.text(&format!("ZNAME{n}")) {
            if name.eq_ignore_ascii_case(wanted) {
                return header.int(&format!("ZVAL{n}")).unwrap_or(default);
            }
            n += 1;
        }
        default
    };
    Ok(match name {
        "GZIP_1" => Codec::Gzip,
        "GZIP_2" => Codec::ShuffledGzip,
        "RICE_1" | "RICE_ONE" => {
            let (block, bytepix) = (setting("BLOCKSIZE", 32), setting("BYTEPIX", 4));
            let block = usize::try_from(block).ok().filter(|b| (1..=1 << 20).contains(b));
            let bytepix = u32::try_from(bytepix).ok().filter(|b| [1, 2, 4].contains(b));
            match (block, bytepix) {
                (Some(block), Some(bytepix)) => Codec::Rice { block, bytepix },
                _ => return Err(unsupported("a Rice code whose BLOCKSIZE or BYTEPIX cannot be".into())),
            }
        }
        "PLIO_1" => Codec::Plio,
        "HCOMPRESS_1" => Codec::Hcompress { smooth: setting("SMOOTH", 0) != 0 },
        "NOCOMPRESS" => Codec::Plain,
        other => {
            let known = "GZIP_1, GZIP_2, RICE_1, PLIO_1, HCOMPRESS_1 and NOCOMPRESS";
            return Err(unsupported(format!("tiles compressed by '{other}'; what can be read is {known}")));
        }
    })
}

fn dither(header: &Header, stored: DType, columns: &Columns) -> Result<Option<Dither>> {
    if !stored.is_float() || columns.scale.is_none() {
        return Ok(None);
    }
    let seed = header.int("ZDITHER0").and_then(|s| i64::try_from(s).ok()).unwrap_or(0);
    match header.text("ZQUANTIZ").unwrap_or("NO_DITHER") {
        "NO_DITHER" | "NONE" | "" => Ok(Some(Dither::No)),
        "SUBTRACTIVE_DITHER_1" => Ok(Some(Dither::One(seed))),
        "SUBTRACTIVE_DITHER_2" => Ok(Some(Dither::Two(seed))),
        other => Err(unsupported(format!("numbers quantised by '{other}'"))),
    }
}

/// Finds the columns by name.
fn columns(hdu: &Hdu) -> Result<Columns> {
    let header = &hdu.header;
    let mut found = Columns::default();
    let fields = header.int("TFIELDS").filter(|n| (0..=999).contains(n)).unwrap_or(0);
    let row_bytes = hdu.axes.first().copied().unwrap_or(0);
    let mut offset = 0;
    for n in 1..=fields {
        let form = Tform::parse(header.text(&format!("TFORM{n}")).unwrap_or_default());
        let form = form.ok_or_else(|| wrong(header, &format!("TFORM{n}"), "the form of a column"))?;
        let end = offset + form.bytes();
        if end > row_bytes {
            return Err(Error::corrupt(format!("column {n} ends beyond the row of {row_bytes} bytes")));
        }
        let number = form.dtype().filter(|t| t.is_float() || t.is_integer());
        let number = number.filter(|_| form.repeat == 1).map(|t| PerTile::Column(offset, t));
        match header.text(&format!("TTYPE{n}")).unwrap_or_default().to_ascii_uppercase().as_str() {
            "COMPRESSED_DATA" => found.compressed = descriptor(&form, offset),
            "GZIP_COMPRESSED_DATA" => found.gzip = descriptor(&form, offset),
            "UNCOMPRESSED_DATA" => found.plain = descriptor(&form, offset),
            "ZSCALE" => found.scale = number,
            "ZZERO" => found.zero = number,
            "ZBLANK" => found.blank = number,
            "NULL_PIXEL_MASK" => return Err(unsupported("tiles with a mask of null pixels".into())),
            _ => {}
        }
        offset = end;
    }
    let fixed = |name: &str| header.float(name).map(PerTile::Fixed);
    found.scale = found.scale.or_else(|| fixed("ZSCALE"));
    found.zero = found.zero.or_else(|| fixed("ZZERO"));
    found.blank = found.blank.or_else(|| fixed("ZBLANK")).or_else(|| fixed("BLANK"));
    Ok(found)
}

fn descriptor(form: &Tform, offset: u64) -> Option<Descriptor> {
    let element = Tform::parse(&form.rest.chars().take(1).collect::<String>())?;
    let is_place = matches!(form.code, 'P' | 'Q') && form.repeat == 1;
    is_place.then(|| Descriptor { offset, wide: form.code == 'Q', size: element.bytes().max(1) })
}
