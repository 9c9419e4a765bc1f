//! The source: an open file behind the trait that all formats share.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use sieva_format::ArraySource;
use sieva_format::layout::Layout;
use sieva_format::schema::Schema;
use sieva_store::{FileStore, RangedRead};
use sieva_types::{Bx, Error, ErrorKind, Result};

use crate::dataset::Dataset;
use crate::file::{File, is_hdf5};
use crate::layout::Physical;
use crate::links::Policy;
use crate::schema::{Array, Listing};
use crate::walk::{self, Tree};
use crate::{layout, library, schema};

/// How a file is opened.
#[derive(Clone, Debug, Default)]
pub struct Hdf5Options {
    /// Directories that external links, virtual data and raw data kept elsewhere may lead into. A target counts
    /// by its canonical path; with none given, nothing outside of the file is ever opened.
    pub external_roots: Vec<PathBuf>,
    /// Dimension names for arrays, by path. A dimension named so is the same one for all arrays, whatever their
    /// group.
    pub dims: Vec<(String, Vec<String>)>,
}

/// An HDF5 or netCDF-4 file.
pub struct Hdf5Source {
    store: Arc<dyn RangedRead>,
    tree: Tree,
    schema: Schema,
    datasets: Vec<Dataset>,
    arrays: Vec<Array>,
    physical: Vec<OnceLock<Result<Arc<Physical>>>>,
    layouts: Vec<OnceLock<Result<Arc<Layout>>>>,
}

impl Hdf5Source {
    /// Opens the file at `path` and lists what is in it.
    ///
    /// # Errors
    /// `file-not-found`, `permission-denied`; `unknown-format` for what is not HDF5; `corrupt-file` where the
    /// file's own structure is damaged; `invalid-value`, `unknown-array` or `dimension-mismatch` for dimension
    /// names that do not fit.
    pub fn open(path: &Path, options: &Hdf5Options) -> Result<Self> {
        let store = FileStore::open(path)?;
        let place = |e: Error| e.at(format!("'{}'", path.display()));
        if !is_hdf5(&store) {
            return Err(Error::new(ErrorKind::UnknownFormat, "no HDF5 signature").at(store.name()));
        }
        let policy = Policy::new(&options.external_roots);
        let tree = walk::walk(File::open(path)?, &policy).map_err(place)?;
        let Listing { schema, datasets, arrays } = schema::list(&tree, &policy, options).map_err(place)?;
        Ok(Self {
            physical: datasets.iter().map(|_| OnceLock::new()).collect(),
            layouts: arrays.iter().map(|_| OnceLock::new()).collect(),
            store: Arc::new(store),
            tree,
            schema,
            datasets,
            arrays,
        })
    }

    fn array(&self, array: usize) -> Result<&Array> {
        let none = || Error::new(ErrorKind::Internal, format!("no array number {array}"));
        self.arrays.get(array).ok_or_else(none)
    }

    fn physical(&self, dataset: usize) -> Result<Arc<Physical>> {
        self.physical[dataset]
            .get_or_init(|| {
                let found = layout::physical(&self.tree, &self.datasets[dataset], self.store.len());
                found.map(Arc::new)
            })
            .clone()
    }

    /// The array, if libhdf5 may and can read it: finding its layout has checked that.
    fn readable(&self, array: usize) -> Result<&Array> {
        self.layout(array)?;
        self.array(array)
    }

    /// Names file and array in an error.
    fn place(&self, array: usize, e: Error) -> Error {
        e.at(&self.schema.arrays[array].path).at(format!("'{}'", self.store.name()))
    }
}

impl ArraySource for Hdf5Source {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn layout(&self, array: usize) -> Result<Arc<Layout>> {
        let entry = self.array(array)?;
        let find = || {
            let physical = self.physical(entry.dataset)?;
            // Said before anything is read: refused data may seem to have no extent, and then none would be.
            if let Some(e) = &physical.unreadable {
                return Err(e.clone());
            }
            let found =
                layout::of_leaf(&self.datasets[entry.dataset], &entry.leaf, &physical, entry.char_dim);
            found.map(Arc::new)
        };
        self.layouts[array].get_or_init(|| find().map_err(|e| self.place(array, e))).clone()
    }

    fn store(&self) -> &Arc<dyn RangedRead> {
        &self.store
    }

    fn read_library(&self, array: usize, bx: &Bx, out: &mut [u8]) -> Result<()> {
        let entry = self.readable(array)?;
        self.store.counters().add_library_read(out.len() as u64);
        library::read(&self.tree, &self.datasets[entry.dataset], &entry.leaf, bx, out)
            .map_err(|e| self.place(array, e))
    }

    fn read_library_strings(&self, array: usize, bx: &Bx) -> Result<Vec<String>> {
        let entry = self.readable(array)?;
        self.store.counters().add_library_read(0);
        library::read_texts(&self.tree, &self.datasets[entry.dataset], &entry.leaf, bx)
            .map_err(|e| self.place(array, e))
    }
}
