"""Outputs: one file per format, each streaming batches, so that memory stays bounded whatever the size.

Files are written aside and get their name when they are complete (see `atomic`).
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sieva import _native, errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from sieva._query import Layout, Query

SUFFIXES = {
    ".csv": "csv",
    ".json": "json",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".parquet": "parquet",
    ".nc": "netcdf",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".zarr": "zarr",
    ".txt": "table",
}
FORMATS = ("table", "csv", "json", "arrow", "parquet", "netcdf", "hdf5", "zarr")
# Formats of arrays, which have layouts; the others have rows.
ARRAY_FORMATS = ("netcdf", "hdf5", "zarr")
# Formats of the layout columns.
COLUMN_FORMATS = ("netcdf", "hdf5", "arrow", "parquet", "csv")
# Formats whose values can be deflated.
DEFLATED_FORMATS = ("netcdf", "hdf5")
# What can go to a pipe; the others are written in several places at once.
STREAMS = ("table", "csv", "json", "arrow")


def format_of(path: Path) -> str | None:
    """Return the format that a file's suffix means, None if it means none."""
    return SUFFIXES.get(path.suffix.lower())


def writer(kind: str) -> Callable[..., None]:
    """Return the function ``write(query, target)`` of a format.

    The target is a binary stream for formats in `STREAMS`, else the path to write to. Formats in
    `ARRAY_FORMATS` take the layout, too.
    """
    module: Any = importlib.import_module(f"sieva._output.{kind}")
    write: Callable[..., None] = module.write
    return write


def output_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of an output.

    Raises
    ------
    InvalidValue
        It is empty, or has a NUL.
    """
    _native.check_name(os.fspath(path), "the name of an output")
    return Path(path)


def write_file(
    query: Query, path: Path, kind: str, layout: Layout | None = None, deflate: int | None = None
) -> None:
    """Write the rows of a query to a file that appears when it is complete.

    Parameters
    ----------
    deflate
        Level of `DEFLATED_FORMATS`; None: 1 for variables that are worth it, 0 of the layout columns.

    Raises
    ------
    InvalidValue
        The file is the source itself; there is no such level, or none of the format.
    """
    from sieva._collection import CollectionQuery
    from sieva._gridftp.query import RemoteQuery
    from sieva._output.atomic import replacing
    from sieva._output.fills import with_free_fills

    if isinstance(query, RemoteQuery):
        if query.is_sent(kind, layout):
            check_deflate(kind, deflate)
            with replacing(path) as aside:
                query.send_to(aside, kind, deflate or 0)
            return
    elif isinstance(query, CollectionQuery):
        query.check_output(path, kind)
    elif path.exists() and path.samefile(query.source.path):
        raise errors.InvalidValue(
            f"{str(path)!r} is the file that is asked: it is never changed", "write to another file"
        )
    check_deflate(kind, deflate)
    write = writer(kind)
    with replacing(path, is_directory=kind == "zarr") as aside:
        if layout == "columns":
            from sieva._output.columns import write as write_columns

            write_columns(query, aside, kind, deflate)
        elif kind in DEFLATED_FORMATS:
            with_free_fills(query, lambda: write(query, aside, layout, deflate))
        elif kind in ARRAY_FORMATS:
            with_free_fills(query, lambda: write(query, aside, layout))
        elif kind in STREAMS:
            with aside.open("wb") as out:
                write(query, out)
        else:
            write(query, aside)


def check_deflate(kind: str, deflate: int | None) -> None:
    """Raise where a format has no deflate, or there is no such level.

    Raises
    ------
    InvalidValue
        It is so.
    """
    if deflate is None:
        return
    if kind not in DEFLATED_FORMATS:
        raise errors.InvalidValue(
            f"deflate={deflate}: {kind} has no deflate", f"write {' or '.join(DEFLATED_FORMATS)}"
        )
    if deflate not in range(10):
        raise errors.InvalidValue(
            f"deflate={deflate}: levels are 0 (not compressed), and 1 (fast) to 9 (small)"
        )
