"""Parquet, in row groups of about a million rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

    from sieva._query import Query

_GROUP_ROWS = 1 << 20
_GROUP_BYTES = 64 << 20


def write(query: Query, path: Path) -> None:
    """Write the rows of a query to a file."""
    schema, batches = query._open()
    held: list[pa.RecordBatch] = []
    with pq.ParquetWriter(path, schema) as sink:
        for batch in batches:
            held.append(batch)
            if sum(b.num_rows for b in held) >= _GROUP_ROWS or sum(b.nbytes for b in held) >= _GROUP_BYTES:
                sink.write_table(pa.Table.from_batches(held, schema))
                held = []
        if held:
            sink.write_table(pa.Table.from_batches(held, schema))
