//! What tells one state of a source from another.

use sieva_store::RangedRead;
use sieva_types::Result;
use xxhash_rust::xxh3::Xxh3Default;

/// Bytes of a sample.
const SAMPLE: u64 = 4096;
/// Number of samples; an object of no more bytes than they have together is hashed whole.
const SAMPLES: u64 = 16;

/// The state of a source: two that differ have different fingerprints, as far as can be told without reading
/// all of it. A change that keeps length, modification time and all sampled bytes goes unnoticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// Length in bytes.
    pub len: u64,
    /// Modification time in nanoseconds, or the ETag of an object.
    pub version: String,
    /// xxh3-64 of the hash of the schema and of sampled bytes.
    pub content: u64,
}

impl Fingerprint {
    /// The fingerprint of the object that `read` reads, whose version and hash of the schema the caller knows.
    ///
    /// Reads 16 blocks of 4096 bytes spread evenly over the object, the first and the last included, or the
    /// whole of a smaller object.
    ///
    /// # Errors
    /// Those of reading.
    pub fn take(read: &dyn RangedRead, version: String, schema_hash: u64) -> Result<Self> {
        let is_remote = read.is_remote();
        Self::take_of_copy(read, version, schema_hash, is_remote)
    }

    /// The fingerprint of a copy of the object that `read` reads, whose version is known, behind a network or not: the one that
    /// [`Fingerprint::take`] takes of the copy.
    ///
    /// # Errors
    /// Those of reading.
    pub fn take_of_copy(
        read: &dyn RangedRead,
        version: String,
        schema_hash: u64,
        is_remote: bool,
    ) -> Result<Self> {
        // The tag of a remote object is that of its content, and reading samples would take a request for each.
        let tagged = is_remote && !version.is_empty();
        let content = content(read, schema_hash, !tagged)?;
        Ok(Self { len: read.len(), version, content })
    }

    /// Says that the samples of an object are about to be read, which it fetches together.
    pub fn announce(read: &dyn RangedRead) {
        let ranges: Vec<_> = samples(read.len()).map(|(start, n)| start..start + n as u64).collect();
        read.will_need(&ranges);
    }

    /// Whether this one, of a local file, is that of the remote object that `read` reads: a server's copy of the file, or
    /// the file itself. `put` is when what the fingerprint stands in was put there, as the server says.
    ///
    /// Servers tell times in whole seconds (RFC 9110, section 8.8.2). So the object must have been changed in the second
    /// in which the file was, and what was made of the file must have been put there in a later one: a change
    /// after that is seen by its time.
    ///
    /// # Errors
    /// Those of reading samples, which come in one round.
    pub fn is_of_copy(&self, read: &dyn RangedRead, schema_hash: u64, put: Option<u64>) -> Result<bool> {
        let nanoseconds = self.version.strip_suffix(" ns").and_then(|n| n.parse::<u64>().ok());
        let seconds = nanoseconds.map(|n| n / 1_000_000_000);
        let modified = read.modified();
        let is_known = seconds.is_some() && seconds == modified && put > modified;
        Ok(is_known && self.len == read.len() && self.content == content(read, schema_hash, true)?)
    }
}

/// The hash of the schema's hash, and of samples where these are wanted.
fn content(read: &dyn RangedRead, schema_hash: u64, sampled: bool) -> Result<u64> {
    let mut hash = Xxh3Default::new();
    hash.update(&schema_hash.to_le_bytes());
    if sampled {
        Fingerprint::announce(read);
        let mut sample = [0; SAMPLE as usize];
        for (start, n) in samples(read.len()) {
            let sample = &mut sample[..n];
            read.read_exact_at(start, sample)?;
            hash.update(sample);
        }
    }
    Ok(hash.digest())
}

/// Offset and length of each sample of an object of `len` bytes.
fn samples(len: u64) -> impl Iterator<Item = (u64, usize)> {
    let whole = len <= SAMPLE * SAMPLES;
    let count = if whole { len.div_ceil(SAMPLE) } else { SAMPLES };
    (0..count).map(move |i| {
        if whole {
            return (i * SAMPLE, SAMPLE.min(len - i * SAMPLE) as usize);
        }
        let start = u128::from(len - SAMPLE) * u128::from(i) / u128::from(SAMPLES - 1);
        (start as u64, SAMPLE as usize)
    })
}

#[cfg(test)]
mod tests {
    use sieva_store::MemoryStore;

    use super::*;

    fn of(bytes: &[u8], schema: u64) -> Fingerprint {
        Fingerprint::take(&MemoryStore::new("m", bytes.to_vec()), "v".into(), schema).unwrap()
    }

    #[test]
    fn samples_cover_a_small_object_and_both_ends_of_a_large_one() {
        for len in [0, 1, 4095, 4096, 4097, 65_535, 65_536] {
            let mut end = 0;
            samples(len).for_each(|(start, n)| {
                assert_eq!(start, end);
                end += n as u64;
            });
            assert_eq!(end, len);
        }
        for len in [65_537, 1 << 40, u64::MAX] {
            let all: Vec<_> = samples(len).collect();
            assert_eq!((all.len(), all[0].0, all[15].0), (16, 0, len - 4096));
            assert!(all.windows(2).all(|w| w[0].0 < w[1].0));
        }
    }

    /// An object of a server that tells when it was changed.
    struct Served(MemoryStore, Option<u64>);

    impl RangedRead for Served {
        fn len(&self) -> u64 {
            self.0.len()
        }

        fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
            self.0.read_exact_at(offset, out)
        }

        fn modified(&self) -> Option<u64> {
            self.1
        }

        fn name(&self) -> &str {
            self.0.name()
        }

        fn counters(&self) -> &sieva_store::Counters {
            self.0.counters()
        }
    }

    #[test]
    fn a_copy_has_the_time_and_what_is_sampled() {
        let bytes = vec![7; 100_000];
        let file = MemoryStore::new("m", bytes.clone());
        let local = Fingerprint::take(&file, "1700000000999999999 ns".into(), 5).unwrap();
        let served = |bytes: &[u8], modified| Served(MemoryStore::new("m", bytes.to_vec()), modified);
        let is_copy = |read: &Served, schema, put| local.is_of_copy(read, schema, put).unwrap();
        let same = served(&bytes, Some(1_700_000_000));
        assert!(is_copy(&same, 5, Some(1_700_000_001)));
        // Put there in the second of the change, or before; nobody knows when; of another schema.
        assert!(!is_copy(&same, 5, Some(1_700_000_000)) && !is_copy(&same, 5, None));
        assert!(!is_copy(&same, 6, Some(1_700_000_001)));
        assert!(!is_copy(&served(&bytes, Some(1_700_000_001)), 5, Some(1_700_000_009)));
        assert!(!is_copy(&served(&bytes, None), 5, Some(1_700_000_009)));
        assert!(!is_copy(&served(&bytes[1..], Some(1_700_000_000)), 5, Some(1_700_000_009)));
        let mut other = bytes.clone();
        other[99_999] = 8;
        assert!(!is_copy(&served(&other, Some(1_700_000_000)), 5, Some(1_700_000_009)));
        let tagged = Fingerprint { version: "\"tag\" 100000".into(), ..local.clone() };
        assert!(!tagged.is_of_copy(&same, 5, Some(1_700_000_009)).unwrap());
    }

    #[test]
    fn a_change_that_is_sampled_is_noticed() {
        let mut bytes = vec![7; 200_000];
        let old = of(&bytes, 1);
        assert_eq!(old, of(&bytes, 1));
        assert_ne!(old, of(&bytes, 2));
        bytes[199_999] = 8;
        assert_ne!(old.content, of(&bytes, 1).content);
        bytes[199_999] = 7;
        bytes.push(7);
        assert_ne!(old, of(&bytes, 1));
        assert_ne!(of(b"", 1).content, of(b"", 2).content);
    }
}
