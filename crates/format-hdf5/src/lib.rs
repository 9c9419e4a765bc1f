//! HDF5 and netCDF-4 files: metadata by libhdf5, array data by our own chunk reader.
