"""Functions of users in SQL: the answer is that of numpy, on every way that a query may take."""

import json
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np
import pytest
import sieva
from collection_files import make_files, objects
from draw_conditions import align
from draws import FORMATS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sieva import errors
from test_oracle import assert_identical, files, opened

WARM = "double map(double x) { return x * 1.8 + 32; }"
INVERSE = "int map(int k) { return 1000 / k; }"
INSIDE = "int filter(double t, double s) { return t > 2 * s; }"
ENDLESS = "double map(double x) { while (1) x += 1; return x; }"
SHAPE, CHUNK = (40, 30, 20), (7, 30, 11)


def section(number, *items):
    """Return a section of a WebAssembly module: a vector of items."""
    body = bytes([len(items)]) + b"".join(items)
    return bytes([number, len(body)]) + body


def exported(name, kind, index):
    """Return an entry of the exports."""
    return bytes([len(name)]) + name.encode() + bytes([kind, index])


# A bump allocator, and a map that adds 1 to int64 values where they lie.
_ALLOC = bytes.fromhex("00 2300 2300 2000 410f 6a 4170 71 6a 2400 0b")
_ADD = bytes.fromhex(
    "01 02 7f 2000 280204 2102 2000 28020c 2103 0240 0340 2003 45 0d01 2002 2002 290300 4201 7c 370300"
    "2002 4108 6a 2102 2003 4101 6b 2103 0c00 0b 0b 2000 0b"
)
ADD_ONE = (
    b"\0asm\1\0\0\0"
    + section(1, bytes.fromhex("60 01 7f 01 7f"), bytes.fromhex("60 02 7f7f 01 7f"))
    + section(3, b"\0", b"\1")
    + section(5, b"\0\x10")
    + section(6, bytes.fromhex("7f 01 418008 0b"))
    + section(7, exported("memory", 2, 0), exported("sieva_alloc", 0, 0), exported("sieva_map", 0, 1))
    + section(10, bytes([len(_ALLOC)]) + _ALLOC, bytes([len(_ADD)]) + _ADD)
)


def values():
    """Return arrays with what is odd among them."""
    rng = np.random.default_rng(7)
    t = rng.normal(10, 8, SHAPE)
    t[rng.random(SHAPE) < 0.02] = np.nan
    t[0, 0, :6] = [-0.0, 0.0, np.inf, -np.inf, 1e308, 5e-324]
    s = np.sort(rng.normal(3, 2, SHAPE).astype("f4"), axis=0)
    k = rng.integers(-5, 6, SHAPE).astype("i2")
    return {"T": t, "S": s, "K": k, "U": k.astype("u1"), "B": t.astype(">f8"), "L": k.astype("i8") << 40}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("functions") / "odd.h5"
    with h5py.File(path, "w") as f:
        for name, length in zip("zyx", SHAPE, strict=True):
            f[name] = np.arange(length)
            f[name].make_scale(name)
        for name, array in values().items():
            f.create_dataset(name, data=array, chunks=CHUNK, compression="gzip")
            for d, dim in enumerate("zyx"):
                f[name].dims[d].attach_scale(f[dim])
    sieva.open(path).build_index("T", "S", "K", kinds=["zonemap", "bitmap", "sorted"])
    return path


def warm(x):
    with np.errstate(all="ignore"):
        return x.astype("f8") * 1.8 + 32


CONDITIONS = {
    "warm(T) > 60": lambda a: warm(a["T"]) > 60,
    "warm(S) <= 35 AND S > 1": lambda a: (warm(a["S"]) <= 35) & (a["S"] > 1),
    "NOT warm(T) > 60": lambda a: warm(a["T"]) <= 60,
    "warm(T) IS NULL": lambda a: np.isnan(a["T"]),
    "inside(T, S) OR K = 5": lambda a: (a["T"] > 2 * a["S"].astype("f8")) | (a["K"] == 5),
    "NOT inside(T, S)": lambda a: (a["T"] <= 2 * a["S"].astype("f8")) & ~np.isnan(a["T"]),
    "idx(z) < 5 AND warm(B) BETWEEN 30 AND 50": lambda a: (
        (np.arange(40)[:, None, None] < 5) & (warm(a["T"]) >= 30) & (warm(a["T"]) <= 50)
    ),
    "K <> 0 AND inverse(K) > 300": lambda a: (a["K"] > 0) & (a["K"] <= 3),
    "share(if(K = 0, 1, K)) = 1000": lambda a: (a["K"] == 0) | (a["K"] == 1),
    "twice(L) < 0": lambda a: a["K"] < 0,
    "warm(T) = warm(B)": lambda a: ~np.isnan(a["T"]),
    "least(warm(T), 40) < 40 AND warm(5) = 41": lambda a: warm(a["T"]) < 40,
}
FUNCTIONS = {
    "warm": WARM,
    "inverse": INVERSE,
    "INSIDE": INSIDE,
    "twice": "long map(long x) { return 2 * x; }",
    "share": "long map(long x) { return 1000 / x; }",
}


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("access", ["auto", "scan", "zonemap", "bitmap", "sorted"])
def test_conditions_select_what_numpy_does_on_every_way(path, condition, access):
    with np.errstate(invalid="ignore"):
        expected = np.flatnonzero(CONDITIONS[condition](values()))
    for threads in (1, 2):
        q = (
            sieva.Session(cache=0)
            .open(path)
            .query(condition, access=access, functions=FUNCTIONS, threads=threads)
        )
        shape = tuple(q.rows.values())
        found = np.ravel_multi_index(tuple(q.selection().coords().T), shape)
        assert q.count() == len(found)
        assert len(shape) == 3
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("file_format", FORMATS)
def test_the_law_holds_for_drawn_files(file_format):
    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(files(file_format), st.floats(-200, 200), st.booleans())
    def law(drawn, bound, unlimited):
        with tempfile.TemporaryDirectory() as directory:
            source = opened(directory, file_format, drawn, unlimited)
            numbers = [a for a in drawn if a.decoded()[0].dtype.kind in "iufb" and a.name not in a.dims]
            for array in numbers:
                data, missing = array.decoded()
                computed = np.where(missing, np.nan, warm(data))
                q = source.query(f'warm("{array.name}") > {bound!r}', functions={"warm": WARM})
                rows = dict(q.rows)
                with np.errstate(invalid="ignore"):
                    mask = align(array.dims, computed, rows) > bound
                assert q.count() == np.count_nonzero(mask)
                assert_identical(
                    q.read(f'warm("{array.name}")').astype("f8"), computed.reshape(mask.shape)[mask]
                )

    law()


def test_functions_stand_wherever_values_do(path):
    arrays = values()
    src = sieva.open(path)
    t = warm(arrays["T"])
    got = src.sql(
        "SELECT z, sum(warm(T)) AS s, count(warm(T)) AS n WHERE z < 3 AND T < 1e300 AND T > -1e300 "
        "GROUP BY z ORDER BY z",
        functions=FUNCTIONS,
    ).to_arrow()
    usual = np.where(np.abs(arrays["T"]) < 1e300, t, np.nan)[:3]
    assert got["n"].to_pylist() == np.isfinite(usual).sum(axis=(1, 2)).tolist()
    np.testing.assert_allclose(got["s"].to_pylist(), np.nansum(usual, axis=(1, 2)), rtol=1e-13)
    got = src.sql(
        "SELECT inverse(K) AS k, count(*) AS n WHERE K <> 0 GROUP BY inverse(K) ORDER BY k",
        functions=FUNCTIONS,
    )
    of_k = arrays["K"][arrays["K"] != 0].astype(int)
    keys, counts = np.unique(np.trunc(1000 / of_k).astype(int), return_counts=True)
    assert (got.to_arrow()["k"].to_pylist(), got.to_arrow()["n"].to_pylist()) == (
        keys.tolist(),
        counts.tolist(),
    )
    got = src.sql(
        "SELECT warm(T) AS w WHERE T IS NOT NULL AND z = 4 ORDER BY warm(T) DESC LIMIT 5", functions=FUNCTIONS
    )
    plain = t[4][~np.isnan(arrays["T"][4])]
    assert got.to_arrow()["w"].to_pylist() == np.sort(plain)[::-1][:5].tolist()
    got = src.sql(
        "SELECT count(*) AS n WHERE warm(T) > (SELECT avg(warm(S)))", functions=FUNCTIONS
    ).to_arrow()
    assert got["n"].to_pylist() == [int((t > warm(arrays["S"]).mean()).sum())]
    got = src.sql(
        "SELECT warm(NULL) AS a, inverse(4) AS b, inside(4, 1) AS c, z WHERE z = 0", functions=FUNCTIONS
    ).to_arrow()
    assert [got[c].to_pylist() for c in "abc"] == [[None], [250], [True]]


def test_a_row_for_which_a_function_fails_is_an_error_where_the_answer_depends_on_it(path):
    src = sieva.open(path)
    for access in ("auto", "scan"):
        q = src.query("inverse(K) > 300", functions=FUNCTIONS, access=access)
        with pytest.raises(
            errors.Overflow, match=r"inverse\(0\): line 1, column 30: an integer is divided by zero"
        ):
            q.count()
    # As text by which it is no row's fault: more rows fail than are looked for.
    always = {"f": "int map(int k) { return k / (k - k); }"}
    with pytest.raises(errors.Overflow, match=r"f\(-?\d\): line 1"):
        src.query("f(K) > 3", functions=always).count()
    assert src.query("f(K) > 3 AND K > 100", functions=always).count() == 0
    assert src.query("f(K) > 3 OR K > -100", functions=always).count() == np.prod(SHAPE)


def test_other_code_is_another_question(path):
    session = sieva.Session()
    src = session.open(path)
    text = "SELECT count(*) AS n WHERE f(K) > 1"
    one, other = ({"f": f"int map(int k) {{ return k - {n}; }}"} for n in (0, 1))
    k = values()["K"]
    for functions, expected in ((one, k > 1), (other, k > 2), (one, k > 1)):
        q = src.sql(text, functions=functions)
        assert q.to_arrow()["n"].to_pylist() == [int(expected.sum())]
        assert src.query("f(K) > 1", functions=functions).count() == int(expected.sum())
        assert "f(K) > 1" in str(q.explain()) or "f(K)" in q.text
    a, b = src.sql(text, functions=one).plan(), src.sql(text, functions=other).plan()
    assert a.id != b.id
    assert a.id == src.sql(text, functions=one).plan().id
    again = src.query(sieva.Plan.from_bytes(bytes(a)), functions=one)
    assert again.to_arrow()["n"].to_pylist() == [int((k > 1).sum())]
    with pytest.raises(errors.UnknownFunction, match="calls 'f', whose code is not given"):
        src.query(a)
    with pytest.raises(errors.UnknownFunction, match="calls 'f' of other code than that which is given"):
        src.query(a, functions=other)
    with pytest.raises(errors.UnknownFunction, match="no function 'f'"):
        src.sql(text)


@pytest.mark.parametrize(
    ("functions", "error", "message"),
    [
        (
            {"sqrt": WARM},
            errors.InvalidValue,
            "'sqrt' is no name for a function: there is a function of that name",
        ),
        ({"a b": WARM}, errors.InvalidValue, "'a b' is no name for a function"),
        ({"f": "double map(double x) { return y; }"}, errors.SyntaxError_, "function 'f'.*line 1"),
        ({"f": "int map(int x) { return x; }"}, errors.TypeMismatch, "float64, which int does not hold"),
        (
            {"f": "double map(double x, double y) { return x; }"},
            errors.TypeMismatch,
            "2 parameters, and it is asked of 1",
        ),
        (
            {"f": "void step(double x) { } int finish() { return 1; }"},
            errors.SyntaxError_,
            "an aggregate cannot stand here",
        ),
        ({"f": "return input.vals[0];"}, errors.Unsupported, "no function of each row"),
        ({"f": b"\0asm\1\0\0\0"}, errors.TypeMismatch, "does not export its memory"),
        (
            {"f": "double s; double map(double x) { return s += x; }"},
            errors.SyntaxError_,
            "would be kept from row to row",
        ),
    ],
)
def test_wrong_functions_are_told(path, functions, error, message):
    with pytest.raises(error, match=message):
        sieva.open(path).query("f(T) > 3", functions=functions)


def test_wrong_arguments_are_told(path, tmp_path):
    src = sieva.open(path)
    with pytest.raises(TypeError, match="functions= is a mapping of names to code"):
        src.query("f(T) > 3", functions="f")
    with pytest.raises(TypeError, match="functions= is a mapping of names to code"):
        src.query("f(T) > 3", functions={"f": 3})
    with pytest.raises(errors.FileNotFound, match=r"cannot read the function 'f' from .*none\.c"):
        src.query("f(T) > 3", functions={"f": tmp_path / "none.c"})
    with pytest.raises(errors.TypeMismatch, match="argument 1 of 'f' is text"):
        src.query("f('a') > 3", functions={"f": WARM})


def test_a_loop_without_end_is_cancelled(path):
    q = sieva.open(path).query("f(T) > 3", functions={"f": ENDLESS})
    threading.Timer(0.5, q.cancel).start()
    with ThreadPoolExecutor(1) as pool, pytest.raises(errors.Cancelled):
        pool.submit(q.count).result()


def test_files_and_modules_are_code(path, tmp_path):
    k = values()["K"]
    (tmp_path / "add.wasm").write_bytes(ADD_ONE)
    (tmp_path / "warm.c").write_text(WARM)
    src = sieva.open(path)
    for code in (ADD_ONE, tmp_path / "add.wasm"):
        q = src.query(
            "add(twice(L)) % 2 = 1 AND add(twice(L)) > 1",
            functions={"add": code, "twice": FUNCTIONS["twice"]},
        )
        assert q.count() == int((k > 0).sum())
        assert q.read("add(twice(L))").tolist() == (2 * (k[k > 0].astype("i8") << 40) + 1).tolist()
    assert src.query("f(T) > 60", functions={"f": tmp_path / "warm.c"}).count() == int(
        (warm(values()["T"]) > 60).sum()
    )
    assert src.query("f(T) > 60", functions={"f": WARM.encode()}).count() == int(
        (warm(values()["T"]) > 60).sum()
    )


def test_other_processes_get_the_code(path, tmp_path):
    expected = int((warm(values()["T"]) > 60).sum())
    (tmp_path / "warm.c").write_text(WARM)
    src = sieva.open(path)
    functions = {"warm": tmp_path / "warm.c", "add": ADD_ONE, "twice": FUNCTIONS["twice"]}
    condition = "warm(T) > 60 AND add(twice(L)) <> 0"
    q = src.query(condition, functions=functions, engine="local")
    assert q.count() == expected
    assert q.read("warm(T)").tolist() == src.query(condition, functions=functions).read("warm(T)").tolist()
    tasks = src.query(condition, functions=functions).tasks(3)
    partials = [src.run_task(task, functions=functions) for task in tasks]
    assert src.query(condition, functions=functions).finish(partials).count() == expected


def test_objects_of_a_collection_are_asked_by_functions(tmp_path):
    paths = make_files(tmp_path)
    catalog = str(tmp_path / "catalog.sqlite")
    sieva.Catalog(catalog).add(*paths, collection="boss")
    collection = sieva.collection("boss", catalog=catalog)
    text = "SELECT object, count(*) AS n WHERE warm(flux) > 60 AND RADEG > 0 GROUP BY object"
    got = collection.sql(text, functions={"warm": WARM})
    expected = sum(
        int((warm(arrays["flux"]) > 60).sum()) for *_, arrays in objects(paths) if "flux" in arrays
    )
    assert expected > 0
    assert sum(got.to_arrow()["n"].to_pylist()) == expected
    assert '"warm:' in got.plan().to_json()
    again = collection.query(got.plan(), functions={"warm": WARM})
    assert sum(again.to_arrow()["n"].to_pylist()) == expected
    with pytest.raises(errors.UnknownFunction, match="warm"):
        collection.sql(text).to_arrow()


def test_the_command_line_takes_functions_from_files(path, tmp_path):
    (tmp_path / "warm.c").write_text(WARM)
    (tmp_path / "add.wasm").write_bytes(ADD_ONE)
    text = f"SELECT count(*) AS n FROM '{path}' WHERE warm(T) > 60 AND add(L) <> 0"
    command = [sys.executable, "-m", "sieva", "query", text, "--format", "json"]
    given = [f"--function=warm={tmp_path / 'warm.c'}", f"--function=add={tmp_path / 'add.wasm'}"]
    done = subprocess.run([*command, *given], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["rows"] == [[int((warm(values()["T"]) > 60).sum())]]
    wrong = subprocess.run([*command, "--function=warm"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, "'warm' is not of the form name=file" in wrong.stderr) == (2, True)
    wrong = subprocess.run([*command, "--function=warm=none.c"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, "cannot read 'none.c'" in wrong.stderr) == (2, True)
