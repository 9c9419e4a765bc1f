//! Groups whose number follows from the position of a row.
//!
//! A key that is a coordinate, a position along a dimension or computed of such varies along few dimensions. Its values
//! there are numbered once for a query; keys that share a dimension are numbered together. The number of a row's group is
//! then the sum of a few numbers that are looked up by the row's position, and states lie in the order of these.

use std::collections::HashMap;

use sieva_types::{Bx, Result};

use super::columns::{numbered, plain_zeros, taken};
use super::frame::Frame;
use super::hashed::{Kind, accumulators};
use crate::aggregate::Accumulator;
use crate::bind::{OrderKey, Value};
use crate::exec::Execution;
use crate::exec::order::keys::order_by;
use crate::exec::tile::arrays::{BoxProvider, Leaves, indices};
use crate::exec::tile::evaluate::evaluate;
use crate::exec::tile::prepare::{Node, Prepared};
use crate::values::Vector;

/// Keys of so few values are numbered whatever they are.
const FEW: u64 = 1 << 16;
/// Bytes of a key's value while values are numbered: what is evaluated, its number and its place in a table.
const NUMBERING_BYTES: u64 = 96;
/// Groups up to here have states even where a condition may leave few of them.
const FEW_GROUPS: u64 = 1 << 20;

/// Keys that vary along the same dimensions, numbered together.
#[derive(Debug)]
pub(super) struct Part {
    /// The dimensions, ascending.
    pub(super) axes: Vec<usize>,
    /// The number at each position along these, in C order over the area.
    pub(super) codes: Vec<u32>,
    /// How many numbers there are.
    pub(super) len: usize,
    /// Whether neighbours along the innermost dimension have numbers that follow each other.
    pub(super) is_consecutive: bool,
    /// The keys' places in the query, and their values by number.
    pub(super) keys: Vec<(usize, Vector)>,
    /// The numbers in the order of the keys.
    pub(super) sorted: Vec<u32>,
}

/// How the groups of a query are numbered.
#[derive(Debug)]
pub(in crate::exec) struct Numbering {
    pub(super) area: Bx,
    pub(super) parts: Vec<Part>,
    /// The groups of all rows.
    pub(super) frame: Frame,
    /// How many aggregates there are of each.
    pub(super) aggregates: usize,
    /// Whether all of them have rows.
    pub(super) is_full: bool,
    /// Bytes of a group in a table of states, and in the result.
    pub(super) state_bytes: u64,
    result_bytes: u64,
    /// The most bytes that all rows add to the states.
    pub(super) growth: u64,
}

/// The states of all groups.
#[derive(Debug)]
pub(in crate::exec) struct Dense {
    pub(super) states: Vec<Box<dyn Accumulator>>,
    /// Which groups have rows; `None`: all.
    pub(super) seen: Option<Vec<bool>>,
    /// Bytes of the states as they were made.
    made: u64,
}

impl Numbering {
    /// The numbering of the groups by `keys`; `None` where they are better hashed.
    ///
    /// # Errors
    /// `cancelled`.
    pub(in crate::exec) fn new(
        execution: &Execution,
        prepared: &Prepared,
        keys: &[Value],
        kinds: &[Kind],
    ) -> Result<Option<Self>> {
        let area = &prepared.area;
        let Some(mut parts) = numbered_keys(execution, area, keys)? else { return Ok(None) };
        // The innermost dimension's numbers are neighbours.
        parts.sort_by(|a, b| b.axes.iter().rev().cmp(a.axes.iter().rev()));
        let Some(frame) = Frame::new(parts.iter().map(|p| (0, p.len))) else { return Ok(None) };
        // Without keys there is one group, whether it has rows or not.
        let is_full = keys.is_empty() || matches!(prepared.node, Node::Decided(true)) && !area.is_empty();
        let few = is_full || frame.groups as u64 <= FEW_GROUPS.max(area.len() / 4);
        if !keys.is_empty() && !few {
            return Ok(None);
        }
        let result_bytes = 8 + 9 * (keys.len() + kinds.len()) as u64;
        let (state_bytes, growth) = expected_bytes(kinds, area.len())?;
        let area = area.clone();
        let aggregates = kinds.len();
        let plan = Self { area, parts, frame, aggregates, is_full, state_bytes, result_bytes, growth };
        let fits =
            plan.table_bytes().saturating_add(plan.finishing_bytes()) <= execution.options.room().bytes;
        Ok((fits || keys.is_empty()).then_some(plan))
    }

    /// Bytes of the states of all groups.
    pub(super) fn table_bytes(&self) -> u64 {
        self.state_bytes.saturating_add(1).saturating_mul(self.frame.groups as u64)
    }

    /// Counts so many columns more of the result.
    pub(in crate::exec) fn expect_results(&mut self, more: usize) {
        self.result_bytes += 9 * more as u64;
    }

    /// Bytes of the result while it is made.
    pub(super) fn finishing_bytes(&self) -> u64 {
        self.result_bytes.saturating_mul(self.frame.groups as u64)
    }

    /// How many threads have room for a table each. Where values are kept, those of one table are merged into another in
    /// the end, which takes half as much again.
    pub(super) fn threads(&self, room: u64, most: usize) -> usize {
        let room = room.saturating_sub(self.finishing_bytes() + self.own_bytes());
        if self.growth > 0
            && self.growth.saturating_add(self.growth / 2).saturating_add(self.table_bytes()) > room
        {
            return 1;
        }
        most.min((room / 2 / self.table_bytes().max(1)) as usize).max(1)
    }

    /// Bytes of the numbering.
    pub(super) fn own_bytes(&self) -> u64 {
        self.parts.iter().map(|p| 4 * (p.codes.capacity() + p.sorted.capacity()) as u64).sum()
    }

    /// States of all groups.
    ///
    /// # Errors
    /// As of [`accumulators`].
    pub(super) fn table(&self, frame: &Frame, kinds: &[Kind]) -> Result<Dense> {
        let mut states = accumulators(kinds)?;
        states.iter_mut().for_each(|s| s.resize(frame.groups));
        let made = states.iter().map(|s| s.memory_bytes()).sum();
        Ok(Dense { states, seen: (!self.is_full).then(|| vec![false; frame.groups]), made })
    }

    /// The parts in the order of their keys; `None` where keys of one lie on both sides of another's.
    pub(super) fn by_key(&self) -> Option<Vec<usize>> {
        let mut by_key: Vec<usize> = (0..self.parts.len()).collect();
        by_key.sort_by_key(|&p| self.parts[p].keys.first().map(|k| k.0));
        let places = by_key.iter().flat_map(|&p| self.parts[p].keys.iter().map(|k| k.0));
        places.is_sorted().then_some(by_key)
    }

    /// The groups of a frame in the order of their keys, where these lie as [`Numbering::by_key`] has them.
    pub(super) fn order_by_parts(&self, frame: &Frame, by_key: &[usize]) -> Vec<usize> {
        let mut order = vec![0];
        for &part in by_key {
            let shares: Vec<usize> = frame.sorted(part, &self.parts[part]).collect();
            let mut next = Vec::with_capacity(order.len() * shares.len());
            order.iter().for_each(|&g| next.extend(shares.iter().map(|s| g + s)));
            order = next;
        }
        order
    }

    /// The groups that have rows, in the order of their keys.
    pub(super) fn order(&self, seen: Option<&[bool]>, keys: usize) -> Vec<usize> {
        let is_seen = |g: &usize| seen.is_none_or(|s| s[*g]);
        if let Some(by_key) = self.by_key() {
            let mut order = self.order_by_parts(&self.frame, &by_key);
            order.retain(is_seen);
            return order;
        }
        let mut order: Vec<usize> = (0..self.frame.groups).filter(is_seen).collect();
        let columns: Vec<Vector> = (0..keys).filter_map(|k| self.key(k, &order)).collect();
        let by: Vec<OrderKey> = (0..keys).map(ascending).collect();
        let sorted = order_by(&by, &columns, order.len());
        order = sorted.into_iter().map(|i| order[i]).collect();
        order
    }

    /// A key of some groups.
    pub(super) fn key(&self, key: usize, groups: &[usize]) -> Option<Vector> {
        let held = |p: &'_ Part| p.keys.iter().position(|(k, _)| *k == key);
        let (part, at) = self.parts.iter().enumerate().find_map(|(i, p)| held(p).map(|at| (i, at)))?;
        let places: Vec<usize> = groups.iter().map(|&g| self.frame.code(part, g)).collect();
        taken(&self.parts[part].keys[at].1, &places).ok()
    }
}

impl Part {
    /// The place of a position among the numbers.
    pub(super) fn place(&self, area: &Bx, position: &[u64]) -> usize {
        let along =
            |at: usize, &a: &usize| at * area.shape[a] as usize + (position[a] - area.start[a]) as usize;
        self.axes.iter().fold(0, along)
    }

    pub(super) fn code(&self, area: &Bx, position: &[u64]) -> u32 {
        self.codes[self.place(area, position)]
    }
}

impl Dense {
    /// Bytes that came to those that the states took when they were made.
    pub(super) fn grown(&self) -> u64 {
        self.states.iter().map(|s| s.memory_bytes()).sum::<u64>().saturating_sub(self.made)
    }

    /// The most bytes that so many rows add.
    pub(super) fn growth(&self, rows: u64) -> u64 {
        self.states.iter().map(|s| s.growth(rows)).fold(0, u64::saturating_add)
    }
}

fn ascending(key: usize) -> OrderKey {
    OrderKey { value: Value::Key(key), descending: false, nulls_first: false }
}

/// Bytes of the states of a group, and the most that so many rows add.
pub(super) fn expected_bytes(kinds: &[Kind], rows: u64) -> Result<(u64, u64)> {
    const SAMPLE: usize = 16;
    let mut states = accumulators(kinds)?;
    let mut bytes = 0;
    for state in &mut states {
        state.resize(SAMPLE);
        bytes += state.memory_bytes().div_ceil(SAMPLE as u64);
    }
    Ok((bytes, states.iter().map(|s| s.growth(rows)).fold(0, u64::saturating_add)))
}

/// A key's values along its own dimensions, numbered.
struct Numbered {
    key: usize,
    axes: Vec<usize>,
    values: Vector,
    codes: Vec<u32>,
    len: usize,
}

/// The keys, numbered; those that share a dimension together. `None` where one is not to be.
fn numbered_keys(execution: &Execution, area: &Bx, keys: &[Value]) -> Result<Option<Vec<Part>>> {
    let mut leaves = Leaves::new(execution);
    let mut each = Vec::with_capacity(keys.len());
    for (key, value) in keys.iter().enumerate() {
        execution.options.check_cancel()?;
        let axes = execution.bound.axes_of(value);
        if area.is_empty() || !execution.is_worth_numbering(value, &axes, area) {
            return Ok(None);
        }
        // What cannot be read or computed may belong to no row that is selected: hashing finds out.
        let Ok(values) = evaluate(value, &mut BoxProvider { leaves: &mut leaves, bx: area, axes: &axes })
        else {
            execution.options.check_cancel()?;
            return Ok(None);
        };
        let n = axes.iter().map(|&a| area.shape[a]).product::<u64>() as usize;
        let Ok(values) = values.sound().and_then(|v| v.into_rows(n)) else { return Ok(None) };
        let values = plain_zeros(values);
        let (codes, first) = numbered(&values, n);
        let len = first.len();
        each.push(Numbered { key, axes, values, codes, len });
    }
    let mut parts = Vec::new();
    while let Some(first) = each.pop() {
        let mut axes = first.axes.clone();
        let mut together = vec![first];
        // Those that share a dimension with these, until there are none.
        while let Some(i) = each.iter().position(|n| n.axes.iter().any(|a| axes.contains(a))) {
            let next = each.swap_remove(i);
            axes.extend(&next.axes);
            together.push(next);
        }
        axes.sort_unstable();
        axes.dedup();
        together.sort_by_key(|n| n.key);
        let n = axes.iter().map(|&a| area.shape[a]).fold(1, u64::saturating_mul);
        if together.len() > 1 && n > execution.numbers_at_once(area) {
            return Ok(None);
        }
        parts.push(part(area, axes, together)?);
    }
    Ok(Some(parts))
}

impl Execution {
    /// How many values of keys may be numbered.
    fn numbers_at_once(&self, area: &Bx) -> u64 {
        let room = self.options.room().bytes / 8 / NUMBERING_BYTES;
        room.min((area.len() / 4).max(FEW))
    }

    /// Whether the values of a key are read and numbered ahead of the rows.
    fn is_worth_numbering(&self, value: &Value, axes: &[usize], area: &Bx) -> bool {
        let n = axes.iter().map(|&a| area.shape[a]).fold(1, u64::saturating_mul);
        if axes.len() < area.rank() {
            return n <= self.numbers_at_once(area);
        }
        // As many values as rows: those of a coordinate are soon read.
        n <= self.options.room().bytes / 8 / NUMBERING_BYTES && area.rank() <= 1 && self.is_coordinate(value)
    }

    /// Whether a value is computed of coordinates and positions alone.
    fn is_coordinate(&self, value: &Value) -> bool {
        let schema = self.source.schema();
        let mut is_one = true;
        value.walk(&mut |v| {
            if let Value::Array { array, .. } | Value::Date(_, array) = v {
                let index = self.bound.arrays[*array].index;
                is_one &= schema.dims.iter().any(|d| d.coordinate == Some(index));
            }
        });
        is_one
    }
}

/// Keys over the dimensions `axes`, numbered together.
fn part(area: &Bx, axes: Vec<usize>, keys: Vec<Numbered>) -> Result<Part> {
    let shape: Vec<usize> = axes.iter().map(|&a| area.shape[a] as usize).collect();
    let places: Vec<Vec<usize>> = keys.iter().map(|k| places(&shape, &axes, &k.axes)).collect();
    let n: usize = shape.iter().product();
    let (mut codes, mut len) = (vec![0_u32; n], 1);
    for (key, places) in keys.iter().zip(&places) {
        let mut known: HashMap<u64, u32> = HashMap::new();
        let is_first = len == 1 && places.len() == n;
        for (slot, &place) in codes.iter_mut().zip(places) {
            if is_first {
                *slot = key.codes[place];
                continue;
            }
            let next = known.len() as u32;
            let pair = u64::from(*slot) << 32 | u64::from(key.codes[place]);
            *slot = *known.entry(pair).or_insert(next);
        }
        len = if is_first { key.len } else { known.len() };
    }
    let mut first = vec![usize::MAX; len];
    codes.iter().enumerate().rev().for_each(|(i, &c)| first[c as usize] = i);
    let columns = keys.iter().zip(&places).map(|(key, places)| {
        Ok((key.key, taken(&key.values, &first.iter().map(|&i| places[i]).collect::<Vec<_>>())?))
    });
    let mut columns = columns.collect::<Result<Vec<_>>>()?;
    let vectors: Vec<Vector> = columns.iter().map(|c| c.1.clone()).collect();
    let order = order_by(&(0..vectors.len()).map(ascending).collect::<Vec<_>>(), &vectors, len);
    let run = shape.last().copied().unwrap_or(1).max(1);
    let mut ranks = vec![0_u32; len];
    order.iter().enumerate().for_each(|(rank, &c)| ranks[c] = rank as u32);
    let by_rank: Vec<u32> = codes.iter().map(|&c| ranks[c as usize]).collect();
    // Numbers are in the order of the keys, unless neighbours then do not follow each other.
    let is_turned = !is_consecutive(&by_rank, run) && is_consecutive(&codes, run);
    let sorted = if is_turned {
        order.iter().map(|&c| c as u32).collect()
    } else {
        codes = by_rank;
        for column in &mut columns {
            column.1 = taken(&column.1, &order)?;
        }
        (0..len as u32).collect()
    };
    let is_consecutive = is_consecutive(&codes, run);
    Ok(Part { axes, codes, len, is_consecutive, keys: columns, sorted })
}

/// Whether in each run the numbers follow each other.
fn is_consecutive(codes: &[u32], run: usize) -> bool {
    codes.chunks(run).all(|run| run.windows(2).all(|w| w[1] == w[0].wrapping_add(1)))
}

/// The place along the dimensions `own` of each position along `axes`, of which they are a part.
fn places(shape: &[usize], axes: &[usize], own: &[usize]) -> Vec<usize> {
    let mut strides = vec![0; axes.len()];
    let mut stride = 1;
    for (d, axis) in axes.iter().enumerate().rev() {
        if own.contains(axis) {
            strides[d] = stride;
            stride *= shape[d];
        }
    }
    indices(shape, &strides)
}
