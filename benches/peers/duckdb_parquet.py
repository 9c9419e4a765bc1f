"""DuckDB on Parquet files: in the order of the source, and sorted by Energy; with and without zstd.

Groups of 122 880 rows, DuckDB's default, were the fastest of 30 720 to 1 966 080 on 10 million
particles, save that sorted files gain from larger ones for some queries: those are here as well. The
best form counts.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from protocol import Columns, Job, Query, Variant, seconds, serve, size

# Name; order, compression, rows in a group.
FORMS = (
    ("unsorted, plain", ("", "uncompressed", 122_880)),
    ("unsorted, zstd", ("", "zstd", 122_880)),
    ("sorted by Energy, plain", ("ORDER BY Energy", "uncompressed", 122_880)),
    ("sorted by Energy, plain, large groups", ("ORDER BY Energy", "uncompressed", 491_520)),
    ("sorted by Energy, zstd", ("ORDER BY Energy", "zstd", 122_880)),
)


def _float(value: float) -> str:
    return f"CAST({value!r} AS FLOAT)"


def _count(connection: duckdb.DuckDBPyConnection, view: str, query: Query) -> int:
    rows = connection.execute(f"SELECT count(*) FROM {view} WHERE {query.sql(_float)}").fetchall()
    return int(rows[0][0])


def _fetch(connection: duckdb.DuckDBPyConnection, view: str, query: Query) -> Columns:
    names = ", ".join(f'"{name}"' for name in query.fetch)
    result = connection.execute(f"SELECT {names} FROM {view} WHERE {query.sql(_float)}").fetchnumpy()
    return {name: np.asarray(values) for name, values in result.items()}


def _write(
    job: Job, connection: duckdb.DuckDBPyConnection, view: str, path: Path, form: tuple[str, str, int]
) -> dict[str, float]:
    """Write the Parquet file: reading the source is part of it."""
    order, compression, rows = form

    def work() -> None:
        # Named in the statement below; DuckDB reads it where it lies.
        connection.register("particles", pa.table(job.columns()))
        options = f"FORMAT parquet, COMPRESSION {compression}, ROW_GROUP_SIZE {rows}"
        connection.execute(f"COPY (SELECT * FROM particles {order}) TO '{path}' ({options})")
        connection.unregister("particles")

    spent = seconds(work)
    connection.execute(f"CREATE VIEW {view} AS SELECT * FROM read_parquet('{path}')")
    return {"seconds": spent, "bytes": size(path)}


def variants(job: Job) -> Iterator[Variant]:
    """Yield one variant for each form of the file."""
    connection = duckdb.connect()
    connection.execute(f"SET threads = {job.threads}")
    connection.execute(f"SET temp_directory = '{job.store / 'spill'}'")
    for index, (name, form) in enumerate(FORMS):
        path, view = job.store / f"{index}.parquet", f"v{index}"
        close: Callable[[], None] = partial(path.unlink, missing_ok=True)
        load = partial(_write, job, connection, view, path, form)
        count, fetch = partial(_count, connection, view), partial(_fetch, connection, view)
        yield Variant(name, load, count, fetch, close)


if __name__ == "__main__":
    serve(variants, {"duckdb": duckdb.__version__, "pyarrow": pa.__version__})
