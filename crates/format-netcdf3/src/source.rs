//! The open file.

use std::sync::Arc;

use sieva_format::ArraySource;
use sieva_format::Warnings;
use sieva_format::layout::Layout;
use sieva_format::schema::Schema;
use sieva_store::RangedRead;
use sieva_types::{Error, ErrorKind, Result};

use crate::arrays::{self, LayoutResult};
use crate::geometry::Geometry;
use crate::header::{self, Version};

/// An open netCDF classic file (CDF-1, CDF-2 or CDF-5).
///
/// A char array whose last dimension is used for nothing but characters is an array of texts without that
/// dimension; any other is an array of letters. A dimension that a variable uses twice gets a second name for the second use (`n_1`).
pub struct Netcdf3Source {
    store: Arc<dyn RangedRead>,
    schema: Schema,
    layouts: Vec<LayoutResult>,
}

impl Netcdf3Source {
    /// Reads the header of `store`.
    ///
    /// A file whose data are cut off opens, with a word in [`Schema::warnings`]; reading what is missing fails.
    ///
    /// # Errors
    /// `unknown-format` where it is not a netCDF classic file, `corrupt-file` where the header contradicts
    /// itself or is cut off, `unsupported` where it is longer than 16 MiB or lists more than 65536
    /// dimensions or variables, `io-error` where reading fails.
    pub fn open(store: Arc<dyn RangedRead>) -> Result<Self> {
        let mut warnings = Warnings::default();
        let read = header::parse(&*store, &mut warnings).and_then(|header| {
            let geometry = Geometry::new(&header, store.len(), &mut warnings)?;
            Ok((header, geometry))
        });
        let (header, geometry) = read.map_err(|e| locate(e, &*store))?;
        let built = arrays::build(&header, &geometry, store.len(), warnings);
        let (schema, layouts) = built.map_err(|e| locate(e, &*store))?;
        Ok(Self { store, schema, layouts })
    }

    /// Gives arrays' dimensions the names that a user wants: array path and names, outermost first.
    ///
    /// # Errors
    /// As [`Schema::name_dims`].
    pub fn name_dims(&mut self, given: &[(String, Vec<String>)]) -> Result<()> {
        for (path, names) in given {
            self.schema.name_dims(path, names).map_err(|e| locate(e, &*self.store))?;
        }
        self.schema.resolve();
        Ok(())
    }
}

/// Puts the file's name before what was found wrong in it; errors of the store name it themselves.
fn locate(e: Error, store: &dyn RangedRead) -> Error {
    if e.kind() == ErrorKind::Io { e } else { e.at(format!("'{}'", store.name())) }
}

impl ArraySource for Netcdf3Source {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn layout(&self, array: usize) -> Result<Arc<Layout>> {
        match self.layouts.get(array) {
            Some(layout) => layout.clone().map_err(|e| locate(e, &*self.store)),
            None => Err(Error::new(
                ErrorKind::Internal,
                format!("array {array} asked for, the file has {}", self.layouts.len()),
            )),
        }
    }

    fn store(&self) -> &Arc<dyn RangedRead> {
        &self.store
    }
}

/// Whether `store` begins as a netCDF classic file does.
pub fn is_netcdf3(store: &dyn RangedRead) -> bool {
    let mut magic = [0; 4];
    store.len() >= 4 && store.read_exact_at(0, &mut magic).is_ok() && Version::from_magic(magic).is_some()
}
