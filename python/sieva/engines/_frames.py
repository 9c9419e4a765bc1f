"""Bytes that travel: several in one, tables, arrays, and errors."""

from __future__ import annotations

import builtins
import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from sieva import errors

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

_WORD = 8


def pack(*frames: bytes) -> bytes:
    """Return frames as one, each behind its length of 8 bytes, little-endian."""
    return b"".join(part for frame in frames for part in (len(frame).to_bytes(_WORD, "little"), frame))


def unpack(data: bytes, n: int) -> list[bytes]:
    """Return the ``n`` frames that `pack` put together.

    Raises
    ------
    InvalidValue
        There are more, or fewer, or the end is cut off.
    """
    found, at = [], 0
    while at < len(data):
        end = at + _WORD + int.from_bytes(data[at : at + _WORD], "little")
        found.append(bytes(data[at + _WORD : end]))
        at = end
    if at != len(data) or len(found) != n:
        raise errors.InvalidValue(f"{len(data)} bytes of {len(found)} parts, expected {n} whole ones")
    return found


def pack_columns(table: pa.Table) -> bytes:
    """Return a table as an Arrow IPC stream."""
    import pyarrow as pa

    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def unpack_columns(data: bytes) -> pa.Table:
    """Return the table that `pack_columns` gave bytes of."""
    import pyarrow as pa

    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_all()


def pack_values(values: NDArray[Any]) -> bytes:
    """Return what `Query.read` gave: numbers as ``.npy``, texts as JSON."""
    if values.dtype.hasobject:
        return b"T" + json.dumps(values.tolist()).encode()
    out = io.BytesIO(b"N")
    out.seek(1)
    np.save(out, values, allow_pickle=False)
    return out.getvalue()


def unpack_values(data: bytes) -> NDArray[Any]:
    """Return the array that `pack_values` gave bytes of."""
    if data[:1] == b"T":
        texts = json.loads(data[1:])
        out = np.empty(len(texts), dtype=object)
        out[:] = texts
        return out
    found: NDArray[Any] = np.load(io.BytesIO(memoryview(data)[1:]), allow_pickle=False)
    return found


def pack_error(error: BaseException) -> bytes:
    """Return an error as JSON: its kind, what it says, and what can be done."""
    if isinstance(error, errors.SievaError):
        return json.dumps({"kind": error.kind, "message": error.message, "hint": error.hint}).encode()
    return json.dumps({"type": type(error).__name__, "message": str(error)}).encode()


def unpack_error(data: bytes) -> Exception:
    """Return the error that `pack_error` gave bytes of; of a class that is not known, an internal error."""
    found = json.loads(data)
    if "kind" in found:
        return errors.make(found["kind"], found["message"], found["hint"])
    known = getattr(builtins, found["type"], None)
    if isinstance(known, type) and issubclass(known, Exception):
        return known(found["message"])
    return errors.Internal(f"a worker failed by {found['type']}: {found['message']}")
