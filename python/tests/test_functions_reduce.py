"""Reductions of users as aggregates in SQL: each sees its rows in order, on every way of a query."""

import json
import math
import subprocess
import sys
import tempfile

import h5py
import numpy as np
import pytest
import sieva
from collection_files import make_files
from draw_conditions import align
from draws import FORMATS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sieva import errors
from test_functions import CHUNK, SHAPE, values
from test_oracle import files, opened

# What it gives depends on the order of its rows, and on each bit of them.
FOLD = """double h, zeros;
void step(double x) {
    h = h * 0.5 + fmin(fmax(x, -1e6), 1e6);
    zeros = fmod(zeros * 2, 1024) + (copysign(1, x) < 0);
}
double finish() { return h + zeros; }"""
RMS = "double s; long n; void step(double x) { s += x * x; n++; } double finish() { return sqrt(s / n); }"
COV = """double xy, x, y; long n;
void step(double a, double b) { xy += a * b; x += a; y += b; n++; }
double finish() { return xy / n - (x / n) * (y / n); }"""
MOST = """unsigned long most; void step(unsigned char x) { if (x > most) most = x; }
unsigned long finish() { return most << 56; }"""
COUNT = "int n; void step(double x) { n++; } int finish() { return n; } void merge() { n += other.n; }"
FUNCTIONS = {
    "fold": FOLD,
    "rms": RMS,
    "COV": COV,
    "most": MOST,
    "many": COUNT,
    "warm": "double map(double x) { return x * 1.8 + 32; }",
}


def fold(x):
    h = zeros = 0.0
    for v in x[~np.isnan(x)].astype("f8").tolist():
        h = h * 0.5 + min(max(v, -1e6), 1e6)
        zeros = math.fmod(zeros * 2, 1024) + (math.copysign(1, v) < 0)
    return h + zeros


def rms(x):
    x = x[~np.isnan(x)].astype("f8")
    with np.errstate(all="ignore"):
        total = np.cumsum(x * x)[-1] if len(x) else 0.0
        return float(np.sqrt(total / len(x))) if len(x) else math.nan


def cov(a, b):
    there = ~(np.isnan(a) | np.isnan(b))
    a, b = a[there].astype("f8"), b[there].astype("f8")
    with np.errstate(all="ignore"):
        n = len(a)
        if n == 0:
            return math.nan
        return float(np.cumsum(a * b)[-1] / np.float64(n) - (np.cumsum(a)[-1] / n) * (np.cumsum(b)[-1] / n))


def same(got, expected):
    """Compare values of which None is NaN, bit for bit."""
    got = [math.nan if v is None else v for v in got]
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        assert one == other or (math.isnan(one) and math.isnan(other)), (got, expected)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("reductions") / "odd.h5"
    with h5py.File(path, "w") as f:
        for name, length in zip("zyx", SHAPE, strict=True):
            f[name] = np.arange(length)
            f[name].make_scale(name)
        for name, array in values().items():
            plain = {} if name == "S" else {"chunks": CHUNK, "compression": "gzip"}
            f.create_dataset(name, data=array, **plain)
            for d, dim in enumerate("zyx"):
                f[name].dims[d].attach_scale(f[dim])
        f.create_dataset("P", data=values()["K"], chunks=CHUNK)
        f["P"].attrs.update(scale_factor=0.25, add_offset=10.0, _FillValue=np.int16(-5))
        for d, dim in enumerate("zyx"):
            f["P"].dims[d].attach_scale(f[dim])
    sieva.open(path).build_index("T", "S", "K", kinds=["zonemap", "bitmap", "sorted"])
    return path


def arrays():
    """Return the arrays as they are decoded, and the positions along each dimension."""
    all_of = values()
    all_of["P"] = np.where(all_of["K"] == -5, np.nan, all_of["K"] * 0.25 + 10.0)
    return all_of | dict(zip("zyx", np.ogrid[tuple(slice(n) for n in SHAPE)], strict=True))


WHERES = {
    "": lambda _: np.ones(SHAPE, bool),
    "T > 12": lambda a: a["T"] > 12,
    "S <= 2 OR K = 5": lambda a: (a["S"] <= 2) | (a["K"] == 5),
    "warm(T) > 60 AND idx(z) < 9": lambda a: (a["T"] * 1.8 + 32 > 60) & (a["z"] < 9),
    "T > 1e300 AND idx(z) > 35": lambda _: np.zeros(SHAPE, bool),
    "K IN (3, -2) AND idx(y) % 7 = 1": lambda a: np.isin(a["K"], (3, -2)) & (a["y"] % 7 == 1),
}


@pytest.mark.parametrize("where", WHERES)
@pytest.mark.parametrize("access", ["auto", "scan", "zonemap", "bitmap", "sorted"])
def test_one_group_on_every_way(path, where, access):
    a = arrays()
    with np.errstate(invalid="ignore", over="ignore"):
        mask = np.broadcast_to(WHERES[where](a), SHAPE)
    clause = f"WHERE {where}" if where else ""
    text = (
        "SELECT fold(T) AS f, cov(T / 1e200, S) AS c, most(U) AS u, rms(P) AS p, fold(B) AS b, "
        f"fold(K - idx(x)) AS k, many(T) AS n, count(T) AS m, max(S) AS s, fold(raw(P)) AS r {clause}"
    )
    t, s = a["T"][mask], a["S"][mask]
    with np.errstate(invalid="ignore", over="ignore"):
        expected = {
            "f": fold(t),
            "c": cov(t / 1e200, s),
            "u": int(a["U"][mask].max(initial=0)) << 56,
            "p": rms(a["P"][mask]),
            "b": fold(t),
            "k": fold((a["K"] - a["x"])[mask].astype("f8")),
            "n": int((~np.isnan(t)).sum()),
            "m": int((~np.isnan(t)).sum()),
            "s": float(s.max()) if len(s) else math.nan,
            "r": fold(a["K"][mask].astype("f8")),
        }
    for threads in (1, 4):
        for memory in (None, 4 << 20):
            source = sieva.Session(cache=0).open(path)
            q = source.sql(text, functions=FUNCTIONS, access=access, threads=threads, memory=memory)
            got = q.to_arrow()
            for name, value in expected.items():
                same(got[name].to_pylist(), [value])


KEYS = {
    "idx(x)": lambda a: np.broadcast_to(a["x"], SHAPE),
    "z": lambda a: np.broadcast_to(a["z"], SHAPE),
    "K": lambda a: a["K"].astype("i8"),
    "idx(y) % 4, K > 0": lambda a: np.broadcast_to(a["y"] % 4, SHAPE) * 2 + (a["K"] > 0),
    "idx(z), idx(y), idx(x)": lambda _: np.arange(np.prod(SHAPE)).reshape(SHAPE),
    "1 + 1": lambda _: np.zeros(SHAPE, int),
}


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("where", ["", "T > 12"])
def test_groups(path, keys, where):
    a = arrays()
    with np.errstate(invalid="ignore"):
        mask = np.broadcast_to(WHERES[where](a), SHAPE).ravel()
    key = KEYS[keys](a).ravel()[mask]
    rows, order = np.flatnonzero(mask), np.argsort(key, kind="stable")
    groups = np.split(rows[order], np.flatnonzero(np.diff(key[order])) + 1)
    clause = f"WHERE {where}" if where else ""
    text = f"SELECT {keys}, fold(T) AS f, count(*) AS n, cov(B, S) AS c {clause} GROUP BY {keys}"
    t, s = a["T"].ravel(), a["S"].ravel()
    folds, counts = [fold(t[g]) for g in groups], [len(g) for g in groups]
    with np.errstate(invalid="ignore", over="ignore"):
        covs = [cov(t[g], s[g]) for g in groups]
    for access in ("auto", "scan", "bitmap", "sorted"):
        # With little memory rows are taken in in several steps.
        for threads, memory in ((1, None), (4, 24 << 20)):
            q = sieva.open(path).sql(text, functions=FUNCTIONS, access=access, threads=threads, memory=memory)
            got = q.to_arrow()
            assert got["n"].to_pylist() == counts
            same(got["f"].to_pylist(), folds)
            same(got["c"].to_pylist(), covs)
            assert q.count() == len(groups)


def test_having_order_and_limit(path):
    t = values()["T"]
    by_y = {y: fold(t[:, y]) for y in range(SHAPE[1])}
    kept = sorted((v, y) for y, v in by_y.items() if v > 300)
    assert 3 < len(kept) < SHAPE[1]
    text = "SELECT idx(y) AS y, fold(T) GROUP BY idx(y) HAVING fold(T) > 300 ORDER BY fold(T) DESC LIMIT 3"
    q = sieva.open(path).sql(text, functions=FUNCTIONS)
    got = q.to_arrow()
    assert got["y"].to_pylist() == [y for _, y in kept[::-1][:3]]
    same(got["fold(T)"].to_pylist(), [v for v, _ in kept[::-1][:3]])
    assert q.count() == 3
    text = (
        "SELECT z, -rms(T) + 1 AS r, rms(T) > rms(S) AS b WHERE z BETWEEN 3 AND 5 GROUP BY z ORDER BY z DESC"
    )
    got = sieva.open(path).sql(text, functions=FUNCTIONS).to_arrow()
    same(got["r"].to_pylist(), [1 - rms(t[z].ravel()) for z in (5, 4, 3)])
    s = values()["S"]
    assert got["b"].to_pylist() == [rms(t[z].ravel()) > rms(s[z].ravel()) for z in (5, 4, 3)]
    got = sieva.open(path).sql("SELECT count(*) AS n WHERE T > (SELECT rms(S))", functions=FUNCTIONS)
    assert got.to_arrow()["n"].to_pylist() == [int((t > rms(s.ravel())).sum())]


@pytest.mark.parametrize("file_format", FORMATS)
def test_the_law_holds_for_drawn_files(file_format):
    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(files(file_format), st.booleans())
    def law(drawn, unlimited):
        with tempfile.TemporaryDirectory() as directory:
            source = opened(directory, file_format, drawn, unlimited)
            for array in drawn:
                data, missing = array.decoded()
                if data.dtype.kind not in "iufb" or array.name in array.dims:
                    continue
                decoded = np.where(missing, np.nan, data.astype("f8"))
                q = source.sql(f'SELECT fold("{array.name}" + 0.0) AS f', functions=FUNCTIONS)
                rows = dict(source.query(f'"{array.name}" IS NOT NULL').rows)
                same(q.to_arrow()["f"].to_pylist(), [fold(align(array.dims, decoded + 0.0, rows).ravel())])

    law()


def test_plans_name_the_code(path):
    src = sieva.open(path)
    text = "SELECT z, cov(T, S) AS c WHERE T < 1e9 GROUP BY z HAVING many(T) > 590 ORDER BY rms(T) LIMIT 7"
    q = src.sql(text, functions=FUNCTIONS)
    expected, plan = q.to_arrow(), q.plan()
    assert '"cov:' in plan.to_json()
    assert '"reduce"' in plan.to_json()
    assert "cov(" in plan.sql()
    assert "reduce" not in plan.sql()
    for again in (
        src.query(sieva.Plan.from_json(plan.to_json()), functions=FUNCTIONS),
        src.query(sieva.Plan.from_bytes(bytes(plan)), functions=FUNCTIONS),
        src.sql(plan.sql(), functions=FUNCTIONS),
    ):
        assert again.plan().id == plan.id
        assert again.to_arrow().equals(expected)
    other = FUNCTIONS | {"COV": COV.replace("xy / n", "2 * xy / n")}
    assert src.sql(text, functions=other).plan().id != plan.id
    with pytest.raises(errors.UnknownFunction, match="whose code is not given"):
        src.query(plan)
    with pytest.raises(errors.UnknownFunction, match="of other code than that which is given"):
        src.query(plan, functions=other)
    assert "groups: z, c" in str(q.explain())
    assert "statistics, without data" not in str(q.explain())
    wrong = plan.to_json().replace('"reduce"', '"avg"')
    with pytest.raises(errors.SievaError):
        src.query(sieva.Plan.from_json(wrong), functions=FUNCTIONS)


def test_the_price_bounds_what_is_read(path):
    for text in (
        "SELECT rms(T), fold(S) WHERE T > 12",
        "SELECT z, cov(T, S), histogram(T, 4, 0, 9) GROUP BY z",
        "SELECT K, many(P), avg(S) WHERE S < 0 GROUP BY K",
    ):
        q = sieva.Session(cache=0).open(path).sql(text, functions=FUNCTIONS)
        price = q.price()
        q.to_arrow()
        read = q.stats()
        assert price.bytes_read.low <= read["bytes_read"] <= price.bytes_read.high, text


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("SELECT rms(DISTINCT T)", errors.Unsupported, r"rms\(DISTINCT \.\.\.\) is not supported"),
        ("SELECT rms(*)", errors.InvalidValue, r"rms\(\*\) has no meaning"),
        ("SELECT rms(), count(T)", errors.SyntaxError_, r"rms\(\) needs an argument"),
        ("SELECT rms(avg(T))", errors.SyntaxError_, r"an aggregate within rms\(\)"),
        ("SELECT avg(rms(T))", errors.SyntaxError_, r"an aggregate within avg\(\)"),
        ("SELECT rms(T, S)", errors.TypeMismatch, "'step' has 1 parameters, and it is asked of 2 columns"),
        ("SELECT rms('a'), count(T)", errors.TypeMismatch, "argument 1 of 'rms' is text"),
        ("SELECT most(T)", errors.TypeMismatch, "which unsigned char does not hold"),
        ("SELECT T WHERE rms(T) > 3", errors.SyntaxError_, "an aggregate cannot stand here"),
        ("SELECT T, rms(T)", errors.SyntaxError_, "'T' varies within a group"),
        ("SELECT rms(1)", errors.SyntaxError_, "nothing says which rows are meant"),
    ],
)
def test_what_makes_no_sense_is_refused(path, text, error, message):
    with pytest.raises(error, match=message):
        sieva.open(path).sql(text, functions=FUNCTIONS)


def test_code_that_fails_is_an_error_where_its_rows_are_asked_for(path):
    src = sieva.open(path)
    functions = {
        "f": "int n; void step(int k) { n += 1000 / k; } int finish() { return n; }",
        "g": "int n; void step(int k) { n++; } int finish() { return 10 / n; }",
        "stop": "int n; void step(int k) { while (1) n++; } int finish() { return n; }",
        "odd": "int n; void init() { n = 1 / n; } void step(int k) { } int finish() { return n; }",
    }
    k = values()["K"].astype(int)
    with pytest.raises(errors.Overflow, match=r"f\(\): line 1, column \d+: an integer is divided by zero"):
        src.sql("SELECT f(K)", functions=functions).to_arrow()
    got = src.sql("SELECT f(K) AS f WHERE K <> 0", functions=functions).to_arrow()
    assert got["f"].to_pylist() == [int(np.trunc(1000 / k[k != 0]).sum())]
    with pytest.raises(errors.Overflow, match=r"g\(\): line 1"):
        src.sql("SELECT g(K) WHERE K > 100", functions=functions).to_arrow()
    with pytest.raises(errors.SievaError, match="divided by zero"):
        src.sql("SELECT odd(K)", functions=functions).to_arrow()
    assert src.sql("SELECT K, g(K) WHERE K > 100 GROUP BY K", functions=functions).to_arrow().num_rows == 0
    got = src.sql("SELECT many(T) AS n, rms(T) AS r WHERE K > 100", functions=FUNCTIONS).to_arrow()
    assert (got["n"].to_pylist(), got["r"].to_pylist()) == ([0], [None])


def test_states_are_counted(path):
    large = {"f": "long a[8000]; void step(long x) { a[0] += x; } long finish() { return a[0]; }"}
    src = sieva.open(path)
    text = "SELECT idx(x) AS x, f(L) AS f GROUP BY idx(x)"
    expected = (values()["L"]).sum(axis=(0, 1)).tolist()
    assert src.sql(text, functions=large, memory=64 << 20).to_arrow()["f"].to_pylist() == expected
    with pytest.raises(errors.MemoryLimit, match="groups with 1 reductions of yours"):
        src.sql("SELECT f(L) GROUP BY idx(x), idx(y)", functions=large, memory=16 << 20).to_arrow()


def test_tasks_find_the_positions(path):
    src = sieva.open(path)
    text = "SELECT z, fold(T) AS f, cov(T, S) AS c WHERE K > 1 AND T < 1e9 GROUP BY z HAVING many(T) > 210"
    q = src.sql(text, functions=FUNCTIONS)
    expected = q.to_arrow()
    assert 0 < expected.num_rows < SHAPE[0]
    partials = [src.run_task(task, functions=FUNCTIONS) for task in q.tasks(5)]
    assert len(partials) > 1
    done = q.finish([sieva.Partial.from_bytes(bytes(p)) for p in partials[::-1]])
    assert done.to_arrow().equals(expected)
    by_engine = src.sql(text, functions=FUNCTIONS, engine="local")
    assert by_engine.to_arrow().equals(expected)
    assert by_engine.count() == expected.num_rows
    with pytest.raises(errors.Unsupported, match="tasks of the groups of a reduction of yours"):
        q.tasks(3, kind="groups")
    other = src.sql("SELECT z, many(T) AS n GROUP BY z", functions=FUNCTIONS)
    queries = [q, other, src.sql("SELECT avg(T) AS a WHERE K > 1")]
    sieva.Session().run(queries)
    assert q.to_arrow().equals(expected)
    assert other.to_arrow()["n"].to_pylist() == (~np.isnan(values()["T"])).sum(axis=(1, 2)).tolist()


def test_objects_of_a_collection_are_refused(tmp_path):
    catalog = str(tmp_path / "catalog.sqlite")
    sieva.Catalog(catalog).add(*make_files(tmp_path), collection="boss")
    with pytest.raises(errors.Unsupported, match="reduction of yours over the objects"):
        sieva.collection("boss", catalog=catalog).sql("SELECT rms(flux)", functions=FUNCTIONS).to_arrow()


def test_the_command_line(path, tmp_path):
    (tmp_path / "rms.c").write_text(RMS)
    text = f"SELECT z, rms(T) AS r FROM '{path}' WHERE z > 0 AND z < 3 GROUP BY z"
    command = [sys.executable, "-m", "sieva", "query", text, "--format", "json"]
    done = subprocess.run(
        [*command, f"--function=rms={tmp_path / 'rms.c'}"], capture_output=True, text=True, check=True
    )
    t = values()["T"]
    assert json.loads(done.stdout)["rows"] == [[z, rms(t[z].ravel())] for z in (1, 2)]
