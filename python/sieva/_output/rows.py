"""Rows, batch after batch, into a binary stream: all formats that the engine writes row by row."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, BinaryIO

from sieva import _native

if TYPE_CHECKING:
    from sieva._query import Query

SHOWN_ROWS = 40


def write(query: Query, kind: str, out: BinaryIO) -> None:
    """Write the rows of a query to a binary stream; of a table on a terminal the first `SHOWN_ROWS`.

    Memory holds a batch, of Parquet a row group, whatever the number of rows.

    Parameters
    ----------
    query
        Asked now: an error of its condition comes before any output.
    kind
        A format that is written row by row.
    out
        A file, or a pipe, to which Arrow is written in its stream format.

    Raises
    ------
    InvalidValue
        There is no such format.
    Unsupported
        The format has no type for a column, or is not written row by row.
    """
    if kind == "table" and out.isatty():
        _show(query, out)
        return
    schema, batches = query._open()
    sink = _native.RowWriter(kind, schema, out, is_pipe=not out.seekable())
    for batch in batches:
        sink.write(batch)
    # What the query did is known at its end.
    sink.finish(json.dumps(query.stats(), ensure_ascii=False) if kind == "json" else None)


def _show(query: Query, out: BinaryIO) -> None:
    """Write the first rows as a table, and tell how many more there are."""
    schema, batches = query._open(SHOWN_ROWS + 1)
    sink = _native.RowWriter("table", schema, out)
    shown = 0
    for batch in batches:
        part = batch.slice(0, SHOWN_ROWS - shown)
        sink.write(part)
        shown += part.num_rows
        if shown >= SHOWN_ROWS:
            break
    sink.finish()
    more = query.count() - shown if shown >= SHOWN_ROWS else 0
    if more > 0:
        print(f"... {more:,} more rows: pipe the result, or write it to a file by -o", file=sys.stderr)
