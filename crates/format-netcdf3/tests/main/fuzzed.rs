//! Whatever the bytes: no panic, and no more memory than the file's length justifies.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use proptest::prelude::*;
use sieva_format::ArraySource;
use sieva_format_netcdf3::Netcdf3Source;

use crate::common::{Attr, File, X, store};

/// Counts the bytes that each thread asks for.
struct Counting;

thread_local! {
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system allocator unchanged; counting touches a thread-local cell without
// a destructor and allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.with(|asked| asked.set(asked.get() + layout.size()));
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `alloc` above with this `layout`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Opens the bytes and looks at all that came of them; the memory asked for must fit their length.
fn survive(bytes: Vec<u8>) {
    let limit = (1 << 20) + 400 * bytes.len();
    let store = store(bytes);
    ASKED.with(|asked| asked.set(0));
    let opened = Netcdf3Source::open(store);
    let asked = ASKED.with(Cell::get);
    assert!(asked <= limit, "{asked} bytes asked for, {limit} allowed");
    let Ok(source) = opened else { return };
    for (i, array) in source.schema().arrays.iter().enumerate() {
        assert_eq!(array.dims.len(), array.shape.len());
        let Ok(layout) = source.layout(i) else { continue };
        assert_eq!(layout.extent.len(), layout.strides.len());
        assert_eq!(layout.fill.len(), layout.element_size);
        // The last element's offset is in range: the block reader may add and multiply.
        let last =
            layout.extent.iter().zip(&layout.strides).try_fold(0_u64, |sum, (&n, &stride)| {
                sum.checked_add(n.saturating_sub(1).checked_mul(stride)?)
            });
        assert!(last.is_some_and(|last| last <= i64::MAX as u64), "{layout:?}");
    }
}

fn any_type() -> impl Strategy<Value = X> {
    prop::sample::select(X::ALL.to_vec())
}

prop_compose! {
    fn any_attr()(name in "[a-z]{0,6}", xtype in any_type(), n in 0..5_usize) -> Attr {
        Attr { name: name.into_bytes(), xtype, bytes: (0..n * xtype.size()).map(|b| b as u8).collect() }
    }
}

prop_compose! {
    /// A valid file of up to 4 dimensions and 6 variables, the first dimension unlimited or not.
    fn any_file()(
        version in prop::sample::select(vec![1_u8, 2, 5]),
        numrecs in 0..4_u64,
        lens in prop::collection::vec(1..5_u64, 1..4),
        unlimited in any::<bool>(),
        attrs in prop::collection::vec(any_attr(), 0..3),
        vars in prop::collection::vec((any_type(), prop::collection::vec(0..4_usize, 0..3), any_attr()), 0..6),
    ) -> File {
        let mut file = File::new(version);
        file.numrecs = numrecs;
        file.attrs = attrs;
        for (i, &len) in lens.iter().enumerate() {
            file.dim(&format!("d{i}"), if i == 0 && unlimited { 0 } else { len });
        }
        for (i, (xtype, ids, attr)) in vars.into_iter().enumerate() {
            let ids: Vec<u64> = ids.into_iter().map(|id| (id % lens.len()) as u64).collect();
            let inner_record = unlimited && ids.iter().skip(1).any(|&id| id == 0);
            file.var(&format!("v{i}"), xtype, if inner_record { &[] } else { &ids }).attrs.push(attr);
        }
        file
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn valid_files_open_and_give_their_data(file in any_file()) {
        let source = crate::common::open(&file);
        prop_assert_eq!(source.schema().arrays.len(), file.vars.len());
        for var in &file.vars {
            let name = std::str::from_utf8(&var.name).unwrap();
            prop_assert_eq!(&crate::common::read(&source, name).unwrap(), &var.data);
        }
    }

    #[test]
    fn changed_bytes_do_no_harm(
        file in any_file(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = file.build();
        let header = file.header_len();
        for (at, value) in changes {
            bytes[at.index(header)] = value;
        }
        survive(bytes);
    }

    #[test]
    fn numbers_at_their_limits_do_no_harm(
        file in any_file(),
        word in any::<prop::sample::Index>(),
        value in prop::sample::select(vec![0_u32, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff]),
    ) {
        let mut bytes = file.build();
        let at = 4 + 4 * word.index(file.header_len() / 4 - 1);
        bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
        survive(bytes);
    }

    #[test]
    fn a_cut_anywhere_does_no_harm(file in any_file(), len in any::<prop::sample::Index>()) {
        let mut bytes = file.build();
        bytes.truncate(len.index(bytes.len() + 1));
        survive(bytes);
    }

    #[test]
    fn noise_after_the_magic_number_does_no_harm(
        version in prop::sample::select(vec![1_u8, 2, 5]),
        noise in prop::collection::vec(prop_oneof![Just(0_u8), 0..16_u8, any::<u8>()], 0..300),
    ) {
        let mut bytes = vec![b'C', b'D', b'F', version];
        bytes.extend(noise);
        survive(bytes);
    }
}
