//! Which conditions are evaluated before the first tile, over their own dimensions alone, and which tile by tile.

use sieva_index::stats::Verdict;
use sieva_types::Bx;

use crate::bind::Condition;
use crate::exec::Execution;

/// A mask is made ahead only if its positions are at most this share of the row space (1/4) ...
const MIN_BROADCAST: u64 = 4;
/// ... or so few that it does not matter.
const FREE_POSITIONS: u64 = 1 << 16;

/// What becomes of a condition.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Known already: it holds everywhere or nowhere.
    Decided(bool),
    /// Evaluated in the first stage over these axes (ascending), and kept as a mask.
    Mask { condition: Condition, axes: Vec<usize> },
    /// Tested on each tile.
    Test(Condition),
    /// Where all hold.
    All(Vec<Step>),
    /// Where any holds.
    Any(Vec<Step>),
}

impl Step {
    /// Adds the conditions that are tested tile by tile.
    pub(crate) fn tested<'s>(&'s self, out: &mut Vec<&'s Condition>) {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|p| p.tested(out)),
            Self::Test(condition) => out.push(condition),
            Self::Decided(_) | Self::Mask { .. } => {}
        }
    }

    /// Adds the conditions of the first stage, with their axes.
    pub(crate) fn masks<'s>(&'s self, out: &mut Vec<(&'s Condition, &'s [usize])>) {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|p| p.masks(out)),
            Self::Mask { condition, axes } => out.push((condition, axes)),
            Self::Decided(_) | Self::Test(_) => {}
        }
    }
}

impl Execution {
    /// What becomes of a condition within `area`.
    pub(super) fn step(&self, condition: &Condition, area: &Bx) -> Step {
        match self.foresee_whole(condition, area) {
            Verdict::All => return Step::Decided(true),
            Verdict::None => return Step::Decided(false),
            Verdict::Some => {}
        }
        let axes = self.bound.condition_axes(condition);
        let positions = axes.iter().fold(1_u64, |n, &a| n.saturating_mul(area.shape[a]));
        let few = positions <= FREE_POSITIONS || positions.saturating_mul(MIN_BROADCAST) <= area.len();
        if axes.len() < area.rank() && few {
            return Step::Mask { condition: condition.clone(), axes };
        }
        let each = |parts: &[Condition]| parts.iter().map(|p| self.step(p, area)).collect();
        match condition {
            Condition::All(parts) => Step::All(each(parts)),
            Condition::Any(parts) => Step::Any(each(parts)),
            other => Step::Test(other.clone()),
        }
    }

    /// What the fill value says of a condition over all of `area`: of an array that was never written, however long, one
    /// value tells.
    fn foresee_whole(&self, condition: &Condition, area: &Bx) -> Verdict {
        match condition {
            Condition::Always => Verdict::All,
            Condition::Never => Verdict::None,
            Condition::Stored { array, raw, set } => {
                let own = self.own_box(*array, area);
                self.foresee_fill(*array, *raw, set, &own).unwrap_or(Verdict::Some)
            }
            Condition::Computed(value) => self.foresee_unwritten(value, area),
            _ => Verdict::Some,
        }
    }
}
