"""Columns: files whose layout is known before a value is read, one variable or data set for each column.

The same bytes as a server of query results sends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sieva import _native, errors

if TYPE_CHECKING:
    from pathlib import Path

    from sieva._query import Query


def write(
    query: Query, path: Path, kind: str, deflate: int | None = None, *, shown: Path | None = None
) -> None:
    """Write the rows of a query to a file, netCDF and HDF5 deflated at a level.

    Parameters
    ----------
    query, path, kind
        What is written, where, and in which format.
    deflate
        The level; None, 0: not at all.
    shown
        The path that errors name; None: that where it is written.

    Raises
    ------
    Unsupported
        The format has no type for a column.
    InvalidValue
        It is none of `COLUMN_FORMATS`, or has no deflate; a computed integer is equal to the fill value.
    """
    encoded = _native.Encoded(query._asked(), kind, spool=path.parent, deflate=deflate or 0)
    try:
        encoded.write(path)
    except errors.IoError as error:
        # It was written aside, at a path that nobody gave.
        told = error.message.replace(str(path), str(shown or path))
        raise errors.make(error.kind, told, error.hint) from error
