//! A selection as bytes. All numbers are little-endian.
//!
//! ```text
//! offset  bytes  what
//!      0      8  magic: 89 "SEL" 0d 0a 1a 0a (shows damage by text-mode transfers, as PNG's does)
//!      8      4  version: 1
//!     12      4  n: number of dimensions, at most 1024
//!     16      4  h: bytes of the dimension table, at most 1 MiB
//!     20      h  dimension table, n times:
//!                  8  extent
//!                  4  k: bytes of the name, at most 65535
//!                  k  name, UTF-8
//!   20+h      8  number of positions
//!   28+h      4  s: number of spans
//!   32+h    8*s  spans: the buckets of 2^32 positions that are selected wholly, u32 first, u32 end (exclusive),
//!                increasing and apart; of the last bucket of the row space the part that there is
//!      .      8  t: bytes of the tree
//!      .      t  all other positions: a 64-bit roaring bitmap in the portable format (u64 number of buckets; for
//!                each u32 bucket and a 32-bit bitmap), each bucket neither empty nor selected wholly
//!      .      4  CRC-32 (IEEE) of everything before
//! ```
//!
//! Reading believes nothing: every number is checked, memory is taken only for bytes that have arrived, and damage
//! anywhere is an error.

use std::io::{BufReader, Read, Write};

use roaring::RoaringBitmap;

use super::Selection;
use super::set::{Part, Piece, PositionSet};
use crate::{Error, ErrorKind, Result};

const MAGIC: [u8; 8] = *b"\x89SEL\r\n\x1a\n";
const VERSION: u32 = 1;
const MAX_DIMS: u32 = 1024;
const MAX_TABLE: u32 = 1 << 20;
const MAX_NAME: usize = u16::MAX as usize;

impl Selection {
    /// Writes the selection; many small writes, so `out` had better be buffered.
    ///
    /// Fails with [`ErrorKind::InvalidValue`] beyond 1024 dimensions or 64 KiB of a dimension's name.
    pub fn write_to(&self, out: &mut impl Write) -> Result<()> {
        let head = self.head()?;
        let mut out = Summing { inner: out, crc: crc32fast::Hasher::new() };
        let mut write = || -> std::io::Result<()> {
            out.write_all(&head)?;
            let (spans, buckets) = split_pieces(&self.set);
            out.write_all(&self.set.len().to_le_bytes())?;
            out.write_all(&(spans.len() as u32).to_le_bytes())?;
            for span in spans {
                out.write_all(&span.first.to_le_bytes())?;
                out.write_all(&span.end.to_le_bytes())?;
            }
            let size = 8 + buckets.iter().map(|(_, bits)| 4 + bits.serialized_size() as u64).sum::<u64>();
            out.write_all(&size.to_le_bytes())?;
            out.write_all(&(buckets.len() as u64).to_le_bytes())?;
            for (bucket, bits) in buckets {
                out.write_all(&bucket.to_le_bytes())?;
                bits.serialize_into(&mut out)?;
            }
            let crc = out.crc.clone().finalize();
            out.inner.write_all(&crc.to_le_bytes())
        };
        write().map_err(|e| Error::io("writing a selection", &e))
    }

    /// Reads what [`Selection::write_to`] wrote, and nothing after it.
    ///
    /// Fails with [`ErrorKind::CorruptFile`] on any damage, with [`ErrorKind::Unsupported`] on a later version.
    pub fn read_from(input: &mut impl Read) -> Result<Self> {
        let mut input = Summing { inner: input, crc: crc32fast::Hasher::new() };
        let (dims, shape) = read_head(&mut input)?;
        let mut out = Self::empty(dims, shape).map_err(|e| corrupt(e.message()))?;
        let expected = u64::from_le_bytes(take(&mut input, "the number of positions")?);
        let spans = read_spans(&mut input, out.set.n_buckets())?;
        read_tree(&mut input, &spans, &mut out.set)?;
        let crc = input.crc.clone().finalize();
        let stored = u32::from_le_bytes(take(&mut input, "the checksum")?);
        if crc != stored {
            return Err(corrupt(format!("checksum {crc:08x} of the content, {stored:08x} stored")));
        }
        if out.len() != expected {
            return Err(corrupt(format!("{} positions found, {expected} announced", out.len())));
        }
        Ok(out)
    }

    /// Everything before the number of positions.
    fn head(&self) -> Result<Vec<u8>> {
        let mut table = Vec::new();
        for (name, extent) in self.dims.iter().zip(&self.shape) {
            if name.len() > MAX_NAME {
                let n = name.len();
                return Err(too_large(format!(
                    "the name of a dimension has {n} bytes, at most {MAX_NAME} are possible"
                )));
            }
            table.extend_from_slice(&extent.to_le_bytes());
            table.extend_from_slice(&(name.len() as u32).to_le_bytes());
            table.extend_from_slice(name.as_bytes());
        }
        if self.dims.len() > MAX_DIMS as usize || table.len() > MAX_TABLE as usize {
            let (n, bytes) = (self.dims.len(), table.len());
            return Err(too_large(format!(
                "{n} dimensions that take {bytes} bytes, at most {MAX_DIMS} and {MAX_TABLE} are possible"
            )));
        }
        let mut head = MAGIC.to_vec();
        for number in [VERSION, self.dims.len() as u32, table.len() as u32] {
            head.extend_from_slice(&number.to_le_bytes());
        }
        head.extend_from_slice(&table);
        Ok(head)
    }
}

fn corrupt(what: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("damaged selection: {what}"))
}

fn too_large(what: String) -> Error {
    Error::new(ErrorKind::InvalidValue, format!("cannot save the selection: {what}"))
}

/// An error met while reading `what`: the end of the input is damage, all else is the input's own trouble.
fn read_error(what: &str, e: &std::io::Error) -> Error {
    match e.kind() {
        std::io::ErrorKind::UnexpectedEof => corrupt(format!("cut off in {what}")),
        _ => Error::io(format!("reading {what} of a selection"), e),
    }
}

/// Passes bytes on and sums them up.
struct Summing<'a, T> {
    inner: &'a mut T,
    crc: crc32fast::Hasher,
}

impl<W: Write> Write for Summing<'_, W> {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        let n = self.inner.write(buf)?;
        self.crc.update(&buf[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for Summing<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.crc.update(&buf[..n]);
        Ok(n)
    }
}

/// The pieces as spans and single buckets.
fn split_pieces(set: &PositionSet) -> (Vec<&Piece>, Vec<(u32, &RoaringBitmap)>) {
    let (mut spans, mut buckets) = (Vec::new(), Vec::new());
    for piece in set.pieces() {
        match &piece.part {
            Part::Full => spans.push(piece),
            Part::Bits(bits) => buckets.push((piece.first, &**bits)),
        }
    }
    (spans, buckets)
}

fn take<const N: usize>(input: &mut impl Read, what: &str) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes).map_err(|e| read_error(what, &e))?;
    Ok(bytes)
}

fn read_head(input: &mut impl Read) -> Result<(Vec<String>, Vec<u64>)> {
    let magic: [u8; 8] = take(input, "the magic number")?;
    if magic != MAGIC {
        return Err(corrupt(format!("begins with {magic:02x?}, expected {MAGIC:02x?}")));
    }
    let mut number = |what| take(input, what).map(u32::from_le_bytes);
    let version = number("the version")?;
    if version == 0 {
        return Err(corrupt("version 0"));
    }
    if version > VERSION {
        let message = format!("selection of version {version}, this program reads up to {VERSION}");
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let (n, bytes) = (number("the number of dimensions")?, number("the size of the dimension table")?);
    if n > MAX_DIMS || bytes > MAX_TABLE {
        return Err(corrupt(format!(
            "{n} dimensions in {bytes} bytes, at most {MAX_DIMS} and {MAX_TABLE} are possible"
        )));
    }
    let mut table = Vec::new();
    input.take(bytes.into()).read_to_end(&mut table).map_err(|e| read_error("the dimension table", &e))?;
    if table.len() as u64 != u64::from(bytes) {
        return Err(corrupt("cut off in the dimension table"));
    }
    parse_table(&table, n)
}

fn parse_table(mut table: &[u8], n: u32) -> Result<(Vec<String>, Vec<u64>)> {
    let (mut dims, mut shape) = (Vec::new(), Vec::new());
    for d in 0..n {
        shape.push(u64::from_le_bytes(take(&mut table, "the dimension table")?));
        let k = u32::from_le_bytes(take(&mut table, "the dimension table")?) as usize;
        let name = table.get(..k).filter(|_| k <= MAX_NAME);
        let name =
            name.ok_or_else(|| corrupt(format!("{k} bytes announced for the name of dimension {d}")))?;
        let name = std::str::from_utf8(name).map_err(|e| corrupt(format!("name of dimension {d}: {e}")))?;
        dims.push(name.to_owned());
        table = &table[k..];
    }
    if !table.is_empty() {
        return Err(corrupt(format!("{} bytes left over in the dimension table", table.len())));
    }
    Ok((dims, shape))
}

fn read_spans(input: &mut impl Read, n_buckets: u32) -> Result<Vec<(u32, u32)>> {
    let n = u32::from_le_bytes(take(input, "the number of spans")?);
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for _ in 0..n {
        let first = u32::from_le_bytes(take(input, "the spans")?);
        let end = u32::from_le_bytes(take(input, "the spans")?);
        let apart = spans.last().is_none_or(|&(_, before)| first > before);
        if first >= end || end > n_buckets || !apart {
            return Err(corrupt(format!(
                "span {first}..{end} of {n_buckets} buckets, after {:?}",
                spans.last()
            )));
        }
        spans.push((first, end));
    }
    Ok(spans)
}

/// Reads the tree, and puts it together with `spans` into `set`.
fn read_tree<R: Read>(input: &mut Summing<'_, R>, spans: &[(u32, u32)], set: &mut PositionSet) -> Result<()> {
    let size = u64::from_le_bytes(take(input, "the size of the tree")?);
    // Buffered, because roaring reads in small bits; limited, because a buffer reads ahead.
    let mut tree = BufReader::with_capacity(1 << 16, input.take(size));
    let n = u64::from_le_bytes(take(&mut tree, "the tree")?);
    let mut spans = spans.iter().peekable();
    for _ in 0..n {
        let bucket = u32::from_le_bytes(take(&mut tree, "the tree")?);
        while let Some((first, end)) = spans.next_if(|(first, _)| *first < bucket) {
            set.push_full(*first, *end);
        }
        let free = spans.peek().is_none_or(|(first, _)| bucket < *first);
        if bucket < set.end_bucket() || bucket >= set.n_buckets() || !free {
            return Err(corrupt(format!(
                "bucket {bucket} of {} comes twice or in no order",
                set.n_buckets()
            )));
        }
        let bits = read_bucket(&mut tree)?;
        let capacity = set.capacity(bucket, bucket + 1);
        if bits.is_empty() || bits.len() >= capacity || bits.max().is_some_and(|m| u64::from(m) >= capacity) {
            let (len, max) = (bits.len(), bits.max());
            return Err(corrupt(format!(
                "bucket {bucket} has {len} positions up to {max:?}, for {capacity}"
            )));
        }
        set.push_bits(bucket, bits);
    }
    for (first, end) in spans {
        set.push_full(*first, *end);
    }
    let mut rest = [0];
    match tree.read(&mut rest) {
        Ok(0) if tree.get_ref().limit() == 0 => Ok(()),
        Ok(0) => Err(corrupt("cut off after the tree")),
        Ok(_) => Err(corrupt("bytes left over in the tree")),
        Err(e) => Err(read_error("the tree", &e)),
    }
}

fn read_bucket(tree: &mut impl Read) -> Result<RoaringBitmap> {
    let mut failure = None;
    let watched = Watched { inner: tree, failure: &mut failure };
    RoaringBitmap::deserialize_from(watched).map_err(|e| match failure {
        Some(e) => read_error("the tree", &e),
        None => corrupt(format!("roaring bitmap: {e}")),
    })
}

/// Keeps the input's own errors, so that they are told from what roaring says about its bytes.
struct Watched<'a, R> {
    inner: &'a mut R,
    failure: &'a mut Option<std::io::Error>,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        self.inner.read(buf).inspect_err(|e| {
            if e.kind() != std::io::ErrorKind::Interrupted {
                *self.failure = Some(e.kind().into());
            }
        })
    }
}
