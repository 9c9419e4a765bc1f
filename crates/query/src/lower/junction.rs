//! Junctions of conditions: flat, with the conditions on one array's stored values made into one set.

use std::collections::HashMap;

use crate::bind::Condition;
use crate::raw::KeySet;

/// The conjunction, flat, with the conditions on one array's stored values made into one.
pub(super) fn all(parts: Vec<Condition>) -> Condition {
    let mut joined = Joined::default();
    for part in parts {
        match part {
            Condition::Always => {}
            Condition::Never => return Condition::Never,
            Condition::All(inner) => inner.into_iter().for_each(|c| joined.add(c)),
            other => joined.add(other),
        }
    }
    let mut out = joined.merged(|a, b| a.intersection(b), true);
    if out.iter().any(is_never) {
        return Condition::Never;
    }
    match out.len() {
        0 => Condition::Always,
        1 => out.swap_remove(0),
        _ => Condition::All(out),
    }
}

/// The disjunction, likewise.
pub(super) fn any(parts: Vec<Condition>) -> Condition {
    let mut joined = Joined::default();
    for part in parts {
        match part {
            c if is_never(&c) => {}
            Condition::Always => return Condition::Always,
            Condition::Any(inner) => inner.into_iter().for_each(|c| joined.add(c)),
            other => joined.add(other),
        }
    }
    let mut out = joined.merged(|a, b| a.union(b), false);
    match out.len() {
        0 => Condition::Never,
        1 => out.swap_remove(0),
        _ => Condition::Any(out),
    }
}

/// The parts of a junction, those on the stored values of one array in the place of the first of them.
#[derive(Default)]
struct Joined {
    parts: Vec<Condition>,
    /// Where in the parts, and the further sets that belong there.
    stored: HashMap<(usize, bool), (usize, Vec<KeySet>)>,
}

impl Joined {
    fn add(&mut self, part: Condition) {
        let place = self.parts.len();
        match part {
            Condition::Stored { array, raw, set } => {
                let (at, sets) = self.stored.entry((array, raw)).or_insert((place, Vec::new()));
                sets.push(set);
                if *at == place {
                    self.parts.push(Condition::Stored { array, raw, set: KeySet::EMPTY });
                }
            }
            other => self.parts.push(other),
        }
    }

    fn merged(mut self, join: impl Fn(&KeySet, &KeySet) -> KeySet, conjunction: bool) -> Vec<Condition> {
        for (at, sets) in self.stored.into_values() {
            if let Condition::Stored { set, .. } = &mut self.parts[at] {
                *set = folded(sets, &join);
            }
        }
        if conjunction { self.parts } else { positions_joined(self.parts) }
    }
}

/// Sets joined two by two, and what comes out likewise: each value is touched as often as the number of sets has bits.
fn folded(mut sets: Vec<KeySet>, join: &impl Fn(&KeySet, &KeySet) -> KeySet) -> KeySet {
    while sets.len() > 1 {
        sets = sets
            .chunks(2)
            .map(|pair| match pair {
                [a, b] => join(a, b),
                rest => rest[0].clone(),
            })
            .collect();
    }
    sets.pop().unwrap_or(KeySet::EMPTY)
}

/// A disjunction with the conditions on the positions along each dimension made into one.
fn positions_joined(parts: Vec<Condition>) -> Vec<Condition> {
    let mut out: Vec<Condition> = Vec::with_capacity(parts.len());
    let mut places: HashMap<usize, usize> = HashMap::new();
    for part in parts {
        let Condition::Position { dim, ranges } = part else {
            out.push(part);
            continue;
        };
        let place = *places.entry(dim).or_insert(out.len());
        match out.get_mut(place) {
            Some(Condition::Position { ranges: all, .. }) => all.extend(ranges),
            _ => out.push(Condition::Position { dim, ranges }),
        }
    }
    for place in places.into_values() {
        if let Condition::Position { ranges, .. } = &mut out[place] {
            *ranges = ascending(std::mem::take(ranges));
        }
    }
    out
}

/// Half-open ranges, ascending, those that touch made into one.
fn ascending(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut out: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
    for (start, end) in ranges {
        match out.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => out.push((start, end)),
        }
    }
    out
}

pub(super) fn is_never(c: &Condition) -> bool {
    match c {
        Condition::Never => true,
        Condition::Stored { set, .. } => set.is_empty(),
        Condition::Position { ranges, .. } => ranges.is_empty(),
        _ => false,
    }
}
