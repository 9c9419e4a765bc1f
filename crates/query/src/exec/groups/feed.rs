//! Values at the selected positions of a tile.

use sieva_types::{Bx, Result};

use crate::bind::Value;
use crate::exec::tile::arrays::{BoxProvider, Leaves, indices};
use crate::exec::tile::evaluate::evaluate;
use crate::exec::{Column, Execution};
use crate::mask::Mask;
use crate::values::Vector;

/// The selected positions of a tile.
pub(super) enum Hits {
    /// All of so many; or so many, where nobody asks which.
    All(usize),
    /// These.
    Some(Vec<usize>),
}

impl Hits {
    pub(super) fn new(mask: &Mask) -> Self {
        if mask.all() { Self::All(mask.len()) } else { Self::Some(mask.ones_iter().collect()) }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::All(n) => *n,
            Self::Some(v) => v.len(),
        }
    }
}

/// A value at the selected positions of a tile: evaluated on its own axes, then picked.
pub(super) fn at_hits<'e>(
    execution: &'e Execution,
    bx: &Bx,
    leaves: &mut Leaves<'e>,
    value: &Value,
    hits: &Hits,
) -> Result<Vector> {
    if let Hits::Some(places) = hits
        && let Some(column) = leaves.at_places(value, bx, places)?
    {
        return column.into_vector();
    }
    let axes = execution.bound.axes_of(value);
    let vector = evaluate(value, &mut BoxProvider { leaves, bx, axes: &axes })?;
    let n = axes.iter().map(|&a| bx.shape[a]).product::<u64>() as usize;
    let order = own_indices(bx, &axes, hits);
    let vector = needed(vector, &order, leaves, value, bx)?;
    let column = Column::from_vector(vector, n)?;
    match order {
        None => column.into_vector(),
        Some(order) => column.take(&order).into_vector(),
    }
}

/// The values, of which the rows of `order` (`None`: all) are needed; what the others failed with does not matter.
pub(super) fn needed<'e>(
    vector: Vector,
    order: &Option<Vec<usize>>,
    leaves: &mut Leaves<'e>,
    value: &Value,
    bx: &Bx,
) -> Result<Vector> {
    let (Some(failed), Some(order)) = (vector.failed_rows(), order) else { return vector.sound() };
    let is_failed = |&&i: &&usize| failed.get(if vector.is_constant() { 0 } else { i }) == Some(&true);
    match order.iter().find(is_failed) {
        Some(&i) => {
            leaves.error_at(value, bx, i)?;
            vector.sound()
        }
        None => Ok(vector.settled()),
    }
}

/// For each hit, its index among the positions of `axes`; `None` where that is the hits themselves.
pub(super) fn own_indices(bx: &Bx, axes: &[usize], hits: &Hits) -> Option<Vec<usize>> {
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
