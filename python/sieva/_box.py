"""Numpy's basic indexing as boxes that are read, and what is cut out of them."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple

from sieva._sparse import Request, Sparse, sparse

if TYPE_CHECKING:
    from numpy.typing import NDArray


_WHOLE = slice(None, None, 1)
"""What cuts nothing away."""


class Box(NamedTuple):
    """A box of an array, and the indices that cut the answer out of it."""

    start: list[int]
    shape: list[int]
    steps: list[int] | None
    """Of each axis the distance of wanted elements, from the first of the box on; None where all are 1."""
    inner: tuple[Any, ...] | None
    """What is left to do with these; None where that is nothing."""

    def cut(self, values: NDArray[Any]) -> Any:  # noqa: ANN401 - an array, or a scalar where all axes are indexed
        """Return the wanted elements of the box as they were asked for."""
        return values if self.inner is None else values[self.inner]

    def picked(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return of all values of the box those that steps lead to."""
        return values if self.steps is None else values[tuple(slice(None, None, n) for n in self.steps)]

    def apart(self, itemsize: int) -> tuple[Sparse, list[Request]] | None:
        """Return the parts in which a box with long steps is read; None where it is read as a whole."""
        if self.steps is None:
            return None
        each = zip(self.shape, self.steps, strict=True)
        found = sparse(self.shape, [range(0, n, step) if step > 1 else None for n, step in each], itemsize)
        if found is None:
            return None
        steps = [1 if axis in found.axes else step for axis, step in enumerate(self.steps)]
        left = steps if any(step > 1 for step in steps) else None
        return found, [(start, shape, left) for start, shape in found.boxes(self.start, self.shape)]


def as_box(key: object, shape: tuple[int, ...], name: str) -> Box:
    """Return the box of numpy's basic index ``key``: integers, slices with steps, and ``...``.

    Raises
    ------
    IndexError
        An integer is out of bounds, or there are too many indices.
    TypeError
        The index is of another kind.
    """
    keys = _expanded(key, len(shape), name)
    start, lengths, steps, inner = [], [], [], []
    for axis, (part, length) in enumerate(zip(keys, shape, strict=True)):
        first, count, step, cut = _axis(part, length, axis, name)
        start.append(first)
        lengths.append(count)
        steps.append(step)
        inner.append(cut)
    is_whole = bool(inner) and all(cut == _WHOLE for cut in inner)
    is_dense = all(step == 1 for step in steps)
    return Box(start, lengths, None if is_dense else steps, None if is_whole else tuple(inner))


def _expanded(key: object, ndim: int, name: str) -> list[Any]:
    keys = list(key) if isinstance(key, tuple) else [key]
    dots = [i for i, part in enumerate(keys) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can have only one ellipsis ('...')")
    given = len(keys) - len(dots)
    if given > ndim:
        raise IndexError(f"too many indices for array {name!r}: it has {ndim} dimensions, got {given}")
    at = dots[0] if dots else len(keys)
    return keys[:at] + [slice(None)] * (ndim - given) + keys[at + len(dots) :]


def _axis(part: object, length: int, axis: int, name: str) -> tuple[int, int, int, Any]:
    """Return first position and length of the box along an axis, its step, and what is left to do."""
    if isinstance(part, slice):
        positions = range(*part.indices(length))
        if not positions:
            return 0, 0, 1, _WHOLE
        low, high = min(positions[0], positions[-1]), max(positions[0], positions[-1])
        step = positions.step
        return low, high - low + 1, min(abs(step), length), slice(None, None, 1 if step > 0 else -1)
    try:
        position = operator.index(part)  # type: ignore[arg-type]
    except TypeError:
        kind = type(part).__name__
        raise TypeError(
            f"array {name!r} is indexed by integers, slices and '...', got {part!r} ({kind}); "
            "for the points that satisfy a condition use query(), for those of given positions "
            "read_many() with Selection.from_positions()"
        ) from None
    if isinstance(part, bool):
        raise TypeError(f"array {name!r} is not indexed by truth values: use query()")
    if not -length <= position < length:
        raise IndexError(
            f"index {position} is out of bounds for axis {axis} of array {name!r} with length {length}"
        )
    return position % length, 1, 1, 0
