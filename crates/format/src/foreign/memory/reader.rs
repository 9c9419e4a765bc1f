//! Boxes of arrays in memory, put together from the blocks that they lie in, for as long as the memory is lent.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use sieva_types::{Bx, DType, Error, ErrorKind, Result, Texts};

use super::{Held, MemoryValues};
use crate::foreign::ForeignReader;
use crate::layout::c_strides;
use crate::read::strided::{self, Side};

/// Memory that is lent to a source. Dropping it takes the memory back: it waits for who is reading, and whoever reads later gets an
/// error.
#[must_use = "the memory is taken back when it is dropped"]
pub struct Loan(Arc<RwLock<bool>>);

impl Drop for Loan {
    fn drop(&mut self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = false;
    }
}

/// What reads arrays in memory.
pub(super) struct MemoryReader {
    arrays: HashMap<String, Held>,
    is_lent: Arc<RwLock<bool>>,
}

impl MemoryReader {
    pub fn new(arrays: HashMap<String, Held>) -> (Self, Loan) {
        let is_lent = Arc::new(RwLock::new(true));
        (Self { arrays, is_lent: Arc::clone(&is_lent) }, Loan(is_lent))
    }

    /// An array, and what keeps its memory lent.
    fn of(&self, path: &str) -> Result<(&Held, RwLockReadGuard<'_, bool>)> {
        let lent = self.is_lent.read().unwrap_or_else(PoisonError::into_inner);
        if !*lent {
            let message = format!("'{path}' is no longer there: the program took its memory back");
            return Err(Error::new(ErrorKind::StaleSource, message));
        }
        let none = || Error::new(ErrorKind::Internal, format!("no array '{path}' in memory"));
        Ok((self.arrays.get(path).ok_or_else(none)?, lent))
    }
}

impl ForeignReader for MemoryReader {
    fn read(&self, path: &str, bx: &Bx, out: &mut [u8]) -> Result<()> {
        let (held, _lent) = self.of(path)?;
        let size = held.dtype.size();
        if bx.len().checked_mul(size as u64) != Some(out.len() as u64) {
            return Err(Error::new(ErrorKind::Internal, format!("a box of '{path}' of another size")));
        }
        if bx.is_empty() {
            return Ok(());
        }
        let to = c_strides(&bx.shape, size as u64);
        for block in &held.blocks {
            let MemoryValues::Bytes(bytes) = &block.values else { continue };
            let Some(common) = block.bx.intersect(bx) else { continue };
            let from = c_strides(&block.bx.shape, size as u64);
            let source = Side { base: offset(&common, &block.bx, &from), strides: &from };
            let target = Side { base: offset(&common, bx, &to), strides: &to };
            strided::copy(&common.shape, size, (**bytes).as_ref(), source, out, target);
        }
        if held.dtype == DType::Bool {
            out.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        Ok(())
    }

    fn read_texts(&self, path: &str, bx: &Bx) -> Result<Texts> {
        let (held, _lent) = self.of(path)?;
        let to = c_strides(&bx.shape, 1);
        let mut found: Vec<&str> = vec![""; usize::try_from(bx.len()).unwrap_or(usize::MAX)];
        for block in &held.blocks {
            let MemoryValues::Texts(texts) = &block.values else { continue };
            let Some(common) = block.bx.intersect(bx) else { continue };
            let from = c_strides(&block.bx.shape, 1);
            let (source, target) = (offset(&common, &block.bx, &from), offset(&common, bx, &to));
            for number in 0..common.len() {
                let (mut rest, mut a, mut b) = (number, source, target);
                for d in (0..common.rank()).rev() {
                    let at = rest % common.shape[d];
                    rest /= common.shape[d];
                    a += (at * from[d]) as usize;
                    b += (at * to[d]) as usize;
                }
                found[b] = &texts[a];
            }
        }
        Ok(found.into_iter().collect())
    }
}

/// Where the first element of a box lies in the one around it, by strides of that.
fn offset(part: &Bx, of: &Bx, strides: &[u64]) -> usize {
    let apart = part.start.iter().zip(&of.start).map(|(a, b)| a - b);
    apart.zip(strides).map(|(n, stride)| (n * stride) as usize).sum()
}
