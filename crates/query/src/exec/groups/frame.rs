//! Where the groups of a box of the row space lie in a table of states.

use sieva_types::Bx;

use super::dense::{Numbering, Part};

/// The groups of the rows of a box, numbered from 0: those of all rows, or those of a part of them that shares its groups
/// with no other part.
///
/// The number of a group is the sum over the parts of the plan of (number of the keys - `first`) times `stride`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Frame {
    /// Per part, the lowest number that the keys have here.
    first: Vec<usize>,
    /// Per part, how many numbers there are from it on.
    pub(super) lens: Vec<usize>,
    /// Per part, what one number more is in the number of the group.
    strides: Vec<usize>,
    /// How many groups.
    pub(super) groups: usize,
}

impl Frame {
    /// Of parts with so many numbers from these first ones on; `None` where there are too many groups.
    pub(super) fn new(of: impl Iterator<Item = (usize, usize)>) -> Option<Self> {
        let mut frame = Self { groups: 1, ..Self::default() };
        for (first, len) in of {
            frame.first.push(first);
            frame.lens.push(len);
            frame.strides.push(frame.groups);
            frame.groups = frame.groups.checked_mul(len).filter(|&n| n < u32::MAX as usize)?;
        }
        Some(frame)
    }

    /// What the number of a part's keys adds to the number of the group.
    fn share(&self, part: usize, code: u32) -> usize {
        (code as usize - self.first[part]) * self.strides[part]
    }

    /// The number of a part's keys in a group.
    pub(super) fn code(&self, part: usize, group: usize) -> usize {
        self.first[part] + group / self.strides[part] % self.lens[part]
    }

    /// The place of the first of a part's keys here among all of that part.
    pub(super) fn rank(&self, part: usize, of: &Part) -> usize {
        let end = self.first[part] + self.lens[part];
        // Numbers rise with the keys, or they fall.
        match of.sorted.first() {
            Some(&top) if of.sorted.len() > self.lens[part] && top > 0 => top as usize + 1 - end,
            _ => self.first[part],
        }
    }

    /// What the numbers of a part's keys in the order of the keys add to the number of the group.
    pub(super) fn sorted<'a>(&'a self, part: usize, of: &'a Part) -> impl Iterator<Item = usize> + 'a {
        let own = self.first[part]..self.first[part] + self.lens[part];
        of.sorted.iter().filter(move |c| own.contains(&(**c as usize))).map(move |&c| self.share(part, c))
    }
}

impl Numbering {
    /// The group of a position of the row space.
    pub(super) fn group_at(&self, frame: &Frame, position: &[u64]) -> usize {
        let parts = self.parts.iter().enumerate();
        parts.map(|(i, p)| frame.share(i, p.code(&self.area, position))).sum()
    }

    /// What the first part, the innermost, adds to the number of the group at a position.
    pub(super) fn innermost(&self, frame: &Frame, position: &[u64]) -> usize {
        self.parts.first().map_or(0, |p| frame.share(0, p.code(&self.area, position)))
    }

    /// The same of `n` positions along the innermost dimension from one on.
    pub(super) fn along<'a>(
        &'a self,
        frame: &'a Frame,
        position: &[u64],
        n: usize,
    ) -> impl Iterator<Item = usize> + 'a {
        let codes = self.parts.first().map_or(&[][..], |p| {
            let at = p.place(&self.area, position);
            &p.codes[at..at + n]
        });
        codes.iter().map(|&c| frame.share(0, c))
    }

    /// The groups of a box that is cut from the area along dimensions whose keys are all different, as
    /// [`Part::is_cut_along`] tells.
    pub(super) fn frame_of(&self, bx: &Bx) -> Option<Frame> {
        Frame::new(self.parts.iter().map(|p| match p.axes[..] {
            [axis] if p.is_cut_along(&self.area, axis) => {
                (p.code(&self.area, &bx.start) as usize, bx.shape[axis] as usize)
            }
            _ => (0, p.len),
        }))
    }
}

impl Part {
    /// Whether each position along a dimension has keys of its own, and the order of the positions is that of the keys, or
    /// the opposite one: then a range of positions has a range of the groups for itself, also in the result.
    pub(super) fn is_cut_along(&self, area: &Bx, axis: usize) -> bool {
        let is_range = self.axes == [axis] && self.is_consecutive && self.len as u64 == area.shape[axis];
        let falls = || self.sorted.windows(2).all(|w| w[0] == w[1] + 1);
        is_range && (self.sorted.windows(2).all(|w| w[1] == w[0] + 1) || falls())
    }
}
