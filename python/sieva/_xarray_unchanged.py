"""Whether a dataset is what its file holds: a query over the file answers for no other.

Lazy variables are followed down to the array that reads the file: where all of it is taken, and only xarray's
decoders lie between, it is the file's. Variables in memory may have been computed: they are compared with
what the file holds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from xarray.core import indexing

from sieva import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_HINT = "query the dataset as it was opened, and say the rest in the condition; or ask sieva.open(path)"
# Values of a variable in memory that are compared with the file's at a time.
_COMPARED = 1 << 22
# Prefix of the names that xarray gives to dask arrays of variables of a file.
_OPENED_BY_DASK = "open_dataset-"


def check(dataset: xr.Dataset, opened_anew: Callable[[], xr.Dataset]) -> None:
    """Refuse a dataset that is not what its file holds.

    Parameters
    ----------
    dataset
        A dataset, maybe selected from or computed with since it was opened.
    opened_anew
        Opens its file again, in the same way.

    Raises
    ------
    InvalidValue
        A variable has other dimensions or values than in the file; names the first.
    """
    file = opened_anew()
    try:
        for name, length in dataset.sizes.items():
            if file.sizes.get(name, length) != length:
                raise _changed(f"its dimension {name!r} has length {length}, in the file {file.sizes[name]}")
        for name, variable in dataset.variables.items():
            if name in file.variables:
                _check_variable(name, variable, file.variables[name])
    finally:
        file.close()


def _check_variable(name: Hashable, variable: xr.Variable, stored: xr.Variable) -> None:
    if variable.dims != stored.dims or variable.shape != stored.shape:
        raise _changed(
            f"its variable {name!r} has dimensions {dict(variable.sizes)}, in the file {dict(stored.sizes)}"
        )
    if not _is_whole(variable, str(name)) and not _is_equal(variable, stored):
        raise _changed(f"values of its variable {name!r} are not those of the file")


def _changed(what: str) -> errors.InvalidValue:
    return errors.InvalidValue(f"this dataset is not what its file holds: {what}", _HINT)


def _is_whole(variable: xr.Variable, name: str) -> bool:
    """Return whether a variable that was not read yet is all of an array, decoded and nothing else."""
    data: Any = variable._data
    while True:
        if isinstance(data, indexing.LazilyIndexedArray):
            if data.shape != data.array.shape or not all(_is_all(k) for k in data.key.tuple):
                return False
        elif hasattr(data, "dask"):
            return str(data.name).startswith(_OPENED_BY_DASK)
        elif not hasattr(data, "array") or isinstance(data, indexing.LazilyVectorizedIndexedArray):
            # The array that reads: of ours it is known which one; others' have a name for it, too.
            read = getattr(data, "path", None) or getattr(data, "variable_name", None)
            return isinstance(data, xr.backends.BackendArray) and (
                read is None or str(read).rpartition("/")[2] == name.rpartition("/")[2]
            )
        data = data.array


def _is_all(key: object) -> bool:
    return isinstance(key, slice) and key in (slice(None), slice(None, None, 1))


def _is_equal(variable: xr.Variable, stored: xr.Variable) -> bool:
    """Return whether two variables of one shape have the same values; missing ones are equal."""
    if hasattr(variable._data, "dask"):
        return False  # it would have to be computed, whatever that takes
    if not variable.shape:
        return bool(variable.equals(stored))  # type: ignore[no-untyped-call]
    step = max(1, _COMPARED // max(1, math.prod(variable.shape[1:])))
    along = variable.dims[0]
    parts = (slice(at, at + step) for at in range(0, variable.shape[0], step))
    # Read through an index, so that the file's variable is not kept in memory as a whole.
    return all(_same(variable.isel({along: part}), stored.isel({along: part})) for part in parts)


def _same(a: xr.Variable, b: xr.Variable) -> bool:
    mine, theirs = np.asarray(a.values), np.asarray(b.values)
    if mine.dtype.kind in "fc" and theirs.dtype.kind in "fc":
        return bool(np.array_equal(mine, theirs, equal_nan=True))
    return bool(a.equals(b))  # type: ignore[no-untyped-call]
