"""A file of arrays as a directory of another format: the same arrays, with the values that are stored."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sieva._output.atomic import replacing
from sieva._output.variable import INTERNAL, Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sieva._array import Array
    from sieva._output.variable import Container
    from sieva._source import Source

# Elements that are read at once, about.
_PIECE = 1 << 20
# Of netCDF's characters, which are texts here.
_ENCODING = "_Encoding"


def copier(kind: str) -> Callable[[str | Path, str | Path], None]:
    """Return what makes a directory of a netCDF or HDF5 file: its path, and that of the directory.

    The directory has its name when all of it is there; one of that name is replaced. Packing, fill values and
    other attributes stay as they are.

    Parameters
    ----------
    kind
        One of `sieva._output.DIRECTORIES`.
    """
    module: Any = importlib.import_module(f"sieva._output.{kind}")

    def copy(source: str | Path, target: str | Path) -> None:
        import sieva

        with (
            replacing(Path(target), is_directory=True) as aside,
            sieva.open(source) as opened,
            module.opened(aside) as container,
        ):
            _copy(opened, container)

    return copy


def _copy(source: Source, container: Container) -> None:
    arrays = {name: source[name] for name in source}
    lengths: dict[str, int | None] = {
        dim: length for array in arrays.values() for dim, length in zip(array.dims, array.shape, strict=True)
    }
    variables = [_variable(name, array) for name, array in arrays.items()]
    container.define(lengths, variables, _attrs(source.attrs))
    for name, array in arrays.items():
        is_text = array.dtype == object
        for region in _pieces(array.shape):
            start, shape = [s.start for s in region], [s.stop - s.start for s in region]
            values = array[region] if is_text else array.read_stored(start, shape)
            container.write(name, region, np.asarray(values).reshape(shape))


def _attrs(attrs: dict[str, Any]) -> dict[str, Any]:
    """Return attributes without those that the library of a file keeps for itself."""
    return {name: value for name, value in attrs.items() if name not in INTERNAL}


def _variable(name: str, array: Array) -> Variable:
    is_text = array.dtype == object
    attrs = {key: value for key, value in _attrs(array.attrs).items() if not (is_text and key == _ENCODING)}
    fill = attrs.pop("_FillValue", None)
    dtype = array.dtype if is_text else array.read_stored([0] * array.ndim, [0] * array.ndim).dtype
    return Variable(name, array.dims, dtype, attrs, None if fill is None else dtype.type(fill))


def _pieces(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Cut an array along its first dimension."""
    if not shape:
        yield ()
        return
    row = max(1, int(np.prod(shape[1:], dtype=np.int64)))
    rows = max(1, _PIECE // row)
    for start in range(0, shape[0], rows):
        stop = min(start + rows, shape[0])
        yield (slice(start, stop), *(slice(0, length) for length in shape[1:]))
