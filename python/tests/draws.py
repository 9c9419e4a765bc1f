"""What hypothesis draws for the oracle: arrays with attributes, and files that hold them.

A drawn file is a list of `DrawnArray`; `write` makes it a file of any format, and each array knows its
decoded values, computed here by numpy alone.
"""

from dataclasses import dataclass, field
from pathlib import Path

import h5py
import hdf5plugin
import netCDF4
import numpy as np
from hypothesis import strategies as st

DIMS = {"time": 3, "z": 4, "y": 5, "x": 7}
CLASSIC_KINDS = ("i1", "i2", "i4", "f4", "f8")
NETCDF_KINDS = (*CLASSIC_KINDS, "u1", "u2", "u4", "u8", "i8")
HDF5_KINDS = (*NETCDF_KINDS, "f2", ">i2", ">u4", ">i8", ">f4", ">f8")
FORMATS = {
    "HDF5": HDF5_KINDS,
    "NETCDF4": (*NETCDF_KINDS, ">i2", ">i4", ">f4", ">f8"),
    "NETCDF3_CLASSIC": CLASSIC_KINDS,
    "NETCDF3_64BIT_OFFSET": CLASSIC_KINDS,
    "NETCDF3_64BIT_DATA": NETCDF_KINDS,
}
_HDF5_FILTERS = (
    {},
    {"compression": "gzip"},
    {"compression": "gzip", "shuffle": True, "fletcher32": True},
    {"compression": "lzf", "shuffle": True},
    {"shuffle": True},
    dict(hdf5plugin.Zstd()),
    dict(hdf5plugin.LZ4()),
    dict(hdf5plugin.Bitshuffle(cname="lz4")),
    dict(hdf5plugin.Blosc2(cname="zstd")),
)
_NETCDF_FILTERS = ({}, {"zlib": True, "shuffle": False}, {"zlib": True, "shuffle": True, "fletcher32": True})


@dataclass
class DrawnArray:
    """An array as it is stored, and what its values are."""

    name: str
    dims: tuple[str, ...]
    stored: np.ndarray
    attrs: dict[str, object] = field(default_factory=dict)
    chunks: tuple[int, ...] | None = None
    filters: int = 0

    def decoded(self) -> tuple[np.ndarray, np.ndarray]:
        """Return values and where they are missing: packed ones and floats in float64, integers as such."""
        stored = self.stored.astype(self.stored.dtype.newbyteorder("="))
        missing = np.isnan(stored) if stored.dtype.kind == "f" else np.zeros(stored.shape, bool)
        for key in ("_FillValue", "missing_value"):
            if key in self.attrs:
                missing = missing | (stored == self.attrs[key])
        values = stored.astype("f8") if stored.dtype.kind == "f" else stored
        if "scale_factor" in self.attrs:
            with np.errstate(invalid="ignore", over="ignore"):
                values = values.astype("f8") * self.attrs["scale_factor"] + self.attrs["add_offset"]
            missing = missing | np.isnan(values)
        return values, missing

    @property
    def is_packed(self) -> bool:
        """Whether values are computed from what is stored."""
        return "scale_factor" in self.attrs


def _interesting(kind: str) -> list[object]:
    dtype = np.dtype(kind)
    if dtype.kind == "f":
        info = np.finfo(dtype)
        return [0.0, -0.0, np.nan, np.inf, -np.inf, info.max, info.smallest_subnormal, 1.7, 0.1, -2.5]
    info = np.iinfo(dtype)
    return [info.min, info.max, info.max - 1, 0, 1, 2, 7]


@st.composite
def arrays(
    draw: st.DrawFn, name: str, dims: tuple[str, ...], kinds: tuple[str, ...], *, plain: bool = False
) -> DrawnArray:
    """Draw an array over ``dims``; a ``plain`` one has no attributes."""
    kind = draw(st.sampled_from(kinds))
    shape = tuple(DIMS[d] for d in dims)
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    dtype = np.dtype(kind)
    small = rng.integers(0 if dtype.kind == "u" else -6, 9, shape)
    values = (small * rng.choice([1, 0.25, 0.1]) if dtype.kind == "f" else small).astype(dtype)
    if draw(st.booleans()):
        special = np.array(_interesting(kind), dtype.newbyteorder("="))
        where = rng.random(shape) < 0.3
        values = np.where(where, rng.choice(special, shape), values).astype(dtype)
    attrs = {} if plain else draw(_attributes(dtype))
    chunks = draw(st.none() | st.tuples(*(st.integers(1, n) for n in shape))) if shape else None
    return DrawnArray(name, dims, np.asarray(values, dtype), attrs, chunks, draw(st.integers(0, 8)))


@st.composite
def _attributes(draw: st.DrawFn, dtype: np.dtype) -> dict[str, object]:
    attrs: dict[str, object] = {}
    native = dtype.newbyteorder("=")
    for key in ("_FillValue", "missing_value"):
        if draw(st.integers(0, 3)) == 0:
            attrs[key] = native.type(draw(st.integers(0, 5)))
    if dtype.itemsize <= 4 and draw(st.integers(0, 3)) == 0:
        attrs["scale_factor"] = draw(st.sampled_from([0.1, 0.5, -2.0, 1e-3, 1.0]))
        attrs["add_offset"] = draw(st.sampled_from([0.0, 273.15, -10.0]))
    return attrs


def write(path: Path, file_format: str, drawn: list[DrawnArray], unlimited: bool) -> None:
    """Write the arrays as a file of the format, with coordinates where an array has a dimension's name."""
    if file_format == "HDF5":
        _write_hdf5(path, drawn, unlimited)
    else:
        _write_netcdf(path, file_format, drawn, unlimited)


def _write_hdf5(path: Path, drawn: list[DrawnArray], unlimited: bool) -> None:
    with h5py.File(path, "w", libver="latest" if unlimited else "earliest") as f:
        for array in drawn:
            options = {}
            if array.chunks and array.stored.ndim:
                options = {"chunks": array.chunks, **_HDF5_FILTERS[array.filters % len(_HDF5_FILTERS)]}
                if unlimited:
                    options["maxshape"] = (None, *array.stored.shape[1:])
            dataset = f.create_dataset(array.name, data=array.stored, **options)
            dataset.attrs.update(array.attrs)
        for array in drawn:
            for axis, dim in enumerate(array.dims):
                if dim in f and dim != array.name:
                    f[array.name].dims[axis].attach_scale(f[dim])
                f[array.name].dims[axis].label = dim


def _write_netcdf(path: Path, file_format: str, drawn: list[DrawnArray], unlimited: bool) -> None:
    with netCDF4.Dataset(path, "w", format=file_format) as f:
        for dim, length in DIMS.items():
            f.createDimension(dim, None if unlimited and dim == "time" else length)
        for array in drawn:
            options = {}
            if file_format == "NETCDF4" and array.dims:
                options = {
                    "chunksizes": array.chunks,
                    "contiguous": array.chunks is None and "time" not in array.dims,
                }
                if array.chunks:
                    options |= _NETCDF_FILTERS[array.filters % len(_NETCDF_FILTERS)]
            kind = array.stored.dtype
            if kind.byteorder == ">":
                options["endian"] = "big"
            attrs = dict(array.attrs)
            fill = attrs.pop("_FillValue", None)
            variable = f.createVariable(array.name, kind, array.dims, fill_value=fill, **options)
            variable.setncatts(attrs)
            variable.set_auto_maskandscale(False)
            variable[...] = array.stored
