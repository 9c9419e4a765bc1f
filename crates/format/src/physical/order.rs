//! Elements in the order of their bytes: which of them begin in a range of bytes.
//!
//! Of an array that is not encoded, element `i` begins at byte `start + Σ iₐ·sₐ`. Where each stride is larger than all that
//! lies within it, the order of the bytes is that of the positions (C order), gaps or not: dense arrays, records that
//! alternate with those of other arrays (netCDF-3), members of compounds. A range of bytes is then a range of C-order numbers,
//! and both ends are found by one division for each dimension.

use std::ops::Range;

use sieva_types::Bx;

use crate::layout::{Layout, Placement};

/// Where elements of an array begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Order {
    /// The first byte of the first element.
    start: u64,
    /// The byte after the last element.
    end: u64,
    shape: Vec<u64>,
    strides: Vec<u64>,
    /// Elements of one index of each dimension.
    inner: Vec<u64>,
    /// Bytes of an element.
    size: u64,
    len: u64,
}

impl Order {
    /// The order of a layout that is not encoded; `None` where it is, or its elements do not lie in C order, or beyond what
    /// 64 bits count.
    pub(super) fn of(layout: &Layout) -> Option<Self> {
        let Placement::Direct { offset } = layout.placement else { return None };
        let (shape, strides, size) = (&layout.extent, &layout.strides, layout.element_size as u64);
        let start = offset.checked_add(layout.base)?;
        let rank = shape.len();
        let (mut inner, mut len, mut last) = (vec![1; rank], 1_u64, 0_u64);
        let is_empty = shape.contains(&0);
        for d in (0..rank).rev().filter(|_| !is_empty) {
            if shape[d] > 1 && strides[d] <= last {
                return None;
            }
            inner[d] = len;
            len = len.checked_mul(shape[d])?;
            last = last.checked_add(strides[d].checked_mul(shape[d] - 1)?)?;
        }
        let end = start.checked_add(last)?.checked_add(size)?;
        let (len, end) = if is_empty { (0, start) } else { (len, end) };
        Some(Self { start, end, shape: shape.clone(), strides: strides.clone(), inner, size, len })
    }

    /// The bytes from the first element to the last one.
    pub(super) fn bytes(&self) -> Range<u64> {
        self.start..self.end
    }

    /// The C-order number of the first element that begins at a byte or after it; that after the last where none does.
    pub(super) fn first_from(&self, byte: u64) -> u64 {
        let Some(mut rest) = byte.checked_sub(self.start).filter(|_| self.len > 0) else { return 0 };
        let mut number = 0;
        for d in (0..self.shape.len()).filter(|&d| self.shape[d] > 1) {
            let index = rest / self.strides[d];
            if index >= self.shape[d] {
                // Behind all of this dimension: in a gap, or behind the array.
                return number + self.shape[d] * self.inner[d];
            }
            number += index * self.inner[d];
            rest -= index * self.strides[d];
        }
        number + u64::from(rest > 0)
    }

    /// The numbers of the elements that begin within these bytes.
    pub(super) fn within(&self, bytes: &Range<u64>) -> Range<u64> {
        self.first_from(bytes.start)..self.first_from(bytes.end)
    }

    /// Where an element begins.
    pub(super) fn byte_of(&self, number: u64) -> u64 {
        let mut rest = number;
        let mut byte = self.start;
        for d in 0..self.shape.len() {
            byte += rest / self.inner[d] * self.strides[d];
            rest %= self.inner[d];
        }
        byte
    }

    /// The bytes from the first element of a box that is not empty to the end of its last one.
    pub(super) fn bytes_of(&self, bx: &Bx) -> Range<u64> {
        let dot =
            |index: &dyn Fn(usize) -> u64| (0..bx.rank()).map(|d| index(d) * self.strides[d]).sum::<u64>();
        let first = self.start + dot(&|d| bx.start[d]);
        let last = self.start + dot(&|d| bx.end(d) - 1);
        first..last + self.size
    }

    /// The number of the first element of a box that is `number` or comes after it.
    pub(super) fn next_in(&self, bx: &Bx, number: u64) -> Option<u64> {
        if number >= self.len || bx.is_empty() {
            return None;
        }
        let mut index = self.index_of(number);
        let mut from = None;
        for d in 0..index.len() {
            if index[d] < bx.start[d] {
                from = Some(d);
                break;
            }
            if index[d] >= bx.end(d) {
                // The next one of a dimension further out.
                let outer = (0..d).rev().find(|&o| index[o] + 1 < bx.end(o))?;
                index[outer] += 1;
                from = Some(outer + 1);
                break;
            }
        }
        let from = from.unwrap_or(index.len());
        index[from..].copy_from_slice(&bx.start[from..]);
        Some(index.iter().zip(&self.inner).map(|(i, n)| i * n).sum())
    }

    fn index_of(&self, number: u64) -> Vec<u64> {
        let mut rest = number;
        let each = self.inner.iter().map(|n| {
            let index = rest / n;
            rest %= n;
            index
        });
        each.collect()
    }

    /// Elements of these numbers as boxes, in C order: at most `2·rank - 1`, or one of rank 0.
    ///
    /// Up to the end of the innermost dimension, then of the one around it, and so on; as much as is whole; and down again.
    pub(super) fn boxes(&self, numbers: Range<u64>) -> impl Iterator<Item = Bx> + '_ {
        let mut at = numbers.start;
        std::iter::from_fn(move || {
            let left = numbers.end.checked_sub(at).filter(|n| *n > 0)?;
            let start = self.index_of(at);
            let rank = start.len();
            // The outermost dimension of which a whole index begins here.
            let fits = |d: &usize| at.is_multiple_of(self.inner[*d]) && self.inner[*d] <= left;
            let Some(d) = (0..rank).find(fits) else {
                at = numbers.end;
                return Some(Bx::whole(&[]));
            };
            let n = (left / self.inner[d]).min(self.shape[d] - start[d]);
            let shape = (0..rank).map(|o| match o.cmp(&d) {
                std::cmp::Ordering::Less => 1,
                std::cmp::Ordering::Equal => n,
                std::cmp::Ordering::Greater => self.shape[o],
            });
            let bx = Bx::new(start, shape.collect());
            at += n * self.inner[d];
            Some(bx)
        })
    }
}
