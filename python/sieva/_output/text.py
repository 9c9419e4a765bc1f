"""Values as text, a column at a time: shortest floats that round-trip by their own width, ISO dates."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable


def formatted(
    column: pa.Array, missing: str, special: Callable[[pa.Array], pa.Array] | None = None
) -> pa.Array:
    """Return a column of texts.

    Parameters
    ----------
    column
        Of any type that results have.
    missing
        The text of a null.
    special
        Treats texts of the data, which may hold any character; by default they stay as they are.
    """
    kind = column.type
    if pa.types.is_floating(kind):
        # 5 is a float here and says so: 5.0
        text = pc.replace_substring_regex(column.cast(pa.string()), r"^(-?\d+)$", r"\1.0")
    elif pa.types.is_timestamp(kind):
        text = pc.replace_substring(column.cast(pa.string()), " ", "T")
        text = pc.replace_substring_regex(text, r"\.0+Z?$|(\.\d*[1-9])0+Z?$", r"\1")
    elif pa.types.is_nested(kind):
        values = (None if v is None else json.dumps(v) for v in column.to_pylist())
        text = pa.array(values, pa.string())
        text = special(text) if special else text
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        text = special(column) if special else column
    else:
        text = column.cast(pa.string())
    return text.fill_null(missing)


def lines(cells: list[pa.Array], separator: str, start: str = "", end: str = "\n") -> bytes:
    """Return rows of text: the cells of each joined by ``separator``, between ``start`` and ``end``."""
    if not cells or not len(cells[0]):
        return b""
    # Arrow joins parts of one type, and a batch of long texts may have more than 2 GiB.
    parts = [cell.cast(pa.large_string()) for cell in cells]
    before, between, after, nothing = (
        pa.scalar(text, pa.large_string()) for text in (start, separator, end, "")
    )
    joined = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, between)
    rows = pc.binary_join_element_wise(before, joined, after, nothing)
    # The rows lie behind one another in the data buffer: nothing is copied row by row.
    _, offsets, text = rows.buffers()
    ends = memoryview(offsets).cast("q")
    return bytes(memoryview(text)[ends[rows.offset] : ends[rows.offset + len(rows)]])
