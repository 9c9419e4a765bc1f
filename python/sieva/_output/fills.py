"""Fill values that no value of a result is equal to.

An integer that stands for "missing" in an output must not be among its values, and which are is known when
they have been read. So the usual one is taken at first; where a value turns out to be equal to it, one that
is free is looked for in a pass over the column, and the output is begun again.

Readers that decode to floats compare floats: integers of 64 bits are equal where they are as float64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sieva import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sieva._output.points import Column, Points
    from sieva._query import Query

T = TypeVar("T")

# How many candidates one pass looks for.
_CANDIDATES = 4096
_PASSES = 8


class FillTaken(errors.InvalidValue):
    """A value of a column is equal to the fill value of its variable."""

    def __init__(self, column: str, name: str, dtype: np.dtype[Any], fill: object) -> None:
        super().__init__(
            f"a value of {name!r} is {fill}, which means a missing one in the output",
            "write the result as Parquet, Arrow or CSV",
        )
        self.column, self.dtype = column, dtype


def with_free_fills(query: Query, write: Callable[[], T]) -> T:
    """Return what ``write()`` returns, which is called again where a fill value turned out not to be free.

    Raises
    ------
    InvalidValue
        Every candidate is among the values.
    """
    while True:
        try:
            return write()
        except FillTaken as taken:
            if taken.column in query._fills:
                raise
            query._fills[taken.column] = _free(query, taken)


def is_met(values: NDArray[Any], fill: Any) -> NDArray[np.bool_]:  # noqa: ANN401 - a scalar
    """Return where readers would take integers for their fill value."""
    if values.dtype.itemsize < 8:
        return np.asarray(values == fill)
    return np.asarray(values.astype("f8") == np.float64(fill))


def _free(query: Query, taken: FillTaken) -> int:
    """Return an integer of the type that no value of the column is equal to."""
    from sieva._output.points import points_of

    points = points_of(query)
    column = next(c for c in [*points.columns, *points.coordinates] if c.name == taken.column)
    for seed in range(_PASSES):
        candidates = _without_values(points, column, _candidates(taken.dtype, seed))
        if candidates.size:
            return int(candidates[0])
    raise taken


def _candidates(dtype: np.dtype[Any], seed: int) -> NDArray[Any]:
    """Return integers of a type, the extreme ones first."""
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    if high - low < _CANDIDATES:
        return np.arange(high, low - 1, -1).astype(dtype)
    first = [low, high, low + 1, high - 1] if low else [high, high - 1]
    drawn = np.random.default_rng(seed).integers(low, high, _CANDIDATES, dtype=dtype, endpoint=True)
    return np.concatenate([np.array(first, dtype), drawn])


def _without_values(points: Points, column: Column, candidates: NDArray[Any]) -> NDArray[Any]:
    """Return the candidates that are not among the values of a column."""
    for batch, _ in points.batches(watched=False):
        values = batch.column(column.at).drop_null().to_numpy(zero_copy_only=False)
        candidates = candidates[~np.isin(candidates.astype("f8"), values.astype("f8"))]
        if not candidates.size:
            break
    return candidates
