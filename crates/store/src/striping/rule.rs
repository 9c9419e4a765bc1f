//! One rule of how bytes are dealt to servers: stripes of one size, by turns, into objects of a bounded size or into one each.
//!
//! Stripe number `s = ⌊offset / unit⌋` is in slot `s mod n` of round `⌊s / n⌋`. A file system that gives each slot one object
//! (RAID-0 of Lustre and BeeGFS) has it on the slot's server. One that cuts objects (CephFS, shards of GlusterFS, parts of an
//! upload) puts `rounds` rounds into `n` objects, then begins the next `n`: object `⌊s / (n·rounds)⌋·n + s mod n`. Every
//! question is answered by such divisions; no table of stripes is made.

use std::ops::Range;
use std::sync::Arc;

/// Where the stripes of a rule are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The server of each slot.
    Slots(Arc<[u32]>),
    /// Objects, of which each stands for a server: slots, and rounds of them that one object takes.
    Objects { slots: u64, rounds: u64 },
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// Bytes of a stripe, at least 1; 2^64 - 1 where it is never cut.
    pub(super) unit: u64,
    /// Where stripes are; there is a slot at least.
    pub(super) place: Place,
}

impl Rule {
    /// The stripe of a byte.
    pub(super) fn stripe(&self, offset: u64) -> u64 {
        offset / self.unit
    }

    /// The bytes of a stripe.
    pub(super) fn bytes(&self, stripe: u64) -> Range<u64> {
        let start = stripe.saturating_mul(self.unit);
        start..start.saturating_add(self.unit)
    }

    /// The server of a stripe.
    pub(super) fn server(&self, stripe: u64) -> u32 {
        match &self.place {
            Place::Slots(servers) => servers[(stripe % servers.len() as u64) as usize],
            Place::Objects { slots, rounds } => {
                let object = stripe / slots.saturating_mul(*rounds) * slots + stripe % slots;
                u32::try_from(object).unwrap_or(u32::MAX)
            }
        }
    }

    /// The stripes of a server among those from the one of the first to the one of the last byte of `range`, ascending.
    pub(super) fn stripes_of(&self, server: u32, range: &Range<u64>) -> impl Iterator<Item = u64> + use<> {
        let (first, last) = match range.is_empty() {
            true => (1, 0),
            false => (self.stripe(range.start), self.stripe(range.end - 1)),
        };
        let (n, slots, rounds): (u64, Vec<u64>, Range<u64>) = match &self.place {
            Place::Slots(servers) => {
                let own = servers.iter().enumerate().filter(|(_, s)| **s == server);
                (servers.len() as u64, own.map(|(slot, _)| slot as u64).collect(), 0..u64::MAX)
            }
            Place::Objects { slots, rounds } => {
                let begin = (u64::from(server) / slots).saturating_mul(*rounds);
                (*slots, vec![u64::from(server) % slots], begin..begin.saturating_add(*rounds))
            }
        };
        let rounds = rounds.start.max(first / n)..rounds.end.min((last / n).saturating_add(1));
        let k = slots.len() as u64;
        let n_rounds = if first > last { 0 } else { rounds.end.saturating_sub(rounds.start) };
        let nth =
            move |i: u64| (rounds.start + i / k).saturating_mul(n).saturating_add(slots[(i % k) as usize]);
        (0..n_rounds.saturating_mul(k)).map(nth).filter(move |stripe| (first..=last).contains(stripe))
    }

    /// The servers that have a byte of a file of this length, as a number that is above all of theirs.
    pub(super) fn objects(&self, len: u64) -> u64 {
        match &self.place {
            Place::Slots(servers) => servers.len() as u64,
            Place::Objects { slots, rounds } => {
                let stripes = len.div_ceil(self.unit);
                let (whole, rest) =
                    (stripes / slots.saturating_mul(*rounds), stripes % slots.saturating_mul(*rounds));
                (whole.saturating_mul(*slots)).saturating_add(rest.min(*slots)).max(1)
            }
        }
    }
}
