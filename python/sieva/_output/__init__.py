"""Outputs: one file per format, each streaming batches, so that memory stays bounded whatever the size.

Files are written aside and get their name when they are complete (see `atomic`).
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sieva import errors

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


def write_file(query: Query, path: Path, kind: str, layout: Layout | None = None) -> None:
    """Write the rows of a query to a file that appears when it is complete.

    Raises
    ------
    InvalidValue
        The file is the source itself.
    """
    from sieva._collection import CollectionQuery
    from sieva._gridftp.query import RemoteQuery
    from sieva._output.atomic import replacing

    if isinstance(query, RemoteQuery):
        if query.is_sent(kind, layout):
            with replacing(path) as aside:
                query.send_to(aside, kind)
            return
    elif isinstance(query, CollectionQuery):
        query.check_output(path, kind)
    elif path.exists() and path.samefile(query.source.path):
        raise errors.InvalidValue(
            f"{str(path)!r} is the file that is asked: it is never changed", "write to another file"
        )
    write = writer(kind)
    with replacing(path, is_directory=kind == "zarr") as aside:
        if layout == "columns":
            from sieva._output.columns import write as write_columns

            write_columns(query, aside, kind)
        elif kind in ARRAY_FORMATS:
            write(query, aside, layout)
        elif kind in STREAMS:
            with aside.open("wb") as out:
                write(query, out)
        else:
            write(query, aside)
