"""Many reads of one source as one."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Literal

from sieva import _native
from sieva._array import Array
from sieva._box import Box, as_box
from sieva._sparse import Request, Sparse
from sieva.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from sieva._source import Source

    _Boxes = tuple[Box, Sparse | None, int]
    """A box, how it is put together of parts that are read by themselves, and their number."""

    Key = _native.Selection | int | slice | tuple[Any, ...] | Any
    """A selection, or an index of numpy: integers, slices with steps, and ``...``."""


def read_many(
    self: Source,
    requests: Iterable[tuple[str | Array, Key]],
    *,
    stored: bool = False,
    errors: Literal["raise", "return"] = "raise",
) -> list[NDArray[Any]]:
    """Read many boxes and selections of arrays as one; what they have in common is read and decoded once.

    Each chunk and each byte of plain data is read at most once, in the order of the file, neighbours by one
    request of up to 4 MiB; chunks are decoded on all threads of the session, once each. Values are those of
    reading each by itself: ``src[name][key]``. Threads that read boxes of one source at the same time get the
    same without asking for it.

    Parameters
    ----------
    requests
        Of each an array, by name or as ``src[name]``, and what of it: an index of numpy (integers, slices
        with steps, ``...``), or a `Selection` over the array's dimensions.
    stored
        Whether values are wanted as they are stored, neither decoded nor missing; else decoded.
    errors
        ``"raise"``: the first error is raised. ``"return"``: an exception stands in the place of an array
        that cannot be had; the others are read.

    Returns
    -------
    list of numpy.ndarray
        One for each request, in their order. Of an index its shape is that of numpy, a scalar where all axes
        are indexed; of a selection it is ``(len(selection),)``, in the order of its positions. The type is
        that of the decoded values, or of the stored ones; integers are float64 where one of
        those that are given is missing; texts are objects.

    Raises
    ------
    UnknownArray, AmbiguousName
        A name means no array, or several.
    DimensionMismatch
        A selection is over other dimensions than those of its array.
    MemoryLimit
        The results do not fit together into the `memory` of `open`.
    IndexError, TypeError
        An index is out of bounds, or none of numpy's basic ones.
    CorruptFile, IoError
        Something that a request needs cannot be read or decoded.

    Examples
    --------
    >>> warm = src.query("TEMP > 25").selection()  # doctest: +SKIP
    >>> first, both, salt = src.read_many(  # doctest: +SKIP
    ...     [("TEMP", 0), ("TEMP", slice(0, 2)), ("SALT", warm)]
    ... )
    """
    if errors not in ("raise", "return"):
        raise InvalidValue(f"errors is 'raise' or 'return', got {errors!r}")
    asked: list[tuple[str, Request | _native.Selection]] = []
    # Of each request what it is made of, an error of its own, or None for a selection.
    boxes: list[_Boxes | Exception | None] = []
    known: dict[str, Array] = {}
    for request in requests:
        name, key = _pair(request)
        try:
            if isinstance(name, str) and name not in known:
                known[name] = self[name]
            array = name if isinstance(name, Array) else known[name]
            box = None if isinstance(key, _native.Selection) else as_box(key, array.shape, array.path)
        except Exception as error:
            if errors == "raise" or isinstance(error, TypeError):
                raise
            boxes.append(error)
            continue
        if box is None:
            boxes.append(None)
            asked.append((array.path, key))
            continue
        apart = None if box.steps is None else box.apart(array.dtype.itemsize)
        found, parts = apart or (None, [(box.start, box.shape, box.steps)])
        boxes.append((box, found, len(parts)))
        asked.extend((array.path, part) for part in parts)
    read = iter(_native.read_many(self._native, asked, stored))
    out = [_made(box, read) for box in boxes]
    if errors == "raise":
        for values in out:
            if isinstance(values, BaseException):
                raise values
    return out


def _pair(request: object) -> tuple[str | Array, Any]:
    if isinstance(request, tuple) and len(request) == 2 and isinstance(request[0], str | Array):
        return request
    raise TypeError(f"a request is (array, index or selection), got {request!r}")


def _made(request: _Boxes | Exception | None, read: Any) -> Any:  # noqa: ANN401 - arrays, scalars or exceptions
    """Return what became of a request: its values, cut out of their box, or an exception."""
    if request is None:
        return next(read)
    if isinstance(request, Exception):
        return request
    box, found, count = request
    parts = list(itertools.islice(read, count))
    failed = next((part for part in parts if isinstance(part, BaseException)), None)
    if failed is not None:
        return failed
    return box.cut(parts[0] if found is None else found.joined(parts))
