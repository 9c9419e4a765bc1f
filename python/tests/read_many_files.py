"""Files of many layouts, and their values by the libraries that wrote them."""

import h5py
import netCDF4
import numpy as np

HOSTILE = np.array([np.nan, -0.0, np.inf, -np.inf, 1e-310, 0.0])


def hostile(shape, dtype="<f8", seed=5):
    """Return values that are easily lost."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape)
    values[rng.random(shape) < 0.3] = rng.choice(HOSTILE)
    with np.errstate(over="ignore", under="ignore"):
        return values.astype(dtype)


def write_files(folder):
    """Write one file of each layout."""
    integers = np.arange(2 * 5 * 7 * 3).reshape(2, 5, 7, 3)
    with h5py.File(folder / "layouts.h5", "w") as file:
        file["contiguous"] = hostile((6, 5, 9))
        file["big"] = hostile((7, 11), ">f4")
        file["unsigned"] = integers.astype("<u8") + np.uint64(2**63)
        file["scalar"] = np.float64(-0.0)
        file["empty"] = np.empty((0, 4), "<i2")
        file["narrow"] = np.arange(1000, dtype="i1")
        file.create_dataset(
            "chunked", data=hostile((20, 13)), chunks=(3, 5), compression="gzip", shuffle=True
        )
        file.create_dataset("never", (9, 9), "<i4", chunks=(2, 9), fillvalue=7)
        file["texts"] = np.array(["a", "", "äö", "longer text"] * 5, dtype=h5py.string_dtype())
    write_records(folder / "records.nc", "NETCDF3_64BIT_OFFSET")


def write_records(path, kind):
    """Write two record variables, one of them packed, and a fixed one."""
    with netCDF4.Dataset(path, "w", format=kind) as file:
        file.createDimension("time", None)
        for name, n in (("lev", 3), ("lat", 4), ("lon", 5)):
            file.createDimension(name, n)
        file.createVariable("T", "f4", ("time", "lev", "lat", "lon"))[:] = hostile((8, 3, 4, 5), "f4", 6)
        file.createVariable("odd", "i2", ("time", "lat"))[:] = np.arange(32).reshape(8, 4) - 9
        file.createVariable("fixed", "f8", ("lat", "lon"))[:] = hostile((4, 5), "f8", 7)


def brute(path, name):
    """Return all values of an array as another library reads them."""
    if path.suffix == ".h5":
        with h5py.File(path) as file:
            data = file[name]
            return data.asstr()[...] if h5py.check_string_dtype(data.dtype) else as_read(data[...])
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        return as_read(file[name][...])


def as_read(values):
    """Return values in the byte order of the machine, which is how they are read."""
    values = np.asarray(values)
    return values.astype(values.dtype.newbyteorder("="))
