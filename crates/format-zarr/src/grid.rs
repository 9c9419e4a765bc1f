//! The grid of chunks of an array and, where they are shards, of the chunks within.

use sieva_format::filters::{Filter, Pipeline};
use sieva_types::{Error, ErrorKind, Result};

use crate::codecs::{Chain, IndexCodecs};
use crate::element::unsupported;

/// The most chunks of an array: their numbers share a word with that of the array.
const MAX_CHUNKS: u64 = 1 << 40;
/// The most chunks in a shard: an index takes 16 bytes for each.
const MAX_INDEX: u64 = 1 << 22;

/// One level of shards. Shapes are in the array's dimensions.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    /// Chunks in a shard along each dimension.
    pub(crate) counts: Vec<u64>,
    /// The array's dimension for each dimension of the index.
    pub(crate) axes: Vec<usize>,
    pub(crate) index: IndexCodecs,
}

/// How an array is divided and its innermost chunks encoded.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    /// Shards from the outermost; none where objects are the chunks that are decoded.
    pub(crate) levels: Vec<Level>,
    /// Codecs over whole objects that are shards: such an object has to be read and decoded as a whole.
    pub(crate) around: Pipeline,
    /// Shape of the chunks that are decoded.
    pub(crate) chunk_shape: Vec<u64>,
    /// Chunks along each dimension.
    pub(crate) counts: Vec<u64>,
    /// The array's dimension for each dimension of a decoded chunk's memory, outermost first.
    pub(crate) axes: Vec<usize>,
    pub(crate) pipeline: Pipeline,
}

impl Level {
    /// Chunks in a shard.
    pub(crate) fn len(&self) -> u64 {
        self.counts.iter().product()
    }

    /// The number in the index of the chunk at `position` (array dimensions) within the shard.
    pub(crate) fn number(&self, position: &[u64]) -> u64 {
        self.axes.iter().fold(0, |n, &d| n * self.counts[d] + position[d])
    }
}

impl Grid {
    /// The grid of an array of `shape` whose objects hold chunks of `object_shape`, encoded by `chain`.
    pub(crate) fn new(shape: &[u64], object_shape: &[u64], chain: Chain) -> Result<Self> {
        let rank = shape.len();
        if object_shape.len() != rank {
            let message = format!("chunks of {} dimensions in an array of {rank}", object_shape.len());
            return Err(Error::corrupt(message));
        }
        // A chunk of length 0 can only be that of an array without elements.
        let mut chunk_shape: Vec<u64> = object_shape.iter().map(|&n| n.max(1)).collect();
        let (mut levels, mut axes): (_, Vec<usize>) = (Vec::new(), (0..rank).collect());
        let (mut chain, mut around) = (chain, Pipeline::default());
        loop {
            axes = chain.axes.iter().map(|&d| axes[d]).collect();
            let Some(shards) = chain.shards.take() else { break };
            if levels.is_empty() {
                around.filters = std::mem::take(&mut chain.filters);
            }
            check_around(&around, &chain.filters)?;
            let counts = divide(&mut chunk_shape, &shards.chunk_shape, &axes)?;
            let level = Level { counts, axes: axes.clone(), index: shards.index };
            levels.push(level);
            chain = shards.inner;
        }
        let counts: Vec<u64> = shape.iter().zip(&chunk_shape).map(|(&n, &c)| n.div_ceil(c)).collect();
        let total = counts.iter().try_fold(1_u64, |n, &c| n.checked_mul(c.max(1)));
        if total.is_none_or(|n| n >= MAX_CHUNKS) {
            let message =
                format!("shape {shape:?} in chunks of {chunk_shape:?}: more than {MAX_CHUNKS} chunks");
            return Err(unsupported(message));
        }
        let pipeline = Pipeline { filters: chain.filters };
        Ok(Self { levels, around, chunk_shape, counts, axes, pipeline })
    }

    /// Byte strides of a decoded chunk of items of `size` bytes, in the array's dimensions, and its bytes.
    pub(crate) fn strides(&self, size: u64) -> Result<(Vec<u64>, u64)> {
        let mut strides = vec![0; self.axes.len()];
        let mut step = size;
        for &d in self.axes.iter().rev() {
            strides[d] = step;
            let next = step.checked_mul(self.chunk_shape[d]).filter(|&n| n <= i64::MAX as u64);
            step = next.ok_or_else(|| {
                Error::corrupt(format!("chunks of shape {:?}: too large", self.chunk_shape))
            })?;
        }
        Ok((strides, step))
    }

    /// The first codec that cannot be decoded, as an error.
    pub(crate) fn check_codecs(&self) -> Result<()> {
        match self.pipeline.unsupported() {
            None => Ok(()),
            Some(filter) => {
                let message = format!("no decoder for the codec '{}'", filter.name());
                Err(Error::new(ErrorKind::FilterUnavailable, message))
            }
        }
    }

    /// The position in the grid of the chunk `number`.
    pub(crate) fn position(&self, number: u64) -> Vec<u64> {
        let mut position = vec![0; self.counts.len()];
        let mut rest = number;
        for (d, &count) in self.counts.iter().enumerate().rev() {
            position[d] = rest % count.max(1);
            rest /= count.max(1);
        }
        position
    }

    /// Positions of the object, and within the shards of each level, of the chunk at `position`.
    pub(crate) fn path(&self, position: &[u64]) -> (Vec<u64>, Vec<Vec<u64>>) {
        let mut position = position.to_vec();
        let mut within = Vec::with_capacity(self.levels.len());
        for level in self.levels.iter().rev() {
            within.push(position.iter().zip(&level.counts).map(|(p, c)| p % c).collect());
            position.iter_mut().zip(&level.counts).for_each(|(p, c)| *p /= c);
        }
        within.reverse();
        (position, within)
    }

    /// Names of the codecs in the order of writing, for people.
    pub(crate) fn codec_names(&self) -> Vec<String> {
        let shards = self.levels.iter().map(|_| "sharding_indexed".to_owned());
        shards.chain(self.pipeline.filters.iter().map(|f: &Filter| f.name().to_owned())).collect()
    }
}

/// Codecs over shards may change bytes only, and only over the outermost.
fn check_around(around: &Pipeline, within: &[Filter]) -> Result<()> {
    let is_bytes = |f: &Filter| f.is_supported() && !matches!(f, Filter::Numbers(_) | Filter::PackBits);
    match around.filters.iter().find(|f| !is_bytes(f)).or(within.first()) {
        None => Ok(()),
        Some(filter) => Err(unsupported(format!("codec '{}' over whole shards", filter.name()))
            .hint("write shards without codecs around them: only then can their chunks be read alone")),
    }
}

/// Makes `chunk_shape` that of the inner chunks, whose shape is given in encoded dimensions; returns how many there
/// are along each dimension.
fn divide(chunk_shape: &mut [u64], inner: &[u64], axes: &[usize]) -> Result<Vec<u64>> {
    let mut counts = vec![1; chunk_shape.len()];
    let is_divided = inner.len() == chunk_shape.len()
        && axes.iter().zip(inner).all(|(&d, &n)| n > 0 && chunk_shape[d].is_multiple_of(n));
    if !is_divided {
        let message = format!("shards of shape {chunk_shape:?} are not made of whole chunks of {inner:?}");
        return Err(Error::corrupt(message));
    }
    for (&d, &n) in axes.iter().zip(inner) {
        counts[d] = chunk_shape[d] / n;
        chunk_shape[d] = n;
    }
    let total = counts.iter().try_fold(1_u64, |n, &c| n.checked_mul(c));
    if total.is_none_or(|n| n > MAX_INDEX) {
        return Err(unsupported(format!("more than {MAX_INDEX} chunks in a shard")));
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn chain(codecs: &serde_json::Value) -> Chain {
        Chain::parse(codecs, 2, 0).unwrap()
    }

    fn sharded(order: [usize; 2], inner: [u64; 2]) -> serde_json::Value {
        json!([{"name": "transpose", "configuration": {"order": order}},
            {"name": "sharding_indexed", "configuration": {"chunk_shape": inner, "codecs": ["bytes"],
                "index_codecs": ["bytes", "crc32c"]}}])
    }

    #[test]
    fn transposed_shards_count_in_their_own_order() {
        let grid = Grid::new(&[24, 26], &[10, 12], chain(&sharded([1, 0], [6, 5]))).unwrap();
        assert_eq!((grid.chunk_shape.clone(), grid.counts.clone()), (vec![5, 6], vec![5, 5]));
        assert_eq!(grid.levels[0].counts, [2, 2]);
        let (object, within) = grid.path(&[3, 4]);
        assert_eq!((object, within.clone()), (vec![1, 2], vec![vec![1, 0]]));
        assert_eq!(grid.levels[0].number(&within[0]), 1);
        assert_eq!(grid.strides(4).unwrap(), (vec![4, 20], 120));
        assert_eq!(grid.position(23), [4, 3]);
    }

    #[test]
    fn shapes_that_make_no_sense_are_refused() {
        let plain = json!(["bytes"]);
        assert!(Grid::new(&[4, 4], &[2], chain(&plain)).is_err());
        assert!(Grid::new(&[1 << 40, 1 << 40], &[1, 1], chain(&plain)).is_err());
        assert!(Grid::new(&[4, 4], &[4, 4], chain(&sharded([0, 1], [3, 2]))).is_err());
        assert!(Grid::new(&[4, 4], &[4, 4], chain(&sharded([0, 1], [0, 2]))).is_err());
        assert!(Grid::new(&[1 << 40, 4], &[1 << 40, 4], chain(&sharded([0, 1], [1, 1]))).is_err());
        let whole = Grid::new(&[1 << 40, 1 << 30], &[1 << 40, 1 << 30], chain(&plain)).unwrap();
        assert!(whole.strides(8).is_err());
    }
}
