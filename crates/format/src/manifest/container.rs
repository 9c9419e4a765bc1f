//! What stands around a manifest's content: a magic number, a version, a checksum, compression.
//!
//! The checksum is of the bytes as they are stored, so that damaged ones never reach the decompressor. It guards
//! against damage, not against malice: content is checked as if anybody had written it.

use std::cell::RefCell;

use sieva_types::wire::{Reader, Writer};
use sieva_types::{Error, ErrorKind, Result};
use xxhash_rust::xxh3::xxh3_64;
use zstd::bulk::Decompressor;

/// The first bytes of every manifest.
pub const MAGIC: [u8; 4] = *b"SVMF";
/// The version of a manifest with a striping.
pub const STRIPED: u8 = 3;
/// That of one without: who knows of no stripings reads it, too.
const VERSION: u8 = 2;
/// The version before, whose content has no frames: catalogs are full of them.
pub const UNFRAMED: u8 = 1;
const PLAIN: u8 = 0;
const ZSTD: u8 = 1;
/// Decoding is as fast at any level; at this one a million chunks take some 50 ms to encode.
const LEVEL: i32 = 3;
/// Compression that saves less than this share (1/8) of the bytes costs more time than it is worth.
const WORTH: usize = 8;

thread_local! {
    /// One decoder a thread: to make one takes longer than to decode a small manifest.
    static DECODER: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Packs `content`, which has a striping or not.
pub fn pack(content: &[u8], is_striped: bool) -> Vec<u8> {
    let packed = zstd::bulk::compress(content, LEVEL).ok();
    let packed = packed.filter(|p| p.len() + content.len() / WORTH < content.len());
    let (method, stored) = packed.as_deref().map_or((PLAIN, content), |p| (ZSTD, p));
    let mut out = Writer::default();
    let version = if is_striped { STRIPED } else { VERSION };
    MAGIC.into_iter().chain([version, method]).for_each(|b| out.byte(b));
    xxh3_64(stored).to_le_bytes().into_iter().for_each(|b| out.byte(b));
    out.uint(content.len() as u64);
    let mut out = out.into_bytes();
    out.extend_from_slice(stored);
    out
}

/// Hands the content of `bytes`, of at most `limit` bytes, to `read`, with its version.
pub fn unpack<T>(bytes: &[u8], limit: usize, read: impl FnOnce(&[u8], u8) -> Result<T>) -> Result<T> {
    let mut head = Reader::new(&super::SUBJECT, bytes, limit);
    if head.take(4).ok() != Some(&MAGIC[..]) {
        return Err(head.damaged("it does not begin with SVMF"));
    }
    let version = head.byte()?;
    if !(UNFRAMED..=STRIPED).contains(&version) {
        let message = format!("manifest of version {version}, this program reads versions 1 to {STRIPED}");
        return Err(
            Error::new(ErrorKind::CorruptIndex, message).hint("remove it: it is made anew from the source")
        );
    }
    let method = head.byte()?;
    let sum = head.take(8)?.to_vec();
    let len = head.index()?;
    head.charge(len)?;
    let stored = head.take(head.left())?;
    if xxh3_64(stored).to_le_bytes()[..] != sum[..] {
        return Err(head.damaged("its checksum differs"));
    }
    match method {
        PLAIN if stored.len() == len => read(stored, version),
        ZSTD => {
            let content = inflate(stored, len).ok_or_else(|| head.damaged("it cannot be decompressed"))?;
            read(&content, version)
        }
        _ => Err(head.damaged("its length differs")),
    }
}

fn inflate(stored: &[u8], len: usize) -> Option<Vec<u8>> {
    // A frame says what it holds: memory for `len` bytes is taken only if it agrees.
    let said = zstd::zstd_safe::get_frame_content_size(stored).ok()??;
    if said != len as u64 {
        return None;
    }
    DECODER.with_borrow_mut(|decoder| {
        if decoder.is_none() {
            *decoder = Decompressor::new().ok();
        }
        decoder.as_mut()?.decompress(stored, len).ok().filter(|content| content.len() == len)
    })
}
