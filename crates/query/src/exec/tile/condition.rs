//! Conditions on one tile: each narrows the mask of what is still possible.

use sieva_types::{Bx, Error, ErrorKind, Result};

use crate::bind::{Condition, Value};
use crate::exec::tile::arrays::{BoxProvider, Leaves};
use crate::exec::tile::evaluate::evaluate;
use crate::exec::tile::prepare::Node;
use crate::exec::{ExecStats, Execution};
use crate::mask::{Mask, and_broadcast};

/// Evaluates conditions on a tile with one worker's arrays.
pub struct Evaluator<'a, 'e> {
    pub(in crate::exec) execution: &'e Execution,
    pub(in crate::exec) leaves: &'a mut Leaves<'e>,
    pub(in crate::exec) read: bool,
    /// The ways that conditions took.
    pub(in crate::exec) did: ExecStats,
}

impl<'a, 'e> Evaluator<'a, 'e> {
    /// An evaluator that reads through `leaves`.
    pub fn new(execution: &'e Execution, leaves: &'a mut Leaves<'e>) -> Self {
        Self { execution, leaves, read: false, did: ExecStats::default() }
    }

    /// What evaluating one tile took.
    pub fn did(&self) -> ExecStats {
        let (scanned, skipped) = if self.read { (1, 0) } else { (0, 1) };
        ExecStats { tiles_scanned: scanned, tiles_skipped: skipped, ..self.did }
    }

    /// Keeps the positions of `mask` (over the tile `bx` of the row space) at which `node` holds, or may: those where
    /// it depends on a value that could not be represented are given back. Nothing is read for a tile without
    /// open positions.
    pub fn narrow(&mut self, node: &Node, bx: &Bx, mask: &mut Mask) -> Result<Failures> {
        if mask.none() {
            return Ok(None);
        }
        match node {
            Node::Decided(true) => {}
            Node::Decided(false) => *mask = Mask::zeros(mask.len()),
            Node::Known(known) => {
                and_broadcast(mask, &bx.shape, &known.of_tile(bx), &known.axes);
                return Ok(known.failed_of_tile(bx).and_then(|f| spread(&f, mask, bx, &known.axes)));
            }
            Node::Chosen(chosen) => mask.and(&chosen.mask(&self.execution.bound.rows.shape, bx)),
            Node::All(parts) => {
                return self.all(parts.len(), mask, |this, i, m| this.narrow(&parts[i], bx, m));
            }
            Node::Any(parts) => {
                return self.any(parts.len(), mask, |this, i, m| this.narrow(&parts[i], bx, m));
            }
            Node::Leaf(condition) => return self.leaf(condition, bx, mask),
        }
        Ok(None)
    }

    /// Where one part does not hold, it does not matter what another one failed with.
    fn all(
        &mut self,
        parts: usize,
        mask: &mut Mask,
        narrow: impl Fn(&mut Self, usize, &mut Mask) -> Result<Failures>,
    ) -> Result<Failures> {
        let mut failed: Failures = None;
        for i in 0..parts {
            if mask.none() {
                return Ok(None);
            }
            join(&mut failed, narrow(self, i, mask)?);
        }
        Ok(within(failed, mask))
    }

    /// Each alternative is evaluated only where none of those before it holds; where one holds, it does not matter
    /// what another one failed with.
    fn any(
        &mut self,
        alternatives: usize,
        mask: &mut Mask,
        narrow: impl Fn(&mut Self, usize, &mut Mask) -> Result<Failures>,
    ) -> Result<Failures> {
        let mut open = mask.clone();
        let mut found = Mask::zeros(mask.len());
        let mut failed: Failures = None;
        for i in 0..alternatives {
            // There may be as many as a text has room for.
            self.execution.options.check_cancel()?;
            let mut here = open.clone();
            let failed_here = narrow(self, i, &mut here)?;
            if let Some(f) = &failed_here {
                here.and_not(f);
            }
            join(&mut failed, failed_here);
            found.or(&here);
            open.and_not(&here);
            if open.none() {
                break;
            }
        }
        let failed = within(failed, &open);
        if let Some(f) = &failed {
            found.or(f);
        }
        *mask = found;
        Ok(failed)
    }

    fn leaf(&mut self, condition: &Condition, bx: &Bx, mask: &mut Mask) -> Result<Failures> {
        match condition {
            Condition::Always => {}
            Condition::Never => *mask = Mask::zeros(mask.len()),
            Condition::All(parts) => {
                return self.all(parts.len(), mask, |this, i, m| this.leaf(&parts[i], bx, m));
            }
            Condition::Any(parts) => {
                return self.any(parts.len(), mask, |this, i, m| this.leaf(&parts[i], bx, m));
            }
            Condition::Stored { array, raw, set } => {
                self.stored(*array, *raw, set, bx, mask)?;
            }
            Condition::Position { dim, ranges } => {
                let axis = self.execution.bound.rows.axis(*dim).unwrap_or_default();
                apply(mask, bx, &positions(ranges, bx.start[axis], bx.shape[axis]), &[axis]);
            }
            Condition::Computed(value) => return self.computed(value, bx, mask),
        }
        Ok(None)
    }

    fn computed(&mut self, value: &Value, bx: &Bx, mask: &mut Mask) -> Result<Failures> {
        self.read = true;
        self.did.by_scan += 1;
        let axes = self.execution.bound.axes_of(value);
        let n = axes.iter().map(|&a| bx.shape[a]).product::<u64>() as usize;
        let vector = evaluate(value, &mut BoxProvider { leaves: self.leaves, bx, axes: &axes })?;
        let mut found = vector.mask(n)?;
        let Some(failed) = vector.into_rows(n)?.failed_rows().map(Mask::from) else {
            apply(mask, bx, &found, &axes);
            return Ok(None);
        };
        found.or(&failed);
        apply(mask, bx, &found, &axes);
        Ok(spread(&failed, mask, bx, &axes))
    }

    /// The error with which `node` failed at a position of the tile.
    pub fn error_at(&mut self, node: &Node, bx: &Bx, position: usize) -> Result<Error> {
        let mut one = Bx::new(bx.start.clone(), vec![1; bx.rank()]);
        let mut rest = position as u64;
        for axis in (0..bx.rank()).rev() {
            one.start[axis] += rest % bx.shape[axis];
            rest /= bx.shape[axis];
        }
        let mut values = Vec::new();
        computed_values(node, &mut values);
        for value in values {
            match self.leaves.error_at(value, &one, 0) {
                Err(e) if e.kind() == ErrorKind::Overflow => return Ok(e),
                other => other?,
            }
        }
        Err(Error::new(ErrorKind::Internal, "a condition that failed where none of its values did"))
    }
}

/// The positions, if any, at which a condition depends on a value that could not be represented.
pub type Failures = Option<Mask>;

fn join(failed: &mut Failures, more: Failures) {
    match (failed.as_mut(), more) {
        (Some(known), Some(more)) => known.or(&more),
        (None, more) => *failed = more,
        (Some(_), None) => {}
    }
}

fn within(failed: Failures, mask: &Mask) -> Failures {
    let mut failed = failed?;
    failed.and(mask);
    (!failed.none()).then_some(failed)
}

/// What failed along some axes, at the positions of `mask`.
fn spread(failed: &Mask, mask: &Mask, bx: &Bx, axes: &[usize]) -> Failures {
    let mut all = mask.clone();
    apply(&mut all, bx, failed, axes);
    (!all.none()).then_some(all)
}

/// The values that conditions of a node are computed from.
fn computed_values<'n>(node: &'n Node, out: &mut Vec<&'n Value>) {
    fn of_condition<'n>(condition: &'n Condition, out: &mut Vec<&'n Value>) {
        match condition {
            Condition::All(parts) | Condition::Any(parts) => parts.iter().for_each(|p| of_condition(p, out)),
            Condition::Computed(value) => out.push(value),
            _ => {}
        }
    }
    match node {
        Node::All(parts) | Node::Any(parts) => parts.iter().for_each(|p| computed_values(p, out)),
        Node::Leaf(condition) => of_condition(condition, out),
        Node::Known(known) => {
            if let Some((_, condition)) = &known.failed {
                of_condition(condition, out);
            }
        }
        Node::Chosen(_) | Node::Decided(_) => {}
    }
}

pub(in crate::exec) fn apply(mask: &mut Mask, bx: &Bx, found: &Mask, axes: &[usize]) {
    if found.len() == mask.len() { mask.and(found) } else { and_broadcast(mask, &bx.shape, found, axes) }
}

/// The positions `start .. start + n` that lie in one of the half-open ranges.
fn positions(ranges: &[(u64, u64)], start: u64, n: u64) -> Mask {
    let mut mask = Mask::zeros(n as usize);
    for &(a, b) in ranges {
        let (a, b) = (a.max(start), b.min(start + n));
        if a < b {
            mask.set_range((a - start) as usize, (b - a) as usize);
        }
    }
    mask
}
