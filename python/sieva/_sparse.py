"""Boxes whose wanted rows are far apart: these are read one by one, and not what lies between them."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from sieva import _native

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

# Bytes between two wanted rows from which on reading each by itself is less work than reading over the gap.
_GAP = 2048
# Parts that a box is read in, at most: each is a request.
_MOST = 100_000


Request = tuple[list[int], list[int], "list[int] | None"]
"""Start, shape and steps of what is read at once; None: no steps."""


class Sparse(NamedTuple):
    """The axes of a box along which its wanted rows are read one by one."""

    axes: tuple[int, ...]
    at: tuple[Sequence[int], ...]
    """Along each of these axes the wanted positions, from the first of the box on."""

    def boxes(self, start: Sequence[int], shape: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
        """Yield start and shape of each part of the box."""
        for offsets in itertools.product(*self.at):
            first, lengths = list(start), list(shape)
            for axis, offset in zip(self.axes, offsets, strict=True):
                first[axis] += offset
                lengths[axis] = 1
            yield first, lengths

    def joined(self, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return the values of the whole, of those of its parts in their order.

        Parameters
        ----------
        parts
            Arrays of one shape, of length 1 along `axes`. Integers beside floats become floats.
        """
        import numpy as np

        counts = tuple(len(positions) for positions in self.at)
        rest = tuple(n for axis, n in enumerate(parts[0].shape) if axis not in self.axes)
        values = np.stack([part.reshape(rest) for part in parts]).reshape(counts + rest)
        return np.ascontiguousarray(np.moveaxis(values, range(len(counts)), self.axes))


def sparse(shape: Sequence[int], wanted: Sequence[Sequence[int] | None], itemsize: int) -> Sparse | None:
    """Return along which axes a box is read row by row; None where it is read as a whole.

    Parameters
    ----------
    shape
        Of the box.
    wanted
        Of each axis the wanted positions within the box, ascending; None: all of them.
    itemsize
        Bytes of an element.
    """
    gaps = []
    row = max(itemsize, 1)
    for axis in reversed(range(len(shape))):
        positions = wanted[axis]
        if positions is not None and 1 < len(positions) < shape[axis]:
            gaps.append(((shape[axis] - len(positions)) * row / (len(positions) - 1), axis, positions))
        row *= shape[axis]
    found: dict[int, Sequence[int]] = {}
    for gap, axis, positions in sorted(gaps, key=lambda gap: gap[:2], reverse=True):
        if gap >= _GAP and math.prod(map(len, found.values())) * len(positions) <= _MOST:
            found[axis] = positions
    axes = tuple(sorted(found))
    return Sparse(axes, tuple(found[axis] for axis in axes)) if axes else None


def together(
    native: _native.Source, path: str, found: Sparse, requests: Sequence[Request], *, stored: bool
) -> NDArray[Any]:
    """Return the values of a box that is read in parts: what several of them want is read once.

    Raises
    ------
    SievaError
        As `Source.read_many`.
    """
    return found.joined(whole(_native.read_many(native, [(path, request) for request in requests], stored)))


def whole(parts: list[Any]) -> list[Any]:
    """Return the parts; raise the first exception that stands in the place of one."""
    for part in parts:
        if isinstance(part, BaseException):
            raise part
    return parts
