"""ADIOS2 BP5: a directory with one step, with a variable per variable.

BP has neither fill values nor arrays that grow, so that values are spooled to files aside, and written when
all are there. The names of a variable's dimensions are among its attributes, where xarray has them in Zarr.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sieva import errors
from sieva._extras import required
from sieva._interrupt import uninterrupted
from sieva._output.grid import write_arrays

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from sieva._output.variable import Variable
    from sieva._query import Layout, Query

# Bytes of a block, and of what ADIOS2 holds until it is written.
_BLOCK = 16 << 20
_IN_PLACE_OF: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype("f2"): np.dtype("f4"),
    np.dtype(bool): np.dtype("i1"),
}
# Where xarray looks for the names of dimensions.
DIMENSIONS = "_ARRAY_DIMENSIONS"


def write(query: Query, path: Path, layout: Layout | None = None) -> None:
    """Write the rows of a query to a directory."""
    with opened(path) as container:
        write_arrays(query, container, layout)


@contextmanager
def opened(path: Path) -> Iterator[BpContainer]:
    """Give a container, which is written to a directory in the end."""
    required("adios2", "BP", extra="adios")
    with tempfile.TemporaryDirectory(dir=path.parent) as spool:
        container = BpContainer(Path(spool))
        yield container
        with uninterrupted():
            container.save(path)


class BpContainer:
    """Variables in files aside, until they are saved as BP."""

    def __init__(self, spool: Path) -> None:
        self.spool = spool
        self.variables: dict[str, Variable] = {}
        self.lengths: dict[str, int] = {}
        self.attrs: dict[str, Any] = {}
        self.files: dict[str, Path] = {}

    def define(self, dims: dict[str, int | None], variables: list[Variable], attrs: dict[str, Any]) -> None:
        """Make the files, full of fill values."""
        self.attrs = attrs
        self.lengths = {name: length or 0 for name, length in dims.items()}
        for number, variable in enumerate(variables):
            if variable.dtype == object:
                raise errors.Unsupported(
                    f"column {variable.name!r} is of texts, which BP has as single values only",
                    "leave it out, or write netcdf, hdf5 or zarr",
                )
            # Types that BP has not; each of their values is one of these.
            variable.dtype = _IN_PLACE_OF.get(variable.dtype, variable.dtype)
            self.variables[variable.name] = variable
            self.files[variable.name] = self.spool / str(number)
            self._lengthen(variable, 0)

    def _shape(self, variable: Variable) -> tuple[int, ...]:
        return tuple(self.lengths[dim] for dim in variable.dims)

    def _lengthen(self, variable: Variable, there: int) -> None:
        """Fill the file of a variable behind the values that are there."""
        count = int(np.prod(self._shape(variable), dtype=np.int64))
        with self.files[variable.name].open("ab") as file:
            if not variable.fill:
                file.truncate(count * variable.dtype.itemsize)
                return
            most = _BLOCK // variable.dtype.itemsize
            part = np.full(min(most, max(count - there, 0)), variable.fill, variable.dtype)
            for at in range(there, count, most):
                file.write(part[: count - at].data)

    def grow(self, dim: str, length: int) -> None:
        """Make a dimension longer, the first one of its variables."""
        own = [variable for variable in self.variables.values() if dim in variable.dims]
        counts = [int(np.prod(self._shape(variable), dtype=np.int64)) for variable in own]
        self.lengths[dim] = length
        for variable, there in zip(own, counts, strict=True):
            self._lengthen(variable, there)

    def _mapped(self, name: str, mode: Literal["r", "r+"] = "r+") -> NDArray[Any]:
        variable = self.variables[name]
        shape = self._shape(variable)
        if 0 in shape:
            return np.empty(shape, variable.dtype)
        mapped: NDArray[Any] = np.memmap(self.files[name], variable.dtype, mode, shape=shape)
        return mapped

    def write(self, name: str, region: tuple[slice, ...], values: NDArray[Any]) -> None:
        """Write values to a region of a variable."""
        self._mapped(name)[region] = values

    def read(self, name: str, region: tuple[slice, ...]) -> NDArray[Any]:
        """Return the values of a region."""
        return np.array(self._mapped(name, "r")[region])

    def save(self, path: Path) -> None:
        """Write all variables."""
        from adios2 import Adios, bindings

        # It has to live as long as what it hands out.
        adios = Adios()
        io = adios.declare_io("sieva")
        io.set_engine("BP5")
        for name, value in self.attrs.items():
            io.define_attribute(name, _plain(value))
        for variable in self.variables.values():
            attrs = dict(variable.attrs)
            if variable.fill is not None:
                attrs["_FillValue"] = variable.dtype.type(variable.fill)
            if variable.dims:
                attrs[DIMENSIONS] = list(variable.dims)
            for name, value in attrs.items():
                io.define_attribute(f"{variable.name}/{name}", _plain(value))
        engine = io.open(str(path), bindings.Mode.Write)
        engine.begin_step()
        for variable in self.variables.values():
            self._save(io, engine, variable)
        engine.end_step()
        engine.close()

    def _save(self, io: Any, engine: Any, variable: Variable) -> None:  # noqa: ANN401 - adios2 has no types
        """Write a variable, block by block along its first dimension."""
        from adios2 import bindings

        values = self._mapped(variable.name, "r")
        shape, sample = list(values.shape), np.zeros(1, variable.dtype)
        if not shape:
            made = io.define_variable(variable.name, sample, [], [], [])
            engine.put(made, np.array(values), bindings.Mode.Sync)
            return
        made = io.define_variable(variable.name, sample, shape, [0] * len(shape), shape)
        per_row = max(1, int(np.prod(shape[1:], dtype=np.int64)) * variable.dtype.itemsize)
        rows = max(1, _BLOCK // per_row)
        for at in range(0, max(shape[0], 1), rows):
            block = np.array(values[at : at + rows])  # one of its own: of a mapped file adios2 takes none
            made.set_selection([[at] + [0] * (len(shape) - 1), list(block.shape)])
            engine.put(made, block, bindings.Mode.Sync)
            engine.perform_data_write()


def _plain(value: Any) -> Any:  # noqa: ANN401 - an attribute's value
    """Return an attribute's value as ADIOS2 takes it: a text, texts, or an array of numbers."""
    if isinstance(value, bool | np.bool_):
        return np.array([value], "i1")
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and value and all(isinstance(text, str) for text in value):
        return list(value)
    array = np.atleast_1d(np.asarray(value))
    if array.dtype.kind in "US":
        return [str(text) for text in array.tolist()]
    if array.dtype == np.dtype("f2"):
        array = array.astype("f4")
    return np.ascontiguousarray(array.astype(array.dtype.newbyteorder("=")))
