"""xarray-sql on the original file: with DataFusion, its own engine, and with DuckDB. Nothing is loaded."""

from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import xarray as xr
import xarray_sql
from protocol import Columns, Job, Query, Variant, seconds, serve

CHUNK = 1 << 20


def _dataset(job: Job) -> xr.Dataset:
    return xr.open_dataset(job.source, group=job.group, engine="h5netcdf", phony_dims="access", chunks=None)


def _columns(table: pa.Table) -> Columns:
    return {name: table.column(name).to_numpy() for name in table.column_names}


class Registered:
    """A table of the arrays of a file, in an engine."""

    def __init__(
        self, job: Job, register: Callable[[xr.Dataset, dict[str, int]], Callable[[str], pa.Table]]
    ) -> None:
        self.job, self.register = job, register
        self.ask: Callable[[str], pa.Table] | None = None

    def load(self) -> dict[str, float]:
        """Open the file and name it."""
        return {"seconds": seconds(self._open), "bytes": 0}

    def _open(self) -> None:
        dataset = _dataset(self.job)
        self.ask = self.register(dataset, {str(dim): CHUNK for dim in dataset.sizes})

    def _table(self, wanted: str, query: Query) -> pa.Table:
        assert self.ask is not None  # noqa: S101 -- load comes first
        condition = query.sql(lambda value: f"CAST({value!r} AS REAL)")
        return self.ask(f"SELECT {wanted} FROM particles WHERE {condition}")

    def count(self, query: Query) -> int:
        """Count in the engine."""
        return int(self._table("count(*) AS hits", query).column("hits")[0].as_py())

    def fetch(self, query: Query) -> Columns:
        """Return the columns."""
        return _columns(self._table(", ".join(f'"{name}"' for name in query.fetch), query))


def _datafusion(dataset: xr.Dataset, chunks: dict[str, int]) -> Callable[[str], pa.Table]:
    context: Any = xarray_sql.Context()
    context.from_dataset("particles", dataset, chunks=chunks)
    return lambda text: context.sql(text).to_arrow_table()


def _duckdb(dataset: xr.Dataset, chunks: dict[str, int]) -> Callable[[str], pa.Table]:
    connection = duckdb.connect()
    xarray_sql.register(connection, "particles", dataset, chunks=chunks)
    return lambda text: connection.sql(text).to_arrow_table()


def variants(job: Job) -> Iterator[Variant]:
    """Yield the two engines."""
    for name, register in (("DataFusion", _datafusion), ("DuckDB", _duckdb)):
        table = Registered(job, register)
        yield Variant(name, table.load, table.count, table.fetch)


if __name__ == "__main__":
    names = ("xarray-sql", "xarray", "datafusion", "duckdb", "numpy")
    assert np.dtype("f4").itemsize == 4  # noqa: S101
    serve(variants, {name: version(name) for name in names})
