"""HDF5, by h5py: a data set per variable, with dimension scales."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sieva._extras import required
from sieva._output.grid import write_arrays
from sieva._output.held import held
from sieva._output.netcdf import level_of, storable

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from sieva._output.variable import Variable
    from sieva._query import Layout, Query


def write(query: Query, path: Path, layout: Layout | None = None, deflate: int | None = None) -> None:
    """Write the rows of a query to a file, deflated at a level (0: not at all; None: as is worth it)."""
    h5py = required("h5py", "HDF5", extra="hdf5")
    with held(path, lambda file: h5py.File(file, "w"), lambda f: Hdf5Container(f, deflate)) as container:
        write_arrays(query, container, layout)


class Hdf5Container:
    """An HDF5 file that is open for writing."""

    def __init__(self, file: Any, deflate: int | None = None) -> None:  # noqa: ANN401 - h5py has no types
        self.file = file
        self.deflate = deflate
        self.variables: list[Variable] = []
        self.growing: list[str] = []
        """Dimensions without values."""

    def define(self, dims: dict[str, int | None], variables: list[Variable], attrs: dict[str, Any]) -> None:
        """Make dimensions and variables."""
        self.variables = variables
        for name, value in attrs.items():
            self.file.attrs[name] = storable(value)
        for variable in variables:
            self._define(variable, [dims[name] for name in variable.dims])
        named = {v.name for v in variables if v.dims == (v.name,)}
        for name in named:
            self.file[name].make_scale(name)
        for name, length in dims.items():
            if name not in named:
                self._define_dimension(name, length)
        for variable in variables:
            made = self.file[variable.name]
            for axis, name in enumerate(variable.dims):
                made.dims[axis].label = name
                if name != variable.name:
                    made.dims[axis].attach_scale(self.file[name])

    def _define_dimension(self, name: str, length: int | None) -> None:
        """Make a scale without values, as netCDF-4 does it, so that netCDF libraries know the dimension."""
        growing = {"maxshape": (None,), "chunks": (1024,)} if length is None else {}
        made = self.file.create_dataset(name, (length or 0,), ">f4", **growing)
        made.make_scale(f"This is a netCDF dimension but not a netCDF variable. {length or 0:9d}")
        if length is None:
            self.growing.append(name)

    def _define(self, variable: Variable, shape: list[int | None]) -> None:
        import h5py

        is_text = variable.dtype == object
        options: dict[str, Any] = {}
        if None in shape:
            options = {"maxshape": tuple(shape), "chunks": variable.chunks or True}
        elif variable.chunks and 0 not in shape:
            options = {"chunks": variable.chunks}
        sizes = tuple(n or 0 for n in shape)
        size = np.prod(sizes, dtype=float) * variable.dtype.itemsize
        level = level_of(self.deflate, None in shape, size) if shape and 0 not in shape else 0
        if level and not is_text:
            options |= {"compression": "gzip", "compression_opts": level, "shuffle": True}
        if not is_text and variable.fill is not None:
            options["fillvalue"] = variable.dtype.type(variable.fill)
        dtype = h5py.string_dtype() if is_text else variable.dtype
        made = self.file.create_dataset(variable.name, sizes, dtype, **options)
        for name, value in variable.attrs.items():
            made.attrs[name] = storable(value)
        if not is_text and variable.fill is not None:
            made.attrs["_FillValue"] = np.array([variable.fill], variable.dtype)

    def grow(self, dim: str, length: int) -> None:
        """Make a dimension longer."""
        if dim in self.growing:
            self.file[dim].resize(length, 0)
        for variable in self.variables:
            if dim in variable.dims:
                self.file[variable.name].resize(length, variable.dims.index(dim))

    def write(self, name: str, region: tuple[slice, ...], values: NDArray[Any]) -> None:
        """Write values to a region of a variable."""
        self.file[name][region] = values

    def read(self, name: str, region: tuple[slice, ...]) -> NDArray[Any]:
        """Return the values of a region."""
        return np.asarray(
            self.file[name].asstr()[region] if self.file[name].dtype == object else self.file[name][region]
        )
