//! The sub-correlation set: which boxes of an array each server has (Liu et al., *Locality-driven High-level I/O
//! Aggregation*, section IV.A, equations 2 to 6), and which servers a box is on.
//!
//! Nothing is listed in advance. The stripes of a server come from divisions ([`Striping::stripes_on`]), the elements that
//! begin in a stripe from divisions ([`order`]), and a run of elements is at most `2·rank - 1` boxes; each is made when it is
//! asked for. An element that a border of stripes cuts belongs to the stripe of its first byte: whoever reads that one reads
//! the element's rest, too ([`Share::bytes`] reaches over the border by less than an element). Chunks of a chunked array are
//! decoded as a whole, and belong to the stripe of their first stored byte; their rest is told as shares that are not
//! [`Share::is_first`].
//!
//! The paper's equations 3 and 5 have slips: `docs/understanding/physical-layout.md` derives what is here.

pub mod ranks;

mod order;
mod shares;

use std::ops::Range;
use std::sync::Arc;

use sieva_store::Striping;
use sieva_types::Bx;

use crate::layout::{Layout, Placement};
use order::Order;

/// A box and the bytes of one stripe that it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The server that has them.
    pub server: u32,
    /// The number of the stripe.
    pub stripe: u64,
    /// Of elements that are not encoded, from the first byte of the first one to the end of the last one, which may lie in
    /// the next stripe; between them may be gaps. Of a chunk, its stored bytes in this stripe.
    pub bytes: Range<u64>,
    /// The elements: their start and length along each dimension of the layout.
    pub bx: Bx,
    /// Whether the elements belong to this stripe. False of a chunk's rest.
    pub is_first: bool,
}

/// The sub-correlation set of an array: its layout and where the bytes of its file lie.
///
/// ```
/// # use std::sync::Arc;
/// # use sieva_format::layout::{Layout, Placement, c_strides};
/// # use sieva_format::filters::Pipeline;
/// # use sieva_types::{DType, Endian};
/// # let extent = vec![3, 10];
/// # let layout = Arc::new(Layout { dtype: DType::F32, endian: Endian::Little, element_size: 4, chunk_shape: extent.clone(),
/// #     strides: c_strides(&extent, 4), base: 0, chunk_bytes: 120, pipeline: Pipeline::default(),
/// #     placement: Placement::Direct { offset: 100 }, fill: vec![0; 4], char_dim: false, space_padded: false, extent });
/// use sieva_format::physical::SubCorrelation;
/// use sieva_store::Striping;
///
/// // 3 x 10 float32 from byte 100 on, in stripes of 64 bytes on two servers.
/// let set = SubCorrelation::new(layout, Striping::given(64, 2, 0)?).unwrap();
/// let shares: Vec<_> = set.of_server(0).map(|share| (share.bx.start, share.bx.shape)).collect();
/// // Byte 128 is that of element 7, byte 192 that of element 23.
/// assert_eq!(shares, [(vec![0, 7], vec![1, 3]), (vec![1, 0], vec![1, 10]), (vec![2, 0], vec![1, 3])]);
/// # Ok::<(), sieva_types::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SubCorrelation {
    layout: Arc<Layout>,
    striping: Striping,
    /// Of an array that is not encoded.
    order: Option<Order>,
}

impl SubCorrelation {
    /// The set of an array; `None` where its elements are no byte ranges of the file: in memory, never written, in other
    /// files or objects, or read by a library.
    pub fn new(layout: Arc<Layout>, striping: Striping) -> Option<Self> {
        let order = Order::of(&layout);
        let has_bytes = order.is_some() || matches!(layout.placement, Placement::Chunks(_));
        has_bytes.then_some(Self { layout, striping, order })
    }

    /// Where the bytes of the file lie.
    pub fn striping(&self) -> &Striping {
        &self.striping
    }

    /// The boxes that a server has (the paper's `f(Node_k)`), in the order of its stripes; chunks in their order in the grid.
    pub fn of_server(&self, server: u32) -> Box<dyn Iterator<Item = Share> + '_> {
        match (&self.order, &self.layout.placement) {
            (Some(order), _) => Box::new(self.elements_on(order, server)),
            (None, Placement::Chunks(index)) => Box::new(self.chunks_on(index, server)),
            _ => Box::new(std::iter::empty()),
        }
    }

    /// What a box takes of which stripes (step one of the paper's Algorithm 1), without a look at those that have nothing of
    /// it. `bx` is of the layout's rank; what of it lies beyond the stored extent takes nothing.
    pub fn of_box(&self, bx: &Bx) -> Box<dyn Iterator<Item = Share> + '_> {
        let inside = bx.intersect(&Bx::whole(&self.layout.extent)).filter(|inside| !inside.is_empty());
        match (inside, &self.order, &self.layout.placement) {
            (Some(bx), Some(order), _) => Box::new(self.elements_of(order, bx)),
            (Some(bx), None, Placement::Chunks(index)) => Box::new(self.chunks_of(index, bx)),
            _ => Box::new(std::iter::empty()),
        }
    }
}

#[cfg(test)]
mod tests;
