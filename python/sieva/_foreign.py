"""Sources that Python code describes and reads: formats with a Python library only, or data in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack

from sieva import _native
from sieva._options import takes
from sieva._source import Source

if TYPE_CHECKING:
    from sieva._options import OpeningForeign


class Group(TypedDict):
    """A group: its path without a leading slash (the root's is empty, and comes first), and attributes."""

    path: str
    attrs: Mapping[str, Any]


class Dim(TypedDict):
    """A dimension, by its path; `named` is whether the format names it."""

    path: str
    length: int
    unlimited: bool
    named: bool


class ArrayEntry(TypedDict):
    """An array.

    `dtype` is numpy's name (``"float32"``) or ``"str"``; `dims` are paths of dimensions, the outermost first,
    none of them twice; `block` is the shape of the blocks that it is kept in, or None.
    """

    path: str
    dtype: str
    dims: Sequence[str]
    attrs: Mapping[str, Any]
    block: Sequence[int] | None


class Description(TypedDict):
    """A source as plain data.

    `format` names the format and `how` says who reads it (``"read by adios2"``). `files` and `version` tell
    one state of the source from another: one of them is needed. `left_out` are paths that a user may ask for,
    with the reason why they are no arrays here.
    """

    format: str
    how: str
    files: Sequence[str]
    version: str
    groups: Sequence[Group]
    dims: Sequence[Dim]
    arrays: Sequence[ArrayEntry]
    left_out: Sequence[tuple[str, str]]
    warnings: Sequence[str]


Limit = tuple[Sequence[int], Sequence[int], Any, Any]
"""Start and shape of a block, and numbers that all of its values but NaN lie between; None: not known."""


class Reader(Protocol):
    """What reads a described source. It is called from many threads, one box at a time in each."""

    def read(self, path: str, start: tuple[int, ...], shape: tuple[int, ...]) -> Any:  # noqa: ANN401 - see below
        """Return a box of an array: a numpy array of its shape and type, its bytes in C order, or texts."""

    def limits(self, path: str) -> Iterable[Limit] | None:
        """Return what is known of an array's values without reading them.

        The blocks cover the array, or say nothing of the rest. Only what holds whatever the values are may be
        told: least and greatest as found by comparing are wrong where NaNs are among them.
        """


@takes("open_foreign")
def open_foreign(
    path: str,
    description: Description,
    reader: Reader,
    **options: Unpack[OpeningForeign],
) -> Source:
    """Return the source that is described so.

    Parameters
    ----------
    path
        What messages call it; indexes go beside it.
    description
        Its schema.
    reader
        What fills boxes of its arrays. An error of `sieva.errors` that it raises is raised by the query as it
        is, an `OSError` as `IoError`, others as `CorruptFile`.
    dims, valid_range, store, learn, memory
        As in `sieva.open`.

    Raises
    ------
    InvalidValue
        The description contradicts itself.
    """
    return Source(_native.Source.of_foreign(path, description, reader, options))
