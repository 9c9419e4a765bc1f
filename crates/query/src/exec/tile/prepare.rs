//! Before the first tile: conditions on fewer dimensions, evaluated once and kept as masks.
//!
//! They shrink the box of the row space that tiles are cut from (a range of a coordinate becomes a slice),
//! and where they leave nothing of a tile, none of its data are read.

use std::sync::{Arc, PoisonError};

use sieva_index::stats::Verdict;
use sieva_types::{Bx, Result};

use crate::bind::Condition;
use crate::exec::Execution;
use crate::exec::access_path::sorted::Chosen;
use crate::exec::pool::{Flow, in_order};
use crate::exec::tile::Tiles;
use crate::exec::tile::arrays::Leaves;
use crate::exec::tile::condition::Evaluator;
use crate::mask::{Mask, project, slice_box};
use crate::optimizer::{PhysicalPlan, Step, cut};

/// The masks of a query have at most this many positions, and no more than its limit has bytes.
const MAX_POSITIONS: u64 = 1 << 31;

/// The positions that masks may still have.
struct Masks {
    left: u64,
}

impl Masks {
    /// Takes room for one of so many, if there is.
    fn take(&mut self, positions: u64) -> bool {
        let fits = positions <= self.left;
        self.left -= if fits { positions } else { 0 };
        fits
    }
}

/// A condition ready to be evaluated tile by tile.
#[derive(Debug)]
pub enum Node {
    /// All of them, the cheapest first.
    All(Vec<Node>),
    /// Any of them.
    Any(Vec<Node>),
    /// Known already: a mask over some axes of the row space.
    Known(KnownMask),
    /// To be evaluated on each tile.
    Leaf(Condition),
    /// Rows that a sorted replica gave.
    Chosen(Arc<Chosen>),
    /// Everywhere or nowhere.
    Decided(bool),
}

impl Node {
    /// What is known of conditions already, a line each.
    pub(crate) fn known_lines(&self, names: &[String], out: &mut Vec<String>) {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|p| p.known_lines(names, out)),
            Self::Known(known) => {
                let axes: Vec<&str> = known.axes.iter().map(|&a| names[a].as_str()).collect();
                let (n, all) = (known.mask.count(), known.mask.len());
                out.push(format!("on ({}): {n} of {all} positions", axes.join(", ")));
            }
            Self::Chosen(chosen) => out.push(format!("sorted replica: {} rows", chosen.count())),
            Self::Leaf(_) | Self::Decided(_) => {}
        }
    }
}

/// A mask over the box `bx` of the axes `axes` (ascending).
#[derive(Debug)]
pub struct KnownMask {
    /// The axes it covers.
    pub axes: Vec<usize>,
    /// The box that it covers along them.
    pub bx: Bx,
    /// The positions that hold or failed.
    pub mask: Mask,
    /// Those of them at which the condition depends on a value that could not be represented.
    pub failed: Option<(Mask, Condition)>,
}

impl KnownMask {
    /// The mask's part in a tile of the row space.
    pub fn of_tile(&self, tile: &Bx) -> Mask {
        self.part(&self.mask, tile)
    }

    /// What failed in a tile of the row space, if anything did.
    pub fn failed_of_tile(&self, tile: &Bx) -> Option<Mask> {
        let (failed, _) = self.failed.as_ref()?;
        Some(self.part(failed, tile)).filter(|f| !f.none())
    }

    fn part(&self, mask: &Mask, tile: &Bx) -> Mask {
        let start = self.axes.iter().zip(&self.bx.start).map(|(&a, s)| tile.start[a] - s).collect();
        let shape = self.axes.iter().map(|&a| tile.shape[a]).collect();
        slice_box(mask, &self.bx.shape, &Bx::new(start, shape))
    }
}

/// What is known before tiles are read.
#[derive(Debug)]
pub struct Prepared {
    /// The box of the row space outside of which nothing is selected.
    pub area: Bx,
    /// What is left to be evaluated within it.
    pub node: Node,
}

impl Execution {
    /// What is known before the first tile: the first stage of the physical plan, run once and kept for all that is asked
    /// of the query.
    ///
    /// # Errors
    /// Reading errors and `cancelled`; nothing is kept then.
    pub(crate) fn prepare(&self) -> Result<Arc<Prepared>> {
        if let Some(known) = self.prepared.get() {
            return Ok(Arc::clone(known));
        }
        let _alone = self.preparing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = self.prepared.get() {
            return Ok(Arc::clone(known));
        }
        let found = Arc::new(self.first_stage()?);
        Ok(Arc::clone(self.prepared.get_or_init(|| found)))
    }

    /// The same, if it was run.
    pub(crate) fn prepared_already(&self) -> Option<Arc<Prepared>> {
        self.prepared.get().cloned()
    }

    fn first_stage(&self) -> Result<Prepared> {
        self.ask_for_small();
        let plan = self.physical();
        let Some(path) = &plan.replica else { return self.run_steps(plan, None) };
        match self.take(path)? {
            Some(Some(rows)) => self.run_steps(plan, Some(rows)),
            Some(None) => Ok(nowhere(Bx::whole(&self.bound.rows.shape))),
            None => self.run_steps(&PhysicalPlan::new(self, false), None),
        }
    }

    /// Evaluates the masks of a plan and shrinks its area by them; `rows` is what a replica gave.
    fn run_steps(&self, plan: &PhysicalPlan, rows: Option<Node>) -> Result<Prepared> {
        let mut area = plan.area.clone();
        let mut nodes: Vec<Node> = rows.into_iter().collect();
        let mut room = Masks { left: MAX_POSITIONS.min(self.options.memory) };
        for step in &plan.steps {
            if area.is_empty() {
                return Ok(nowhere(area));
            }
            let node = self.node(step, &area, &mut room)?;
            if let Node::Known(known) = &node {
                shrink(&mut area, known);
            }
            match node {
                Node::Decided(true) => {}
                Node::Decided(false) => return Ok(nowhere(area)),
                other => nodes.push(other),
            }
        }
        if area.is_empty() && area.rank() > 0 {
            return Ok(nowhere(area));
        }
        let node = match nodes.len() {
            0 => Node::Decided(true),
            1 => nodes.swap_remove(0),
            _ => Node::All(nodes),
        };
        Ok(Prepared { area, node })
    }

    fn node(&self, step: &Step, area: &Bx, room: &mut Masks) -> Result<Node> {
        let mut each = |parts: &[Step]| -> Result<Vec<Node>> {
            parts.iter().map(|p| self.node(p, area, room)).collect()
        };
        let (condition, axes) = match step {
            Step::Decided(holds) => return Ok(Node::Decided(*holds)),
            Step::All(parts) => return Ok(Node::All(each(parts)?)),
            Step::Any(parts) => return Ok(Node::Any(each(parts)?)),
            Step::Mask { condition, axes } => (condition, Some(axes)),
            Step::Test(condition) => (condition, None),
        };
        match self.foresee_in(condition, area) {
            Verdict::All => return Ok(Node::Decided(true)),
            Verdict::None => return Ok(Node::Decided(false)),
            Verdict::Some => {}
        }
        match axes {
            Some(axes) if room.take(axes.iter().fold(1, |n: u64, &a| n.saturating_mul(area.shape[a]))) => {
                Ok(Node::Known(self.known(condition, axes, area)?))
            }
            _ => Ok(Node::Leaf(condition.clone())),
        }
    }

    /// What is known of a condition over all of `area` where one value tells.
    fn foresee_in(&self, condition: &Condition, area: &Bx) -> Verdict {
        match condition {
            // Of an array that was never written, however long, one value tells.
            Condition::Stored { array, raw, set } => {
                let own = self.own_box(*array, area);
                self.foresee_fill(*array, *raw, set, &own).unwrap_or(Verdict::Some)
            }
            Condition::Computed(value) => self.foresee_computed(value, area),
            _ => Verdict::Some,
        }
    }

    /// Evaluates a condition over its own axes alone, within `area`.
    fn known(&self, condition: &Condition, axes: &[usize], area: &Bx) -> Result<KnownMask> {
        let bx = Bx::new(
            axes.iter().map(|&a| area.start[a]).collect(),
            axes.iter().map(|&a| area.shape[a]).collect(),
        );
        let mut arrays = Vec::new();
        self.arrays_of(condition, &mut arrays);
        let tiles = Tiles::new(bx.clone(), self.tile_shape(&arrays, axes));
        let mut mask = Mask::zeros(bx.len() as usize);
        let mut failed: Option<Mask> = None;
        let node = Node::Leaf(condition.clone());
        in_order(
            tiles.len(),
            self.options.threads,
            &self.options.cancel,
            || Leaves::new(self),
            |leaves, i| {
                let part = tiles.tile(i);
                // A box of the row space that is one position wide along the axes that do not matter.
                let mut whole = Bx::new(area.start.clone(), vec![1; area.rank()]);
                for (d, &a) in axes.iter().enumerate() {
                    (whole.start[a], whole.shape[a]) = (part.start[d], part.shape[d]);
                }
                let mut mask = Mask::ones(part.len() as usize);
                let failed = Evaluator::new(self, leaves).narrow(&node, &whole, &mut mask)?;
                Ok((part, mask, failed))
            },
            |(part, found, failed_here)| {
                paste(&mut mask, &bx, &part, &found);
                if let Some(f) = failed_here {
                    paste(failed.get_or_insert_with(|| Mask::zeros(mask.len())), &bx, &part, &f);
                }
                Ok(Flow::Continue(()))
            },
        )?;
        let failed = failed.map(|f| (f, condition.clone()));
        Ok(KnownMask { axes: axes.to_vec(), bx, mask, failed })
    }
}

/// That nothing is selected. A box of no dimensions cannot be made empty, so the node says it too.
fn nowhere(area: Bx) -> Prepared {
    Prepared { area: Bx::new(area.start, vec![0; area.shape.len()]), node: Node::Decided(false) }
}

/// Copies the mask of `part` to its place in that of `bx`.
pub(in crate::exec) fn paste(mask: &mut Mask, bx: &Bx, part: &Bx, found: &Mask) {
    let row = part.shape.last().copied().unwrap_or(1) as usize;
    for r in 0..found.len() / row.max(1) {
        let mut rest = r as u64;
        let mut at = 0;
        let mut stride = 1;
        for d in (0..bx.rank()).rev() {
            let i = if d + 1 == bx.rank() {
                0
            } else {
                let i = rest % part.shape[d];
                rest /= part.shape[d];
                i
            };
            at += (part.start[d] + i - bx.start[d]) * stride;
            stride *= bx.shape[d];
        }
        mask.or_range(at as usize, found, r * row, row);
    }
}

/// Cuts from `area` what `known` excludes at both ends of each axis.
fn shrink(area: &mut Bx, known: &KnownMask) {
    if known.mask.none() {
        area.shape.iter_mut().for_each(|n| *n = 0);
        return;
    }
    for (shadow, (&axis, &start)) in
        project(&known.mask, &known.bx.shape).iter().zip(known.axes.iter().zip(&known.bx.start))
    {
        if let Some((first, last)) = shadow.extent() {
            cut(area, axis, start + first as u64, start + last as u64 + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_shrinks_the_area_along_its_axes() {
        let mut mask = Mask::zeros(12);
        mask.set(5); // (1, 1) of (3, 4)
        mask.set(6); // (1, 2)
        let known = KnownMask { axes: vec![1, 2], bx: Bx::new(vec![10, 0], vec![3, 4]), mask, failed: None };
        let mut area = Bx::new(vec![0, 10, 0], vec![5, 3, 4]);
        shrink(&mut area, &known);
        assert_eq!(area, Bx::new(vec![0, 11, 1], vec![5, 1, 2]));
        assert_eq!(known.of_tile(&Bx::new(vec![3, 11, 1], vec![1, 1, 2])), Mask::ones(2));
    }

    #[test]
    fn parts_are_pasted_in_place() {
        let bx = Bx::new(vec![2, 3], vec![3, 4]);
        let mut mask = Mask::zeros(12);
        paste(&mut mask, &bx, &Bx::new(vec![3, 4], vec![2, 2]), &Mask::ones(4));
        assert_eq!(mask.ones_iter().collect::<Vec<_>>(), [5, 6, 9, 10]);
    }
}
