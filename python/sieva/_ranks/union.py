"""Boxes that overlap as boxes that do not: what is read, each element once."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Corners = NDArray[np.int64]

# Boxes that a union is cut into at most, for each box that it is of; else the hull is read.
MOST_FOR_EACH = 8
# How many times as much as was asked for is read rather than several boxes: reading narrow boxes of what is
# not chunked takes the bytes between their rows, too, and those of several are the same.
MOST_MORE = 4


def disjoint(start: Corners, shape: Corners, *, is_row: bool = False) -> tuple[Corners, Corners]:
    """Return boxes that cover the same elements, none of them twice.

    Slabs along the first axis on which boxes differ, in which the others are cut in the same way; slabs that
    are cut alike are one. Several boxes that are not less than their hull by far are that hull, with some
    elements that nobody asked for. So are more than `MOST_FOR_EACH` boxes for each given, but of a row.

    Parameters
    ----------
    start, shape
        (n, rank), n at least 1, no length 0.
    is_row
        Whether they are of a row of elements in C order, as a stripe is, rather than of a box: then nothing
        is read before the first element or behind the last, which somebody else may read.

    Returns
    -------
    start, shape : (m, rank)
    """
    both = np.unique(np.hstack([start, start + shape]), axis=0)
    rank = start.shape[1]
    low, high = both[:, :rank], both[:, rank:]
    found = _slabs(low, high, 0, (is_row, is_row))
    if len(found) > MOST_FOR_EACH * len(low) and not is_row:
        found = [(tuple(low.min(axis=0).tolist()), tuple(high.max(axis=0).tolist()))]
    lows = np.array([a for a, _ in found], np.int64).reshape(len(found), rank)
    return lows, np.array([b for _, b in found], np.int64).reshape(len(found), rank) - lows


_Box = tuple[tuple[int, ...], tuple[int, ...]]
# Whether nothing may come before the first element, and behind the last.
_Ends = tuple[bool, bool]


def _hull_of(boxes: list[_Box], ends: _Ends) -> list[_Box]:
    """Return the hull of boxes, where that is not much more and goes no further, else the boxes."""
    if len(boxes) < 2:
        return boxes
    low = tuple(map(min, zip(*(a for a, _ in boxes), strict=True)))
    high = tuple(map(max, zip(*(b for _, b in boxes), strict=True)))
    # C order is the order of tuples.
    if (ends[0] and low != min(a for a, _ in boxes)) or (ends[1] and high != max(b for _, b in boxes)):
        return boxes
    total = sum(math.prod(b - a for a, b in zip(*box, strict=True)) for box in boxes)
    hull = math.prod(b - a for a, b in zip(low, high, strict=True))
    return [(low, high)] if hull <= MOST_MORE * total else boxes


def _slabs(low: Corners, high: Corners, axis: int, ends: _Ends) -> list[_Box]:
    """Return disjoint boxes, of the axes from `axis` on."""
    if axis == low.shape[1]:
        return [((), ())]
    edges = np.unique(np.concatenate([low[:, axis], high[:, axis]])).tolist()
    slabs: list[tuple[int, int, list[_Box]]] = []
    for a, b in itertools.pairwise(edges):
        inside = (low[:, axis] <= a) & (high[:, axis] >= b)
        if not inside.any():
            continue
        # What is neither the first nor the last slab lies between the first element and the last.
        within = (ends[0] and a == edges[0], ends[1] and b == edges[-1])
        inner = _slabs(*_rows(low[inside], high[inside], axis + 1), axis + 1, within)
        if slabs and slabs[-1][1] == a and slabs[-1][2] == inner:
            slabs[-1] = (slabs[-1][0], b, inner)
        else:
            slabs.append((a, b, inner))
    boxes = [((a, *lows), (b, *highs)) for a, b, inner in slabs for lows, highs in inner]
    return _hull_of(boxes, ends)


def _rows(low: Corners, high: Corners, axis: int) -> tuple[Corners, Corners]:
    """Return the boxes that are different from `axis` on."""
    if len(low) < 2:
        return low, high
    _, first = np.unique(np.hstack([low[:, axis:], high[:, axis:]]), axis=0, return_index=True)
    return low[first], high[first]
