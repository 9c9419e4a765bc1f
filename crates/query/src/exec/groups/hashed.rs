//! Groups that are found by hashing their keys.

mod wire;

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use sieva_index::stats::Total;
use sieva_types::{Error, ErrorKind, Result};

use super::columns::{KeyColumn, hash_keys};
use super::dense::Dense;
use crate::aggregate::{Accumulator, Aggregate, NO_GROUP, Piece, accumulator};
use crate::bind::Body;
use crate::exec::Execution;
use crate::exec::budget::Room;
use crate::exec::groups::aggregate::refuse_parts;
use crate::values::{Scalar, ValueType, Vector};

/// The end of a chain.
const NONE: u32 = u32::MAX;
/// Bytes of a group while the table of the result is made of it: its place in the order, a key and a value.
const FINISHING: u64 = 96;

/// An aggregate and the type of its argument.
pub(in crate::exec) type Kind = (Aggregate, Option<ValueType>);

/// Accumulators of some aggregates, of no groups.
///
/// # Errors
/// As [`accumulator`].
pub(in crate::exec) fn accumulators(kinds: &[Kind]) -> Result<Vec<Box<dyn Accumulator>>> {
    kinds.iter().map(|(aggregate, input)| accumulator(aggregate, *input)).collect()
}

/// Groups under construction. Those of like queries over several sources can be merged: what comes out is the same as of
/// one source that holds all rows.
#[derive(Debug, Default)]
pub struct Groups {
    random: RandomState,
    /// The last group of each hash of a key; those before it by `before`.
    index: HashMap<u64, u32, BuildHasherDefault<AsIs>>,
    before: Vec<u32>,
    /// Per key, those of all groups.
    keys: Vec<KeyColumn>,
    kinds: Vec<Kind>,
    /// Per aggregate, the states of all groups, and of some that are still to come.
    states: Vec<Box<dyn Accumulator>>,
    room: Room,
}

/// A hash that is one already.
#[derive(Debug, Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.0 = self.0.rotate_left(8) ^ u64::from(b));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl Groups {
    /// No rows yet of the groups of a query: no group, or one where there are no keys.
    ///
    /// # Errors
    /// `internal-error` for a query without groups; `unsupported` as of [`super::partial_groups`].
    pub fn start(execution: &Execution) -> Result<Self> {
        let Body::Groups { keys, aggregates, .. } = &execution.bound.body else {
            return Err(Error::new(ErrorKind::Internal, "groups of a query without them"));
        };
        refuse_parts(aggregates)?;
        let kinds = execution.kinds_of(aggregates);
        let mut groups = Self::new(keys.len(), &kinds, execution.options.room())?;
        if keys.is_empty() {
            groups.group(Vec::new())?;
        }
        Ok(groups)
    }

    /// The same groups with other keys and with aggregates in the order of their numbers in `order`, which may name one
    /// twice. `key` makes a group's key out of its old one and of what its aggregates of some numbers come to; `None` drops
    /// the group.
    ///
    /// # Errors
    /// Those of `key`, and `internal-error` for keys that are no longer different.
    pub fn rekeyed(
        self,
        order: &[usize],
        mut key: impl FnMut(Vec<Scalar>, &dyn Fn(usize) -> Result<Scalar>) -> Result<Option<Vec<Scalar>>>,
    ) -> Result<Self> {
        let kinds: Vec<Kind> = order.iter().map(|&i| self.kinds[i]).collect();
        let mut out: Option<Self> = None;
        let mut to = vec![NO_GROUP; self.states.iter().map(|s| s.len()).max().unwrap_or_default()];
        for g in 0..self.len() {
            let value = |i: usize| self.states.get(i).map_or(Ok(Scalar::Null), |s| s.value(g));
            let Some(new) = key(self.key(g), &value)? else { continue };
            if out.is_none() {
                out = Some(Self::new(new.len(), &kinds, self.room)?);
            }
            let Some(out) = out.as_mut() else { continue };
            let known = out.len();
            let group = out.group(new)?;
            if group < known {
                return Err(Error::new(ErrorKind::Internal, "two groups of one key"));
            }
            if let Some(to) = to.get_mut(g) {
                *to = group as u32;
            }
        }
        let Some(mut out) = out else { return Self::new(self.keys.len(), &kinds, self.room) };
        for (state, &i) in out.states.iter_mut().zip(order) {
            state.merge(&*self.states[i], &to)?;
        }
        Ok(out)
    }

    /// No groups yet.
    ///
    /// # Errors
    /// As [`accumulator`].
    pub(in crate::exec) fn new(width: usize, kinds: &[Kind], room: Room) -> Result<Self> {
        let keys = (0..width).map(|_| KeyColumn::default()).collect();
        Ok(Self { keys, kinds: kinds.to_vec(), states: accumulators(kinds)?, room, ..Self::default() })
    }

    /// Whether there is no group.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty()
    }

    /// How many groups there are.
    pub(super) fn len(&self) -> usize {
        self.before.len()
    }

    /// The keys of a group.
    pub(super) fn key(&self, group: usize) -> Vec<Scalar> {
        self.keys.iter().map(|k| k.scalar(group)).collect()
    }

    /// The keys and the states of all groups.
    pub(super) fn into_parts(self) -> (Vec<KeyColumn>, Vec<Box<dyn Accumulator>>) {
        (self.keys, self.states)
    }

    /// The states of all groups, per aggregate.
    pub(super) fn states(&self) -> &[Box<dyn Accumulator>] {
        &self.states
    }

    /// As [`Groups::states`].
    pub(super) fn states_mut(&mut self) -> &mut [Box<dyn Accumulator>] {
        &mut self.states
    }

    /// Checks that the groups' aggregates may take in so many rows.
    ///
    /// # Errors
    /// `memory-limit`.
    pub(super) fn check_rows(&self, rows: u64) -> Result<()> {
        let growth: u64 = self.states.iter().map(|s| s.growth(rows)).fold(0, u64::saturating_add);
        if growth == 0 { Ok(()) } else { self.check(growth) }
    }

    /// Takes `n` rows of one value into an aggregate of a group; where each is kept, there has to be room for them.
    pub(super) fn repeat(&mut self, number: usize, group: usize, one: &Piece<'_>, n: u64) -> Result<()> {
        let need = if one.has_first() { self.states[number].repeating(n) } else { 0 };
        if need > 0 {
            self.check(need)?;
        }
        self.states[number].repeat(group, one, n)
    }

    /// Takes `n` values of a known sum into an aggregate of a group.
    pub(super) fn add_total(&mut self, number: usize, group: usize, total: &Total, n: u64) -> Result<()> {
        self.states[number].add_total(group, total, n)?;
        self.check(0)
    }

    /// The number of the group of `key`, which is made if this is the first of it.
    pub(super) fn group(&mut self, key: Vec<Scalar>) -> Result<usize> {
        let hash = self.hash(&key);
        let mut at = self.index.get(&hash).copied().unwrap_or(NONE);
        let last = at;
        while at != NONE {
            if self.keys.iter().zip(&key).all(|(column, key)| column.is(at as usize, key)) {
                return Ok(at as usize);
            }
            at = self.before[at as usize];
        }
        self.make_room()?;
        let texts: u64 = self.keys.iter().zip(&key).map(|(column, key)| column.text_growth(key)).sum();
        self.check(texts)?;
        self.keys.iter_mut().zip(key).try_for_each(|(column, key)| column.push(key))?;
        self.before.push(last);
        let number = self.len() - 1;
        self.index.insert(hash, number as u32);
        Ok(number)
    }

    fn hash(&self, key: &[Scalar]) -> u64 {
        let mut hasher = self.random.build_hasher();
        hash_keys(key, &mut hasher);
        hasher.finish()
    }

    /// Room for one more group, which is asked for before it is taken.
    fn make_room(&mut self) -> Result<()> {
        let n = self.len();
        if self.index.len() == self.index.capacity() {
            // The old table is held while the new one is filled.
            self.check(2 * self.table_bytes())?;
        }
        if n < self.before.capacity() {
            return Ok(());
        }
        let more = (n / 4).max(if self.keys.is_empty() { 1 } else { 16 });
        self.check(more as u64 * self.row_bytes())?;
        self.before.reserve_exact(more);
        self.keys.iter_mut().try_for_each(|column| column.reserve(more))?;
        let room = self.before.capacity();
        self.states.iter_mut().for_each(|state| state.resize(room));
        if self.before.capacity() >= NONE as usize {
            return Err(Error::new(ErrorKind::MemoryLimit, "more than 2^32 groups"));
        }
        Ok(())
    }

    /// Takes in the rows of others.
    ///
    /// # Errors
    /// `internal-error` for aggregates of other types; `memory-limit`.
    pub fn merge(&mut self, other: Groups) -> Result<()> {
        if other.kinds != self.kinds {
            return Err(Error::new(ErrorKind::Internal, "groups of different aggregates merged"));
        }
        let mut to = vec![NO_GROUP; other.states.iter().map(|s| s.len()).max().unwrap_or_default()];
        for g in 0..other.len() {
            let group = self.group(other.key(g))?;
            if let Some(to) = to.get_mut(g) {
                *to = group as u32;
            }
        }
        for number in 0..self.states.len() {
            let need = self.states[number].merging(&*other.states[number]);
            if need > 0 {
                self.check(need)?;
            }
            self.states[number].merge(&*other.states[number], &to)?;
        }
        Ok(())
    }

    /// Takes in the groups of `order` of a table, of which these are the keys.
    ///
    /// # Errors
    /// `memory-limit`.
    pub(super) fn take_dense(&mut self, order: &[usize], keys: &[Vector], dense: Dense) -> Result<()> {
        let mut to = vec![NO_GROUP; dense.states.iter().map(|s| s.len()).max().unwrap_or_default()];
        for (i, &from) in order.iter().enumerate() {
            let group = self.group(keys.iter().map(|k| k.scalar(i)).collect())?;
            if let Some(to) = to.get_mut(from) {
                *to = group as u32;
            }
        }
        for (state, from) in self.states.iter_mut().zip(dense.states) {
            state.merge(&*from, &to)?;
        }
        Ok(())
    }

    fn check(&self, more: u64) -> Result<()> {
        let need = self.memory_bytes().saturating_add(more).saturating_add(self.len() as u64 * FINISHING);
        if need <= self.room.bytes {
            return Ok(());
        }
        let (n, aggregates) = (self.len(), self.states.len());
        self.room.check(need, format_args!("{n} groups of {aggregates} aggregates, before all rows are in,"))
    }

    fn table_bytes(&self) -> u64 {
        // An eighth of the places is free, and each has a byte of its own.
        (self.index.capacity() as u64 / 7 * 8) * (size_of::<(u64, u32)>() as u64 + 1)
    }

    /// Bytes of a group, its part of the index and texts left out.
    fn row_bytes(&self) -> u64 {
        let keys: u64 = self.keys.iter().map(KeyColumn::key_bytes).sum();
        let states: u64 = self.kinds.iter().map(|(aggregate, _)| aggregate.expected_bytes().0).sum();
        size_of::<u32>() as u64 + keys + states
    }

    /// Memory that they take.
    pub fn memory_bytes(&self) -> u64 {
        let keys: u64 = self.keys.iter().map(KeyColumn::key_bytes).sum();
        let texts: u64 = self.keys.iter().map(KeyColumn::text_bytes).sum();
        let states: u64 = self.states.iter().map(|s| s.memory_bytes()).sum();
        let each = size_of::<u32>() as u64 + keys;
        self.table_bytes() + self.before.capacity() as u64 * each + states + texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::ExecOptions;

    fn groups(memory: u64) -> Groups {
        let kinds = [(Aggregate::CountValues, Some(ValueType::F64))];
        Groups::new(1, &kinds, ExecOptions { memory, ..ExecOptions::default() }.room()).unwrap()
    }

    #[test]
    fn a_key_has_one_group_whatever_its_form() {
        let mut all = groups(1 << 20);
        let keys = [Scalar::F64(0.0), Scalar::F64(-0.0), Scalar::Null, Scalar::I64(3), Scalar::U64(3)];
        let numbers: Vec<usize> = keys.into_iter().map(|k| all.group(vec![k]).unwrap()).collect();
        assert_eq!(numbers, [0, 0, 1, 2, 2]);
        for i in 0..2000 {
            assert_eq!(all.group(vec![Scalar::Str(format!("{i}"))]).unwrap(), 3 + i);
        }
        assert_eq!(all.group(vec![Scalar::Str("1234".into())]).unwrap(), 1237);
    }

    #[test]
    fn groups_are_refused_before_they_are_held() {
        let mut all = groups(1 << 20);
        let e = (0..100_000).find_map(|i| all.group(vec![Scalar::I64(i)]).err()).unwrap();
        assert_eq!(e.kind(), ErrorKind::MemoryLimit);
        assert!(e.message().contains("groups of 1 aggregates"), "{e}");
        assert!(all.memory_bytes() < 3 << 18, "{}", all.memory_bytes());
        assert!(all.len() > 1000, "{}", all.len());
    }
}
