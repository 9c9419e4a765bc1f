//! Where a file's bytes lie: which server has which of them.
//!
//! A parallel file system deals a file to servers in stripes; a reader that knows them asks each server once, in the order in
//! which it keeps its bytes (Liu et al., *Locality-driven High-level I/O Aggregation*, section IV, whose stripe size `t` and
//! stripe count `l` are [`Striping::given`]'s). One form covers what file systems do: parts of the file, each with a [`Rule`].
//!
//! | file system | its words | here |
//! |---|---|---|
//! | Lustre | components of RAID-0, `stripe_size`, OSTs | a part for each component, servers by turns |
//! | BeeGFS | chunk size, targets | one part, servers by turns |
//! | CephFS | `stripe_unit`, `stripe_count`, `object_size` | one part, objects; where an object lies is a hash that is not told |
//! | GlusterFS | shards of one size | one part, an object for each stripe |
//! | S3 | parts of the upload | one part, an object for each stripe |
//! | a disk | extents | one server, and the order on the disk ([`Striping::disk_order`]) |
//!
//! It is only about time: who believes a wrong striping reads the same bytes in a worse order.

mod beegfs;
mod ceph;
mod detect;
mod fiemap;
mod gluster;
mod ioctl;
mod kept;
mod lustre;
mod pieces;
mod rule;
mod text;
mod uploaded;

use std::ops::Range;
use std::sync::Arc;

use sieva_types::{Error, ErrorKind, Result};

pub use detect::Told;
use fiemap::DiskOrder;
pub use pieces::Piece;
use pieces::Pieces;
use rule::{Place, Rule};

/// What stands for the metadata server among the numbers of a file system's servers.
const METADATA_SERVER: u32 = u32::MAX;

/// The most servers that a list of them has: more than any file system gives a file (Lustre 2000, BeeGFS 65 536).
const MOST_SERVERS: u32 = 1 << 16;

/// Where the bytes of one file lie. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Striping {
    /// In ascending order, from byte 0 to the last that there can be.
    parts: Arc<[Part]>,
    servers: Servers,
    disk: Option<DiskOrder>,
    /// What tells it, or why there is nothing to tell.
    told_by: Arc<str>,
}

/// A part of the file with one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    range: Range<u64>,
    /// The number of its first stripe, counted over all parts.
    first: u64,
    rule: Rule,
}

/// What the servers are called.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Servers {
    /// A word, and the number that the file system gives each.
    Listed(&'static str, Arc<[u32]>),
    /// A word, and how many there are.
    Numbered(&'static str, u64),
}

/// Servers by turns from byte `from` on: the numbers that the file system gives them, in the order of the stripes.
struct Turns {
    from: u64,
    unit: u64,
    on: Vec<u32>,
}

impl Striping {
    /// Stripes of `stripe_size` bytes on `stripe_count` servers by turns, the first on server `stripe_offset`.
    ///
    /// # Errors
    /// `invalid-value` where a number is 0, or there is no server of that number.
    ///
    /// ```
    /// use sieva_store::Striping;
    ///
    /// let striping = Striping::given(1 << 20, 4, 0)?;
    /// let servers: Vec<u32> = striping.pieces(0..3 << 20).map(|piece| piece.server).collect();
    /// assert_eq!((striping.servers(), servers), (4, vec![0, 1, 2]));
    /// # Ok::<(), sieva_types::Error>(())
    /// ```
    pub fn given(stripe_size: u64, stripe_count: u32, stripe_offset: u32) -> Result<Self> {
        Self::given_of(stripe_size, stripe_count, stripe_offset, stripe_count)
    }

    /// The same on some of `servers` servers, counted on from the first after the last.
    fn given_of(stripe_size: u64, stripe_count: u32, stripe_offset: u32, servers: u32) -> Result<Self> {
        if servers > MOST_SERVERS {
            return Err(wrong(format!("{servers} servers: expected at most {MOST_SERVERS}")));
        }
        if stripe_count == 0 {
            return Err(wrong("stripe_count 0: expected at least 1".into()));
        }
        if stripe_count > servers {
            let what = format!(
                "stripe_count {stripe_count}: expected no more than the {servers} servers that there are"
            );
            return Err(wrong(what));
        }
        if stripe_offset >= servers {
            let e = wrong(format!(
                "stripe_offset {stripe_offset}: expected less than the {servers} servers that there are"
            ));
            return Err(e.hint("say how many there are: servers=40"));
        }
        let on = (0..stripe_count)
            .map(|j| ((u64::from(stripe_offset) + u64::from(j)) % u64::from(servers)) as u32);
        let turns = Turns { from: 0, unit: stripe_size, on: on.collect() };
        Self::by_turns(vec![turns], "server", (0..servers).collect(), "given".into())
    }

    /// All bytes on one server, in the order of the file: where nothing is known.
    pub fn single() -> Self {
        Self::single_as("nothing is known of it")
    }

    fn single_as(told_by: &str) -> Self {
        let rule = Rule { unit: u64::MAX, place: Place::Slots(Arc::new([0])) };
        Self {
            parts: Arc::new([Part { range: 0..u64::MAX, first: 0, rule }]),
            servers: Servers::Numbered("server", 1),
            disk: None,
            told_by: told_by.into(),
        }
    }

    /// Parts that follow one another, each on servers by turns. `all` are the servers that there are besides.
    ///
    /// # Errors
    /// `invalid-value` where parts are not in order from byte 0 on, or one has no server or stripes of no bytes.
    fn by_turns(turns: Vec<Turns>, kind: &'static str, mut all: Vec<u32>, told_by: String) -> Result<Self> {
        all.extend(turns.iter().flat_map(|t| &t.on));
        all.sort_unstable();
        all.dedup();
        let dense = |id: &u32| all.binary_search(id).unwrap_or(0) as u32;
        let mut parts: Vec<Part> = Vec::with_capacity(turns.len());
        for (i, part) in turns.iter().enumerate() {
            let end = turns.get(i + 1).map_or(u64::MAX, |next| next.from);
            let (from, unit) = (part.from, part.unit);
            if (i == 0 && from != 0) || from >= end {
                return Err(wrong(format!(
                    "a part from byte {from} to {end}: expected them in order from byte 0 on"
                )));
            }
            if unit == 0 || part.on.is_empty() {
                let n = part.on.len();
                return Err(wrong(format!(
                    "stripes of {unit} bytes on {n} servers: expected at least one of each"
                )));
            }
            let first = parts.last().map_or(0, Part::end);
            let rule = Rule { unit, place: Place::Slots(part.on.iter().map(dense).collect()) };
            parts.push(Part { range: from..end, first, rule });
        }
        if parts.is_empty() {
            return Err(wrong("no stripes at all: expected a part from byte 0 on".into()));
        }
        let servers = Servers::Listed(kind, all.into());
        Ok(Self { parts: parts.into(), servers, disk: None, told_by: told_by.into() })
    }

    /// Stripes of `unit` bytes by turns on `slots` objects of `object_size` bytes, then on the next ones; each object stands
    /// for a server, of a file of `len` bytes.
    ///
    /// # Errors
    /// `invalid-value` where the object size is no multiple of the unit, a number is 0, or there are 2^32 objects or more.
    fn by_objects(
        unit: u64,
        slots: u64,
        object_size: u64,
        len: u64,
        kind: &'static str,
        told_by: String,
    ) -> Result<Self> {
        if unit == 0
            || slots == 0
            || slots > u64::from(u32::MAX)
            || object_size == 0
            || !object_size.is_multiple_of(unit)
        {
            return Err(wrong(format!(
                "stripes of {unit} bytes on {slots} objects of {object_size} bytes: expected a multiple of the stripe, none 0"
            )));
        }
        let rule = Rule { unit, place: Place::Objects { slots, rounds: object_size / unit } };
        let objects = rule.objects(len);
        if objects > u64::from(u32::MAX) {
            return Err(wrong(format!("{objects} objects: expected less than 2^32")));
        }
        let parts = Arc::new([Part { range: 0..u64::MAX, first: 0, rule }]);
        Ok(Self { parts, servers: Servers::Numbered(kind, objects), disk: None, told_by: told_by.into() })
    }

    /// The same of a file of `len` bytes: one that was given as text does not know how many objects there are.
    #[must_use]
    pub fn for_length(mut self, len: u64) -> Self {
        if let (Servers::Numbered(_, n), [part]) = (&mut self.servers, &*self.parts) {
            *n = part.rule.objects(len).min(u32::MAX.into());
        }
        self
    }

    /// How many servers there are; their numbers are below it. Of what is kept in objects whose places are not told each
    /// object counts: there may be a great many.
    pub fn servers(&self) -> usize {
        match &self.servers {
            Servers::Listed(_, ids) => ids.len(),
            Servers::Numbered(_, n) => usize::try_from(*n).unwrap_or(usize::MAX),
        }
    }

    /// What the file system calls a server: `OST 3`, `object 12`.
    pub fn server_name(&self, server: u32) -> String {
        match &self.servers {
            Servers::Listed(kind, ids) => match ids.get(server as usize) {
                Some(&METADATA_SERVER) => "metadata server".into(),
                Some(id) => format!("{kind} {id}"),
                None => format!("{kind} ?"),
            },
            Servers::Numbered(kind, _) => format!("{kind} {server}"),
        }
    }

    /// Whether there is one server, and no stripe ends before the file does.
    pub fn is_single(&self) -> bool {
        self.stripe_size() == u64::MAX
    }

    /// Bytes of the smallest stripe; 2^64 - 1 where there is one server.
    pub fn stripe_size(&self) -> u64 {
        let of = |part: &Part| part.rule.unit.min(part.range.end - part.range.start);
        self.parts.iter().map(of).min().unwrap_or(u64::MAX)
    }

    /// The bytes of `range`, cut where stripes end, in the order of the file.
    ///
    /// ```
    /// use sieva_store::{Piece, Striping};
    ///
    /// let striping = Striping::given(100, 2, 1)?;
    /// let pieces: Vec<Piece> = striping.pieces(150..210).collect();
    /// assert_eq!(pieces[0], Piece { server: 0, stripe: 1, range: 150..200 });
    /// assert_eq!(pieces[1], Piece { server: 1, stripe: 2, range: 200..210 });
    /// # Ok::<(), sieva_types::Error>(())
    /// ```
    pub fn pieces(&self, range: Range<u64>) -> impl Iterator<Item = Piece> + '_ {
        Pieces::new(&self.parts, range)
    }

    /// The stripes of a server in a file of `len` bytes, in the order of the file: the closed form of the paper's equation 3.
    pub fn on_server(&self, server: u32, len: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        self.stripes_on(server, 0..len).map(|piece| piece.range)
    }

    /// Those of a range of bytes, with their numbers.
    pub fn stripes_on(&self, server: u32, range: Range<u64>) -> impl Iterator<Item = Piece> + '_ {
        self.parts.iter().flat_map(move |part| part.stripes_on(server, &range))
    }

    /// Where a byte lies on its disk, of a file whose extents the system tells: who reads in this order spares the disk's arm.
    pub fn disk_order(&self, offset: u64) -> Option<u64> {
        self.disk.as_ref()?.of(offset)
    }

    /// What is known, in words, and who says so.
    pub fn describe(&self) -> String {
        if self.is_single() {
            return format!("one server ({})", self.told_by);
        }
        let of = match &self.servers {
            Servers::Listed(kind, _) | Servers::Numbered(kind, _) => kind,
        };
        format!("{} {of}s, {self} ({})", self.servers(), self.told_by)
    }
}

impl Part {
    /// The number after that of its last stripe.
    fn end(&self) -> u64 {
        self.first + (self.rule.stripe(self.range.end - 1) - self.rule.stripe(self.range.start)) + 1
    }

    fn piece(&self, stripe: u64, within: &Range<u64>) -> Piece {
        let bytes = self.rule.bytes(stripe);
        let range = bytes.start.max(within.start)..bytes.end.min(within.end);
        Piece { server: self.rule.server(stripe), stripe: self.number(stripe), range }
    }

    /// The number of a stripe of its rule, counted over all parts.
    fn number(&self, stripe: u64) -> u64 {
        self.first + (stripe - self.rule.stripe(self.range.start))
    }

    fn stripes_on(&self, server: u32, range: &Range<u64>) -> impl Iterator<Item = Piece> + use<'_> {
        let start = self.range.start.max(range.start);
        let within = start..self.range.end.min(range.end).max(start);
        self.rule.stripes_of(server, &within).map(move |stripe| self.piece(stripe, &within))
    }
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::InvalidValue, format!("striping: {message}"))
}

#[cfg(test)]
mod tests;
