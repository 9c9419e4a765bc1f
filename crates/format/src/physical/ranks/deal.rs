//! Pieces to units, units to ranks and waves. Whole numbers throughout: all ranks come to the same.

use std::cmp::Reverse;
use std::ops::Range;

use sieva_types::Bx;

use super::union::hull;
use super::{Asked, Piece, Plan, Unit, cost};

/// The plan for pieces that were checked.
pub(super) fn plan(arrays: &[Asked], pieces: Vec<Piece>, ranks: usize, most: u64) -> Plan {
    let mut order: Vec<(usize, Piece)> = pieces.into_iter().enumerate().collect();
    order.sort_by(|(i, a), (j, b)| {
        let of = |p: &Piece| (p.key(), p.asker, p.request);
        of(a).cmp(&of(b)).then_with(|| a.bx.start.cmp(&b.bx.start)).then(i.cmp(j))
    });
    let (given, pieces): (Vec<usize>, Vec<Piece>) = order.into_iter().unzip();
    let dealer = Dealer { arrays, pieces: &pieces, ranks };
    let groups = runs(0..pieces.len(), |i| pieces[i].key());
    let shared = dealer.deal(groups.iter().map(|group| (group.clone(), None)).collect());
    let apart: Vec<_> = groups.into_iter().flat_map(|group| dealer.apart(group)).collect();
    let own = dealer.deal(apart);
    let mut units = if dealer.time(&own) <= dealer.time(&shared) { own } else { shared };
    let (waves, largest) = set_waves(&mut units, &pieces, ranks, most);
    let mut is_row = vec![false; arrays.len()];
    for piece in &pieces {
        is_row[piece.array] |= piece.stripe > 0 && !arrays[piece.array].is_chunked;
    }
    let shapes = arrays.iter().map(|array| array.shape.clone()).collect();
    Plan { pieces, given, units, waves, largest, is_row, shapes }
}

/// Ranges of neighbours that have something in common.
fn runs<T: PartialEq>(of: Range<usize>, key: impl Fn(usize) -> T) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for i in of {
        match found.last_mut() {
            Some(last) if key(last.start) == key(i) => last.end = i + 1,
            _ => found.push(i..i + 1),
        }
    }
    found
}

struct Dealer<'a> {
    arrays: &'a [Asked],
    pieces: &'a [Piece],
    ranks: usize,
}

impl Dealer<'_> {
    /// The pieces of a group as units: one that anyone reads, or those of each rank, which reads its own.
    fn apart(&self, group: Range<usize>) -> Vec<(Range<usize>, Option<usize>)> {
        let askers = runs(group.clone(), |i| self.pieces[i].asker);
        let own = || askers.iter().map(|part| (part.clone(), Some(self.pieces[part.start].asker))).collect();
        if askers.len() == 1 {
            return own();
        }
        let hulls: Vec<Bx> = askers.iter().filter_map(|part| self.hull(part)).collect();
        let is_chunked = self.arrays[self.pieces[group.start].array].is_chunked;
        let overlaps = |(i, a): (usize, &Bx)| hulls[i + 1..].iter().any(|b| a.intersect(b).is_some());
        if is_chunked || hulls.iter().enumerate().any(overlaps) {
            return vec![(group, None)];
        }
        let sent = askers.iter().map(|part| self.bytes(part));
        let sent = sent.clone().sum::<u64>() - sent.max().unwrap_or(0);
        let shared = self.reading(&group).saturating_add(cost::sending(sent).saturating_mul(2));
        let each = askers.iter().fold(0_u64, |n, part| n.saturating_add(self.reading(part)));
        if each <= shared { own() } else { vec![(group, None)] }
    }

    fn hull(&self, part: &Range<usize>) -> Option<Bx> {
        hull(self.pieces[part.clone()].iter().map(|piece| &piece.bx))
    }

    fn bytes(&self, part: &Range<usize>) -> u64 {
        self.pieces[part.clone()].iter().fold(0, |n, piece| n.saturating_add(piece.bytes()))
    }

    /// What reading some pieces together takes.
    fn reading(&self, part: &Range<usize>) -> u64 {
        let first = &self.pieces[part.start];
        self.hull(part).map_or(0, |bx| cost::reading(&self.arrays[first.array], &bx, first.width))
    }

    /// Units with their readers: those that are given, and others by their servers.
    fn deal(&self, units: Vec<(Range<usize>, Option<usize>)>) -> Vec<Unit> {
        let free: Vec<&Range<usize>> =
            units.iter().filter(|(_, of)| of.is_none()).map(|(part, _)| part).collect();
        let weights: Vec<(u64, u64)> =
            free.iter().map(|part| (self.pieces[part.start].server, self.reading(part))).collect();
        let mut dealt = readers(&weights, self.ranks).into_iter();
        let each = units.into_iter().map(|(pieces, of)| {
            let reader = of.or_else(|| dealt.next()).unwrap_or(0);
            Unit { pieces, reader, wave: 0 }
        });
        each.collect()
    }

    /// What the slowest rank takes.
    fn time(&self, units: &[Unit]) -> u64 {
        let mut of_rank = vec![0_u64; self.ranks];
        let mut add = |rank: usize, n: u64| of_rank[rank] = of_rank[rank].saturating_add(n);
        for unit in units {
            add(unit.reader, self.reading(&unit.pieces));
            for piece in self.pieces[unit.pieces.clone()].iter().filter(|piece| piece.asker != unit.reader) {
                let sent = cost::sending(piece.bytes());
                add(unit.reader, sent);
                add(piece.asker, sent);
            }
        }
        of_rank.into_iter().max().unwrap_or(0)
    }
}

/// The rank that reads each unit; of each its server and its weight, by servers.
///
/// A server has one reader where there are as many servers as ranks, the heaviest servers dealt out first to whoever has the
/// least; else each has as many as it is worth, who divide its units in their order.
pub(super) fn readers(units: &[(u64, u64)], ranks: usize) -> Vec<usize> {
    let servers = runs(0..units.len(), |i| units[i].0);
    let total: Vec<u128> =
        servers.iter().map(|of| units[of.clone()].iter().map(|unit| u128::from(unit.1)).sum()).collect();
    let mut found = vec![0; units.len()];
    if servers.len() >= ranks {
        let mut load = vec![0_u128; ranks];
        let mut heaviest: Vec<usize> = (0..servers.len()).collect();
        heaviest.sort_by_key(|&server| Reverse(total[server]));
        for server in heaviest {
            let reader = (0..ranks).min_by_key(|&rank| load[rank]).unwrap_or(0);
            load[reader] += total[server];
            found[servers[server].clone()].fill(reader);
        }
        return found;
    }
    let mut count = vec![1_u128; servers.len()];
    for _ in servers.len()..ranks {
        // The first of those whose readers have most to do.
        let busiest =
            (0..count.len()).rev().max_by(|&a, &b| (total[a] * count[b]).cmp(&(total[b] * count[a])));
        if let Some(busiest) = busiest {
            count[busiest] += 1;
        }
    }
    let mut first = 0;
    for (server, of) in servers.iter().enumerate() {
        let mut before = 0_u128;
        for i in of.clone() {
            let weight = u128::from(units[i].1);
            let part = (2 * before + weight) * count[server] / (2 * total[server]).max(1);
            found[i] = first + part.min(count[server] - 1) as usize;
            before += weight;
        }
        first += count[server] as usize;
    }
    found
}

/// Sets the wave of each unit: a reader sends at most `most` bytes in each, or one unit. How many waves, and the most that is sent.
fn set_waves(units: &mut [Unit], pieces: &[Piece], ranks: usize, most: u64) -> (u64, u64) {
    let mut at = vec![(0_u64, 0_u64); ranks];
    let mut largest = 0;
    for unit in &mut *units {
        let others = pieces[unit.pieces.clone()].iter().filter(|piece| piece.asker != unit.reader);
        let sent = others.fold(0_u64, |n, piece| n.saturating_add(piece.bytes()));
        let (wave, used) = &mut at[unit.reader];
        if *used > 0 && used.saturating_add(sent) > most {
            (*wave, *used) = (*wave + 1, 0);
        }
        *used = used.saturating_add(sent);
        largest = largest.max(*used);
        unit.wave = *wave;
    }
    (units.iter().map(|unit| unit.wave + 1).max().unwrap_or(0), largest)
}
