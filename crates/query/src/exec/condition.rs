//! Conditions on one tile: each narrows the mask of what is still possible.

use sieva_types::{Bx, Result};

use super::evaluate::evaluate;
use super::leaves::{BoxProvider, Leaves};
use super::prepare::Node;
use super::{ExecStats, Execution};
use crate::bind::{Condition, Value};
use crate::mask::{Mask, and_broadcast};

/// Evaluates conditions on a tile with one worker's arrays.
pub struct Evaluator<'a, 'e> {
    pub(super) execution: &'e Execution,
    pub(super) leaves: &'a mut Leaves<'e>,
    pub(super) read: bool,
    /// The ways that conditions took.
    pub(super) did: ExecStats,
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

    /// Keeps the positions of `mask` (over the tile `bx` of the row space) at which `node` holds. Nothing is
    /// read for a tile without such positions.
    pub fn narrow(&mut self, node: &Node, bx: &Bx, mask: &mut Mask) -> Result<()> {
        if mask.none() {
            return Ok(());
        }
        match node {
            Node::Decided(true) => {}
            Node::Decided(false) => *mask = Mask::zeros(mask.len()),
            Node::Known(known) => and_broadcast(mask, &bx.shape, &known.of_tile(bx), &known.axes),
            Node::Chosen(chosen) => mask.and(&chosen.mask(&self.execution.bound.rows.shape, bx)),
            Node::All(parts) => {
                for part in parts {
                    self.narrow(part, bx, mask)?;
                }
            }
            Node::Any(parts) => self.any(parts.len(), mask, |this, i, m| this.narrow(&parts[i], bx, m))?,
            Node::Leaf(condition) => self.leaf(condition, bx, mask)?,
        }
        Ok(())
    }

    /// Each alternative is evaluated only where none of those before it holds.
    fn any(
        &mut self,
        alternatives: usize,
        mask: &mut Mask,
        narrow: impl Fn(&mut Self, usize, &mut Mask) -> Result<()>,
    ) -> Result<()> {
        let mut open = mask.clone();
        let mut found = Mask::zeros(mask.len());
        for i in 0..alternatives {
            let mut here = open.clone();
            narrow(self, i, &mut here)?;
            found.or(&here);
            open.and_not(&here);
            if open.none() {
                break;
            }
        }
        *mask = found;
        Ok(())
    }

    fn leaf(&mut self, condition: &Condition, bx: &Bx, mask: &mut Mask) -> Result<()> {
        match condition {
            Condition::Always => {}
            Condition::Never => *mask = Mask::zeros(mask.len()),
            Condition::All(parts) => {
                for part in parts {
                    if mask.none() {
                        break;
                    }
                    self.leaf(part, bx, mask)?;
                }
            }
            Condition::Any(parts) => self.any(parts.len(), mask, |this, i, m| this.leaf(&parts[i], bx, m))?,
            Condition::Stored { array, raw, set } => {
                self.stored(*array, *raw, set, bx, mask)?;
            }
            Condition::Position { dim, ranges } => {
                let axis = self.execution.bound.rows.axis(*dim).unwrap_or_default();
                apply(mask, bx, &positions(ranges, bx.start[axis], bx.shape[axis]), &[axis]);
            }
            Condition::Computed(value) => self.computed(value, bx, mask)?,
        }
        Ok(())
    }

    fn computed(&mut self, value: &Value, bx: &Bx, mask: &mut Mask) -> Result<()> {
        self.read = true;
        self.did.by_scan += 1;
        let axes = self.execution.bound.axes_of(value);
        let n = axes.iter().map(|&a| bx.shape[a]).product::<u64>() as usize;
        let vector = evaluate(value, &mut BoxProvider { leaves: self.leaves, bx, axes: &axes })?;
        let holds = vector.mask(n)?;
        let mut found = Mask::zeros(n);
        (0..n).filter(|&i| holds[i]).for_each(|i| found.set(i));
        apply(mask, bx, &found, &axes);
        Ok(())
    }
}

pub(super) fn apply(mask: &mut Mask, bx: &Bx, found: &Mask, axes: &[usize]) {
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
