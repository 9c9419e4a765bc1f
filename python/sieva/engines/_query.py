"""A query whose parts an engine runs; asked as any other, with the same answers."""

from __future__ import annotations

import json
import math
import threading
from typing import TYPE_CHECKING, Any

from sieva import _native, errors
from sieva._query import BATCH_ROWS, TABLE_ROWS, Query, reader_of
from sieva.engines._driver import Asking

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from sieva._expr import Expr
    from sieva._source import Source
    from sieva.engines import Engine

# Steps of a plan after which rows are those at the positions, in their order.
_PLAIN = {"filter", "project"}


class EngineQuery(Query):
    """A query whose condition is evaluated, and whose values are read, by the workers of an engine.

    What is not to be had in parts is answered here: subqueries of other sources, histograms without a range
    within SQL. Rows are sorted, made distinct and limited here, and read here then.
    """

    def __init__(
        self,
        native: _native.Query,
        source: Source,
        text: str,
        running: dict[str, Any],
        engine: Engine,
    ) -> None:
        super().__init__(native, source, text, running)
        self.engine = engine
        self._asking = Asking(source, native, engine, running)
        self._asking.is_stopped = lambda: self._stopped
        self._stopped = False
        self._answering = threading.Lock()
        self._answer: _native.Query | None = None
        self._counted: int | None = None

    def _asked(self) -> _native.Query:
        """Return the query that knows its positions or groups."""
        with self._answering:
            if self._answer is None:
                self._answer = self._ran = self._finished(None)
            return self._answer

    def _finished(self, kind: str | None, native: _native.Query | None = None) -> _native.Query:
        try:
            return self._asking.finished(kind, native)
        except errors.Unsupported:
            return self._native if native is None else native

    def count(self) -> int:
        """Return the number of rows that come back."""
        if self._answer is None and self._counted is None:
            try:
                counted = self._asking.finished("count")
            except errors.Unsupported:
                counted = self._asked()
            self._counted = counted.count()
            if self._answer is None:
                self._ran = counted
        return self._asked().count() if self._counted is None else self._counted

    def histogram(self, name: str | Expr, bins: int = 64) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the histogram of an array or expression over the rows, as `Query.histogram`."""
        value = self._item(name)
        tree = _native.Expr.parse(value) if isinstance(value, str) else value
        call = _native.Expr.call
        ends = self._native.of_its_rows([call("min", [tree]), call("max", [tree])])
        low, high = (column[0].as_py() for column in reader_of(self._finished(None, ends), 1).read_all())
        if low is None:
            low, high = 0.0, 1.0
        if isinstance(low, str) or not math.isfinite(float(high) - float(low)):
            return self._native.histogram(value, bins)
        within = [_native.Expr.number(float(low)), _native.Expr.number(float(high))]
        counts = self._native.of_its_rows([call("histogram", [tree, _native.Expr.integer(bins), *within])])
        return _told_histogram(self._finished(None, counts))

    def read(self, name: str | Expr | None = None) -> NDArray[Any]:
        """Return the values of an array or expression at the points, as `Query.read`."""
        import numpy as np

        item = None if name is None else self._item(name)
        asked = self._asked()
        if asked is self._native or asked.grouped:
            return asked.read(item)
        selection = asked.selection()
        if not len(selection) or self._asking.reads_here(selection):
            return asked.read(item)
        parts = list(self._asking.values(selection, None if item is None else str(item)))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _open(self, size: int = BATCH_ROWS) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        asked = self._asked()
        if asked is self._native or not self._is_plain():
            return super()._open(size)
        selection = asked.selection()
        if self._asking.reads_here(selection):
            return super()._open(size)
        empty = reader_of(self._native.at(None), size)
        return empty.schema, self._told(_batches(self._asking.tables(selection), size))

    def _is_plain(self) -> bool:
        """Whether rows are those at the positions, in their order."""
        steps = json.loads(self._native.plan().to_json())["steps"]
        return all(set(step) <= _PLAIN for step in steps)

    def _reader(self, size: int = BATCH_ROWS) -> pa.RecordBatchReader:
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(*self._open(size))

    def batches(self, size: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the rows as Arrow record batches, as `Query.batches`."""
        if size < 1:
            raise ValueError(f"batches of {size} rows: expected at least 1")
        return self._open(size)[1]

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table; missing values are null."""
        import pyarrow as pa

        schema, batches = self._open(TABLE_ROWS)
        return pa.Table.from_batches(batches, schema)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._reader().__arrow_c_stream__(requested_schema)

    def settled(self) -> Query:
        """Return the query that knows its answer, to be asked here."""
        return Query(self._asked(), self.source, self.text, self._running)

    def cancel(self) -> None:
        """Stop what is asked of the query, from any thread; it raises `Cancelled`, and stays stopped."""
        self._stopped = True
        super().cancel()

    def _again(self) -> Query:
        again = type(self)(self._native.again(), self.source, self.text, self._running, self.engine)
        again._answer, again._counted = self._answer, self._counted
        return again

    def _with_columns(self, more: list[Expr]) -> _native.Query | None:
        wide = super()._with_columns(more)
        asked = self._asked()
        if wide is None or asked is self._native or asked.grouped:
            return wide
        return wide.at(asked.selection())


def _told_histogram(native: _native.Query) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return counts and edges of a query of one histogram."""
    import numpy as np

    found = reader_of(native, 1).read_all().column(0)[0].as_py()
    return np.asarray(found["counts"], dtype=np.int64), np.asarray(found["edges"], dtype=np.float64)


def _batches(tables: Iterator[pa.Table], size: int) -> Iterator[pa.RecordBatch]:
    """Yield tables as batches of a size, the last of what is left."""
    import pyarrow as pa

    kept: pa.Table | None = None
    for table in tables:
        kept = table if kept is None else pa.concat_tables([kept, table])
        whole = kept.num_rows - kept.num_rows % size
        yield from _of_size(kept.slice(0, whole), size)
        kept = kept.slice(whole)
    if kept is not None:
        yield from _of_size(kept, size)


def _of_size(table: pa.Table, size: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, table.num_rows, size):
        yield from table.slice(start, size).combine_chunks().to_batches()
