//! How results lie in objects: each in one of its own, or several in one, up to the size that the cost model picks (Scibox,
//! section V.A).

use std::collections::{BTreeMap, BTreeSet};

use sieva::{Error, ErrorKind, Result};
use sieva_reduce::merge::cost::Prices;

use crate::calibrate::Calibration;

/// Bytes of an object where the store was not calibrated.
const BEST: u64 = 32 << 20;
/// Of the best rate that was measured, what is enough: larger objects gain little.
const ENOUGH: f64 = 0.9;
/// Results that are kept until they are put: each has a file open.
const MOST_MADE: usize = 256;

/// In which objects results are put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packing {
    /// Each in one of its own, a plain file for everybody.
    #[default]
    Files,
    /// Several in one, of which each consumer reads its part: as large as the store moves best.
    Partial,
    /// Several in one, which consumers may read whole: no larger than what makes sharing it dearer than objects of their own.
    Whole,
}

impl Packing {
    /// By its name: files, partial, whole.
    ///
    /// # Errors
    /// `invalid-value`.
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "files" => Ok(Self::Files),
            "partial" => Ok(Self::Partial),
            "whole" => Ok(Self::Whole),
            other => {
                let message = format!("'{}' is no way to put results into objects", sieva::printable(other));
                Err(Error::new(ErrorKind::InvalidValue, message).hint("take files, partial or whole"))
            }
        }
    }
}

/// How large objects are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Model {
    packing: Packing,
    prices: Prices,
    /// What the store moves best.
    best: u64,
}

/// A result that is made: its bytes, and the members who want it.
pub(crate) type Wanted = (u64, Vec<usize>);

impl Model {
    /// The model for a place: `size` in place of what was measured of it.
    ///
    /// # Errors
    /// `invalid-value` for a size of 0; those of reading what was measured.
    pub fn new(
        place: &str,
        packing: Packing,
        prices: Prices,
        size: Option<u64>,
        threads: usize,
    ) -> Result<Self> {
        if size == Some(0) {
            return Err(Error::new(ErrorKind::InvalidValue, "objects of 0 bytes")
                .hint("name a size above 0, or calibrate the store: sieva share calibrate PLACE"));
        }
        let measured = || -> Result<Option<u64>> {
            let threads = u32::try_from(threads).unwrap_or(u32::MAX);
            Ok(Calibration::known(place)?.map(|known| known.best_size(threads, ENOUGH)))
        };
        let best = match (packing, size) {
            (Packing::Files, _) => BEST,
            (_, Some(size)) => size,
            (_, None) => measured()?.unwrap_or(BEST),
        };
        Ok(Self { packing, prices, best })
    }

    /// Whether so many results of so many bytes are put before more are made; a store takes `at_once` requests.
    pub fn is_enough(&self, made: usize, bytes: u64, at_once: usize) -> bool {
        match self.packing {
            Packing::Files => made >= at_once,
            _ => made >= MOST_MADE || bytes >= self.best.saturating_mul(at_once as u64),
        }
    }

    /// The numbers of the results that go into one object, for each object. Those that the same members want lie together.
    pub fn packs(&self, made: &[Wanted]) -> Vec<Vec<usize>> {
        let mut order: Vec<usize> = (0..made.len()).collect();
        if self.packing == Packing::Files {
            return order.into_iter().map(|number| vec![number]).collect();
        }
        order.sort_by(|&a, &b| made[a].1.cmp(&made[b].1).then(a.cmp(&b)));
        let mut packs: Vec<Vec<usize>> = Vec::new();
        // Of the last one: its bytes, and those of them that each member wants.
        let (mut size, mut wanted) = (0_u64, BTreeMap::<usize, u64>::new());
        for number in order {
            let (bytes, members) = &made[number];
            let members: BTreeSet<usize> = members.iter().copied().collect();
            let mut more = wanted.clone();
            members.iter().for_each(|&member| *more.entry(member).or_default() += bytes);
            let total = size.saturating_add(*bytes);
            if let Some(last) = packs.last_mut().filter(|_| total <= self.most(&more)) {
                last.push(number);
                (size, wanted) = (total, more);
            } else {
                packs.push(vec![number]);
                (size, wanted) = (*bytes, members.iter().map(|&member| (member, *bytes)).collect());
            }
        }
        packs
    }

    /// Bytes of an object for members who want so much of it each.
    fn most(&self, wanted: &BTreeMap<usize, u64>) -> u64 {
        let sizes: Vec<u64> = wanted.values().copied().collect();
        // What one member alone wants is wanted whole, whatever rounding says of it.
        let is_partial = self.packing == Packing::Partial || sizes.len() == 1;
        self.prices.object_size(&sizes, self.best, is_partial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(packing: Packing, best: u64) -> Model {
        let prices = Prices::new(0.095, 0.0, 0.012).unwrap();
        Model::new("nowhere", packing, prices, Some(best), 4).unwrap()
    }

    #[test]
    fn files_are_objects_of_their_own() {
        let made = [(1, vec![0]), (1, vec![0])];
        assert_eq!(model(Packing::Files, 100).packs(&made), [[0], [1]]);
        assert_eq!(model(Packing::Partial, 100).packs(&[]), [[0; 0]; 0]);
    }

    #[test]
    fn objects_are_filled_up_to_the_size_and_larger_results_have_their_own() {
        let made = [(60, vec![0]), (30, vec![0]), (20, vec![0]), (500, vec![0]), (1, vec![0])];
        for packing in [Packing::Partial, Packing::Whole] {
            assert_eq!(model(packing, 100).packs(&made), [&[0, 1][..], &[2], &[3], &[4]]);
        }
    }

    #[test]
    fn with_partial_access_those_of_many_lie_together_and_without_it_those_of_the_same() {
        let made = [(10, vec![0]), (10, vec![1]), (10, vec![0, 1]), (10, vec![1]), (10, vec![0])];
        let all = model(Packing::Partial, 100).packs(&made);
        assert_eq!(all, [[0, 4, 2, 1, 3]]);
        // Both would pay for ten bytes that they do not want: 0.107 * 20 < (0.095 + 2 * 0.012) * 20.
        let made = [(10, vec![0]), (10, vec![1]), (10, vec![0])];
        assert_eq!(model(Packing::Whole, 100).packs(&made), [&[0, 2][..], &[1]]);
        // Storing twice what both want for the most part is dearer than getting a little too much.
        let made = [(1, vec![0]), (1000, vec![0, 1])];
        assert_eq!(model(Packing::Whole, 10_000).packs(&made), [[0, 1]]);
    }

    #[test]
    fn what_is_put_together_is_bounded() {
        let model = model(Packing::Partial, 100);
        assert!(!model.is_enough(255, 399, 4) && model.is_enough(256, 0, 4) && model.is_enough(1, 400, 4));
        assert_eq!(Packing::named("whole").unwrap(), Packing::Whole);
        assert_eq!(Packing::named("none").unwrap_err().kind(), ErrorKind::InvalidValue);
    }
}
