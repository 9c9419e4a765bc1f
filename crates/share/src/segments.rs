//! How an object is encrypted: a head, then segments by AES-256-GCM, each of which can be read by itself.
//!
//! ```text
//! 8   "sievaenc", the form of what follows
//! 32  a salt, drawn for each put
//! 8   bytes of the object as it was, big-endian
//! then for each 65536 bytes of it, of which the last may be less: these bytes encrypted, and a tag of 16 bytes
//! ```
//!
//! The key of the segments is made of the group's key, the salt, the length and the object's name: under one key nothing is
//! encrypted twice but to be sent again, and a segment of another object, of another put or place, one too few or too many
//! is noticed. The nonce of a segment is its number. An empty object has one segment, so that it is one of ours, too.

use ring::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce};
use sieva::{Error, ErrorKind, Result};
use sieva_store::objects::Body;

use crate::key::{GroupKey, drawn};

const MAGIC: &[u8; 8] = b"sievaenc";
const SALT: usize = 32;
/// Bytes of the head.
pub(crate) const HEAD: usize = MAGIC.len() + SALT + 8;
/// Bytes of a segment before it is encrypted.
pub(crate) const SEGMENT: u64 = 1 << 16;
/// Bytes of a tag.
const TAG: u64 = 16;

/// How many segments so many bytes are.
fn count(size: u64) -> u64 {
    size.div_ceil(SEGMENT).max(1)
}

/// Bytes of an object of so many bytes when it is encrypted; none where there cannot be as many.
pub(crate) fn sealed_size(size: u64) -> Option<u64> {
    size.checked_add(count(size).checked_mul(TAG)?)?.checked_add(HEAD as u64)
}

/// The bytes that are in an encrypted object, by its length.
pub(crate) fn opened_size(sealed: u64) -> u64 {
    let segments = sealed.saturating_sub(HEAD as u64);
    segments.saturating_sub(segments.div_ceil(SEGMENT + TAG) * TAG)
}

/// What is known of one encrypted object.
pub(crate) struct Sealing {
    key: LessSafeKey,
    head: [u8; HEAD],
    size: u64,
}

impl Sealing {
    /// For an object of so many bytes that is put.
    pub fn new(key: &GroupKey, name: &str, size: u64) -> Result<Self> {
        let salt: [u8; SALT] = drawn()?;
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(MAGIC);
        head[8..8 + SALT].copy_from_slice(&salt);
        head[8 + SALT..].copy_from_slice(&size.to_be_bytes());
        Ok(Self { key: key.of_object(&salt, name, size)?, head, size })
    }

    /// Of an object that is there, by its head; none where it is no head.
    pub fn of(key: &GroupKey, name: &str, head: &[u8]) -> Result<Option<Self>> {
        let Ok(head) = <[u8; HEAD]>::try_from(head) else { return Ok(None) };
        let mut size = [0; 8];
        size.copy_from_slice(&head[8 + SALT..]);
        let size = u64::from_be_bytes(size);
        if &head[..8] != MAGIC || sealed_size(size).is_none_or(|all| i64::try_from(all).is_err()) {
            return Ok(None);
        }
        Ok(Some(Self { key: key.of_object(&head[8..8 + SALT], name, size)?, head, size }))
    }

    /// Bytes of the object as it was.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Of a segment the bytes that it holds.
    fn length(&self, number: u64) -> u64 {
        self.size.saturating_sub(number * SEGMENT).min(SEGMENT)
    }

    /// The encrypted bytes that these bytes of the object are in, and the number of their first segment. A range within the object.
    pub fn sealed(&self, offset: u64, len: u64) -> (u64, u64, u64) {
        let first = offset / SEGMENT;
        let last = (offset + len.max(1) - 1) / SEGMENT;
        let end = (last * SEGMENT + self.length(last)) + (last + 1) * TAG;
        let begin = first * (SEGMENT + TAG);
        (first, HEAD as u64 + begin, end - begin)
    }

    /// Decrypts segments that follow one another, in place; what is left is the bytes of the object. False where they are not
    /// those that were put.
    pub fn open(&self, first: u64, bytes: &mut Vec<u8>) -> bool {
        let (mut from, mut to, mut number) = (0, 0, first);
        while from < bytes.len() {
            let held = self.length(number) as usize;
            let Some(segment) = bytes.get_mut(from..from + held + TAG as usize) else { return false };
            if number >= count(self.size)
                || self.key.open_in_place(nonce(number), Aad::empty(), segment).is_err()
            {
                return false;
            }
            bytes.copy_within(from..from + held, to);
            (from, to, number) = (from + held + TAG as usize, to + held, number + 1);
        }
        bytes.truncate(to);
        true
    }
}

fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[NONCE_LEN - 8..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// A body as it is put: encrypted segment by segment, the same bytes whenever it is read.
pub(crate) struct SealedBody<'b> {
    sealing: Sealing,
    body: &'b dyn Body,
    size: u64,
}

impl<'b> SealedBody<'b> {
    pub fn new(key: &GroupKey, name: &str, body: &'b dyn Body) -> Result<Self> {
        let size = sealed_size(body.size()).ok_or_else(|| {
            Error::new(ErrorKind::InvalidValue, format!("an object of {} bytes cannot be", body.size()))
        })?;
        Ok(Self { sealing: Sealing::new(key, name, body.size())?, body, size })
    }

    /// An encrypted segment with its tag.
    fn segment(&self, number: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.sealing.length(number) as usize];
        self.body.read_exact_at(number * SEGMENT, &mut bytes)?;
        let failed = |_| Error::new(ErrorKind::Internal, "an object cannot be encrypted");
        self.sealing.key.seal_in_place_append_tag(nonce(number), Aad::empty(), &mut bytes).map_err(failed)?;
        Ok(bytes)
    }
}

impl Body for SealedBody<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let past = || Error::new(ErrorKind::Internal, "bytes past the end of a body");
        let mut done = 0;
        while done < out.len() {
            let at = offset + done as u64;
            let (bytes, from) = match at.checked_sub(HEAD as u64) {
                None => (self.sealing.head.to_vec(), at),
                Some(behind) if at < self.size => {
                    let number = behind / (SEGMENT + TAG);
                    (self.segment(number)?, behind % (SEGMENT + TAG))
                }
                Some(_) => return Err(past()),
            };
            let there = bytes.get(from as usize..).filter(|there| !there.is_empty()).ok_or_else(past)?;
            let n = there.len().min(out.len() - done);
            out[done..done + n].copy_from_slice(&there[..n]);
            done += n;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(key: &GroupKey, name: &str, plain: &[u8]) -> Vec<u8> {
        let plain = plain.to_vec();
        let body = SealedBody::new(key, name, &plain).unwrap();
        let mut out = vec![0; body.size() as usize];
        body.read_exact_at(0, &mut out).unwrap();
        out
    }

    fn opened(key: &GroupKey, name: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let sealing = Sealing::of(key, name, sealed.get(..HEAD)?).unwrap()?;
        let mut bytes = sealed[HEAD..].to_vec();
        let is_whole = sealed_size(sealing.size()) == Some(sealed.len() as u64);
        (is_whole && sealing.open(0, &mut bytes)).then_some(bytes)
    }

    const EDGE: usize = SEGMENT as usize;

    fn plain(size: usize) -> Vec<u8> {
        (0..size).map(|i| (i * 7 + (i >> 8)) as u8).collect()
    }

    #[test]
    fn what_is_sealed_is_opened_and_sizes_are_known() {
        let key = GroupKey::draw().unwrap();
        for size in [0, 1, EDGE - 1, EDGE, EDGE + 1, 2 * EDGE, 3 * EDGE + 5] {
            let plain = plain(size);
            let sealed = sealed(&key, "a/b", &plain);
            assert_eq!(sealed_size(size as u64), Some(sealed.len() as u64));
            assert_eq!(opened_size(sealed.len() as u64), size as u64, "{size}");
            assert!(opened(&key, "a/b", &sealed) == Some(plain), "{size}");
        }
        assert_eq!((sealed_size(u64::MAX), opened_size(0), opened_size(10)), (None, 0, 0));
    }

    #[test]
    fn parts_of_a_body_are_those_of_the_whole() {
        let key = GroupKey::draw().unwrap();
        let plain = plain(2 * EDGE + 100);
        let body = SealedBody::new(&key, "n", &plain).unwrap();
        let mut whole = vec![0; body.size() as usize];
        body.read_exact_at(0, &mut whole).unwrap();
        for (at, n) in
            [(0, 1), (5, HEAD), (HEAD, EDGE), (HEAD - 1, 2 * EDGE), (EDGE, 50), (whole.len() - 3, 3)]
        {
            let mut part = vec![0; n];
            body.read_exact_at(at as u64, &mut part).unwrap();
            assert!(part == whole[at..at + n], "{at} {n}");
        }
        let e = body.read_exact_at(whole.len() as u64 - 1, &mut [0; 2]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Internal);
        // Ranges: only the segments that they touch are needed.
        let sealing = Sealing::of(&key, "n", &whole[..HEAD]).unwrap().unwrap();
        for (offset, len) in [(0, 1), (EDGE - 1, 2), (EDGE, EDGE), (2 * EDGE, 100), (10, 2 * EDGE + 90)] {
            let (first, at, n) = sealing.sealed(offset as u64, len as u64);
            let mut bytes = whole[at as usize..(at + n) as usize].to_vec();
            assert!(sealing.open(first, &mut bytes));
            let from = offset - first as usize * EDGE;
            assert!(bytes[from..from + len] == plain[offset..offset + len], "{offset} {len}");
        }
    }

    #[test]
    fn what_is_changed_in_any_way_is_noticed() {
        let key = GroupKey::draw().unwrap();
        let whole = sealed(&key, "n", &plain(2 * EDGE + 100));
        let step = EDGE + TAG as usize;
        for at in [0, 7, 8, 39, 40, 47, HEAD, HEAD + EDGE, HEAD + step, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert!(opened(&key, "n", &damaged).is_none(), "byte {at}");
        }
        // Cut off at a segment, with a head that says so; segments in another order; of another name, put or key.
        let mut cut = whole[..HEAD + 2 * step].to_vec();
        assert!(opened(&key, "n", &cut).is_none());
        cut[8 + SALT..HEAD].copy_from_slice(&(2 * SEGMENT).to_be_bytes());
        assert!(opened(&key, "n", &cut).is_none());
        let mut swapped = whole.clone();
        swapped[HEAD..HEAD + 2 * step].rotate_left(step);
        assert!(opened(&key, "n", &swapped).is_none());
        assert!(
            opened(&key, "m", &whole).is_none() && opened(&GroupKey::draw().unwrap(), "n", &whole).is_none()
        );
        let mut mixed = sealed(&key, "n", &plain(2 * EDGE + 100));
        assert!(mixed[HEAD..] != whole[HEAD..]);
        mixed[HEAD..HEAD + step].copy_from_slice(&whole[HEAD..HEAD + step]);
        assert!(opened(&key, "n", &mixed).is_none());
        for short in [0, 1, HEAD, HEAD + 15] {
            assert!(opened(&key, "n", &whole[..short]).is_none(), "{short}");
        }
        // A head that says more than there can be.
        let mut huge = whole[..HEAD].to_vec();
        huge[8 + SALT..HEAD].fill(0xff);
        assert!(Sealing::of(&key, "n", &huge).unwrap().is_none());
    }
}
