//! Virtual data whose sources have numbers in their names: neither from the working directory, nor from anywhere that is
//! not allowed. Alone in its process, which has one working directory.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;

use hdf5_metno_sys::{h5d, h5p, h5s, h5t};
use sieva_format::ArraySource;
use sieva_format::read::{BlockReader, ChunkCache, Workspace};
use sieva_format_hdf5::{Hdf5Options, Hdf5Source};
use sieva_types::{Buffer, Bx, Error, ErrorKind};

fn write(path: &Path, values: &[i32]) {
    let file = hdf5_metno::File::create(path).unwrap();
    file.new_dataset_builder().with_data(values).create("x").unwrap();
    file.close().unwrap();
}

/// A file whose dataset `v` is made of `x` of `name`, two elements a file.
fn write_virtual(path: &Path, name: &str) {
    let file = hdf5_metno::File::create(path).unwrap();
    let name = CString::new(name).unwrap();
    let (unlimited, zero, two, one) = (u64::MAX, 0_u64, 2_u64, 1_u64);
    let _guard = hdf5_metno_sys::LOCK.lock();
    // SAFETY: the lock is held, the file is open, the pointers are to locals that outlive the calls.
    unsafe {
        let space = h5s::H5Screate_simple(1, &zero, &unlimited);
        let set = h5s::H5S_SELECT_SET;
        assert!(h5s::H5Sselect_hyperslab(space, set, &zero, &two, &unlimited, &two) >= 0);
        let source = h5s::H5Screate_simple(1, &two, std::ptr::null());
        assert!(h5s::H5Sselect_hyperslab(source, set, &zero, std::ptr::null(), &one, &two) >= 0);
        let list = h5p::H5Pcreate(*h5p::H5P_CLS_DATASET_CREATE);
        assert!(h5p::H5Pset_virtual(list, space, name.as_ptr(), c"x".as_ptr(), source) >= 0);
        let (kind, default) = (*h5t::H5T_STD_I32LE, h5p::H5P_DEFAULT);
        let d = h5d::H5Dcreate2(file.id(), c"v".as_ptr(), kind, space, default, list, default);
        assert!(d >= 0);
        h5d::H5Dclose(d);
        h5p::H5Pclose(list);
        h5s::H5Sclose(source);
        h5s::H5Sclose(space);
    }
    file.close().unwrap();
}

fn read(path: &Path, roots: &[&Path]) -> Result<Vec<i32>, Error> {
    let external_roots = roots.iter().map(|root| root.to_path_buf()).collect();
    let options = Hdf5Options { external_roots, ..Hdf5Options::default() };
    let source = Arc::new(Hdf5Source::open(path, &options)?);
    let shape = source.schema().arrays[0].shape.clone();
    source.layout(0)?;
    let reader = BlockReader::new(source, 0, Arc::new(ChunkCache::new(0)), 1 << 20)?;
    let mut buffer = Buffer::default();
    reader.read(&Bx::whole(&shape), &mut buffer, &mut Workspace::default())?;
    Ok(buffer.as_slice::<i32>().to_vec())
}

#[test]
fn sources_with_numbers_are_looked_for_where_that_is_allowed() {
    let dir = common::Dir::new();
    let (data, elsewhere) = (dir.file("data"), dir.file("elsewhere"));
    std::fs::create_dir_all(&data).unwrap();
    std::fs::create_dir_all(&elsewhere).unwrap();
    write(&elsewhere.join("run0.h5"), &[100, 101]);
    write(&elsewhere.join("run1.h5"), &[102, 103]);
    let main = data.join("main.h5");
    write_virtual(&main, "run%b.h5");
    std::env::set_current_dir(&elsewhere).unwrap();

    // Nothing is beside it: what lies in the working directory is none of it, allowed or not.
    assert_eq!(read(&main, &[&data]).unwrap(), [0; 0]);
    assert_eq!(read(&main, &[&data, &elsewhere]).unwrap(), [0; 0]);

    // What is beside it needs to be allowed.
    write(&data.join("run0.h5"), &[1, 2]);
    write(&data.join("run1.h5"), &[3, 4]);
    assert_eq!(read(&main, &[&data]).unwrap(), [1, 2, 3, 4]);
    assert_eq!(read(&main, &[]).unwrap_err().kind(), ErrorKind::LinkRefused);
    assert_eq!(read(&main, &[&elsewhere]).unwrap_err().kind(), ErrorKind::LinkRefused);

    // A link out of it is followed nowhere else, whatever its number.
    std::fs::remove_file(data.join("run1.h5")).unwrap();
    std::os::unix::fs::symlink(elsewhere.join("run1.h5"), data.join("run1.h5")).unwrap();
    assert_eq!(read(&main, &[&data]).unwrap_err().kind(), ErrorKind::LinkRefused);
    assert_eq!(read(&main, &[&data, &elsewhere]).unwrap(), [1, 2, 102, 103]);

    // An absolute name, by its last part too.
    let absolute = data.join("absolute.h5");
    write_virtual(&absolute, elsewhere.join("run%b.h5").to_str().unwrap());
    assert_eq!(read(&absolute, &[&data, &elsewhere]).unwrap(), [100, 101, 102, 103]);
    assert_eq!(read(&absolute, &[&data]).unwrap_err().kind(), ErrorKind::LinkRefused);

    // Raw data that a source keeps in the working directory.
    std::env::set_current_dir(dir.0.parent().unwrap()).unwrap();
}
