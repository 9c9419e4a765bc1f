"""What was never written is answered as if its fill value had been, however much of it there is."""

import signal
import threading
import time
from fractions import Fraction

import h5py
import numpy as np
import pytest
import sieva

N = 1 << 58
CHUNK = 1 << 17


def declare(file, name, shape, dtype, fill=None, *, chunks=None):
    """Declare a dataset of which nothing is written."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if chunks:
        plist.set_chunk(chunks)
    if fill is not None:
        plist.set_fill_value(np.array(fill, dtype))
    plist.set_alloc_time(h5py.h5d.ALLOC_TIME_INCR if chunks else h5py.h5d.ALLOC_TIME_LATE)
    kind = h5py.h5t.py_create(np.dtype(dtype), logical=True)
    h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple(shape), plist)
    return file[name]


@pytest.fixture(scope="module")
def giant(tmp_path_factory):
    """Return a file of some kilobytes whose arrays are of 2^58 elements."""
    path = tmp_path_factory.mktemp("giant") / "giant.h5"
    with h5py.File(path, "w") as f:
        declare(f, "a", (N,), "f4", 7)
        declare(f, "tenth", (N,), "f8", 0.1)
        declare(f, "i", (N,), "i8", -3)
        declare(f, "u", (N,), "u8", 2**64 - 1)
        f.create_dataset("fixed", (N,), "S4", fillvalue=b"ab")
        declare(f, "any", (N,), h5py.string_dtype())
        declare(f, "loose", (N,), h5py.string_dtype(), chunks=(CHUNK,))
        declare(f, "flag", (N,), "?", True)
        # Two chunks are written, of which one element is something else.
        b = declare(f, "b", (N,), "i4", 5, chunks=(CHUNK,))
        b[3] = 50
        b[N // 3] = 60
        declare(f, "missing", (N,), "i4", 9).attrs["_FillValue"] = np.int32(9)
        # Two dimensions, one of which is short and written.
        f["y"] = np.array([1.0, 2.0, 3.0])
        declare(f, "wide", (3, N // 4), "i2", 2)
    return path


@pytest.fixture
def source(giant):
    names = ["a", "tenth", "i", "u", "fixed", "any", "loose", "flag", "b", "missing"]
    dims = {name: ["x"] for name in names} | {"y": ["y"], "wide": ["y", "z"]}
    return sieva.open(giant, dims=dims, memory=64 << 20)


CONDITIONS = {
    "fixed = 'ab'": N,
    "fixed = 'a'": 0,
    "lower(fixed) LIKE 'a%'": N,
    "any = ''": N,
    "any <> ''": 0,
    "length(any) = 0": N,
    "loose = 'a'": 0,
    "any = fixed": 0,
    "a * 2 > 0": N,
    "a + i > 4": 0,
    "a + i = 4": N,
    "sqrt(a) > 3 OR NOT flag": 0,
    "flag": N,
    "b * 2 > 10": 2,
    "b * 2 = 10": N - 2,
    "b + i > 2 AND fixed = 'ab'": 2,
    "missing * 2 > 0": 0,
    "missing * 2 IS NULL": N,
    "if(missing IS NULL, a, 0) = 7": N,
    "idx(x) < 10 AND a * 2 > 0": 10,
    "u > i AND u - 1 > 5": N,
    "wide * y > 4": N // 4,
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions(source, condition):
    query = source.query(condition)
    assert query.count() == CONDITIONS[condition]
    # Through the aggregation, too.
    assert query.stats()["tiles_scanned"] < 40_000
    rows = source.sql(f"SELECT count(*) AS n WHERE {condition}").to_arrow().to_pylist()
    assert rows == [{"n": CONDITIONS[condition]}]


AGGREGATES = {
    "count(a)": N,
    "count(any)": N,
    "count(missing)": 0,
    "count(DISTINCT a)": 1,
    "sum(a)": 7.0 * N,
    "sum(tenth)": float(Fraction(0.1) * N),
    "sum(a * tenth)": float(Fraction(7 * 0.1) * N),
    "avg(tenth)": 0.1,
    "sum(i)": -3 * N,
    "sum(b)": 5 * N + 45 + 55,
    "avg(b)": (5 * N + 100) / N,
    "min(b)": 5,
    "max(b)": 60,
    "count(DISTINCT b)": 3,
    "sum(missing)": None,
    "min(fixed)": "ab",
    "max(any)": "",
    "stddev(a)": 0.0,
    "var_pop(tenth)": 0.0,
    "avg(u)": float(2**64 - 1),
    "sum(float64(u))": float(2**64) * N,
    "sum(a * 0)": 0.0,
    "min(-a * 0)": -0.0,
}


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_aggregates(source, aggregate):
    ((got,),) = (row.values() for row in source.sql(f"SELECT {aggregate} AS r").to_arrow().to_pylist())
    expected = AGGREGATES[aggregate]
    assert got == expected
    assert type(got) is type(expected)
    if isinstance(got, float):
        assert np.signbit(got) == np.signbit(expected)


def test_variance_of_one_in_many(source):
    # n - 2 times 5, 50 and 60: exactly, rounded once.
    total, squares = 5 * N + 100, 25 * (N - 2) + 2500 + 3600
    expected = float((Fraction(squares) - Fraction(total) ** 2 / N) / N)
    assert source.sql("SELECT var_pop(b) AS v").to_arrow().to_pylist() == [{"v": expected}]


def test_what_does_not_fit(source):
    with pytest.raises(sieva.errors.MemoryLimit, match="1 groups of 1 aggregates"):
        source.sql("SELECT median(a) AS m").to_arrow()
    assert source.sql("SELECT median(missing) AS m").to_arrow().to_pylist() == [{"m": None}]
    with pytest.raises(sieva.errors.Overflow, match=f"the sum {(2**64 - 1) * N} does not fit"):
        source.sql("SELECT sum(u) AS s").to_arrow()


def test_histograms_and_groups(source):
    counts, edges = np.histogram([5, 50, 60], 4)
    (row,) = source.sql("SELECT histogram(b, 4) AS h").to_arrow().to_pylist()
    assert row["h"]["counts"] == [N - 2, *counts[1:].tolist()]
    assert row["h"]["edges"] == edges.tolist()
    sql = "SELECT b, count(*) AS n, sum(a) AS s, min(fixed) AS t GROUP BY b"
    assert source.sql(sql).to_arrow().to_pylist() == [
        {"b": 5, "n": N - 2, "s": 7.0 * (N - 2), "t": "ab"},
        {"b": 50, "n": 1, "s": 7.0, "t": "ab"},
        {"b": 60, "n": 1, "s": 7.0, "t": "ab"},
    ]
    sql = "SELECT any, missing, count(*) AS n WHERE b * 2 > 5 GROUP BY any, missing"
    assert source.sql(sql).to_arrow().to_pylist() == [{"any": "", "missing": None, "n": N}]
    sql = "SELECT y, sum(wide * y) AS s, count(*) AS n GROUP BY y"
    assert source.sql(sql).to_arrow().to_pylist() == [
        {"y": y, "s": 2.0 * y * (N // 4), "n": N // 4} for y in (1.0, 2.0, 3.0)
    ]
    sql = "SELECT b, count(*) AS n GROUP BY b HAVING count(*) < 5"
    assert len(source.sql(sql).to_arrow()) == 2


def test_an_overflow_is_told(source):
    beyond = "i * 9223372036854775807 > 0"
    for text in (f"SELECT count(*) AS n WHERE {beyond}", f"SELECT max(if({beyond}, 1, 0)) AS m WHERE a = 7"):
        with pytest.raises(sieva.errors.Overflow):
            source.sql(text).to_arrow()
    assert source.query(f"a > 8 AND {beyond}").count() == 0


@pytest.mark.parametrize("chunks", [None, (7, 5)])
def test_as_if_it_had_been_written(tmp_path, chunks):
    """The same queries on what is not written, partly written, and written."""
    shape, lazy, full = (40, 30), tmp_path / "lazy.h5", tmp_path / "full.h5"
    with h5py.File(lazy, "w") as f:
        declare(f, "a", shape, "f4", -0.0, chunks=chunks)
        declare(f, "b", shape, "i2", 300, chunks=chunks)
        declare(f, "t", shape, "S3", b"q ", chunks=chunks)
        declare(f, "v", shape, h5py.string_dtype(), chunks=chunks)
        declare(f, "m", shape, "f8", np.nan, chunks=chunks)
        declare(f, "odd", shape, ">u4", 4_000_000_000, chunks=chunks)
        if chunks:
            f["b"][9, 9] = -1
            f["m"][20:25] = np.arange(30.0)
    with h5py.File(lazy) as f, h5py.File(full, "w") as g:
        for name, array in f.items():
            values = array.asstr()[...] if name == "v" else array[...]
            g.create_dataset(name, data=values.astype(object) if name == "v" else values, dtype=array.dtype)
    columns = ["a", "b", "t", "v", "m", "odd", "a + b", "b * odd", "length(t)", "coalesce(m, a)", "1 / a"]
    queries = [
        f"SELECT {c} AS c WHERE {d} LIMIT 50" for c in columns for d in ("b > 0", "m * 1 IS NULL", "t = 'q '")
    ]
    functions = ("count", "min", "max", "count(DISTINCT")
    for c in columns:
        aggregates = [f"{f}{' ' if '(' in f else '('}{c})" for f in functions]
        if c not in {"t", "v"}:
            aggregates += [f"{f}({c})" for f in ("sum", "avg", "stddev", "median")]
            aggregates.append(f"histogram({c}, 3, 0, 1000)")
        for one in aggregates:
            queries += [f"SELECT {one} AS r", f"SELECT b, m, {one} AS r WHERE NOT a > 0 GROUP BY b, m"]
    dims = {name: ["y", "x"] for name in ("a", "b", "t", "v", "m", "odd")}
    a, b = (sieva.open(path, dims=dims) for path in (lazy, full))
    for text in queries:
        got, expected = (repr(s.sql(text).to_arrow().to_pylist()) for s in (a, b))
        assert got == expected, text


SLOW = {
    "filter": "SELECT count(*) AS n WHERE (idx(x) + a) % 7 = 3",
    "text": "SELECT count(*) AS n WHERE length(fixed) + idx(x) % 7 = 3",
    "any text": "SELECT count(*) AS n WHERE length(any) + idx(x) % 7 = 3",
    "aggregate": "SELECT sum(idx(x) * a) AS s, stddev(idx(x)) AS d",
    "histogram": "SELECT histogram(idx(x) % 7, 3) AS h",
    "group by": "SELECT idx(x) % 7 AS k, count(*) AS n, sum(a) AS s GROUP BY idx(x) % 7",
    "order by": "SELECT a ORDER BY idx(x) % 7, a LIMIT 3",
    "distinct": "SELECT DISTINCT idx(x) % 7 AS k, a",
    "rows": "SELECT a WHERE idx(x) % 1000000 = 5",
    "selection": "SELECT a WHERE (idx(x) + a) % 7 = 3 LIMIT 3 OFFSET 1000000000000",
}


@pytest.mark.parametrize("way", ["signal", "cancel"])
@pytest.mark.parametrize("name", SLOW)
def test_a_long_query_ends_when_it_is_told_to(source, name, way):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    query = source.sql(SLOW[name])
    stop = (lambda: signal.raise_signal(signal.SIGINT)) if way == "signal" else query._native.cancel
    timer = threading.Timer(0.5, stop)
    expected = KeyboardInterrupt if way == "signal" else (sieva.errors.Cancelled, sieva.errors.MemoryLimit)
    started = time.monotonic()
    try:
        timer.start()
        with pytest.raises(expected):
            query.to_arrow()
    finally:
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - started < 10
