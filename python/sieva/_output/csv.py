r"""CSV: a header line, quoting as RFC 4180 says, lines that end in ``\n``; missing values are empty.

Where there is one column only, a missing one is ``""``: readers skip empty lines.

Floats are the shortest text that reads back to the same value of their own width, so that a float32 0.1 is
``0.1``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from sieva._output.text import formatted, lines

if TYPE_CHECKING:
    from sieva._query import Query


def write(query: Query, out: BinaryIO) -> None:
    """Write the rows of a query to a binary stream."""
    batches = query.batches()  # evaluates the condition: an error comes before any output
    names = pa.array(query.columns, pa.string())
    out.write(",".join(_quoted(names).to_pylist()).encode() + b"\n")
    missing = '""' if len(query.columns) == 1 else ""
    for batch in batches:
        out.write(lines([formatted(column, missing, _quoted) for column in batch.columns], ","))


def _quoted(texts: pa.Array) -> pa.Array:
    """Return texts in double quotes where they need them; an empty text does, or it would be missing."""
    needs = pc.or_(pc.match_substring_regex(texts, r'[",\r\n]'), pc.equal(texts, ""))
    doubled = pc.replace_substring(texts, '"', '""')
    return pc.if_else(needs, pc.binary_join_element_wise('"', doubled, '"', ""), texts)
