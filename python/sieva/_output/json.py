"""JSON: ``{"columns": [...], "rows": [[...]], "stats": {...}}``, a row to a line.

Missing values and NaN are null; JSON has no infinities, so they are the texts ``"Infinity"`` and
``"-Infinity"``. Integers keep all their digits; floats are the shortest that read back to the same value of
their own width; dates are ISO 8601 texts.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from sieva._output.text import formatted, lines

if TYPE_CHECKING:
    from sieva._query import Query


def write(query: Query, out: BinaryIO) -> None:
    """Write the rows of a query to a binary stream."""
    batches = query.batches()  # evaluates the condition: an error comes before any output
    out.write(f'{{"columns": {json.dumps(query.columns, ensure_ascii=False)},\n"rows": ['.encode())
    separator = b"\n"
    for batch in batches:
        rows = lines([_values(column) for column in batch.columns], ", ", "[", "],\n")
        if rows:
            out.write(separator + rows.removesuffix(b",\n"))
            separator = b",\n"
    stats = json.dumps(query.stats(), ensure_ascii=False)
    out.write(f'],\n"stats": {stats}}}\n'.encode())


def _values(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_nested(kind):
        # Already JSON.
        return formatted(column, "null")
    text = formatted(column, "null", _texts)
    if pa.types.is_floating(kind):
        text = pc.if_else(pc.equal(text, "nan"), "null", text)
        return pc.replace_substring_regex(text, r"^(-?)inf$", r'"\1Infinity"')
    if pa.types.is_timestamp(kind):
        return pc.if_else(column.is_valid(), pc.binary_join_element_wise('"', text, '"', ""), "null")
    return text


def _texts(column: pa.Array) -> pa.Array:
    each = (None if text is None else json.dumps(text, ensure_ascii=False) for text in column.to_pylist())
    return pa.array(each, pa.string())
