"""The conventional way: h5py reads every array that a query names, numpy masks and takes the values."""

import operator
from collections.abc import Callable, Mapping
from pathlib import Path

import h5py
import numpy as np
from data import GROUP
from queries import Query

NAME = "h5py + numpy full scan"
Columns = Mapping[str, np.ndarray]
_COMPARE: dict[str, Callable[[np.ndarray, np.float32], np.ndarray]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


def read(path: Path, arrays: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Read whole arrays."""
    with h5py.File(path) as f:
        return {name: f[GROUP][name][:] for name in arrays}


def rows(query: Query, columns: Columns) -> np.ndarray:
    """Return the positions that satisfy a query, by bounds in float32: nothing is widened."""
    mask: np.ndarray | None = None
    for array, name, value in query.exact:
        part = _COMPARE[name](columns[array], np.float32(value))
        mask = part if mask is None else np.logical_and(mask, part, out=mask)
    assert mask is not None  # noqa: S101 -- a query has terms
    return np.flatnonzero(mask)


def locations(path: Path, query: Query) -> np.ndarray:
    """Read what the condition names, and return the positions."""
    return rows(query, read(path, tuple(dict.fromkeys(array for array, _, _ in query.terms))))


def values(path: Path, query: Query) -> dict[str, np.ndarray]:
    """Read all that the query names, and return the values at the hits."""
    columns = read(path, query.arrays)
    hits = rows(query, columns)
    return {name: columns[name][hits] for name in query.fetch}
