"""Groups by the tools that sieva is measured against: a process that is asked by lines of JSON.

A line is ``{"peer", "question", "file", "parquet", "answer"}``: the question is answered from the file,
opening included, the answer saved as a file of numpy where ``answer`` names one, and the seconds printed.
``{"peers": true}`` prints the names of the peers that are installed, ``{"unable": true}`` which questions a
peer has no exact answer for.
"""

import json
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

# The probability of the percentile, and how many values are the highest.
QUANTILE = 0.9
TOP = 10
# DataFusion has approximate percentiles of groups only.
UNABLE = {"xarray-sql": ["percentile per cell"]}


def highest(values: np.ndarray) -> np.ndarray:
    """Return the highest values, from the top."""
    return np.sort(np.partition(values.ravel(), -TOP)[-TOP:])[::-1]


def by_numpy(question: str, file: str) -> list[np.ndarray]:
    """Answer by netCDF4 and numpy, on the whole array."""
    import netCDF4  # noqa: PLC0415

    with netCDF4.Dataset(file) as data:
        data.set_auto_maskandscale(False)
        values = data["T"][:]
        months = np.array([d.month for d in netCDF4.num2date(data["time"][:], data["time"].units)])
    wide = {"dtype": np.float64}
    match question:
        case "mean over time":
            out = [values.mean(axis=0, **wide)]
        case "zonal mean":
            out = [values.mean(axis=(0, 2), **wide)]
        case "mean by month":
            out = [np.array([values[months == m].mean(**wide) for m in range(1, 13)])]
        case "climatology":
            out = [np.stack([values[months == m].mean(axis=0, **wide) for m in range(1, 13)])]
        case "percentile per cell":
            out = [np.quantile(values, QUANTILE, axis=0)]
        case "top 10":
            out = [highest(values)]
        case _:
            out = [values.min(axis=0), values.max(axis=0), np.full(values.shape[1:], values.shape[0])]
    return out


def by_xarray(chunks: object, *, flox: bool) -> Callable[[str, str], list[np.ndarray]]:
    """Answer by xarray: on numpy's arrays or on dask's."""
    import xarray as xr  # noqa: PLC0415

    def answer(question: str, file: str) -> list[np.ndarray]:
        # On dask's arrays flox 0.11 fails where all dimensions are reduced.
        use_flox = flox and (chunks is None or question != "mean by month")
        with xr.set_options(use_flox=use_flox), xr.open_dataset(file, chunks=chunks) as data:
            field = data["T"]
            match question:
                case "mean over time":
                    out = [field.mean("time")]
                case "zonal mean":
                    out = [field.mean(("time", "lon"))]
                case "mean by month":
                    out = [field.groupby("time.month").mean(...)]
                case "climatology":
                    out = [field.groupby("time.month").mean("time").transpose("month", "lat", "lon")]
                case "percentile per cell":
                    whole = field.chunk(time=-1) if chunks is not None else field
                    out = [whole.quantile(QUANTILE, "time")]
                case "top 10" if chunks is not None:
                    out = [field.data.ravel().topk(TOP)]
                case "top 10":
                    out = [highest(field.to_numpy())]
                case _:
                    out = [field.min("time"), field.max("time"), field.count("time")]
            return [np.asarray(a) for a in out]

    return answer


SQL = {
    "mean over time": "SELECT lat, lon, avg(T) FROM t GROUP BY lat, lon ORDER BY lat DESC, lon",
    "zonal mean": "SELECT lat, avg(T) FROM t GROUP BY lat ORDER BY lat DESC",
    "mean by month": "SELECT month(time), avg(T) FROM t GROUP BY 1 ORDER BY 1",
    "climatology": "SELECT month(time), lat, lon, avg(T) FROM t GROUP BY 1, 2, 3 ORDER BY 1, 2 DESC, 3",
    "percentile per cell": (
        f"SELECT lat, lon, quantile_cont(T, {QUANTILE}) FROM t GROUP BY 1, 2 ORDER BY 1 DESC, 2"
    ),
    "min, max, count": "SELECT lat, lon, min(T), max(T), count(T) FROM t GROUP BY 1, 2 ORDER BY 1 DESC, 2",
    "top 10": f"SELECT T AS highest FROM t ORDER BY T DESC LIMIT {TOP}",
}


# What names of columns that are no keys begin with.
VALUES = ("avg(", "quantile_cont(", "min(", "max(", "count(", "highest")


def by_duckdb(question: str, parquet: str) -> list[np.ndarray]:
    """Answer by DuckDB from Parquet."""
    import duckdb  # noqa: PLC0415

    with duckdb.connect() as connection:
        text = SQL[question].replace("FROM t", f"FROM '{parquet}'")
        columns = connection.sql(text).fetchnumpy()
    return [np.asarray(c) for name, c in columns.items() if name.startswith(VALUES)]


def by_xarray_sql(question: str, file: str) -> list[np.ndarray]:
    """Answer by xarray-sql, in DataFusion, its own engine."""
    import xarray as xr  # noqa: PLC0415
    import xarray_sql  # noqa: PLC0415

    text = SQL[question].replace("month(time)", "date_part('month', time)")
    # Names in double quotes: without them they are put into lower case.
    text = text.replace("(T)", '("T")').replace("SELECT T ", 'SELECT "T" ').replace("BY T ", 'BY "T" ')
    with xr.open_dataset(file, chunks=None) as data:
        context = xarray_sql.Context()
        context.from_dataset("t", data, chunks={"time": 48})
        table = context.sql(text).to_arrow_table()
    found = [name for name in table.column_names if name.startswith(VALUES)]
    return [table.column(name).to_numpy() for name in found]


def peers() -> dict[str, Callable[[str, str], list[np.ndarray]]]:
    """Return the peers that are installed."""
    found: dict[str, Callable[[str, str], list[np.ndarray]]] = {"numpy": by_numpy}
    if find_spec("xarray"):
        found["xarray"] = by_xarray(None, flox=False)
        if find_spec("flox"):
            found["xarray + flox"] = by_xarray(None, flox=True)
        if find_spec("dask"):
            found["xarray + dask"] = by_xarray({}, flox=bool(find_spec("flox")))
    if find_spec("duckdb"):
        found["DuckDB on Parquet"] = by_duckdb
    if find_spec("xarray_sql"):
        found["xarray-sql"] = by_xarray_sql
    return found


def main() -> None:
    """Answer until there are no more questions."""
    known = peers()
    for line in sys.stdin:
        asked = json.loads(line)
        if asked.get("peers"):
            print(json.dumps(list(known)), flush=True)
            continue
        if asked.get("unable"):
            print(json.dumps(UNABLE), flush=True)
            continue
        source = asked["parquet"] if asked["peer"].startswith("DuckDB") else asked["file"]
        start = time.perf_counter()
        answer = known[asked["peer"]](asked["question"], source)
        seconds = time.perf_counter() - start
        if asked.get("answer"):
            np.savez(asked["answer"], *[np.ravel(a) for a in answer])
        print(json.dumps(seconds), flush=True)


if __name__ == "__main__":
    main()
