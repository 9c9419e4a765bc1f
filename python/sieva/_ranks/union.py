"""Boxes that overlap as boxes that do not: what is read, each element once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Corners = NDArray[np.int64]

# Boxes that a union is cut into at most, for each box that it is of; else the hull is read.
MOST_FOR_EACH = 8
# How many times as much as was asked for is read rather than several boxes: reading narrow boxes of what is
# not chunked takes the bytes between their rows, too, and those of several are the same.
MOST_MORE = 4


def disjoint(start: Corners, shape: Corners) -> tuple[Corners, Corners]:
    """Return boxes that cover the same elements, none of them twice.

    Slabs along the first axis on which boxes differ, in which the others are cut in the same way; slabs that
    are cut alike are one. Where this takes more than `MOST_FOR_EACH` boxes for each given, or several that
    are not less than the hull by far, the hull of all is the answer: elements are still in one box only, with
    some that nobody asked for.

    Parameters
    ----------
    start, shape
        (n, rank), n at least 1, no length 0.

    Returns
    -------
    start, shape : (m, rank)
    """
    both = np.unique(np.hstack([start, start + shape]), axis=0)
    rank = start.shape[1]
    low, high = both[:, :rank], both[:, rank:]
    limit = MOST_FOR_EACH * len(low)
    found = []
    for box in _slabs(low, high, 0):
        found.append(box)
        if len(found) > limit:
            break
    lows = np.array([a for a, _ in found], np.int64).reshape(len(found), rank)
    shapes = np.array([b for _, b in found], np.int64).reshape(len(found), rank) - lows
    least, hull = low.min(axis=0), high.max(axis=0) - low.min(axis=0)
    if len(found) > limit or (
        len(found) > 1 and hull.prod(dtype=float) <= MOST_MORE * shapes.prod(axis=1, dtype=float).sum()
    ):
        return least[None], hull[None]
    return lows, shapes


_Box = tuple[tuple[int, ...], tuple[int, ...]]


def _slabs(low: Corners, high: Corners, axis: int) -> Iterator[_Box]:
    """Yield disjoint boxes, of the axes from `axis` on."""
    if axis == low.shape[1]:
        yield (), ()
        return
    edges = np.unique(np.concatenate([low[:, axis], high[:, axis]]))
    last: tuple[int, int, list[_Box]] | None = None
    for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        inside = (low[:, axis] <= a) & (high[:, axis] >= b)
        if not inside.any():
            continue
        inner = list(_slabs(*_rows(low[inside], high[inside], axis + 1), axis + 1))
        if last is not None and last[1] == a and last[2] == inner:
            last = (last[0], b, inner)
            continue
        if last is not None:
            yield from _with(last)
        last = (a, b, inner)
    if last is not None:
        yield from _with(last)


def _with(slab: tuple[int, int, list[_Box]]) -> Iterator[_Box]:
    a, b, inner = slab
    for lows, highs in inner:
        yield (a, *lows), (b, *highs)


def _rows(low: Corners, high: Corners, axis: int) -> tuple[Corners, Corners]:
    """Return the boxes that are different from `axis` on."""
    if len(low) < 2:
        return low, high
    _, first = np.unique(np.hstack([low[:, axis:], high[:, axis:]]), axis=0, return_index=True)
    return low[first], high[first]
