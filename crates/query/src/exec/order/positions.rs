//! Positions in an order of their own, in memory or on disk.

use std::ops::Range;
use std::sync::Arc;

use sieva_types::Result;

use super::runs::word;
use super::spill::SpillFile;

/// Bytes of a position.
const WORD: u64 = 8;

/// A list of positions, any part of which can be read at any time.
#[derive(Debug)]
pub enum PositionList {
    /// In memory.
    Held(Vec<u64>),
    /// In a temporary file: so many from one on.
    Spilled {
        /// The file.
        file: Arc<SpillFile>,
        /// Which of the positions in it.
        range: Range<u64>,
    },
}

impl PositionList {
    /// The `n` positions that were written to a file.
    ///
    /// # Errors
    /// `io-error`.
    pub(super) fn spilled(mut file: SpillFile, n: u64) -> Result<Self> {
        file.flush()?;
        Ok(Self::Spilled { file: Arc::new(file), range: 0..n })
    }

    /// How many.
    pub fn len(&self) -> u64 {
        match self {
            Self::Held(positions) => positions.len() as u64,
            Self::Spilled { range, .. } => range.end - range.start,
        }
    }

    /// The list without its first `offset` positions, and no more than `limit` of the others.
    #[must_use]
    pub fn window(self, offset: u64, limit: u64) -> Self {
        let first = offset.min(self.len());
        let end = first + limit.min(self.len() - first);
        match self {
            Self::Held(mut positions) => {
                positions.truncate(end as usize);
                positions.drain(..first as usize);
                Self::Held(positions)
            }
            Self::Spilled { file, range } => {
                Self::Spilled { file, range: range.start + first..range.start + end }
            }
        }
    }

    /// Some of them; as many as there are.
    ///
    /// # Errors
    /// `io-error`.
    pub fn read(&self, part: Range<u64>) -> Result<Vec<u64>> {
        let part = part.start.min(self.len())..part.end.min(self.len());
        match self {
            Self::Held(positions) => Ok(positions[part.start as usize..part.end as usize].to_vec()),
            Self::Spilled { file, range } => {
                let mut bytes = vec![0; ((part.end - part.start) * WORD) as usize];
                file.read_exact_at((range.start + part.start) * WORD, &mut bytes)?;
                Ok(bytes.chunks_exact(WORD as usize).map(word).collect())
            }
        }
    }
}
