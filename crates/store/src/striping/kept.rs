//! A striping as two texts that are kept: its rule, as [`Striping::parse`] reads it, and what its servers are called.

use std::sync::Arc;

use sieva_types::Result;

use super::{Servers, Striping, wrong};

/// What file systems call their servers.
const KINDS: [&str; 6] = ["server", "OST", "target", "object", "shard", "part"];

impl Striping {
    /// The rule and what a server is called, where there are several: another process that has them need not ask the file
    /// system. `None` for one server, of which only the order on its disk is known, that of this machine.
    ///
    /// ```
    /// use sieva_store::Striping;
    ///
    /// let striping = Striping::given(1 << 20, 4, 1)?;
    /// let (rule, kind) = striping.to_kept().unwrap();
    /// assert_eq!(Striping::of_kept(&rule, kind, 9 << 20)?.on_server(1, 9 << 20).next(), Some(0..1 << 20));
    /// assert_eq!(Striping::single().to_kept(), None);
    /// # Ok::<(), sieva_types::Error>(())
    /// ```
    pub fn to_kept(&self) -> Option<(String, &str)> {
        let (Servers::Listed(kind, _) | Servers::Numbered(kind, _)) = &self.servers;
        (!self.is_single()).then(|| (self.to_string(), *kind))
    }

    /// The striping that [`Striping::to_kept`] told of a file of `len` bytes.
    ///
    /// # Errors
    /// `invalid-value` for texts that it never gives.
    pub fn of_kept(rule: &str, kind: &str, len: u64) -> Result<Self> {
        let kind = KINDS.into_iter().find(|known| *known == kind);
        let kind = kind.ok_or_else(|| wrong("servers of a kind that there is not".into()))?;
        let mut found = Self::parse(rule)?.for_length(len);
        match &mut found.servers {
            Servers::Listed(of, _) | Servers::Numbered(of, _) => *of = kind,
        }
        Ok(Self { told_by: Arc::from("kept with the manifest"), ..found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::striping::{METADATA_SERVER, Turns};

    /// Servers by name, and pieces.
    fn told(striping: &Striping, len: u64) -> Vec<(String, u64, std::ops::Range<u64>)> {
        let pieces = striping.pieces(0..len);
        pieces.map(|piece| (striping.server_name(piece.server), piece.stripe, piece.range)).collect()
    }

    #[test]
    fn what_is_kept_says_the_same() {
        let turns = |from, unit, on: &[u32]| Turns { from, unit, on: on.to_vec() };
        let by_turns =
            |all: Vec<Turns>, kind| Striping::by_turns(all, kind, Vec::new(), "told".into()).unwrap();
        let by_objects = |unit, slots, size, kind| {
            Striping::by_objects(unit, slots, size, 1000, kind, "told".into()).unwrap()
        };
        let all = [
            Striping::given(64, 3, 2).unwrap(),
            Striping::parse("stripe_size=10,stripe_count=2,stripe_offset=1,servers=5").unwrap(),
            by_turns(vec![turns(0, 100, &[7, 3, 12])], "OST"),
            by_turns(vec![turns(0, u64::MAX, &[METADATA_SERVER]), turns(128, 64, &[5, 9])], "OST"),
            by_turns(vec![turns(0, 50, &[2, 2])], "target"),
            by_objects(10, 4, 50, "object"),
            by_objects(100, 1, 100, "shard"),
            by_objects(300, 1, 300, "part"),
        ];
        for striping in all {
            let (rule, kind) = striping.to_kept().unwrap();
            let again = Striping::of_kept(&rule, kind, 1000).unwrap();
            assert_eq!(told(&again, 1000), told(&striping, 1000), "{rule}");
            assert_eq!(again.servers(), striping.servers(), "{rule}");
            assert_eq!(again.to_kept(), striping.to_kept());
        }
        assert_eq!(Striping::single().to_kept(), None);
        assert!(Striping::of_kept("stripe_size=1MiB", "barn", 1).is_err());
        assert!(Striping::of_kept("stripe_size=lots", "OST", 1).is_err());
    }
}
