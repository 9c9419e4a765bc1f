//! What a session keeps besides decoded chunks: small arrays, and values at positions that were asked for.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, OnceLock};

use sieva_types::{Bx, Result, try_zeros};

use super::cache::ChunkKey;
use super::flight::Claim;
use super::strided::{self, Side};
use super::{BlockReader, Wants, Workspace, span_bytes};
use crate::layout::{Placement, c_strides};

/// Arrays of at most so many bytes are kept whole (coordinates, mostly).
const SMALL: u64 = 8 << 20;
/// Stands in the place of a file's number: such keys are of no chunk.
const VALUES: u32 = u32::MAX;
const WHOLE: u32 = u32::MAX - 1;

impl BlockReader {
    /// The key of the values at `positions`; `None` where nothing is kept from query to query.
    ///
    /// Two lists of positions have one key with a probability of 2^-128 for each pair, as nobody knows the numbers that
    /// this process hashes with.
    pub fn values_key(&self, positions: &[u64]) -> Option<ChunkKey> {
        if !self.cache.is_shared() {
            return None;
        }
        static SEEDS: OnceLock<[u64; 4]> = OnceLock::new();
        let seeds = SEEDS.get_or_init(|| {
            let state = RandomState::new();
            [1, 2, 3, 4].map(|n: u64| state.hash_one(n) | 1)
        });
        let (mut a, mut b) = (seeds[0] ^ self.array as u64, seeds[1] ^ positions.len() as u64);
        for &p in positions {
            a = fold(a ^ p, seeds[2]).wrapping_add(p);
            b = fold(b.rotate_left(17) ^ p, seeds[3]).wrapping_add(p);
        }
        Some((VALUES, fold(a ^ seeds[3], seeds[1]), fold(b ^ seeds[2], seeds[0])))
    }

    /// Fills `out` with the values of a key, if they are kept.
    pub fn recall(&self, key: ChunkKey, out: &mut [u8]) -> bool {
        let Some(kept) = self.cache.get(key).filter(|kept| kept.len() == out.len()) else { return false };
        out.copy_from_slice(&kept);
        true
    }

    /// Keeps the values of a key where there is room.
    pub fn keep_values(&self, key: ChunkKey, values: &[u8]) {
        self.cache.offer(key, values);
    }

    /// Whether reading a box of few elements takes nothing from the source: they are in memory.
    pub fn is_at_hand(&self, bx: &Bx) -> bool {
        let layout = &*self.layout;
        match &layout.placement {
            Placement::Unallocated | Placement::Inline(_) => true,
            Placement::Direct { offset } => {
                let bytes = || span_bytes(&layout.extent, &layout.strides, layout.element_size);
                self.is_kept_whole() && self.cache.holds((WHOLE, *offset, bytes()))
            }
            Placement::Chunks(_) if !layout.pipeline.filters.is_empty() => {
                let mut wants = Wants::default();
                self.wants(bx, &mut wants);
                wants.bytes() == 0
            }
            _ => false,
        }
    }

    /// Whether the array is kept whole once something of it was read.
    pub fn is_kept_whole(&self) -> bool {
        let layout = &*self.layout;
        let dense = || layout.strides == c_strides(&layout.extent, layout.element_size as u64);
        // Where there is room for little, it would be driven out by what is read beside it, and read again and again.
        let most = SMALL.min(self.cache.most() as u64 / 4);
        self.cache.is_shared()
            && layout.base == 0
            && Bx::whole(&layout.extent).len().saturating_mul(layout.element_size as u64) <= most
            && dense()
    }

    /// A box of an array that lies plainly, out of the whole of it.
    pub(super) fn read_of_whole(
        &self,
        offset: u64,
        bx: &Bx,
        out: &mut [u8],
        to: Side,
        ws: &mut Workspace,
    ) -> Result<()> {
        let layout = &*self.layout;
        let bytes = span_bytes(&layout.extent, &layout.strides, layout.element_size);
        let key = (WHOLE, offset, bytes);
        let whole = match self.cache.claim(key, &mut || ws.check())? {
            Claim::Given(whole) => {
                ws.cached += 1;
                whole
            }
            Claim::Own(lease) => {
                let read = self.whole_bytes(offset, bytes as usize).map(|whole| Some(Arc::new(whole)));
                lease.land(&read, true);
                read?
            }
        };
        let Some(whole) = whole else { return Ok(()) };
        let base = bx.start.iter().zip(&layout.strides).map(|(i, s)| i * s).sum::<u64>() as usize;
        let from = Side { base, strides: &layout.strides };
        strided::copy(&bx.shape, layout.element_size, &whole, from, out, to);
        Ok(())
    }

    fn whole_bytes(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let mut whole = try_zeros(len)?;
        self.source.store().read_exact_at(offset, &mut whole)?;
        Ok(whole)
    }
}

/// Whether all bytes of an array lie in the file itself, so that its state is that of the array.
pub fn is_of_one_file(placement: &Placement) -> bool {
    match placement {
        Placement::Unallocated | Placement::Direct { .. } | Placement::Inline(_) | Placement::Chunks(_) => {
            true
        }
        Placement::Objects | Placement::Parts(_) | Placement::Library(_) | Placement::Foreign(_) => false,
    }
}

/// The product of two numbers, its halves put together.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}
