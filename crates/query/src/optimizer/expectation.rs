//! About how many rows a condition selects, for prices: by statistics, by what is in memory already, and else by what CF says
//! of a coordinate. Nothing is read for it.

use std::slice::Iter;
use std::sync::Arc;

use sieva_format::decoding::Number;
use sieva_format::read::Workspace;
use sieva_format::schema::{ArrayInfo, AttrValue, attr};
use sieva_types::keys::key_range;
use sieva_types::{Buffer, Bx, DType, KeySet, Result};

use super::PhysicalPlan;
use crate::bind::{Condition, Value};
use crate::exec::Execution;
use crate::exec::tile::prepare::{Node, Prepared};
use crate::mask::Mask;
use crate::raw::{RawTest, value_of_key};

/// Arrays of at most so many elements are counted where they are in memory.
const COUNTED: u64 = 1 << 16;
/// Positions of masks that are made for a price, at most.
const MASKED: u64 = 1 << 20;
/// The share of values of which nothing is known: on one side of a bound, between two, and equal to one.
const ONE_SIDE: f64 = 0.5;
const BETWEEN: f64 = 0.25;
const EQUAL: f64 = 0.01;

fn has_computed(condition: &Condition) -> bool {
    match condition {
        Condition::Computed(_) => true,
        Condition::All(parts) | Condition::Any(parts) => parts.iter().any(has_computed),
        Condition::Always | Condition::Never | Condition::Stored { .. } | Condition::Position { .. } => false,
    }
}

impl Execution {
    /// What the first stage finds, where it was run, or all that it takes is in memory; `None` else.
    pub(super) fn prepared_at_hand(&self, plan: &PhysicalPlan) -> Result<Option<Arc<Prepared>>> {
        if let Some(known) = self.prepared_already() {
            return Ok(Some(known));
        }
        let (mut masks, mut tested) = (Vec::new(), Vec::new());
        plan.steps.iter().for_each(|step| step.masks(&mut masks));
        plan.steps.iter().for_each(|step| step.tested(&mut tested));
        // Values that are computed may fail, which is for who asks for the answer to hear.
        let is_computed = tested.iter().copied().chain(masks.iter().map(|(c, _)| *c)).any(has_computed);
        if masks.is_empty() || is_computed || plan.replica.is_some() || self.source.store().is_remote() {
            return Ok(None);
        }
        let positions = masks.iter().fold(0_u64, |sum, (_, axes)| {
            sum.saturating_add(axes.iter().fold(1, |n: u64, &a| n.saturating_mul(plan.area.shape[a])))
        });
        let is_at_hand = |(condition, _): &(&Condition, &[usize])| {
            let mut arrays = Vec::new();
            self.arrays_of(condition, &mut arrays);
            arrays.iter().all(|&array| self.readers[array].is_at_hand(&self.own_box(array, &plan.area)))
        };
        if positions > MASKED || !masks.iter().all(is_at_hand) {
            return Ok(None);
        }
        self.prepare().map(Some)
    }

    /// For each part of a condition on stored values, in order, the share of them that satisfies it.
    pub(crate) fn leaf_shares(&self, condition: &Condition) -> Vec<f64> {
        let mut shares = Vec::new();
        self.add_shares(condition, &mut shares);
        shares
    }

    /// The same of conditions that are left when the first stage was run.
    pub(crate) fn node_shares(&self, node: &Node) -> Vec<f64> {
        let mut shares = Vec::new();
        fn walk(execution: &Execution, node: &Node, out: &mut Vec<f64>) {
            match node {
                Node::All(parts) | Node::Any(parts) => parts.iter().for_each(|p| walk(execution, p, out)),
                Node::Leaf(condition) => execution.add_shares(condition, out),
                Node::Known(_) | Node::Chosen(_) | Node::Decided(_) => {}
            }
        }
        walk(self, node, &mut shares);
        shares
    }

    fn add_shares(&self, condition: &Condition, out: &mut Vec<f64>) {
        match condition {
            Condition::All(parts) | Condition::Any(parts) => {
                parts.iter().for_each(|p| self.add_shares(p, out))
            }
            Condition::Stored { array, raw, set } => out.push(self.share_of_values(*array, *raw, set)),
            _ => {}
        }
    }

    /// About the share of the positions of a box, or of all, that satisfy a condition whose parts are satisfied by these
    /// shares of all values.
    pub(crate) fn likely_share(
        &self,
        condition: &Condition,
        bx: Option<&Bx>,
        shares: &mut Iter<'_, f64>,
    ) -> f64 {
        match condition {
            Condition::Always => 1.0,
            Condition::Never => 0.0,
            Condition::All(parts) => parts.iter().map(|p| self.likely_share(p, bx, shares)).product(),
            Condition::Any(parts) => {
                1.0 - parts.iter().map(|p| 1.0 - self.likely_share(p, bx, shares)).product::<f64>()
            }
            Condition::Stored { array, raw, set } => {
                let share = shares.next().copied().unwrap_or(ONE_SIDE);
                bx.and_then(|bx| self.share_by_zones(*array, *raw, set, bx)).unwrap_or(share)
            }
            Condition::Position { dim, ranges } => {
                let axis = self.bound.rows.axis(*dim).unwrap_or_default();
                let (start, end) =
                    bx.map_or((0, self.bound.rows.shape[axis]), |bx| (bx.start[axis], bx.end(axis)));
                let kept = ranges.iter().map(|(a, b)| (*b).min(end).saturating_sub((*a).max(start)));
                kept.sum::<u64>() as f64 / end.saturating_sub(start).max(1) as f64
            }
            Condition::Computed(value) => self.share_of_computed(value),
        }
    }

    /// The same once the first stage was run.
    pub(crate) fn node_share(&self, node: &Node, bx: &Bx, shares: &mut Iter<'_, f64>) -> f64 {
        match node {
            Node::Decided(all) => f64::from(u8::from(*all)),
            Node::Known(known) => {
                let part = known.of_tile(bx);
                part.count() as f64 / part.len().max(1) as f64
            }
            Node::Chosen(chosen) => {
                chosen.count() as f64
                    / self.bound.rows.shape.iter().map(|&n| n as f64).product::<f64>().max(1.0)
            }
            Node::All(parts) => parts.iter().map(|p| self.node_share(p, bx, shares)).product(),
            Node::Any(parts) => {
                1.0 - parts.iter().map(|p| 1.0 - self.node_share(p, bx, shares)).product::<f64>()
            }
            Node::Leaf(condition) => self.likely_share(condition, Some(bx), shares),
        }
    }

    /// The share of a box's values that statistics of its regions tell.
    fn share_by_zones(&self, array: usize, raw: bool, set: &KeySet, bx: &Bx) -> Option<f64> {
        let index = self.zones(array, raw)?;
        let own = self.own_box(array, bx);
        let (mut hits, mut all) = (0.0, 0.0);
        for region in index.grid().touched(&own) {
            index.stats(region)?;
            let rows = index.grid().bx(region);
            let inside = rows.intersect(&own).map_or(0, |b| b.len()) as f64;
            let (low, high) = index.count_bounds(region, set);
            hits += (low + high) as f64 / 2.0 * inside / rows.len().max(1) as f64;
            all += inside;
        }
        (all > 0.0).then(|| hits / all)
    }

    /// The share of an array's values that belong to a set.
    fn share_of_values(&self, array: usize, raw: bool, set: &KeySet) -> f64 {
        let info = &self.source.schema().arrays[self.bound.arrays[array].index];
        let counted = || self.counted_share(array, raw, set, info);
        let by_zones = || self.zones(array, raw).and_then(|index| index.share(set));
        let by_range = || if raw { None } else { self.share_of_range(array, set, info) };
        let dtype = self.bound.arrays[array].raw_domain.dtype();
        counted().or_else(by_zones).or_else(by_range).unwrap_or_else(|| share_of_form(set, info, dtype))
    }

    /// The same, counted where the values are in memory.
    fn counted_share(&self, array: usize, raw: bool, set: &KeySet, info: &ArrayInfo) -> Option<f64> {
        let all = Bx::whole(&info.shape);
        let is_few = (1..=COUNTED).contains(&all.len()) && info.dtype != DType::Str;
        if !is_few || !self.readers[array].is_at_hand(&all) {
            return None;
        }
        let mut values = Buffer::default();
        self.readers[array].read(&all, &mut values, &mut Workspace::default()).ok()?;
        let bound = &self.bound.arrays[array];
        let domain = if raw { &bound.raw_domain } else { &bound.domain };
        let mut found = Mask::zeros(all.len() as usize);
        RawTest::new(domain.dtype(), set).test(&values, found.words_mut());
        Some(found.count() as f64 / all.len() as f64)
    }

    /// The same of a coordinate whose least and greatest value are known, and that is taken to have as many values
    /// anywhere between them.
    fn share_of_range(&self, array: usize, set: &KeySet, info: &ArrayInfo) -> Option<f64> {
        let domain = &self.bound.arrays[array].domain;
        if info.shape.len() != 1 || domain.packing().is_some() {
            return None;
        }
        let ends: Vec<(f64, f64)> =
            set.ranges.iter().map(|&(a, b)| (number(domain.dtype(), a), number(domain.dtype(), b))).collect();
        let (least, greatest) = range_of(info, &ends)?;
        let step = (greatest - least) / info.shape[0].max(1) as f64;
        let within =
            |&(a, b): &(f64, f64)| (b.min(greatest) - a.max(least)).max(if a == b { step } else { 0.0 });
        let share = ends.iter().map(within).sum::<f64>() / (greatest - least);
        Some(share.clamp(0.0, 1.0))
    }

    /// The share of which a computed condition holds.
    fn share_of_computed(&self, value: &Value) -> f64 {
        match value {
            Value::And(parts) => parts.iter().map(|p| self.share_of_computed(p)).product(),
            Value::Not(part) => 1.0 - self.share_of_computed(part),
            _ => ONE_SIDE,
        }
    }
}

/// A value by the key of what is stored.
fn number(dtype: DType, key: i128) -> f64 {
    match value_of_key(dtype, key) {
        Number::Int(i) => i as f64,
        Number::Float(f) => f,
    }
}

/// The least and the greatest value of a coordinate by its attributes, or by its units where these have ends.
fn range_of(info: &ArrayInfo, asked: &[(f64, f64)]) -> Option<(f64, f64)> {
    let one = |name| attr(&info.attrs, name).and_then(|value| value.as_f64());
    let pair = |name| match attr(&info.attrs, name)? {
        AttrValue::Floats(_, v) if v.len() == 2 => Some((v[0], v[1])),
        AttrValue::Ints(_, v) if v.len() == 2 => Some((v[0] as f64, v[1] as f64)),
        _ => None,
    };
    let told = pair("actual_range").or_else(|| pair("valid_range"));
    let told = told.or_else(|| Some((one("valid_min")?, one("valid_max")?)));
    let by_units = || {
        let units = attr(&info.attrs, "units")?.as_text()?;
        let is_one = |all: &[&str]| all.contains(&units);
        let is_north =
            is_one(&["degrees_north", "degree_north", "degrees_N", "degree_N", "degreesN", "degreeN"]);
        let is_east =
            is_one(&["degrees_east", "degree_east", "degrees_E", "degree_E", "degreesE", "degreeE"]);
        // Who asks for longitudes below zero knows that there are such.
        let is_below = asked.iter().any(|(a, b)| (-180.0..0.0).contains(a) || (-180.0..0.0).contains(b));
        match (is_north, is_east) {
            (true, _) => Some((-90.0, 90.0)),
            (_, true) if is_below => Some((-180.0, 180.0)),
            (_, true) => Some((0.0, 360.0)),
            _ => None,
        }
    };
    told.or_else(by_units).filter(|(low, high)| low < high && (high - low).is_finite())
}

/// The share of values of which only the question is known.
fn share_of_form(set: &KeySet, info: &ArrayInfo, dtype: DType) -> f64 {
    let (Some(first), Some(last)) = (set.ranges.first(), set.ranges.last()) else {
        return if set.nan { BETWEEN } else { 0.0 };
    };
    // Zeros of either sign are neighbours.
    let singles = set.ranges.iter().filter(|(low, high)| high - low <= 1).count();
    if singles == set.ranges.len() {
        let each = if info.shape.len() == 1 { 1.0 / info.shape[0].max(1) as f64 } else { EQUAL };
        return (each * singles as f64).min(ONE_SIDE);
    }
    let (least, greatest) = key_range(dtype);
    match (first.0 <= least, last.1 >= greatest) {
        (true, true) => 1.0 - EQUAL,
        (false, false) => BETWEEN,
        _ => ONE_SIDE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sieva_format::decoding::Decoding;
    use sieva_format::schema::{AttrValue, StorageInfo};
    use sieva_types::keys::f64_key;

    fn info(attrs: &[(&str, AttrValue)]) -> ArrayInfo {
        let attrs = attrs.iter().map(|(name, value)| ((*name).to_string(), value.clone())).collect();
        let decoding = Decoding { stored: DType::F64, packing: None, missing: vec![], valid: (None, None) };
        ArrayInfo {
            path: "lat".into(),
            dtype: DType::F64,
            dims: vec![0],
            shape: vec![100],
            attrs,
            enum_names: vec![],
            decoding,
            storage: StorageInfo::default(),
            coordinates: vec![],
        }
    }

    #[test]
    fn what_is_asked_tells_where_nothing_else_does() {
        let (least, greatest) = key_range(DType::F64);
        let share = |low, high| share_of_form(&KeySet::interval(low, high), &info(&[]), DType::F64);
        assert_eq!(share(f64_key(5.0), greatest), ONE_SIDE);
        assert_eq!(share(least, f64_key(5.0)), ONE_SIDE);
        assert_eq!(share(f64_key(5.0), f64_key(6.0)), BETWEEN);
        assert_eq!(share(f64_key(-0.0), f64_key(0.0)), 0.01);
        assert_eq!(share(least, greatest), 1.0 - EQUAL);
        assert_eq!(share(1, 0), 0.0);
    }

    #[test]
    fn a_coordinate_has_the_range_that_it_tells() {
        let floats = |low: f64, high: f64| AttrValue::Floats(DType::F64, vec![low, high]);
        let units = |text: &str| AttrValue::Text(text.into());
        let range =
            |attrs: &[(&str, AttrValue)], asked: f64| range_of(&info(attrs), &[(asked, f64::INFINITY)]);
        assert_eq!(range(&[("units", units("degrees_north"))], 80.0), Some((-90.0, 90.0)));
        assert_eq!(range(&[("units", units("degrees_east"))], 80.0), Some((0.0, 360.0)));
        assert_eq!(range(&[("units", units("degrees_east"))], -80.0), Some((-180.0, 180.0)));
        let told = [("units", units("degrees_north")), ("actual_range", floats(30.0, 60.0))];
        assert_eq!(range(&told, 40.0), Some((30.0, 60.0)));
        assert_eq!(range(&[("actual_range", floats(60.0, 30.0))], 40.0), None);
        assert_eq!(range(&[("valid_range", floats(f64::NEG_INFINITY, 3.0))], 40.0), None);
        assert_eq!(range(&[("units", units("K"))], 40.0), None);
    }
}
