"""Arrays and data frames of Dask, whose parts are read when Dask computes them."""

from __future__ import annotations

import json
import math
import os
import pickle
from typing import TYPE_CHECKING, Any

from sieva import errors
from sieva._extras import required
from sieva._query import reader_of
from sieva.engines import _work
from sieva.engines._driver import how_of, run_of
from sieva.engines._frames import pack, unpack_columns, unpack_values
from sieva.engines._work import Work

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from sieva import _native
    from sieva._expr import Expr
    from sieva._query import Query

# Parts for each core, where nobody says how many.
PARTS = 4
# Steps of a plan whose rows are those of its parts, one behind the other.
PLAIN = {"filter", "project"}


def to_dask_array(query: Query, name: str | Expr | None, parts: int | None, known: bool) -> Any:  # noqa: ANN401
    """Return the values at the points as a Dask array; see `Query.to_dask_array`."""
    da = required("dask.array", "to_dask_array()", "dask")
    dask = required("dask", "to_dask_array()", "dask")
    if query._native.grouped:
        raise errors.Unsupported("a Dask array of groups", "take to_dask_dataframe()")
    item = None if name is None else str(query._item(name))
    dtype = _dtype(query, item)
    works = _works(query, {"columns": False, "value": item}, parts, known)
    values = dask.delayed(_values, pure=True)
    pieces = [
        da.from_delayed(values(bytes(work), dtype), shape=(rows if known else math.nan,), dtype=dtype)
        for work, rows in works
    ]
    return da.concatenate(pieces, allow_unknown_chunksizes=True)


def to_dask_dataframe(query: Query, parts: int | None, known: bool) -> Any:  # noqa: ANN401
    """Return the rows as a Dask data frame; see `Query.to_dask_dataframe`."""
    dd = required("dask.dataframe", "to_dask_dataframe()", "dask")
    steps = json.loads(query.plan().to_json())["steps"]
    if query._native.grouped or not all(set(step) <= PLAIN for step in steps):
        meta = _plain(query).to_pandas() if query._native.grouped else _empty(query)
        return dd.from_map(_whole, [pickle.dumps(_plain(query))], meta=meta.iloc[:0], enforce_metadata=False)
    meta = _empty(query)
    works = _works(query, {"columns": True}, parts, known)
    starts, total = [], 0
    for _, rows in works:
        starts.append(total)
        total += rows
    given = [(bytes(work), first if known else 0) for (work, _), first in zip(works, starts, strict=True)]
    divisions = (*starts, max(total - 1, starts[-1])) if known else None
    return dd.from_map(_frame, given, dtypes=meta.dtypes.to_dict(), meta=meta, divisions=divisions)


def _works(query: Query, wanted: dict[str, Any], parts: int | None, known: bool) -> list[tuple[Work, int]]:
    """Return the work of each part, in the order of rows, and how many rows it gives where that is known."""
    tasks = _runs(query, parts)
    what = json.dumps(wanted).encode()
    running = {name: value for name, value in query._running.items() if name != "cross"}
    how = how_of(query.source, running)
    if not known:
        return [(Work("fetch", pack(bytes(task), b"", what), None, 0, how), 0) for _, task in tasks]
    selection = query.selection()
    found: list[tuple[Work, int]] = []
    for (first, last), task in tasks:
        a, b = selection.rank(first), selection.rank(last)
        if b > a or not found:
            data = pack(bytes(task), bytes(selection.part(a, b)), what)
            found.append((Work("fetch", data, None, b - a, how), b - a))
    return found


def _runs(query: Query, parts: int | None) -> list[tuple[tuple[int, int], _native.Task]]:
    """Return tasks whose rows follow one another in C order, with their rows."""
    of = [n for _, n in query._native.rows]
    n = parts or PARTS * len(os.sched_getaffinity(0))
    while True:
        tasks = query._native.tasks(n, "selection")
        found = [(run_of(task.start, task.shape, of), task) for task in tasks]
        runs = [(run, task) for run, task in found if run is not None]
        if len(runs) == len(tasks):
            return sorted(runs, key=lambda part: part[0])
        n = max(1, n // 2)


def _dtype(query: Query, item: str | None) -> np.dtype[Any]:
    """Return the type of an array's values in every part, without reading any."""
    import numpy as np

    name = query.columns[0] if item is None else item
    native = query.source._native
    try:
        found = native.info(native.resolve(name.strip('"')))["decoded_dtype"]
    except KeyError:
        asked = query._native.of_its_rows([name])
        kind = reader_of(asked.at(None), 1).schema.field(0).type.to_pandas_dtype()
        dtype = np.dtype("O") if kind is np.str_ else np.dtype(kind)
    else:
        dtype = np.dtype("O") if found == "str" else np.dtype(found)
    return np.dtype("f8") if dtype.kind in "iu" and _may_be_missing(query, name) else dtype


def _may_be_missing(query: Query, name: str) -> bool:
    """Return whether some value of an integer may be missing, by which a part would have another type."""
    try:
        info = query.source._native.info(query.source._native.resolve(name.strip('"')))
    except KeyError:
        return True  # an expression: dividing may give none
    opened = query.source._opened
    return bool(info["missing"]) or (opened is not None and bool(opened.options.get("valid_range")))


def _empty(query: Query) -> pd.DataFrame:
    """Return no rows, in types that all parts have: integers and bools may be missing in some."""
    frame = reader_of(query._native.at(None), 1).read_all().to_pandas()
    wide = {"i": "float64", "u": "float64", "b": "object"}
    types = {
        name: wide[dtype.kind]
        for name, dtype in frame.dtypes.items()
        if getattr(dtype, "kind", "O") in wide and _may_be_missing(query, str(name))
    }
    return frame.astype(types)


def _plain(query: Query) -> Query:
    from sieva._query import Query

    return Query(query._native, query.source, query.text, query._running)


def _run(data: bytes) -> bytes:
    """Run work where Dask has put it: on one of its workers, or in this process."""
    from sieva.engines.dask import run_work

    try:
        from distributed import get_worker

        get_worker()
    except (ImportError, ValueError):
        return _work.execute(Work.from_bytes(data))
    return run_work(data)


def _values(data: bytes, dtype: np.dtype[Any]) -> NDArray[Any]:
    return unpack_values(_run(data)).astype(dtype, copy=False)


def _frame(given: tuple[bytes, int], dtypes: dict[str, Any]) -> pd.DataFrame:
    data, first = given
    frame = unpack_columns(_run(data)).to_pandas().astype(dtypes)
    frame.index = frame.index + first
    return frame


def _whole(query: bytes) -> pd.DataFrame:
    asked: Query = pickle.loads(query)  # noqa: S301 - made by this package, carried by Dask
    return asked.to_pandas()
