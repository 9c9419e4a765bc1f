"""What a store moves in a second: measured, and kept for the size of objects that groups in it share."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sieva import _native
from sieva._memory import memory_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Calibrated:
    """What was measured of a store.

    Attributes
    ----------
    place
        The place, as messages name it.
    put, get
        Of each point the bytes of objects, how many were moved at once, and the bytes in a second of all.
    """

    place: str
    put: list[tuple[int, int, float]]
    get: list[tuple[int, int, float]]


def calibrate(
    place: str | os.PathLike[str],
    *,
    sizes: Iterable[int | str] | None = None,
    threads: Iterable[int] | None = None,
) -> Calibrated:
    """Measure what a place of a store moves by objects that are put there, got and deleted again.

    It is kept on this machine: producers of groups at this place, or below it, size shared objects by it.

    Parameters
    ----------
    place
        A directory, or the address of a place in an object store.
    sizes
        Bytes of objects; by default 256 KiB to 32 MiB.
    threads
        How many are moved at once; by default 1, 2, 4 and 8.

    Returns
    -------
    Calibrated

    Raises
    ------
    ValueError
        Nothing to try, or too much.
    OSError
        The store does not answer.
    """
    given = None if sizes is None else [memory_bytes(size) for size in sizes]
    bytes_of = None if given is None else [size for size in given if size is not None]
    found = _native.calibrate_store(os.fspath(place), bytes_of, None if threads is None else list(threads))
    return Calibrated(found["place"], found["put"], found["get"])
