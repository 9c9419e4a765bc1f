//! Counting different texts: their bytes one behind the other, and a table of their numbers.

use std::any::Any;
use std::hash::{BuildHasher, RandomState};

use sieva_types::wire::{Reader, Writer};
use sieva_types::{Result, Texts};

use super::counts;
use crate::aggregate::NO_GROUP;
use crate::aggregate::accumulator::{
    Accumulator, Finished, Piece, Target, bytes, internal, is_there, same, wrong_piece,
};
use crate::aggregate::wire::Encoded;
use crate::values::Scalar;

/// A place of the table without a text.
const FREE: u32 = u32::MAX;
/// The least places.
const LEAST: usize = 16;

/// The different texts of all groups.
#[derive(Debug, Default)]
pub(super) struct DistinctTexts {
    groups: usize,
    texts: Texts,
    /// The group of each text.
    group_of: Vec<u32>,
    /// The numbers of texts, at the places of their hashes or behind; as many as a power of 2, a quarter at least is free.
    places: Vec<u32>,
    hasher: RandomState,
}

impl DistinctTexts {
    fn hash(&self, group: u32, text: &str) -> usize {
        self.hasher.hash_one((group, text)) as usize
    }

    /// Adds a text of a group, if it has none like it.
    ///
    /// # Errors
    /// `memory-limit` where the system has no room for it.
    fn insert(&mut self, group: u32, text: &str) -> Result<()> {
        self.make_room(1)?;
        let mask = self.places.len() - 1;
        let mut at = self.hash(group, text) & mask;
        while self.places[at] != FREE {
            let known = self.places[at] as usize;
            if self.group_of[known] == group && self.texts[known] == *text {
                return Ok(());
            }
            at = (at + 1) & mask;
        }
        self.places[at] = u32::try_from(self.group_of.len()).ok().filter(|&n| n != FREE).ok_or_else(full)?;
        let spare = self.texts.bytes_capacity() - self.texts.as_str().len();
        if spare < text.len() {
            self.texts.reserve_exact(0, spared(self.texts.as_str().len(), text.len()))?;
        }
        self.texts.push(text);
        self.group_of.push(group);
        Ok(())
    }

    /// Places for so many texts.
    fn places_for(texts: usize) -> usize {
        (texts.saturating_mul(4) / 3 + 1).next_power_of_two().max(LEAST)
    }

    /// Makes room for so many texts more, whatever their bytes.
    fn make_room(&mut self, more: usize) -> Result<()> {
        let len = self.group_of.len();
        if len + more > self.group_of.capacity() {
            let more = spared(len, more);
            self.group_of.reserve_exact(more);
            self.texts.reserve_exact(more, 0)?;
        }
        let wanted = Self::places_for(len + more);
        if wanted <= self.places.len() {
            return Ok(());
        }
        self.places = Vec::new();
        self.places.resize(wanted, FREE);
        for n in 0..len {
            let mut at = self.hash(self.group_of[n], &self.texts[n]) & (wanted - 1);
            while self.places[at] != FREE {
                at = (at + 1) & (wanted - 1);
            }
            self.places[at] = n as u32;
        }
        Ok(())
    }

    /// Bytes more for so many texts more of so many bytes: what gets larger is held while it is copied.
    fn more(&self, texts: usize, bytes: usize) -> u64 {
        let len = self.group_of.len();
        let each = (size_of::<u32>() + size_of::<i32>()) as u64;
        let rows = match len.saturating_add(texts) <= self.group_of.capacity() {
            true => 0,
            false => (len + spared(len, texts)) as u64 * each,
        };
        let (held, used) = (self.texts.bytes_capacity(), self.texts.as_str().len());
        let of_texts = if used + bytes <= held { 0 } else { (used + spared(used, bytes)) as u64 };
        // The places are let go before there are others.
        let places = Self::places_for(len.saturating_add(texts)).saturating_sub(self.places.len());
        rows + of_texts + (places * size_of::<u32>()) as u64
    }

    /// The numbers of the texts by group, and in their order.
    fn sorted(&self) -> Vec<u32> {
        let mut all: Vec<u32> = (0..self.group_of.len() as u32).collect();
        all.sort_unstable_by_key(|&n| (self.group_of[n as usize], &self.texts[n as usize]));
        all
    }
}

/// How many more there is made room for: a quarter at least.
fn spared(len: usize, more: usize) -> usize {
    more.max(len / 4).max(LEAST)
}

fn full() -> sieva_types::Error {
    let message = "more than 2^32 different texts";
    sieva_types::Error::new(sieva_types::ErrorKind::MemoryLimit, message)
}

impl Accumulator for DistinctTexts {
    fn len(&self) -> usize {
        self.groups
    }

    fn resize(&mut self, groups: usize) {
        self.groups = self.groups.max(groups);
    }

    fn update(&mut self, target: Target<'_>, piece: &Piece<'_>) -> Result<()> {
        let Piece::Str(v, p) = *piece else { return Err(wrong_piece(piece)) };
        let mut done = Ok(());
        target.each(
            v.len(),
            |i| is_there(p, i),
            |g, i| {
                if done.is_ok() {
                    done = self.insert(g as u32, &v[i]);
                }
            },
        );
        done
    }

    fn repeat(&mut self, group: usize, one: &Piece<'_>, n: u64) -> Result<()> {
        // Once is as good as often.
        if n > 0 { self.update(Target::One(group), one) } else { Ok(()) }
    }

    fn merge(&mut self, other: &dyn Accumulator, to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        for (text, &group) in other.texts.iter().zip(&other.group_of) {
            let group = *to.get(group as usize).ok_or_else(|| internal("a group that is not there"))?;
            if group != NO_GROUP {
                self.insert(group, text)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, order: &[usize], _: usize) -> Result<Finished> {
        let all = std::mem::take(self);
        counts(all.groups, all.group_of.iter().copied(), order)
    }

    fn value(&self, group: usize) -> Result<Scalar> {
        Ok(Scalar::I64(self.group_of.iter().filter(|&&g| g as usize == group).count() as i64))
    }

    fn memory_bytes(&self) -> u64 {
        bytes(&self.places) + bytes(&self.group_of) + self.texts.memory_bytes() as u64
    }

    fn growth(&self, values: u64) -> u64 {
        self.more(usize::try_from(values).unwrap_or(FREE as usize).min(FREE as usize), 0)
    }

    fn repeating(&self, _: u64) -> u64 {
        self.growth(1)
    }

    fn merging(&self, other: &dyn Accumulator) -> u64 {
        same::<Self>(other).map_or(0, |other| self.more(other.group_of.len(), other.texts.as_str().len()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Encoded for DistinctTexts {
    fn encode(&self, groups: usize, w: &mut Writer) {
        let all = self.sorted();
        let mut rest = &all[..];
        for group in 0..groups {
            let is_own = |n: &u32| self.group_of[*n as usize] as usize <= group;
            let (own, others) = rest.split_at(rest.partition_point(is_own));
            w.list(own, |w, &n| w.text(&self.texts[n as usize]));
            rest = others;
        }
    }

    fn decode(&mut self, groups: usize, _: u64, r: &mut Reader<'_>) -> Result<()> {
        self.resize(groups);
        for group in 0..groups {
            for text in r.list(Reader::text)? {
                // Its places, some of which are held twice for a moment while they grow.
                r.charge(size_of::<[u32; 8]>())?;
                self.insert(group as u32, &text)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is foreseen is never less than what is held, and texts of 16 bytes take 60 at most.
    #[test]
    fn texts_take_little_more_than_their_bytes() {
        let (mut all, mut part) = (DistinctTexts::default(), DistinctTexts::default());
        all.resize(3);
        part.resize(2);
        let mut different = 0_u64;
        for round in 0..40_usize {
            let texts: Vec<String> =
                (0..500).map(|i| format!("{:016}", i % (100 + round) + 70 * round)).collect();
            let texts: Texts = texts.iter().map(String::as_str).collect();
            let (before, foreseen) = (all.memory_bytes(), all.growth(500));
            all.update(Target::One(2), &Piece::Str(texts.all(), None)).unwrap();
            let of_texts = 16 * 500 * 5 / 4;
            assert!(all.memory_bytes() <= before + foreseen + of_texts.max(before / 4));
            part.update(Target::One(1), &Piece::Str(texts.all(), None)).unwrap();
            different = different.max((70 * round + 100 + round) as u64);
        }
        let foreseen = all.memory_bytes() + all.merging(&part);
        all.merge(&part, &[NO_GROUP, 2]).unwrap();
        assert!(all.memory_bytes() <= foreseen);
        assert_eq!(all.value(2).unwrap(), Scalar::I64(different as i64));
        assert_eq!(all.value(1).unwrap(), Scalar::I64(0));
        all.merge(&part, &[NO_GROUP, 0]).unwrap();
        assert_eq!(all.value(0).unwrap(), Scalar::I64(different as i64));
        assert!(all.memory_bytes() <= 2 * different * 60, "{} {different}", all.memory_bytes());
    }
}
