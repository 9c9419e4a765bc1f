//! A source that is read from a vector.

use sieva_types::{DType, Texts};

use super::*;
use crate::decoding::Decoding;
use crate::read::{BlockReader, ChunkCache, Workspace};
use crate::schema::{Dimension, GroupInfo, Naming, StorageInfo};

struct Counting;

impl ForeignReader for Counting {
    fn read(&self, _path: &str, bx: &Bx, out: &mut [u8]) -> Result<()> {
        let mut values = out.chunks_exact_mut(4);
        for i in bx.start[0]..bx.end(0) {
            for j in bx.start[1]..bx.end(1) {
                values.next().unwrap().copy_from_slice(&(10 * i + j).to_le_bytes()[..4]);
            }
        }
        Ok(())
    }

    fn read_texts(&self, _path: &str, _bx: &Bx) -> Result<Texts> {
        Ok(Texts::repeated("one", 1))
    }

    fn limits(&self, path: &str) -> BlockBounds {
        let end = if path == "beyond" { u64::MAX } else { 2 };
        vec![(Bx::new(vec![1, 0], vec![end, 3]), Some((0, 9)))]
    }
}

fn dim(name: &str, len: u64) -> Dimension {
    let (name, path) = (name.to_string(), name.to_string());
    Dimension { name, path, len, unlimited: false, naming: Naming::File, coordinate: None }
}

fn array(path: &str, dtype: DType, dims: &[usize], shape: &[u64]) -> ArrayInfo {
    ArrayInfo {
        path: path.into(),
        dtype,
        dims: dims.to_vec(),
        shape: shape.to_vec(),
        attrs: Vec::new(),
        enum_names: Vec::new(),
        decoding: Decoding::none(dtype),
        storage: StorageInfo::default(),
        coordinates: Vec::new(),
    }
}

fn open(arrays: Vec<ArrayInfo>, block: Option<Vec<u64>>) -> Result<ForeignSource> {
    let groups = vec![GroupInfo { path: String::new(), attrs: Vec::new() }];
    let described = vec![ForeignArray { block }; arrays.len()];
    let dims = vec![dim("y", 4), dim("x", 3), dim("huge", 1 << 62)];
    let schema = Schema { format: "test".into(), groups, dims, arrays, ..Schema::default() };
    let store = ForeignStore::new("test:1", &[], "1")?;
    ForeignSource::new(schema, &described, "read by a test", store, Box::new(Counting))
}

#[test]
fn boxes_are_filled_and_counted() {
    let source: Arc<dyn ArraySource> =
        Arc::new(open(vec![array("a", DType::I32, &[0, 1], &[4, 3])], Some(vec![2, 3])).unwrap());
    let reader = BlockReader::new(Arc::clone(&source), 0, Arc::new(ChunkCache::new(0)), 1 << 20).unwrap();
    let mut buffer = crate::buffer::Buffer::default();
    reader.read(&Bx::new(vec![1, 1], vec![2, 2]), &mut buffer, &mut Workspace::default()).unwrap();
    assert_eq!(buffer.as_slice::<i32>(), [11, 12, 21, 22]);
    let counted = source.store().counters().snapshot();
    assert_eq!((counted.library_reads, counted.bytes_read), (1, 16));
    assert!(reader.layout().is_chunked() == (reader.layout().chunk_shape != [4, 3]));
}

#[test]
fn a_description_that_contradicts_itself_is_refused() {
    let kind = |arrays, block| open(arrays, block).err().map(|e| e.kind());
    let a = || array("a", DType::F32, &[0, 1], &[4, 3]);
    assert_eq!(kind(vec![a()], None), None);
    let refused = Some(ErrorKind::InvalidValue);
    assert_eq!(kind(vec![a(), a()], None), refused);
    assert_eq!(kind(vec![a()], Some(vec![0, 3])), refused);
    assert_eq!(kind(vec![a()], Some(vec![2])), refused);
    assert_eq!(kind(vec![array("a", DType::F32, &[0, 7], &[4, 3])], None), refused);
    assert_eq!(kind(vec![array("a", DType::F32, &[0, 0], &[4, 4])], None), refused);
    assert_eq!(kind(vec![array("a", DType::F32, &[0, 1], &[4, 5])], None), refused);
    assert_eq!(kind(vec![array("a", DType::F32, &[2], &[1 << 62])], None), Some(ErrorKind::CorruptFile));
}

#[test]
fn texts_of_another_number_than_asked_for_are_an_error() {
    let source = open(vec![array("t", DType::Str, &[1], &[3])], None).unwrap();
    assert_eq!(source.read_library_strings(0, &Bx::new(vec![1], vec![1])).unwrap(), ["one"]);
    let e = source.read_library_strings(0, &Bx::new(vec![0], vec![2])).unwrap_err();
    assert_eq!((e.kind(), e.message()), (ErrorKind::InvalidValue, "'t': 1 texts read, 2 asked for"));
}

#[test]
fn limits_of_what_lies_outside_of_the_array_are_left_aside() {
    let arrays =
        vec![array("a", DType::I32, &[0, 1], &[4, 3]), array("beyond", DType::I32, &[0, 1], &[4, 3])];
    let source = open(arrays, None).unwrap();
    assert_eq!(source.limits(0), [(Bx::new(vec![1, 0], vec![2, 3]), Some((0, 9)))]);
    assert!(source.limits(1).is_empty());
}

#[test]
fn files_that_change_are_noticed_and_read_as_one() {
    let dir = std::env::temp_dir().join(format!("sieva-foreign-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let files = [dir.join("a"), dir.join("b")];
    std::fs::write(&files[0], b"01234").unwrap();
    std::fs::write(&files[1], b"56789").unwrap();
    let store = ForeignStore::new("both", &files, "").unwrap();
    let mut out = [0; 4];
    store.read_exact_at(3, &mut out).unwrap();
    assert_eq!((&out, store.len()), (b"3456", 10));
    assert_eq!(store.read_exact_at(8, &mut out).unwrap_err().kind(), ErrorKind::CorruptFile);
    store.check_unchanged().unwrap();
    std::fs::write(&files[1], b"567890").unwrap();
    assert_eq!(store.check_unchanged().unwrap_err().kind(), ErrorKind::StaleSource);
    assert_ne!(ForeignStore::new("both", &files, "").unwrap().version(), store.version());
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(ForeignStore::new("none", &[], "").unwrap_err().kind(), ErrorKind::InvalidValue);
}
