"""A query: bound, and not run before something is asked of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from sieva import _async, errors
from sieva._price import Price
from sieva._printable import shown

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence

    import dask.array as da
    import dask.dataframe as dd
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import xarray as xr
    from numpy.typing import NDArray

    from sieva import _native
    from sieva._expr import Expr
    from sieva._source import Source

    Layout = Literal["grid", "points", "columns"]

BATCH_ROWS = 65536
# Of what is held as a whole.
TABLE_ROWS = 1 << 20


def told_errors(native: _native.Query, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a query; an error of the engine, which Arrow hands on as text, is ours again."""
    import pyarrow as pa

    try:
        yield from batches
    except (pa.ArrowException, OSError, MemoryError) as error:
        native.raise_failure()
        if isinstance(error, MemoryError):
            raise errors.MemoryLimit(str(error), "allow more by memory=") from error
        raise errors.IoError(str(error)) from error


def reader_of(native: _native.Query, size: int) -> pa.RecordBatchReader:
    """Return a reader of the rows of a native query."""
    import pyarrow as pa

    return pa.RecordBatchReader.from_stream(native.stream(size))


def _asked_again(source: Source, plan: bytes, text: str, running: dict[str, Any]) -> Query:
    """Return a query that was pickled."""
    from sieva._native import Plan

    return Query(source._native.query_plan(Plan.from_bytes(plan), running), source, text, running)


class Query:
    """Rows that satisfy a condition; made by `Source.query`, `Source.sql` and `sieva.sql`.

    The condition is evaluated once, at the first question, whatever is asked after. Results stream: only
    `read`, `to_arrow`, `to_pandas`, `to_polars` and `to_xarray` hold all of what they return.

    Examples
    --------
    >>> q = src.query("TEMP > 25 AND z_t < 5000", select=["TEMP", "SALT"])  # doctest: +SKIP
    >>> q.count()  # doctest: +SKIP
    81230
    >>> q.read("SALT").mean()  # doctest: +SKIP
    >>> q.to_parquet("warm.parquet")  # doctest: +SKIP
    """

    def __init__(
        self, native: _native.Query, source: Source, text: str, running: dict[str, Any] | None = None
    ) -> None:
        self._native = native
        # How it is run, for the same query in another process.
        self._running = running or {}
        # Array formats ask for more columns, by a query of their own.
        self._ran = native
        self.source = source
        self.text = text
        self._on_rows: Callable[[int], None] | None = None
        # Fill values of columns that outputs found to be free.
        self._fills: dict[str, int] = {}

    @property
    def columns(self) -> list[str]:
        """Names of what comes back."""
        return [name for name, _ in self._native.columns]

    @property
    def dtypes(self) -> dict[str, str]:
        """Type of each column: numpy's name of it, ``"str"``, ``"datetime"`` or ``"histogram"``."""
        return dict(self._native.columns)

    @property
    def rows(self) -> dict[str, int]:
        """Dimensions and lengths of the space that the rows are points of."""
        return dict(self._native.rows)

    def _asked(self) -> _native.Query:
        """Return the native query that answers: an engine's is one that knows what its workers found."""
        return self._native

    def __reduce__(self) -> tuple[object, ...]:
        # A question and where to ask it; no values, and nothing that was found. The source knows where it
        # lies, a plan only by what name it was opened.
        return _asked_again, (self.source, bytes(self.plan().unnamed()), self.text, self._running)

    def count(self) -> int:
        """Return the number of rows that come back."""
        return self._native.count()

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        # Without this, `if query:` would run it.
        return True

    def plan(self) -> _native.Plan:
        """Return the query as data, which can be sent, compared and asked elsewhere; nothing is read or run.

        Returns
        -------
        Plan
            Equal for equal questions, however they were worded. `Source.query` takes it.
        """
        return self._native.plan()

    def tasks(
        self,
        n: int = 1,
        *,
        kind: Literal["count", "selection", "groups"] | None = None,
        boxes: Sequence[tuple[Sequence[int], Sequence[int]]] | None = None,
    ) -> list[_native.Task]:
        """Return the work in ``n`` parts or fewer, for other processes to run; no values are read for it.

        Parameters
        ----------
        n
            The most parts. Chunks are not cut, so that a small source has fewer.
        kind
            What is wanted: the number of rows, their positions, or groups; None: groups of a query that has
            them, else positions, of which all else is fetched in the end.
        boxes
            The parts, in place of `n`: the start and the shape of each along `rows`. Together they must have
            each row once.

        Returns
        -------
        list of Task
            Each to be run by `Source.run_task`, anywhere.

        Raises
        ------
        Unsupported
            A histogram without a range, a count of different rows or of groups, a subquery of another source.

        Examples
        --------
        >>> parts = [src.run_task(task) for task in query.tasks(8)]  # doctest: +SKIP
        >>> query.finish(parts).to_pandas()  # doctest: +SKIP
        """
        corners = None if boxes is None else [(list(start), list(shape)) for start, shape in boxes]
        return self._native.tasks(n, kind, corners)

    def finish(self, parts: _native.Partial | Iterable[_native.Partial]) -> Query:
        """Return this query, which knows its answer by what all its tasks found.

        Parameters
        ----------
        parts
            Partial results in any order, merged or not.

        Returns
        -------
        Query
            Its answers are those of this one, to the bit; what tasks looked at is not read again.

        Raises
        ------
        InvalidValue
            Parts are missing, there twice, or of another query.
        StaleSource
            The source is in another state than that of which the tasks were made.
        """
        from sieva._native import Partial

        given = [parts] if isinstance(parts, Partial) else list(parts)
        return Query(self._native.finish(given), self.source, self.text, self._running)

    def estimate(self) -> tuple[int, int]:
        """Return bounds (low, high) of the number of hits; reads coordinates at most, once."""
        return self._native.estimate()

    def price(self) -> Price:
        """Return what giving back all rows takes: rows, bytes, requests and seconds. No value is read for it.

        Returns
        -------
        Price
            With bounds that hold and an expectation for each; the seconds are an estimate.
        """
        return Price.of(self._native.price())

    def selection(self) -> _native.Selection:
        """Return the positions that satisfy the condition, before LIMIT and OFFSET.

        Returns
        -------
        Selection
            Of all points of `rows`; it can be combined with others, saved and loaded.
        """
        return self._asked().selection()

    def explain(self, analyze: bool = False) -> str:
        """Return the physical plan as text, without reading; ``analyze`` runs it and adds what happened."""
        return self._native.explain(analyze)

    def explain_json(self, analyze: bool = False) -> str:
        """Return the plan as JSON text."""
        return self._native.explain_json(analyze)

    def explain_layout(self) -> str:
        """Return which servers and stripes the query touches, and the requests for them, as text.

        No value is read, and nothing is run. Requests are told twice: as reading box by box makes them, and
        after overlaps were removed and neighbours put together.
        """
        return self._native.explain_layout()

    def explain_layout_json(self) -> str:
        """Return the same as JSON text."""
        return self._native.explain_layout_json()

    def stats(self) -> dict[str, Any]:
        """Return what the query did so far: hits, tiles, bytes read, requests, and seconds by phase."""
        return self._ran.stats()

    def histogram(self, name: str | Expr, bins: int = 64) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the histogram of an array or expression over the rows, as `numpy.histogram` of its values.

        Parameters
        ----------
        name
            Array or expression.
        bins
            Number of equal bins from the least to the greatest value.

        Returns
        -------
        counts : (bins,) int64 ndarray
        edges : (bins + 1,) float64 ndarray
        """
        return self._native.histogram(self._item(name), bins)

    def read(self, name: str | Expr | None = None) -> NDArray[Any]:
        """Return the values of an array or expression at the points, selected or not.

        Parameters
        ----------
        name
            Array or expression; None is the only column of the query.

        Returns
        -------
        (n,) ndarray
            In C order of the points, in the type of the decoded array; integers with missing values as
            float64 with NaN; times as the numbers of the file.

        Raises
        ------
        DimensionMismatch
            It varies along a dimension that the query's rows do not have.

        Examples
        --------
        >>> src.query("TEMP > 29").read("SALT")  # doctest: +SKIP
        array([35.1, 34.9], dtype=float32)
        """
        return self._native.read(None if name is None else self._item(name))

    def batches(self, size: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the rows as Arrow record batches of at most ``size`` rows."""
        if size < 1:
            raise ValueError(f"batches of {size} rows: expected at least 1")
        return self._open(size)[1]

    def _open(self, size: int = BATCH_ROWS) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Return the schema and the batches of rows, which tell who watches of each."""
        reader = reader_of(self._asked(), size)
        return reader.schema, self._told(told_errors(self._asked(), reader))

    def _told(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            if self._on_rows is not None:
                self._on_rows(batch.num_rows)

    def _reader(self, size: int = BATCH_ROWS) -> pa.RecordBatchReader:
        return reader_of(self._asked(), size)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as an Arrow stream, for whatever reads one: pyarrow, Polars, DuckDB, pandas."""
        return self._asked().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table; missing values are null."""
        import pyarrow as pa

        reader = self._reader(TABLE_ROWS)
        return pa.Table.from_batches(told_errors(self._asked(), reader), reader.schema)

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas data frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a Polars data frame."""
        import polars as pl

        frame = pl.from_arrow(self.to_arrow())
        assert isinstance(frame, pl.DataFrame)  # noqa: S101 - a table becomes no Series
        return frame

    def to_xarray(self, layout: Layout | None = None) -> xr.Dataset:
        """Return the rows as an xarray dataset with coordinates, attributes and units; times are decoded.

        Parameters
        ----------
        layout
            ``"grid"``: the bounding box of the points, missing outside of the selection. ``"points"``: a
            list along the dimension ``obs``, with the position along each dimension. None: points where the
            rows have one dimension or are groups, else grid.
        """
        from sieva._output.memory import to_dataset

        return to_dataset(self, layout)

    def to_dask_array(
        self, name: str | Expr | None = None, *, parts: int | None = None, known: bool = False
    ) -> da.Array:
        """Return the values of an array or expression at the points as a Dask array; nothing is read yet.

        Parameters
        ----------
        name
            As of `read`.
        parts
            The most chunks; None: four for each core.
        known
            Whether the lengths of chunks are to be known. The condition is evaluated for it, once and here;
            else each chunk evaluates its part, and its length is NaN until it is computed.

        Returns
        -------
        (n,) dask.array.Array
            In C order of the points. Integers are float64 where values may be missing.

        Examples
        --------
        >>> warm = src.query("TEMP > 25").to_dask_array("SALT")  # doctest: +SKIP
        >>> warm.mean().compute()  # doctest: +SKIP
        """
        from sieva.engines._lazy import to_dask_array

        return to_dask_array(self, name, parts, known)

    def to_dask_dataframe(self, *, parts: int | None = None, known: bool = False) -> dd.DataFrame:
        """Return the rows as a Dask data frame; nothing is read yet.

        Parameters
        ----------
        parts, known
            As of `to_dask_array`. With ``known`` the index numbers the rows, and divisions are known; else
            the index of each partition begins at 0.

        Returns
        -------
        dask.dataframe.DataFrame
            Of one partition where rows are groups, sorted, distinct or limited.
        """
        from sieva.engines._lazy import to_dask_dataframe

        return to_dask_dataframe(self, parts, known)

    def to_netcdf(
        self,
        path: str | os.PathLike[str],
        layout: Layout | None = None,
        *,
        deflate: int | None = None,
    ) -> None:
        """Write the rows to a netCDF-4 file.

        Parameters
        ----------
        path
            The file.
        layout
            As in `to_xarray`. ``"columns"`` has one variable for each column, nothing else: what a server
            sends; netCDF classic where it is not deflated.
        deflate
            Level of compression: 0 (none), 1 (fast) to 9 (small). By default 1 for variables of 64 KiB and
            more, and 0 of the layout columns.
        """
        self._write(path, "netcdf", layout, deflate)

    def to_hdf5(
        self,
        path: str | os.PathLike[str],
        layout: Layout | None = None,
        *,
        deflate: int | None = None,
    ) -> None:
        """Write the rows to an HDF5 file; layouts and ``deflate`` as in `to_netcdf`."""
        self._write(path, "hdf5", layout, deflate)

    def to_zarr(self, path: str | os.PathLike[str], layout: Layout | None = None) -> None:
        """Write the rows to a directory of Zarr v3; layouts as in `to_xarray`."""
        self._write(path, "zarr", layout)

    def to_bp(self, path: str | os.PathLike[str], layout: Layout | None = None) -> None:
        """Write the rows to a BP5 directory of ADIOS2, in one step; layouts as in `to_xarray`."""
        self._write(path, "bp", layout)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the rows to a Parquet file."""
        self._write(path, "parquet")

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the rows to a CSV file: quoting of RFC 4180, floats round-trip, missing values are empty."""
        self._write(path, "csv")

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the rows to a JSON file: ``{"columns": [...], "rows": [[...]], "stats": {...}}``."""
        self._write(path, "json")

    def _write(
        self,
        path: str | os.PathLike[str],
        kind: str,
        layout: Layout | None = None,
        deflate: int | None = None,
    ) -> None:
        from sieva._output import output_path, write_file

        write_file(self, output_path(path), kind, layout, deflate)

    async def count_async(self) -> int:
        """Await `count`: a thread asks; cancelling the coroutine stops it, and no other question.

        Examples
        --------
        >>> await asyncio.wait_for(q.count_async(), timeout=5)  # doctest: +SKIP
        """
        return await _async.ask(self, Query.count)

    async def selection_async(self) -> _native.Selection:
        """Await `selection`."""
        return await _async.ask(self, Query.selection)

    async def read_async(self, name: str | Expr | None = None) -> NDArray[Any]:
        """Await `read`."""
        return await _async.ask(self, lambda query: query.read(name))

    async def histogram_async(
        self, name: str | Expr, bins: int = 64
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Await `histogram`."""
        return await _async.ask(self, lambda query: query.histogram(name, bins))

    async def to_arrow_async(self) -> pa.Table:
        """Await `to_arrow`."""
        return await _async.ask(self, Query.to_arrow)

    def batches_async(self, size: int = BATCH_ROWS) -> AsyncIterator[pa.RecordBatch]:
        """Return the batches of `batches` for ``async for``."""
        return _async.batches(self, size)

    def cancel(self) -> None:
        """Stop what is asked of the query, from any thread; it raises `Cancelled`, and stays stopped."""
        self._native.cancel()

    def _again(self) -> Query:
        """Return the same query, to be cancelled by itself."""
        return Query(self._native.again(), self.source, self.text, self._running)

    def _item(self, item: str | Expr) -> str | _native.Expr:
        return self.source._item(item)

    def _with_columns(self, more: list[Expr]) -> _native.Query | None:
        """Return the same query with more columns behind its own; None where that would change its rows."""
        return self._native.with_columns([item._tree for item in more])

    @shown
    def __repr__(self) -> str:
        kind = "groups" if self._native.grouped else "points"
        space = ", ".join(f"{name}: {n}" for name, n in self._native.rows)
        text = f" {self.text}" if self.text else ""
        return f"<sieva.Query {kind} of ({space}) -> {', '.join(self.columns)};{text}>"

    def _repr_html_(self) -> str:
        from sieva._html import query_html

        return query_html(self)
