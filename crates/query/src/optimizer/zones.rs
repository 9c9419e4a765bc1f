//! Zone pruning: what is known of a condition on a tile before the tile is read, from zone maps, fill values and positions.

use sieva_format::layout::Placement;
use sieva_index::ArrayIndex;
use sieva_index::stats::Verdict;
use sieva_types::{Bx, DType, KeySet};

use crate::bind::{Condition, Value};
use crate::exec::Execution;
use crate::mask::Mask;
use crate::raw::RawTest;

impl Execution {
    /// The array's own box within a box of the row space.
    pub(crate) fn own_box(&self, array: usize, bx: &Bx) -> Bx {
        let axes = &self.bound.arrays[array].axes;
        Bx::new(axes.iter().map(|&a| bx.start[a]).collect(), axes.iter().map(|&a| bx.shape[a]).collect())
    }

    /// Whether anything is known of any part of a condition without reading: where not, no tile needs to be judged.
    pub(crate) fn is_foreseeable(&self, condition: &Condition) -> bool {
        match condition {
            Condition::All(parts) | Condition::Any(parts) => parts.iter().any(|p| self.is_foreseeable(p)),
            Condition::Stored { array, raw, .. } => {
                self.may_be_unwritten(*array) || self.zones(*array, *raw).is_some_and(ArrayIndex::any_known)
            }
            Condition::Computed(value) => {
                let mut any = false;
                value.walk(&mut |v| {
                    if let Value::Array { array, .. } | Value::Date(_, array) = v {
                        any = any || self.may_be_unwritten(*array);
                    }
                });
                any
            }
            Condition::Always | Condition::Never | Condition::Position { .. } => true,
        }
    }

    fn may_be_unwritten(&self, array: usize) -> bool {
        let placement = &self.readers[array].layout().placement;
        matches!(placement, Placement::Unallocated | Placement::Chunks(_) | Placement::Library(_))
    }

    /// The index of a bound array, where zone maps may be used for conditions on its stored values, `raw` or not.
    pub(crate) fn zones(&self, array: usize, raw: bool) -> Option<&ArrayIndex> {
        let index = self.indexed[array].as_deref().filter(|_| self.options.access.zonemaps())?;
        self.keys_agree(array, raw, index.dtype()).then_some(index)
    }

    /// Whether sets of an array's stored values are sets of keys of `dtype`: what an attribute declares unsigned
    /// is indexed as such, and has other keys as raw values.
    pub(crate) fn keys_agree(&self, array: usize, raw: bool, dtype: DType) -> bool {
        let bound = &self.bound.arrays[array];
        let domain = if raw { &bound.raw_domain } else { &bound.domain };
        match domain.dtype() {
            DType::F16 => dtype == DType::F32,
            DType::Bool => dtype == DType::U8,
            other => dtype == other,
        }
    }

    /// Whether none, some or all positions of a box satisfy a condition, as far as it is known without reading.
    pub(crate) fn foresee_condition(&self, condition: &Condition, bx: &Bx) -> Verdict {
        self.judge(condition, bx, &|value, bx| self.foresee_unwritten(value, bx))
    }

    /// The same, where `computed` tells of conditions that are computed.
    pub(crate) fn judge(
        &self,
        condition: &Condition,
        bx: &Bx,
        computed: &dyn Fn(&Value, &Bx) -> Verdict,
    ) -> Verdict {
        match condition {
            Condition::Always => Verdict::All,
            Condition::Never => Verdict::None,
            Condition::All(parts) => within_all(parts.iter().map(|p| self.judge(p, bx, computed))),
            Condition::Any(parts) => within_any(parts.iter().map(|p| self.judge(p, bx, computed))),
            Condition::Stored { array, raw, set } => self.foresee_stored(*array, *raw, set, bx),
            Condition::Position { dim, ranges } => {
                let axis = self.bound.rows.axis(*dim).unwrap_or_default();
                within(ranges, bx.start[axis], bx.end(axis))
            }
            Condition::Computed(value) => computed(value, bx),
        }
    }

    /// What the fill value says of a condition on a box of an array of which nothing was ever written.
    pub(crate) fn foresee_fill(&self, array: usize, raw: bool, set: &KeySet, own: &Bx) -> Option<Verdict> {
        let reader = &self.readers[array];
        if !reader.is_unwritten(own) {
            return None;
        }
        let bound = &self.bound.arrays[array];
        let domain = if raw { &bound.raw_domain } else { &bound.domain };
        let mut found = Mask::zeros(1);
        RawTest::new(domain.dtype(), set).test(&reader.fill_element()?, found.words_mut());
        Some(if found.none() { Verdict::None } else { Verdict::All })
    }

    /// Whether a computed condition holds in all of a box or nowhere in it, where nothing was ever written of what it is
    /// computed from.
    pub(crate) fn foresee_unwritten(&self, value: &Value, bx: &Bx) -> Verdict {
        let mut unwritten = true;
        value.walk(&mut |v| {
            if let Value::Array { array, .. } | Value::Date(_, array) = v {
                unwritten = unwritten && self.readers[*array].is_unwritten(&self.own_box(*array, bx));
            }
        });
        if unwritten { self.foresee_computed(value, bx) } else { Verdict::Some }
    }

    /// What the fill value and zone maps say of a condition on one array.
    pub(crate) fn foresee_stored(&self, array: usize, raw: bool, set: &KeySet, bx: &Bx) -> Verdict {
        let own = self.own_box(array, bx);
        if let Some(verdict) = self.foresee_fill(array, raw, set, &own) {
            return verdict;
        }
        let Some(index) = self.zones(array, raw) else { return Verdict::Some };
        if let Some(region) = index.grid().only(&own) {
            return index.verdict(region, set);
        }
        let mut verdicts = index.grid().touched(&own).into_iter().map(|region| index.verdict(region, set));
        let Some(first) = verdicts.next() else { return Verdict::None };
        // Where the first region is open, so is the box, whatever the others are.
        if first != Verdict::Some && verdicts.all(|v| v == first) { first } else { Verdict::Some }
    }
}

/// Whether the positions `start..end` lie in one of the half-open ranges.
fn within(ranges: &[(u64, u64)], start: u64, end: u64) -> Verdict {
    if ranges.iter().any(|&(a, b)| a <= start && end <= b) {
        Verdict::All
    } else if ranges.iter().any(|&(a, b)| a.max(start) < b.min(end)) {
        Verdict::Some
    } else {
        Verdict::None
    }
}

/// Of parts that must all hold.
pub(crate) fn within_all(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let mut result = Verdict::All;
    for verdict in verdicts {
        match verdict {
            Verdict::None => return Verdict::None,
            Verdict::Some => result = Verdict::Some,
            Verdict::All => {}
        }
    }
    result
}

/// Of parts one of which must hold.
pub(crate) fn within_any(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let mut result = Verdict::None;
    for verdict in verdicts {
        match verdict {
            Verdict::All => return Verdict::All,
            Verdict::Some => result = Verdict::Some,
            Verdict::None => {}
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_combine_as_three_valued_logic() {
        use Verdict::{All, None, Some};
        assert!(matches!(within_all([All, Some, None].into_iter()), None));
        assert!(matches!(within_all([All, Some].into_iter()), Some));
        assert!(matches!(within_all([].into_iter()), All));
        assert!(matches!(within_any([None, Some, All].into_iter()), All));
        assert!(matches!(within_any([None, Some].into_iter()), Some));
        assert!(matches!(within_any([].into_iter()), None));
    }
}
