//! Sub-correlation sets against offset arithmetic, element by element.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sieva_types::{DType, Endian};

use super::*;
use crate::filters::Pipeline;
use crate::layout::{ChunkIndex, ChunkRef, c_strides};

fn layout(extent: Vec<u64>, strides: Vec<u64>, size: usize, base: u64, placement: Placement) -> Arc<Layout> {
    Arc::new(Layout {
        dtype: DType::U8,
        endian: Endian::Little,
        element_size: size,
        chunk_shape: extent.clone(),
        strides,
        base,
        chunk_bytes: 0,
        pipeline: Pipeline::default(),
        placement,
        fill: vec![0; size],
        char_dim: false,
        space_padded: false,
        extent,
    })
}

/// Arrays as files have them: dense, with gaps between records, and members of compounds.
fn plain() -> impl Strategy<Value = Arc<Layout>> {
    let shape = prop::collection::vec(0_u64..6, 0..=5);
    (shape, 1_usize..=16, 0_u64..60, 0_u64..9, 0_u64..9).prop_map(|(shape, size, offset, member, gap)| {
        let item = size as u64 + member;
        let mut strides = c_strides(&shape, item);
        if let (Some(outer), true) = (strides.first_mut(), shape.len() > 1) {
            // A record may have no elements at all.
            *outer = (*outer).max(1) + gap;
        }
        layout(shape, strides, size, member / 2, Placement::Direct { offset })
    })
}

fn striping() -> impl Strategy<Value = Striping> {
    prop_oneof![
        Just(Striping::single()),
        (1_u64..60, 1_u32..6).prop_map(|(size, n)| Striping::given(size, n, n / 2).unwrap()),
        (1_u64..20, 1_u64..5, 1_u64..4).prop_map(|(unit, n, per)| {
            let text = format!("stripe_size={unit},stripe_count={n},object_size={}", unit * per);
            Striping::parse(&text).unwrap().for_length(1 << 20)
        }),
        (1_u64..200, 1_u64..30, 1_u64..30).prop_map(|(from, a, b)| {
            Striping::parse(&format!("from=0,stripe_size={a},on=1+0;from={from},stripe_size={b},on=2+1+3"))
                .unwrap()
        }),
    ]
}

/// A box of a shape, which may reach over its end.
fn boxes(shape: &[u64]) -> impl Strategy<Value = Bx> + use<> {
    let each: Vec<_> = shape.iter().map(|&n| (0..=n, 0..=n + 1)).collect();
    each.prop_map(|ends| ends.into_iter().unzip()).prop_map(|(start, shape)| Bx::new(start, shape))
}

fn positions(bx: &Bx) -> Vec<Vec<u64>> {
    (0..bx.rank()).fold(vec![vec![]], |all, d| {
        let longer = |index: &Vec<u64>, i: u64| index.iter().copied().chain([i]).collect::<Vec<u64>>();
        all.iter().flat_map(|index| (bx.start[d]..bx.end(d)).map(move |i| longer(index, i))).collect()
    })
}

fn byte(layout: &Layout, index: &[u64]) -> u64 {
    let Placement::Direct { offset } = layout.placement else { panic!("encoded") };
    offset + layout.base + index.iter().zip(&layout.strides).map(|(i, s)| i * s).sum::<u64>()
}

/// By position: server and stripe of its first byte.
fn expected(layout: &Layout, striping: &Striping, bx: &Bx) -> BTreeMap<Vec<u64>, (u32, u64)> {
    let Some(inside) = bx.intersect(&Bx::whole(&layout.extent)) else { return BTreeMap::new() };
    let of = |index: Vec<u64>| {
        let at = byte(layout, &index);
        let piece = striping.pieces(at..at + 1).next().unwrap();
        (index, (piece.server, piece.stripe))
    };
    positions(&inside).into_iter().map(of).collect()
}

/// What shares say of each position, no position twice, bytes from the first element to the end of the last.
fn told(layout: &Layout, shares: impl Iterator<Item = Share>) -> BTreeMap<Vec<u64>, (u32, u64)> {
    let mut all = BTreeMap::new();
    let mut last: Option<(u64, Vec<u64>)> = None;
    for share in shares {
        assert!(!share.bx.is_empty() && share.is_first);
        let key = (share.stripe, share.bx.start.clone());
        assert!(last.as_ref().is_none_or(|l| *l < key), "in order: {last:?} {key:?}");
        last = Some(key);
        let own = positions(&share.bx);
        let bytes = byte(layout, &own[0])..byte(layout, &own[own.len() - 1]) + layout.element_size as u64;
        assert_eq!(share.bytes, bytes);
        for index in own {
            assert_eq!(all.insert(index, (share.server, share.stripe)), None, "twice");
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn boxes_of_all_servers_tile_the_array((layout, striping) in (plain(), striping())) {
        let set = SubCorrelation::new(Arc::clone(&layout), striping.clone()).unwrap();
        let whole = Bx::whole(&layout.extent);
        let mut all = BTreeMap::new();
        let end = 1 << 18;
        let servers: std::collections::BTreeSet<u32> = striping.pieces(0..end).map(|p| p.server).collect();
        for &server in &servers {
            let mut in_stripe: BTreeMap<u64, usize> = BTreeMap::new();
            set.of_server(server).for_each(|s| *in_stripe.entry(s.stripe).or_default() += 1);
            let most = (2 * whole.rank()).saturating_sub(1).max(1);
            prop_assert!(in_stripe.values().all(|n| *n <= most), "{in_stripe:?}");
            let own = told(&layout, set.of_server(server));
            prop_assert!(own.values().all(|(s, _)| *s == server));
            let n = all.len() + own.len();
            all.extend(own);
            prop_assert_eq!(all.len(), n, "one position on two servers");
        }
        prop_assert_eq!(all, expected(&layout, &striping, &whole));
    }

    #[test]
    fn a_box_is_on_the_servers_of_its_elements(
        (layout, striping, bx) in (plain(), striping()).prop_flat_map(|(layout, striping)| {
            let bx = boxes(&layout.extent);
            (Just(layout), Just(striping), bx)
        })
    ) {
        let set = SubCorrelation::new(Arc::clone(&layout), striping.clone()).unwrap();
        prop_assert_eq!(told(&layout, set.of_box(&bx)), expected(&layout, &striping, &bx));
    }

    #[test]
    fn chunks_belong_to_the_stripe_of_their_first_byte(
        (extent, chunk, sizes, striping, bx) in
            prop::collection::vec((0_u64..7, 1_u64..4), 0..=4).prop_flat_map(|dims| {
                let (extent, chunk): (Vec<u64>, Vec<u64>) = dims.into_iter().unzip();
                let n = extent.iter().zip(&chunk).map(|(e, c)| e.div_ceil(*c)).product::<u64>() as usize;
                let bx = boxes(&extent);
                // A chunk of no bytes is never written.
                (Just(extent), Just(chunk), prop::collection::vec(0_u64..50, n), striping(), bx)
            })
    ) {
        let mut offset = 3;
        let mut stored = Vec::new();
        for (number, size) in (0_u64..).zip(&sizes) {
            if *size > 0 {
                stored.push((number, ChunkRef { offset, size: *size, filter_mask: 0 }));
            }
            offset += size + 1;
        }
        let index = ChunkIndex::new(sizes.len() as u64, stored.clone());
        prop_assert_eq!(index.numbered().collect::<Vec<_>>(), stored.clone());
        let mut layout = Arc::unwrap_or_clone(layout(extent.clone(), extent.clone(), 1, 0, Placement::Chunks(index)));
        layout.chunk_shape.clone_from(&chunk);
        let set = SubCorrelation::new(Arc::new(layout), striping.clone()).unwrap();
        let grid: Vec<u64> = extent.iter().zip(&chunk).map(|(e, c)| e.div_ceil(*c)).collect();
        let whole = Bx::whole(&extent);
        let mut of_box = Vec::new();
        let mut of_whole = Vec::new();
        for (coords, number) in positions(&Bx::whole(&grid)).into_iter().zip(0_u64..) {
            let Some((_, chunk_ref)) = stored.iter().find(|(n, _)| *n == number) else { continue };
            let start: Vec<u64> = coords.iter().zip(&chunk).map(|(i, c)| i * c).collect();
            let own = Bx::new(start, chunk.clone()).intersect(&whole).unwrap();
            let bytes = chunk_ref.offset..chunk_ref.offset + chunk_ref.size;
            for (i, piece) in striping.pieces(bytes).enumerate() {
                let share = |bx: Bx| Share {
                    server: piece.server, stripe: piece.stripe, bytes: piece.range.clone(), bx, is_first: i == 0,
                };
                of_whole.push(share(own.clone()));
                of_box.extend(own.intersect(&bx).filter(|b| !b.is_empty()).map(share));
            }
        }
        prop_assert_eq!(set.of_box(&bx).collect::<Vec<_>>(), of_box);
        let servers: std::collections::BTreeSet<u32> = of_whole.iter().map(|s| s.server).collect();
        for server in servers {
            let own: Vec<Share> = of_whole.iter().filter(|s| s.server == server).cloned().collect();
            prop_assert_eq!(set.of_server(server).collect::<Vec<_>>(), own);
        }
    }
}

#[test]
fn the_example_of_the_paper_is_told_by_divisions_alone() {
    // 4-D, 3.8 GB, stripes of 100 MB over 40 servers; then a thousand times as long, which no table would hold.
    for times in [1, 1000] {
        let shape = vec![60 * times, 33, 700, 700];
        let dense = layout(shape.clone(), c_strides(&shape, 4), 4, 0, Placement::Direct { offset: 512 });
        let set = SubCorrelation::new(dense, Striping::given(100_000_000, 40, 0).unwrap()).unwrap();
        let (server, elements) = (39, shape.iter().product::<u64>());
        let own: u64 = set.of_server(server).map(|share| share.bx.len()).sum();
        let rounds = (512 + elements * 4) / (40 * 100_000_000);
        assert!(own >= rounds * 25_000_000 && own <= (rounds + 1) * 25_000_000, "{own}");
        // One column of all records: stripes that have none of it are not looked at.
        let column = Bx::new(vec![0, 5, 350, 350], vec![shape[0], 1, 1, 1]);
        let shares: Vec<Share> = set.of_box(&column).collect();
        assert_eq!(shares.iter().map(|s| s.bx.len()).sum::<u64>(), shape[0]);
        assert!(shares.len() as u64 <= shape[0]);
    }
}

#[test]
fn an_element_over_a_border_is_of_the_stripe_of_its_first_byte() {
    let dense = layout(vec![5], vec![8], 8, 0, Placement::Direct { offset: 0 });
    let set = SubCorrelation::new(dense, Striping::given(20, 2, 0).unwrap()).unwrap();
    let of =
        |server| set.of_server(server).map(|s| (s.bx.start[0], s.bx.shape[0], s.bytes)).collect::<Vec<_>>();
    assert_eq!((of(0), of(1)), (vec![(0, 3, 0..24)], vec![(3, 2, 24..40)]));
}

#[test]
fn what_has_no_byte_ranges_or_another_order_has_no_set() {
    let single = Striping::single();
    let none =
        |placement| SubCorrelation::new(layout(vec![3], vec![1], 1, 0, placement), single.clone()).is_none();
    assert!(
        none(Placement::Unallocated) && none(Placement::Objects) && none(Placement::Inline(Arc::new([0; 3])))
    );
    assert!(none(Placement::Direct { offset: u64::MAX }));
    // Columns first, and strides that a damaged file may have.
    for strides in [vec![1, 4], vec![0, 0], vec![u64::MAX, 1]] {
        let other = layout(vec![4, 3], strides, 1, 0, Placement::Direct { offset: 0 });
        assert!(SubCorrelation::new(other, single.clone()).is_none());
    }
}
