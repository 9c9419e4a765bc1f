"""NetCDF-4, by h5netcdf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sieva._extras import required
from sieva._output.grid import write_arrays
from sieva._output.held import held

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from sieva._output.variable import Variable
    from sieva._query import Layout, Query

# Smaller variables are not worth a chunk with a filter.
_COMPRESSED_BYTES = 1 << 16


def write(query: Query, path: Path, layout: Layout | None = None, deflate: int | None = None) -> None:
    """Write the rows of a query to a file, deflated at a level (0: not at all; None: as is worth it)."""
    h5netcdf = required("h5netcdf", "netCDF")
    with held(
        path, lambda file: h5netcdf.File(file, "w"), lambda f: NetcdfContainer(f, deflate)
    ) as container:
        write_arrays(query, container, layout)


class NetcdfContainer:
    """A netCDF-4 file that is open for writing."""

    def __init__(self, file: Any, deflate: int | None = None) -> None:  # noqa: ANN401 - h5netcdf has no types
        self.file = file
        self.deflate = deflate

    def define(self, dims: dict[str, int | None], variables: list[Variable], attrs: dict[str, Any]) -> None:
        """Make dimensions and variables."""
        self.file.dimensions = dims
        for name, value in attrs.items():
            self.file.attrs[name] = storable(value)
        for variable in variables:
            self._define(variable, [dims[name] for name in variable.dims])

    def _define(self, variable: Variable, shape: list[int | None]) -> None:
        import h5py

        is_text = variable.dtype == object
        options: dict[str, Any] = {}
        if shape and 0 not in shape:
            options["chunks"] = variable.chunks if variable.chunks or None not in shape else (1024,)
            size = np.prod([n or 0 for n in shape], dtype=float) * variable.dtype.itemsize
            if not is_text and (level := level_of(self.deflate, None in shape, size)):
                options |= {"compression": "gzip", "compression_opts": level, "shuffle": True}
                options["chunks"] = options["chunks"] or True
        if not is_text and variable.fill is not None:
            options["fillvalue"] = variable.dtype.type(variable.fill)
        dtype = h5py.string_dtype() if is_text else variable.dtype
        made = self.file.create_variable(variable.name, variable.dims, dtype, **options)
        for name, value in variable.attrs.items():
            made.attrs[name] = storable(value)

    def grow(self, dim: str, length: int) -> None:
        """Make a dimension longer."""
        self.file.resize_dimension(dim, length)

    def write(self, name: str, region: tuple[slice, ...], values: NDArray[Any]) -> None:
        """Write values to a region of a variable."""
        self.file.variables[name][region] = values

    def read(self, name: str, region: tuple[slice, ...]) -> NDArray[Any]:
        """Return the values of a region."""
        return np.asarray(self.file.variables[name][region])


def level_of(deflate: int | None, is_growing: bool, size: float) -> int:
    """Return the level at which a variable of so many bytes is deflated."""
    if deflate is None:
        return int(is_growing or size >= _COMPRESSED_BYTES)
    return deflate


def storable(value: Any) -> Any:  # noqa: ANN401 - an attribute's value
    """Return an attribute's value as HDF5 can store it."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return np.array(value, dtype=object) if value else ""
    if isinstance(value, bool | np.bool_):
        return np.int8(value)
    return value
