//! Aggregation while scanning: each tile makes partial groups, which are merged in the order of the tiles.

use std::collections::HashMap;

use sieva_types::{Bx, Error, ErrorKind, Result};

use super::ahead::{Ahead, Work};
use super::evaluate::{Provider, evaluate};
use super::keys::Key;
use super::leaves::{BoxProvider, Leaves, indices};
use super::pool::{Flow, in_order_batched};
use super::prepare::Node;
use super::select::batch_of;
use super::{Column, ExecStats, Execution};
use crate::aggregate::{Aggregate, Rows, State};
use crate::bind::{Body, Value};
use crate::mask::Mask;
use crate::values::{Scalar, ValueType, Values, Vector};

/// Groups, sorted by their keys, with what the aggregates came to.
#[derive(Debug)]
pub struct GroupTable {
    /// Number of groups.
    pub len: usize,
    /// For each key, its values.
    pub keys: Vec<Vector>,
    /// For each aggregate, its results.
    pub aggregates: Vec<Vec<Scalar>>,
}

/// Groups under construction. Those of like queries over several sources can be merged: what comes out is the same as of
/// one source that holds all rows, but for the order of float additions in variances.
#[derive(Debug, Default)]
pub struct Groups {
    index: HashMap<Vec<Key>, usize>,
    keys: Vec<Vec<Scalar>>,
    /// Per aggregate, per group.
    states: Vec<Vec<State>>,
}

impl Groups {
    /// No rows yet of the groups of a query: no group, or one where there are no keys.
    ///
    /// # Errors
    /// `internal-error` for a query without groups; `unsupported` as of [`partial_groups`].
    pub fn start(execution: &Execution) -> Result<Self> {
        let Body::Groups { keys, aggregates, .. } = &execution.bound.body else {
            return Err(Error::new(ErrorKind::Internal, "groups of a query without them"));
        };
        refuse_open_ranges(aggregates)?;
        let mut groups = Self::new(aggregates.len());
        if keys.is_empty() {
            groups.group(Vec::new(), || new_states(execution, aggregates))?;
        }
        Ok(groups)
    }

    /// The same groups with other keys and with aggregates in the order of their numbers in `order`, which may name one
    /// twice. `key` makes a group's key out of its old one and its states; `None` drops the group.
    ///
    /// # Errors
    /// Those of `key`, and `internal-error` for keys that are no longer different.
    pub fn rekeyed(
        self,
        order: &[usize],
        mut key: impl FnMut(Vec<Scalar>, &[&State]) -> Result<Option<Vec<Scalar>>>,
    ) -> Result<Self> {
        let mut out = Self::new(order.len());
        for (g, old) in self.keys.into_iter().enumerate() {
            let all: Vec<&State> = self.states.iter().map(|column| &column[g]).collect();
            let Some(new) = key(old, &all)? else { continue };
            let known = out.keys.len();
            let states = || Ok(order.iter().map(|&i| all[i].clone()).collect());
            if out.group(new, states)? < known {
                return Err(Error::new(ErrorKind::Internal, "two groups of one key"));
            }
        }
        Ok(out)
    }

    fn new(aggregates: usize) -> Self {
        Self { states: (0..aggregates).map(|_| Vec::new()).collect(), ..Self::default() }
    }

    /// The number of the group of `key`, which gets `new` states if it is the first of it.
    fn group(&mut self, key: Vec<Scalar>, new: impl FnOnce() -> Result<Vec<State>>) -> Result<usize> {
        let hashed: Vec<Key> = key.iter().cloned().map(Key::of).collect();
        if let Some(&known) = self.index.get(&hashed) {
            return Ok(known);
        }
        self.states.iter_mut().zip(new()?).for_each(|(column, state)| column.push(state));
        self.keys.push(key);
        self.index.insert(hashed, self.keys.len() - 1);
        Ok(self.keys.len() - 1)
    }

    /// Takes in the rows of others.
    ///
    /// # Errors
    /// `internal-error` for aggregates of other types.
    pub fn merge(&mut self, other: Groups) -> Result<()> {
        let mut columns: Vec<_> = other.states.into_iter().map(Vec::into_iter).collect();
        for key in other.keys {
            let states: Vec<State> = columns.iter_mut().filter_map(Iterator::next).collect();
            let known = self.keys.len();
            let mut unused = Some(states);
            let group = self.group(key, || Ok(unused.take().unwrap_or_default()))?;
            if let (true, Some(states)) = (group < known, unused) {
                for (column, state) in self.states.iter_mut().zip(states) {
                    column[group].merge(state)?;
                }
            }
        }
        Ok(())
    }

    /// Memory that they take.
    pub fn memory_bytes(&self) -> u64 {
        let states: usize = self.states.iter().flatten().map(State::memory_bytes).sum();
        states as u64 + 128 * self.keys.len() as u64
    }
}

/// The groups of a query, after HAVING, sorted by key.
///
/// # Errors
/// Reading errors, `cancelled`, `memory-limit` where the groups do not fit.
pub fn aggregate(execution: &Execution) -> Result<(GroupTable, ExecStats)> {
    let Body::Groups { keys, aggregates, .. } = &execution.bound.body else {
        return Err(Error::new(ErrorKind::Internal, "a query without groups was asked for them"));
    };
    let mut stats = ExecStats::default();
    let mut finished = aggregates.clone();
    let open: Vec<usize> = (0..aggregates.len()).filter(|&i| aggregates[i].0.needs_range()).collect();
    if !open.is_empty() {
        let ends: Vec<(Aggregate, Option<Value>)> = open
            .iter()
            .flat_map(|&i| [Aggregate::Min, Aggregate::Max].map(|a| (a, aggregates[i].1.clone())))
            .collect();
        let extremes = run(execution, &[], &ends, &mut stats)?;
        for (n, &i) in open.iter().enumerate() {
            let end = |k: usize| extremes.states[2 * n + k].first().cloned().map(State::finish).transpose();
            finished[i].0 = aggregates[i].0.with_range(as_range(end(0)?, end(1)?))?;
        }
    }
    let groups = run(execution, keys, &finished, &mut stats)?;
    Ok((table(execution, groups)?, stats))
}

/// The groups of a query before they are finished, for merging with those of others.
///
/// # Errors
/// As [`aggregate`]; `unsupported` for a histogram without a range, which the rows of all decide.
pub fn partial_groups(execution: &Execution) -> Result<(Groups, ExecStats)> {
    let Body::Groups { keys, aggregates, .. } = &execution.bound.body else {
        return Err(Error::new(ErrorKind::Internal, "a query without groups was asked for them"));
    };
    refuse_open_ranges(aggregates)?;
    let mut stats = ExecStats::default();
    let groups = run(execution, keys, aggregates, &mut stats)?;
    Ok((groups, stats))
}

/// The table of groups that were put together out of those of queries like this one: HAVING applied, sorted by key.
///
/// # Errors
/// As [`aggregate`].
pub fn finish_groups(execution: &Execution, groups: Groups) -> Result<GroupTable> {
    table(execution, groups)
}

fn refuse_open_ranges(aggregates: &[(Aggregate, Option<Value>)]) -> Result<()> {
    if !aggregates.iter().any(|(a, _)| a.needs_range()) {
        return Ok(());
    }
    let message = "a histogram over many objects needs its range";
    Err(Error::new(ErrorKind::Unsupported, message).hint("write histogram(x, bins, low, high)"))
}

fn as_range(low: Option<Scalar>, high: Option<Scalar>) -> Option<(f64, f64)> {
    let number = |s| match s {
        Some(Scalar::F64(f)) => Some(f),
        Some(Scalar::I64(i)) => Some(i as f64),
        Some(Scalar::U64(u)) => Some(u as f64),
        Some(Scalar::Bool(b)) => Some(f64::from(u8::from(b))),
        _ => None,
    };
    Some((number(low)?, number(high)?))
}

fn run(
    execution: &Execution,
    keys: &[Value],
    aggregates: &[(Aggregate, Option<Value>)],
    stats: &mut ExecStats,
) -> Result<Groups> {
    let prepared = execution.prepare()?;
    let mut arrays = Vec::new();
    let values = keys.iter().chain(aggregates.iter().filter_map(|(_, v)| v.as_ref()));
    for value in values {
        value.walk(&mut |v| {
            if let Value::Array { array, .. } = v {
                arrays.push(*array);
            }
        });
    }
    let tiles = execution.tiles(&prepared, &arrays);
    let mut groups = Groups::new(aggregates.len());
    let new = || new_states(execution, aggregates);
    if keys.is_empty() {
        groups.group(Vec::new(), new)?;
    }
    let candidates = execution.candidates(&prepared, &tiles);
    stats.merge(&execution.replica_stats());
    stats.tiles_skipped += (tiles.len() - candidates.len()) as u64;
    let ahead = Ahead::new(execution, &prepared, &arrays, true);
    let tile_of = |job: usize| Some(candidates[job].tile);
    let work = Work { jobs: candidates.len(), tiles: &tiles, tile: tile_of };
    in_order_batched(
        (candidates.len(), batch_of(&tiles, candidates.len())),
        execution.threads_for(candidates.len()),
        &execution.options.cancel,
        || Leaves::new(execution),
        |leaves, i| {
            let all = Node::Decided(true);
            let node = if candidates[i].all { &all } else { &prepared.node };
            if let Some(ahead) = &ahead {
                ahead.before(i, &work);
            }
            let bx = tiles.tile(candidates[i].tile);
            let done = tile(execution, node, &bx, leaves, keys, aggregates)?;
            if let Some(ahead) = &ahead {
                ahead.after(&bx, leaves);
            }
            Ok(done)
        },
        |(part, did)| {
            stats.merge(&did);
            groups.merge(part)?;
            let need = groups.memory_bytes();
            if need > execution.options.memory {
                return Err(Error::new(
                    ErrorKind::MemoryLimit,
                    format!(
                        "{} groups take {need} bytes, the limit is {}",
                        groups.keys.len(),
                        execution.options.memory
                    ),
                )
                .hint("group by fewer values, or raise the limit with --memory (memory= in Python)"));
            }
            Ok(Flow::Continue(()))
        },
    )?;
    Ok(groups)
}

fn new_states(execution: &Execution, aggregates: &[(Aggregate, Option<Value>)]) -> Result<Vec<State>> {
    aggregates
        .iter()
        .map(|(a, v)| State::new(a, v.as_ref().and_then(|v| execution.bound.type_of(v))))
        .collect()
}

/// The partial groups of one tile.
fn tile<'e>(
    execution: &'e Execution,
    node: &Node,
    bx: &Bx,
    leaves: &mut Leaves<'e>,
    keys: &[Value],
    aggregates: &[(Aggregate, Option<Value>)],
) -> Result<(Groups, ExecStats)> {
    let (mask, mut did) = execution.tile_mask(node, bx, leaves)?;
    let mut groups = Groups::new(aggregates.len());
    if mask.none() {
        return Ok((groups, did));
    }
    if did.tiles_skipped == 1 && aggregates.iter().any(|(_, v)| v.is_some()) {
        (did.tiles_scanned, did.tiles_skipped) = (1, 0);
    }
    let is_counted = keys.is_empty() && aggregates.iter().all(|(_, value)| value.is_none());
    let hits = if is_counted { Hits::All(mask.count() as usize) } else { Hits::new(&mask) };
    let group_of =
        group_numbers(execution, bx, leaves, keys, &hits, &mut groups, || new_states(execution, aggregates))?;
    let nothing = Vector::constant(&Scalar::Null)?;
    for ((_, value), states) in aggregates.iter().zip(&mut groups.states) {
        let vector = value.as_ref().map(|v| at_hits(execution, bx, leaves, v, &hits)).transpose()?;
        let vector = vector.as_ref().unwrap_or(&nothing);
        match &group_of {
            None => states[0].update(vector, Rows::All(hits.len()))?,
            Some(numbers) => State::update_grouped(states, numbers, vector)?,
        }
    }
    Ok((groups, did))
}

/// The selected positions of a tile.
enum Hits {
    /// All of so many; or so many, where nobody asks which.
    All(usize),
    /// These.
    Some(Vec<usize>),
}

impl Hits {
    fn new(mask: &Mask) -> Self {
        if mask.all() { Self::All(mask.len()) } else { Self::Some(mask.ones_iter().collect()) }
    }

    fn len(&self) -> usize {
        match self {
            Self::All(n) => *n,
            Self::Some(v) => v.len(),
        }
    }
}

/// A value at the selected positions of a tile: evaluated on its own axes, then picked.
fn at_hits<'e>(
    execution: &'e Execution,
    bx: &Bx,
    leaves: &mut Leaves<'e>,
    value: &Value,
    hits: &Hits,
) -> Result<Vector> {
    let axes = execution.bound.axes_of(value);
    let vector = evaluate(value, &mut BoxProvider { leaves, bx, axes: &axes })?;
    let n = axes.iter().map(|&a| bx.shape[a]).product::<u64>() as usize;
    let column = Column::from_vector(vector, n)?;
    match own_indices(bx, &axes, hits) {
        None => column.into_vector(),
        Some(order) => column.take(&order).into_vector(),
    }
}

/// For each hit, its index among the positions of `axes`; `None` where that is the hits themselves.
fn own_indices(bx: &Bx, axes: &[usize], hits: &Hits) -> Option<Vec<usize>> {
    if axes.len() == bx.rank() {
        return match hits {
            Hits::All(_) => None,
            Hits::Some(v) => Some(v.clone()),
        };
    }
    let shape: Vec<usize> = bx.shape.iter().map(|&n| n as usize).collect();
    let mut strides = vec![0; bx.rank()];
    let mut stride = 1;
    for &axis in axes.iter().rev() {
        strides[axis] = stride;
        stride *= shape[axis];
    }
    let all = indices(&shape, &strides);
    Some(match hits {
        Hits::All(_) => all,
        Hits::Some(v) => v.iter().map(|&i| all[i]).collect(),
    })
}

/// For each hit, the number of its group in `groups`; `None` where there are no keys and so one group.
fn group_numbers<'e>(
    execution: &'e Execution,
    bx: &Bx,
    leaves: &mut Leaves<'e>,
    keys: &[Value],
    hits: &Hits,
    groups: &mut Groups,
    new: impl Fn() -> Result<Vec<State>>,
) -> Result<Option<Vec<u32>>> {
    if keys.is_empty() {
        groups.group(Vec::new(), new)?;
        return Ok(None);
    }
    // Each key's values are numbered on the key's own axes; a hit's numbers are then combined into one.
    let mut combined = vec![0_u64; hits.len()];
    let mut dictionaries: Vec<Vec<Scalar>> = Vec::with_capacity(keys.len());
    for key in keys {
        let axes = execution.bound.axes_of(key);
        let n = axes.iter().map(|&a| bx.shape[a]).product::<u64>() as usize;
        let vector = evaluate(key, &mut BoxProvider { leaves, bx, axes: &axes })?;
        let (numbers, dictionary) = numbered(&vector, n);
        let order = own_indices(bx, &axes, hits);
        for (h, slot) in combined.iter_mut().enumerate() {
            let i = order.as_ref().map_or(h, |o| o[h]);
            *slot = *slot * dictionary.len() as u64 + u64::from(numbers[i]);
        }
        dictionaries.push(dictionary);
    }
    let mut known: HashMap<u64, u32> = HashMap::new();
    let mut out = Vec::with_capacity(combined.len());
    for code in combined {
        let number = match known.get(&code) {
            Some(&n) => n,
            None => {
                let mut rest = code;
                let mut key: Vec<Scalar> = dictionaries
                    .iter()
                    .rev()
                    .map(|d| {
                        let value = d[(rest % d.len() as u64) as usize].clone();
                        rest /= d.len() as u64;
                        value
                    })
                    .collect();
                key.reverse();
                let n = groups.group(key, &new)? as u32;
                known.insert(code, n);
                n
            }
        };
        out.push(number);
    }
    Ok(Some(out))
}

/// The values' numbers in a dictionary of the different ones.
fn numbered(vector: &Vector, n: usize) -> (Vec<u32>, Vec<Scalar>) {
    let mut known: HashMap<Key, u32> = HashMap::new();
    let mut dictionary = Vec::new();
    let numbers = (0..n)
        .map(|i| {
            let value = vector.scalar(i);
            *known.entry(Key::of(value.clone())).or_insert_with(|| {
                dictionary.push(value);
                dictionary.len() as u32 - 1
            })
        })
        .collect();
    (numbers, dictionary)
}

/// The finished groups: sorted by key, HAVING applied.
fn table(execution: &Execution, groups: Groups) -> Result<GroupTable> {
    let hashed: Vec<Vec<Key>> =
        groups.keys.iter().map(|k| k.iter().cloned().map(Key::of).collect()).collect();
    let mut order: Vec<usize> = (0..hashed.len()).collect();
    order.sort_by(|&a, &b| hashed[a].cmp(&hashed[b]));
    let Body::Groups { keys: key_values, having, .. } = &execution.bound.body else {
        return Err(Error::new(ErrorKind::Internal, "groups of a query without them"));
    };
    let mut table = GroupTable { len: order.len(), keys: Vec::new(), aggregates: Vec::new() };
    for (k, value) in key_values.iter().enumerate() {
        let scalars: Vec<Scalar> = order.iter().map(|&g| groups.keys[g][k].clone()).collect();
        table.keys.push(from_scalars(&scalars, execution.bound.type_of(value))?);
    }
    for states in &groups.states {
        table.aggregates.push(order.iter().map(|&g| states[g].clone().finish()).collect::<Result<_>>()?);
    }
    let Some(having) = having else { return Ok(table) };
    let kept = evaluate(having, &mut GroupProvider { execution, table: &table })?.mask(table.len)?;
    table.keys = table.keys.iter().map(|k| k.filter(&kept)).collect::<Result<_>>()?;
    for column in &mut table.aggregates {
        let mut each = kept.iter();
        column.retain(|_| *each.next().unwrap_or(&false));
    }
    table.len = kept.iter().filter(|&&k| k).count();
    Ok(table)
}

/// A column of single values of one type.
fn from_scalars(scalars: &[Scalar], value_type: Option<ValueType>) -> Result<Vector> {
    fn column<T: Default>(scalars: &[Scalar], pick: impl Fn(&Scalar) -> Option<T>) -> (Vec<T>, Vec<bool>) {
        scalars.iter().map(|s| pick(s).map_or((T::default(), false), |v| (v, true))).unzip()
    }
    macro_rules! values {
        ($($kind:ident),*) => {
            match value_type.unwrap_or(ValueType::F64) {
                $(ValueType::$kind => {
                    let (v, valid) = column(scalars, |s| if let Scalar::$kind(x) = s { Some(x.clone()) } else { None });
                    (Values::$kind(v), valid)
                })*
            }
        };
    }
    let (values, valid) = values!(Bool, I64, U64, F64, Str);
    Vector::new(values, valid.contains(&false).then_some(valid))
}

/// The columns of groups.
struct GroupProvider<'a> {
    execution: &'a Execution,
    table: &'a GroupTable,
}

impl Provider for GroupProvider<'_> {
    fn array(&mut self, _: usize, _: bool) -> Result<Vector> {
        Err(Error::new(ErrorKind::Internal, "an array that varies within a group"))
    }

    fn position(&mut self, _: usize) -> Result<Vector> {
        Err(Error::new(ErrorKind::Internal, "a position that varies within a group"))
    }

    fn units(&self, _: usize) -> Option<&sieva_format::cf::TimeUnits> {
        None
    }

    fn key(&mut self, key: usize) -> Result<Vector> {
        Ok(self.table.keys[key].clone())
    }

    fn aggregated(&mut self, aggregate: usize) -> Result<Vector> {
        from_scalars(
            &self.table.aggregates[aggregate],
            self.execution.bound.type_of(&Value::Aggregated(aggregate)),
        )
    }
}

impl GroupTable {
    /// A value over the groups.
    ///
    /// # Errors
    /// `arithmetic-overflow`, `type-mismatch`.
    pub fn evaluate(&self, execution: &Execution, value: &Value) -> Result<Vector> {
        evaluate(value, &mut GroupProvider { execution, table: self })?.into_rows(self.len)
    }
}
