//! The stored chunks of an array as columns of small differences.
//!
//! Chunks mostly follow one another in the grid and in the file, and are of similar size: what is written of each is
//! how many chunks of the grid are left out before it, how far it begins after the end of the one before, and by how
//! much its size differs from that one's. Columns of equal small numbers are next to nothing once compressed.

use sieva_types::Result;
use sieva_types::wire::{Reader, Writer};

use crate::layout::{ChunkIndex, ChunkRef};

/// Writes the chunks of an index in the order of their numbers.
pub fn write(w: &mut Writer, index: &ChunkIndex) {
    let mut stored: Vec<(u64, ChunkRef)> = match index {
        ChunkIndex::Dense(v) => {
            v.iter().enumerate().filter(|(_, c)| c.size != u64::MAX).map(|(i, &c)| (i as u64, c)).collect()
        }
        ChunkIndex::Sparse(m) => m.iter().map(|(&i, &c)| (i, c)).collect(),
    };
    stored.sort_unstable_by_key(|&(number, _)| number);
    w.uint(stored.len() as u64);
    let mut next = 0;
    for &(number, _) in &stored {
        w.uint(number - next);
        next = number.saturating_add(1);
    }
    let mut end = 0_u64;
    for (_, chunk) in &stored {
        w.int(i128::from(chunk.offset) - i128::from(end));
        end = chunk.offset.wrapping_add(chunk.size);
    }
    let mut size = 0;
    for (_, chunk) in &stored {
        w.int(i128::from(chunk.size) - i128::from(size));
        size = chunk.size;
    }
    let masked = stored.iter().any(|(_, c)| c.filter_mask != 0);
    w.flag(masked);
    if masked {
        stored.iter().for_each(|(_, c)| w.uint(u64::from(c.filter_mask)));
    }
}

/// Reads the chunks of a grid of `grid_len` chunks.
pub fn read(r: &mut Reader<'_>, grid_len: u64) -> Result<ChunkIndex> {
    let n = r.index()?;
    // Three columns of a byte at least; and what the index may take, which is dense or a table.
    if n > r.left() / 3 {
        return Err(r.damaged(format!("{n} chunks in {} bytes", r.left())));
    }
    r.charge(
        n.saturating_mul(4 * size_of::<(u64, ChunkRef)>()).saturating_add(1024 * size_of::<ChunkRef>()),
    )?;
    let mut stored = vec![(0, ChunkRef { offset: 0, size: 0, filter_mask: 0 }); n];
    let mut next = 0_u64;
    for (number, _) in &mut stored {
        let found = next.checked_add(r.uint()?).filter(|&found| found < grid_len);
        *number = found.ok_or_else(|| r.damaged(format!("a chunk beyond a grid of {grid_len}")))?;
        next = *number + 1;
    }
    let mut gaps = Vec::with_capacity(n);
    for _ in 0..n {
        gaps.push(r.int()?);
    }
    let (mut size, mut end) = (0_u64, 0_u64);
    for ((_, chunk), gap) in stored.iter_mut().zip(gaps) {
        let change = r.int()?;
        let sized = i128::from(size).checked_add(change).and_then(|s| u64::try_from(s).ok());
        let placed = i128::from(end).checked_add(gap).and_then(|o| u64::try_from(o).ok());
        let (Some(found), Some(offset)) = (sized.filter(|&s| s != u64::MAX), placed) else {
            return Err(r.damaged("a chunk outside of 64 bits"));
        };
        (chunk.offset, chunk.size, size) = (offset, found, found);
        end = offset.wrapping_add(found);
    }
    if r.flag()? {
        for (_, chunk) in &mut stored {
            let mask = r.uint()?;
            chunk.filter_mask =
                u32::try_from(mask).map_err(|_| r.damaged("a filter mask of over 32 bits"))?;
        }
    }
    Ok(ChunkIndex::new(grid_len, stored))
}
