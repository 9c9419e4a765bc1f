"""Arrow IPC: the file format, which can be mapped; to a pipe the stream format."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

if TYPE_CHECKING:
    from sieva._query import Query


def write(query: Query, out: BinaryIO) -> None:
    """Write the rows of a query to a binary stream; as a file, which can be mapped, if it can be one."""
    schema, batches = query._open()
    new = pa.ipc.new_file if out.seekable() else pa.ipc.new_stream
    with new(out, schema) as sink:
        for batch in batches:
            sink.write_batch(batch)
