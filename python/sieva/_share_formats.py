"""Formats that a consumer has in a folder and no object of a group has: made here, of the files that come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sieva import errors
from sieva._extras import required
from sieva._output import DIRECTORIES
from sieva._output.copied import copier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from sieva.share import Ask

# Formats of asks whose files have arrays.
_ARRAYS = ("netcdf", "hdf5")
_PACKAGES = {"zarr": ("zarr", "Zarr", "zarr"), "bp": ("adios2", "BP", "adios")}


def converter(
    kind: str, name: str, asks: Iterable[Ask]
) -> tuple[str, Callable[[str | Path, str | Path], None]]:
    """Return what names end with in a format, and what makes such a one of a file.

    Parameters
    ----------
    kind
        The format.
    name, asks
        What is followed, among all that is asked for.

    Raises
    ------
    InvalidValue
        There is no such format, or it is not made of what is asked for.
    """
    if kind not in DIRECTORIES:
        raise errors.InvalidValue(
            f"format={kind!r}: expected {' or '.join(map(repr, DIRECTORIES))}",
            "others are asked for: sieva share ask --format",
        )
    asked = next((ask.format for ask in asks if ask.name == name), None)
    if asked is not None and asked not in _ARRAYS:
        raise errors.InvalidValue(
            f"no {kind} is made of {asked}, as {name!r} is asked for",
            f"ask for it as {' or '.join(_ARRAYS)}: sieva share ask --format netcdf",
        )
    required(*_PACKAGES[kind])
    return kind, copier(kind)
