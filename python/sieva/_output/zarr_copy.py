"""A file of arrays as a Zarr hierarchy: the same arrays, with the values that are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sieva._output.atomic import replacing
from sieva._output.variable import Variable
from sieva._output.zarr import ZarrContainer, created

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sieva._array import Array

# Elements that are read at once, about.
_PIECE = 1 << 20
# Of netCDF's characters, which are texts here.
_ENCODING = "_Encoding"


def copy(source: Path, target: Path) -> None:
    """Make a Zarr v3 hierarchy of a netCDF or HDF5 file, which has its name when all of it is there.

    Packing, fill values and other attributes stay as they are.

    Parameters
    ----------
    source
        The file.
    target
        The directory; a hierarchy there is replaced.
    """
    import sieva

    with replacing(target, is_directory=True) as aside, sieva.open(source) as opened, created(aside) as group:
        container = ZarrContainer(group)
        arrays = {name: opened[name] for name in opened}
        lengths: dict[str, int | None] = {
            dim: length
            for array in arrays.values()
            for dim, length in zip(array.dims, array.shape, strict=True)
        }
        container.define(lengths, [_variable(name, array) for name, array in arrays.items()], opened.attrs)
        for name, array in arrays.items():
            is_text = array.dtype == object
            for region in _pieces(array.shape):
                start, shape = [s.start for s in region], [s.stop - s.start for s in region]
                values = array[region] if is_text else array.read_stored(start, shape)
                container.write(name, region, np.asarray(values).reshape(shape))


def _variable(name: str, array: Array) -> Variable:
    is_text = array.dtype == object
    attrs = {key: value for key, value in array.attrs.items() if not (is_text and key == _ENCODING)}
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
