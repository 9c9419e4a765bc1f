//! An HDF5 file open for reading, and the objects in it.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::sync::Arc;

use hdf5_metno_sys::h5ac::{H5AC__CURR_CACHE_CONFIG_VERSION, H5AC_cache_config_t};
use hdf5_metno_sys::h5d::H5Dopen2;
use hdf5_metno_sys::h5f::{H5F_ACC_RDONLY, H5Fopen};
use hdf5_metno_sys::h5o::{H5O_INFO_BASIC, H5O_info2_t, H5O_type_t, H5Oget_info3, H5Oopen, H5Oopen_by_token};
use hdf5_metno_sys::h5p::*;
use sieva_store::guard::{Gate, Purpose};
use sieva_store::{FileStore, RangedRead};
use sieva_types::{Error, Result};

use crate::bytes::FileBytes;
use crate::driver;
use crate::ffi::{self, Handle, Token, call};
use crate::scout::Scout;

const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

/// Whether the object holds an HDF5 file: its signature stands at 0, or after a user block at 512, 1024, 2048 ...
pub fn is_hdf5(store: &dyn RangedRead) -> bool {
    matches!(signature_offset(store), Ok(Some(_)))
}

/// Where the signature stands, if anywhere.
///
/// # Errors
/// Those of the storage.
pub(crate) fn signature_offset(store: &dyn RangedRead) -> Result<Option<u64>> {
    let mut found = [0; SIGNATURE.len()];
    let mut offset = 0_u64;
    while offset.checked_add(SIGNATURE.len() as u64).is_some_and(|end| end <= store.len()) {
        store.read_exact_at(offset, &mut found)?;
        if found == SIGNATURE {
            return Ok(Some(offset));
        }
        let next = offset.checked_mul(2).map(|double| double.max(512));
        let Some(next) = next else { break };
        offset = next;
    }
    Ok(None)
}

/// An open file.
#[derive(Debug)]
pub(crate) struct File {
    handle: Handle,
    links: Handle,
    bytes: Arc<FileBytes>,
    /// Who fetches metadata ahead, where that pays.
    scout: Option<Scout>,
}

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    Group,
    Dataset,
    Other,
}

impl File {
    /// Opens the local file at `path`, which another file leads to.
    pub(crate) fn open(path: &Path, gate: &Gate) -> Result<Self> {
        let store = FileStore::open_within(path, gate, Purpose::Link)?;
        Self::of(FileBytes::new(Arc::new(store))).map_err(|e| e.at(format!("'{}'", path.display())))
    }

    /// Opens `bytes` read-only, without locking a file: a read-only directory or a file that another process has
    /// open must not fail.
    pub(crate) fn of(bytes: Arc<FileBytes>) -> Result<Self> {
        let _guard = ffi::lock();
        let access = access_list()?;
        if !bytes.store().is_remote() {
            keep_little(&access)?;
        }
        let announced = driver::Announced::new(&bytes)?;
        let opened = ffi::open("cannot open it as HDF5", || {
            // SAFETY: the lock is held, the property list is open and the name a C string.
            unsafe { H5Fopen(announced.name().as_ptr(), H5F_ACC_RDONLY, access.id()) }
        });
        let handle = opened.map_err(hint_of_open)?;
        Ok(Self { handle, links: refusing_links()?, bytes, scout: None })
    }

    /// The same with a scout, which has been at it before.
    pub(crate) fn with(mut self, scout: Option<Scout>) -> Self {
        self.scout = scout;
        self
    }

    /// Whether reading metadata waits for a network, so that libhdf5's lock must not be held meanwhile.
    pub(crate) fn is_remote(&self) -> bool {
        self.bytes.store().is_remote()
    }

    /// Fetches the headers of objects, and what they lead to, before libhdf5 asks for them one by one.
    ///
    /// # Errors
    /// Those of the storage.
    pub(crate) fn fetch_objects(&self, objects: &[Token]) -> Result<()> {
        let Some(scout) = &self.scout else { return Ok(()) };
        let headers: Vec<u64> = objects.iter().map(|token| token.address()).collect();
        scout.fetch_objects(&self.bytes, &headers)
    }

    /// The same for the indexes of the chunks of datasets.
    ///
    /// # Errors
    /// Those of the storage.
    pub(crate) fn fetch_indexes(&self, datasets: &[Token]) -> Result<()> {
        let Some(scout) = &self.scout else { return Ok(()) };
        let headers: Vec<u64> = datasets.iter().map(|token| token.address()).collect();
        scout.fetch_indexes(&self.bytes, &headers)
    }

    /// The bytes that it is read from.
    pub(crate) fn bytes(&self) -> &Arc<FileBytes> {
        &self.bytes
    }

    /// The path of a local file.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.bytes.local_path()
    }

    /// Whether it is the local file of this canonical path.
    pub(crate) fn is_at(&self, real: &Path) -> bool {
        self.path().and_then(|own| own.canonicalize().ok()).is_some_and(|own| own == real)
    }

    /// The file's own handle, which stands for its root group.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Opens the object that `token` identifies.
    pub(crate) fn object(&self, token: Token) -> Result<Handle> {
        // SAFETY: called under the lock with an open file.
        ffi::open("cannot open an object", || unsafe { H5Oopen_by_token(self.handle.id(), token.raw()) })
    }

    /// Opens what `name` leads to from `group`, refusing to leave the file on the way.
    pub(crate) fn object_at(&self, group: &Handle, name: &CStr) -> Result<Handle> {
        // SAFETY: called under the lock with open handles and a C string.
        ffi::open("cannot follow a link", || unsafe { H5Oopen(group.id(), name.as_ptr(), self.links.id()) })
    }

    /// Opens the dataset at `path` from the group `from` for reading raw data that is kept in files beside this one.
    ///
    /// By path, because only then libhdf5 can be told where these files are; no other handle of the dataset
    /// may be open.
    pub(crate) fn dataset_beside(&self, from: Token, path: &CStr) -> Result<Handle> {
        let group = self.object(from)?;
        let access = property_list(*H5P_CLS_DATASET_ACCESS)?;
        // SAFETY: called under the lock with an open property list and C strings.
        call("cannot set dataset access", || unsafe {
            H5Pset_efile_prefix(access.id(), c"${ORIGIN}".as_ptr())
        })?;
        // SAFETY: as above.
        ffi::open("cannot open a dataset", || unsafe { H5Dopen2(group.id(), path.as_ptr(), access.id()) })
    }

    /// `len` bytes at `offset` from the start of the file, user block included.
    pub(crate) fn bytes_at(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        let there = self.bytes.len();
        if offset.checked_add(len).is_none_or(|end| end > there) {
            let what =
                format!("{len} bytes at offset {offset} reach past the end of the file ({there} bytes)");
            return Err(Error::corrupt(what));
        }
        let mut out = vec![0; len as usize];
        self.bytes.read(offset, &mut out)?;
        Ok(out)
    }

    /// What an open object is, and its identity.
    pub(crate) fn identify(object: &Handle) -> Result<(ObjectKind, Token)> {
        let mut info = std::mem::MaybeUninit::<H5O_info2_t>::zeroed();
        call("cannot look at an object", || {
            // SAFETY: called under the lock with an open object; the record is the library's to fill.
            unsafe { H5Oget_info3(object.id(), info.as_mut_ptr(), H5O_INFO_BASIC) }
        })?;
        // SAFETY: the call succeeded, so the record is filled.
        let info = unsafe { info.assume_init() };
        let kind = match info.type_ {
            H5O_type_t::H5O_TYPE_GROUP => ObjectKind::Group,
            H5O_type_t::H5O_TYPE_DATASET => ObjectKind::Dataset,
            _ => ObjectKind::Other,
        };
        Ok((kind, Token::from_raw(info.token)))
    }
}

/// A new property list of `class`.
pub(crate) fn property_list(class: i64) -> Result<Handle> {
    // SAFETY: called under the lock with one of the library's own classes.
    ffi::open("cannot make a property list", || unsafe { H5Pcreate(class) })
}

/// File access through our driver, which neither locks nor writes.
pub(crate) fn access_list() -> Result<Handle> {
    let access = property_list(*H5P_CLS_FILE_ACCESS)?;
    // SAFETY: called under the lock with an open property list.
    call("cannot set file access", || unsafe { H5Pset_file_locking(access.id(), 0, 1) })?;
    driver::set(&access)?;
    Ok(access)
}

// Written by build.rs, which holds the headers of the library against the same numbers.
include!(concat!(env!("OUT_DIR"), "/H5AC_cache_config_t.rs"));

/// Most bytes of metadata that libhdf5 keeps of a local file, as they are in the file; in memory they are some sixteen times
/// as many. By default it keeps 32 MiB. What is read again comes out of the system's cache.
const METADATA_CACHE: usize = 2 << 20;

/// Limits what libhdf5 keeps of a file's metadata.
fn keep_little(access: &Handle) -> Result<()> {
    let what = "cannot set what is kept of metadata";
    let mut config = H5AC_cache_config_t { version: H5AC__CURR_CACHE_CONFIG_VERSION, ..Default::default() };
    // SAFETY: called under the lock with an open property list and a structure of the version that it says.
    call(what, || unsafe { H5Pget_mdc_config(access.id(), &mut config) })?;
    config.set_initial_size = 1;
    config.initial_size = METADATA_CACHE / 2;
    config.min_size = METADATA_CACHE / 2;
    config.max_size = METADATA_CACHE;
    // SAFETY: as above.
    call(what, || unsafe { H5Pset_mdc_config(access.id(), &config) }).map(|_| ())
}

/// Link access that refuses every external link before its file is touched.
fn refusing_links() -> Result<Handle> {
    let links = property_list(*H5P_CLS_LINK_ACCESS)?;
    // SAFETY: called under the lock; the callback is a plain function and takes no data.
    call("cannot set link access", || unsafe {
        H5Pset_elink_cb(links.id(), Some(refuse), std::ptr::null_mut())
    })?;
    Ok(links)
}

extern "C" fn refuse(
    _parent_file: *const c_char,
    _parent_group: *const c_char,
    _file: *const c_char,
    _object: *const c_char,
    _flags: *mut c_uint,
    _access: i64,
    _data: *mut c_void,
) -> c_int {
    -1
}

fn hint_of_open(e: Error) -> Error {
    if e.message().contains("consistency flags") {
        return e.hint("its writer still has it open or did not close it; `h5clear -s FILE` clears the mark");
    }
    if e.message().contains("truncated file") {
        return e.hint("the file is cut off; copy it again");
    }
    e
}

#[cfg(test)]
mod tests {
    use sieva_store::MemoryStore;

    use super::*;

    #[test]
    fn the_signature_may_stand_after_a_user_block() {
        for (at, want) in [(0, true), (512, true), (1024, true), (513, false), (1536, false)] {
            let mut bytes = vec![0; at];
            bytes.extend(SIGNATURE);
            assert_eq!(is_hdf5(&MemoryStore::new("signature", bytes)), want, "{at}");
        }
        assert!(!is_hdf5(&MemoryStore::new("short", b"\x89HDF".to_vec())));
    }
}
