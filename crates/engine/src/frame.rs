//! The frame of bytes that travel between processes: a magic number, a version, a checksum.

use sieva_index::content_hash;
use sieva_types::Result;
use sieva_types::wire::{Reader, Subject, Writer};

/// The version of all of them.
const VERSION: u8 = 1;

/// Bytes that travel: a magic number, the version, a checksum, and the body.
pub(crate) fn framed(magic: [u8; 4], body: Writer) -> Vec<u8> {
    let body = body.into_bytes();
    let mut out = Vec::with_capacity(body.len() + 13);
    out.extend_from_slice(&magic);
    out.push(VERSION);
    out.extend_from_slice(&content_hash(&body).to_le_bytes());
    out.extend_from_slice(&body);
    out
}

/// What [`framed`] has put together, checked.
///
/// # Errors
/// Those of the subject.
pub(crate) fn opened<'a>(
    magic: [u8; 4],
    name: &str,
    subject: &'static Subject,
    bytes: &'a [u8],
    memory: u64,
) -> Result<Reader<'a>> {
    let memory = usize::try_from(memory).unwrap_or(usize::MAX);
    let mut head = Reader::new(subject, bytes, memory);
    if head.take(4)? != magic {
        return Err(head.damaged(format!("it does not begin with {name}")));
    }
    let version = head.byte()?;
    if version != VERSION {
        return Err(head.damaged(format!("its version is {version}, this program knows {VERSION}")));
    }
    let sum = head.take(8)?;
    let body = head.take(head.left())?;
    if content_hash(body).to_le_bytes() != sum {
        return Err(head.damaged("its checksum is another"));
    }
    Ok(Reader::new(subject, body, memory))
}
