"""Outputs: rows and columns as the engine writes them, and arrays, a module for each format of those.

All stream batches, so that memory stays bounded whatever the size.

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

# The formats that the engine writes, by name: all of them as a list of columns or of rows.
_ENGINE = {row["name"]: row for row in _native.formats()}
# Formats of arrays, which have layouts: each is a module of this package. The engine writes no directories.
DIRECTORIES = ("zarr", "bp")
ARRAY_FORMATS = ("netcdf", "hdf5", *DIRECTORIES)
FORMATS = (*_ENGINE, *(kind for kind in ARRAY_FORMATS if kind not in _ENGINE))
# Formats of the layout columns.
COLUMN_FORMATS = tuple(_ENGINE)
# Formats whose values can be deflated.
DEFLATED_FORMATS = tuple(kind for kind, row in _ENGINE.items() if row["deflatable"])
# What can go to a pipe; the others are written in several places at once, or need a file.
STREAMS = tuple(kind for kind, row in _ENGINE.items() if row["for_pipes"])
SUFFIXES = {f".{suffix}": kind for kind, row in _ENGINE.items() for suffix in row["suffixes"]}
SUFFIXES |= {f".{kind}": kind for kind in DIRECTORIES}


def format_of(path: Path) -> str | None:
    """Return the format that a file's suffix means, None if it means none."""
    return SUFFIXES.get(path.suffix.lower())


def array_writer(kind: str) -> Callable[..., None]:
    """Return the function ``write(query, path, layout)`` of one of `ARRAY_FORMATS`."""
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
        The file is one that the query reads (see `sieva._output.asked`); there is no such level, or none of
        the format; it is a device or a pipe, and the format or layout is none that goes there.
    """
    from sieva._collection import CollectionQuery
    from sieva._gridftp.query import RemoteQuery
    from sieva._output.asked import check_output
    from sieva._output.atomic import is_special, replacing, written_through
    from sieva._output.fills import with_free_fills

    if isinstance(query, RemoteQuery):
        if query.is_sent(kind, layout):
            check_deflate(kind, deflate)
            with replacing(path) as aside:
                query.send_to(aside, kind, deflate or 0)
            return
    elif isinstance(query, CollectionQuery):
        query.check_output(path, kind)
    else:
        check_output(path, query)
    check_deflate(kind, deflate)
    if kind in STREAMS and layout != "columns" and is_special(path):
        from sieva._output.rows import write as write_rows

        with written_through(path) as out:
            write_rows(query, kind, out)
        return
    with replacing(path, is_directory=kind in DIRECTORIES) as aside:
        if layout == "columns":
            from sieva._output.columns import write as write_columns

            write_columns(query, aside, kind, deflate, shown=path)
        elif kind in ARRAY_FORMATS:
            write = array_writer(kind)
            level = (deflate,) if kind in DEFLATED_FORMATS else ()
            with_free_fills(query, lambda: write(query, aside, layout, *level))
        else:
            from sieva._output.rows import write as write_rows

            with aside.open("wb") as out:
                write_rows(query, kind, out)


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
