"""A table for reading: aligned columns, numbers to the right, ``-`` for missing values.

Widths come from the first rows. On a terminal only `SHOWN_ROWS` are shown, with a note of how many more
there are.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from sieva._output.text import formatted
from sieva._printable import printable

if TYPE_CHECKING:
    from sieva._query import Query

SHOWN_ROWS = 40
_MISSING = "-"
_WIDTH_ROWS = 4096


def write(query: Query, out: BinaryIO) -> None:
    """Write the rows of a query to a binary stream; all of them, unless it is a terminal."""
    limit = SHOWN_ROWS if out.isatty() else None
    shown = 0
    widths: list[int] | None = None
    for batch in query.batches(_WIDTH_ROWS if limit is None else limit + 1):
        part = batch if limit is None else batch.slice(0, limit - shown)
        cells = [_cells(column) for column in part.columns]
        widths = _start(out, query, cells) if widths is None else widths
        out.write(_rows(cells, widths))
        shown += part.num_rows
        if limit is not None and shown >= limit:
            break
    if widths is None:
        _start(out, query, [])
    out.flush()
    more = query.count() - shown if limit is not None and shown >= limit else 0
    if more > 0:
        print(f"... {more:,} more rows: pipe the result, or write it to a file by -o", file=sys.stderr)


def _cells(column: pa.Array) -> pa.Array:
    texts = formatted(
        column, _MISSING, lambda texts: pa.array([t and printable(t) for t in texts.to_pylist()], pa.string())
    )
    if pa.types.is_floating(column.type):
        texts = pc.if_else(pc.equal(texts, "nan"), _MISSING, texts)
    return texts


def _start(out: BinaryIO, query: Query, cells: list[pa.Array]) -> list[int]:
    """Write the head; returns the widths of the columns, negative for those of text."""
    kinds, names = list(query.dtypes.values()), [printable(name) for name in query.columns]
    widths = []
    for i, name in enumerate(names):
        longest = max((len(cell) for cell in cells[i].to_pylist()), default=0) if cells else 0
        width = max(len(name), longest)
        widths.append(-width if kinds[i] in ("str", "datetime", "bool", "histogram") else width)
    head = [_aligned(name, width) for name, width in zip(names, widths, strict=True)]
    rule = "  ".join("-" * abs(width) for width in widths)
    out.write(f"{'  '.join(head).rstrip()}\n{rule}\n".encode())
    return widths


def _aligned(text: str, width: int) -> str:
    return text.ljust(-width) if width < 0 else text.rjust(width)


def _rows(cells: list[pa.Array], widths: list[int]) -> bytes:
    columns = [
        [_aligned(cell, width) for cell in column.to_pylist()]
        for column, width in zip(cells, widths, strict=True)
    ]
    return "".join("  ".join(row).rstrip() + "\n" for row in zip(*columns, strict=True)).encode()
