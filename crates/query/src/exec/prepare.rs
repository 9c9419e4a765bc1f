//! Before the first tile: conditions on fewer dimensions, evaluated once and kept as masks.
//!
//! They shrink the box of the row space that tiles are cut from (a range of a coordinate becomes a slice),
//! and where they leave nothing of a tile, none of its data are read.

use std::sync::Arc;

use sieva_types::{Bx, Result};

use super::Execution;
use super::chosen::Chosen;
use super::condition::Evaluator;
use super::leaves::Leaves;
use super::pool::{Flow, in_order};
use super::tiles::Tiles;
use crate::bind::Condition;
use crate::mask::{Mask, project, slice_box};

/// A mask is made ahead only if its positions are at most this share of the row space (1/4) ...
const MIN_BROADCAST: u64 = 4;
/// ... or so few that it does not matter, and in any case at most this many.
const FREE_POSITIONS: u64 = 1 << 16;
const MAX_POSITIONS: u64 = 1 << 31;

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

/// A mask over the box `bx` of the axes `axes` (ascending).
#[derive(Debug)]
pub struct KnownMask {
    /// The axes it covers.
    pub axes: Vec<usize>,
    /// The box that it covers along them.
    pub bx: Bx,
    /// The positions that hold.
    pub mask: Mask,
}

impl KnownMask {
    /// The mask's part in a tile of the row space.
    pub fn of_tile(&self, tile: &Bx) -> Mask {
        let start = self.axes.iter().zip(&self.bx.start).map(|(&a, s)| tile.start[a] - s).collect();
        let shape = self.axes.iter().map(|&a| tile.shape[a]).collect();
        slice_box(&self.mask, &self.bx.shape, &Bx::new(start, shape))
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
    /// Evaluates the conditions on fewer dimensions and shrinks the row space by them.
    pub(super) fn prepare(&self) -> Result<Prepared> {
        let mut area = Bx::whole(&self.bound.rows.shape);
        let parts = match &self.bound.condition {
            Condition::All(parts) => parts.clone(),
            other => vec![other.clone()],
        };
        let mut parts: Vec<(Condition, Vec<usize>)> = parts
            .into_iter()
            .map(|c| {
                let axes = self.bound.condition_axes(&c);
                (c, axes)
            })
            .collect();
        let mut nodes = Vec::with_capacity(parts.len());
        if let Some(choice) = self.choose(&parts)? {
            let Some(node) = choice.node else {
                return Ok(Prepared {
                    area: Bx::new(area.start, vec![0; area.shape.len()]),
                    node: Node::Decided(false),
                });
            };
            nodes.push(node);
            let mut number = 0;
            parts.retain(|_| {
                number += 1;
                !choice.answered.contains(&(number - 1))
            });
        }
        parts.sort_by_cached_key(|(c, axes)| (axes.len(), self.rank(c) as u64));
        for (condition, axes) in parts {
            if area.is_empty() {
                return Ok(Prepared { area, node: Node::Decided(false) });
            }
            if let Condition::Position { dim, ranges } = &condition
                && let [(first, end)] = ranges[..]
            {
                // A range of positions is a slice, and nothing else is left of it.
                let axis = self.bound.rows.axis(*dim).unwrap_or_default();
                cut(&mut area, axis, first, end);
                continue;
            }
            let node = self.node(&condition, &axes, &area)?;
            if let Node::Known(known) = &node {
                shrink(&mut area, known);
            }
            match node {
                Node::Decided(true) => {}
                Node::Decided(false) => area = Bx::new(area.start.clone(), vec![0; area.rank()]),
                other => nodes.push(other),
            }
        }
        if area.is_empty() && area.rank() > 0 {
            return Ok(Prepared { area, node: Node::Decided(false) });
        }
        let node = match nodes.len() {
            0 if matches!(self.bound.condition, Condition::Never) => Node::Decided(false),
            0 => Node::Decided(true),
            1 => nodes.swap_remove(0),
            _ => Node::All(nodes),
        };
        Ok(Prepared { area, node })
    }

    fn node(&self, condition: &Condition, axes: &[usize], area: &Bx) -> Result<Node> {
        match condition {
            Condition::Always => return Ok(Node::Decided(true)),
            Condition::Never => return Ok(Node::Decided(false)),
            _ => {}
        }
        let positions: u64 = axes.iter().map(|&a| area.shape[a]).product();
        let few = positions <= FREE_POSITIONS || positions.saturating_mul(MIN_BROADCAST) <= area.len();
        if axes.len() < area.rank() && few && positions <= MAX_POSITIONS.min(self.options.memory) {
            return Ok(Node::Known(self.known(condition, axes, area)?));
        }
        let each = |parts: &[Condition]| {
            let nodes = parts.iter().map(|p| self.node(p, &self.bound.condition_axes(p), area));
            nodes.collect::<Result<Vec<_>>>()
        };
        match condition {
            Condition::All(parts) => Ok(Node::All(each(parts)?)),
            Condition::Any(parts) => Ok(Node::Any(each(parts)?)),
            other => Ok(Node::Leaf(other.clone())),
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
                Evaluator::new(self, leaves).narrow(&node, &whole, &mut mask)?;
                Ok((part, mask))
            },
            |(part, found)| {
                paste(&mut mask, &bx, &part, &found);
                Ok(Flow::Continue(()))
            },
        )?;
        Ok(KnownMask { axes: axes.to_vec(), bx, mask })
    }
}

/// Copies the mask of `part` to its place in that of `bx`.
pub(super) fn paste(mask: &mut Mask, bx: &Bx, part: &Bx, found: &Mask) {
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

/// Keeps the positions `first..end` of an axis.
fn cut(area: &mut Bx, axis: usize, first: u64, end: u64) {
    let low = first.max(area.start[axis]);
    area.shape[axis] = end.min(area.end(axis)).saturating_sub(low);
    area.start[axis] = low;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_shrinks_the_area_along_its_axes() {
        let mut mask = Mask::zeros(12);
        mask.set(5); // (1, 1) of (3, 4)
        mask.set(6); // (1, 2)
        let known = KnownMask { axes: vec![1, 2], bx: Bx::new(vec![10, 0], vec![3, 4]), mask };
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
