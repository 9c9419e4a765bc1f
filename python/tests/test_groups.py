"""Groups by position, by hashing and by numpy are the same, bit for bit, of values as odd as there are."""

import math
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import sieva
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

PROFILE = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
FILL = {"f4": 9.969209968386869e36, "f8": 9.969209968386869e36, "i2": -32767, "i8": -9999, "u8": 7}
AGGREGATES = (
    "count(*), count(v), count(DISTINCT v), min(v), max(v), avg(v), var_pop(v), stddev(v), median(v), "
    "quantile(v, 0.3), histogram(v, 4, -10, 10)"
)
# The keys, the same as arrays that have a value for each row, which are hashed, and their dimensions.
KEYS = [
    ("y, x", "ky, kx", (1, 2)),
    ("x", "kx", (2,)),
    ("y", "ky", (1,)),
    ("t", "kt", (0,)),
    ("month(t), y, x", "km, ky, kx", (0, 1, 2)),
    ("month(t)", "km", (0,)),
    ("x, month(t)", "kx, km", (0, 2)),
    ("lat2d", "k2", (1, 2)),
    ("class", "kc", (2,)),
    ("class, y", "kc, ky", (1, 2)),
]


def odd_values(kind: str, rng: np.random.Generator, shape: tuple[int, ...], how: str) -> np.ndarray:
    """Values of one type: usual ones, or whatever bits there are."""
    dtype = np.dtype(kind)
    if dtype.kind != "f":
        if how == "usual":
            return rng.integers(0, 100, shape).astype(dtype)
        info = np.iinfo(dtype)
        ends = np.array([info.min, info.max, 0, 1], dtype)
        drawn = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        return np.where(rng.random(shape) < 0.3, rng.choice(ends, shape), drawn)
    if how == "usual":
        return (280 + 30 * rng.standard_normal(shape)).astype(dtype)
    if how == "wide":
        return (rng.standard_normal(shape) * 10.0 ** rng.integers(-30, 30, shape)).astype(dtype)
    bits = rng.integers(0, 2 ** (8 * dtype.itemsize), shape, dtype=f"u{dtype.itemsize}").view(dtype)
    tiny, huge = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, tiny, -tiny, huge, -huge, 1.0], dtype)
    if how == "finite":
        bits = np.where(np.isfinite(bits), bits, dtype.type(1))
        special = special[np.isfinite(special)]
    return np.where(rng.random(shape) < 0.5, rng.choice(special, shape), bits)


def write(
    path: Path, drawn: tuple[str, int, str], shape: tuple[int, int, int], *, chunks: bool, cut: int = 2
) -> None:
    kind, seed, how = drawn
    rng = np.random.default_rng(seed)
    nt, ny, nx = shape
    values = odd_values(kind, rng, shape, how)
    fill = np.dtype(kind).type(FILL[kind])
    values[rng.random(shape) < 0.15] = fill
    coordinates = {
        "t": np.arange(nt) * 20.0,
        "y": np.linspace(60, -60, ny),
        "x": np.arange(nx) * 1.5 if seed % 2 else -np.arange(nx) * 1.5,
    }
    with netCDF4.Dataset(path, "w") as file:
        file.set_auto_maskandscale(False)
        for name, along in coordinates.items():
            file.createDimension(name, len(along))
            file.createVariable(name, "f8", (name,))[:] = along
        file["t"].units = "days since 2001-01-01"
        months = np.array([d.month for d in netCDF4.num2date(coordinates["t"], file["t"].units)])
        classes = np.where(rng.random(nx) < 0.2, -1, rng.integers(0, 3, nx)).astype("i4")
        lat2d = np.round(rng.random((ny, nx)) * 4).astype("f4")
        file.createVariable("class", "i4", ("x",), fill_value=-1)[:] = classes
        file.createVariable("lat2d", "f4", ("y", "x"))[:] = lat2d
        full = {
            "kt": coordinates["t"][:, None, None],
            "ky": coordinates["y"][None, :, None],
            "kx": coordinates["x"][None, None, :],
            "k2": lat2d[None],
            "km": months[:, None, None],
            "kc": classes[None, None, :],
        }
        for name, key in full.items():
            dtype = "f4" if name == "k2" else "i4" if name in ("kc", "km") else "f8"
            missing = {"fill_value": -1} if name == "kc" else {}
            array = file.createVariable(name, dtype, ("t", "y", "x"), **missing)
            array[:] = np.broadcast_to(key, shape)
        chunk = (max(nt // 2, 1), max(ny // (cut - 1), 1), max(nx // cut, 1))
        sizes = {"chunksizes": chunk, "zlib": True} if chunks else {}
        file.createVariable("v", kind, ("t", "y", "x"), fill_value=fill, **sizes)[:] = values


def rows(source: sieva.Source, text: str, **options) -> list[tuple]:
    """Rows with floats as their bits."""

    def bits(x):
        if isinstance(x, float):
            return struct.pack("<d", x)
        if isinstance(x, dict):
            return tuple((k, tuple(bits(e) for e in v)) for k, v in x.items())
        return x

    columns = [[bits(x) for x in c.to_pylist()] for c in source.sql(text, **options).to_arrow().columns]
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize("where", ["", "WHERE v IS NOT NULL AND y > -100 AND x % 2 = 0 ", "WHERE y > 10 "])
@PROFILE
@given(
    drawn=st.tuples(
        st.sampled_from(["f4", "f8", "i2", "i8", "u8"]),
        st.integers(0, 2**32 - 1),
        st.sampled_from(["usual", "wide", "finite", "any"]),
    ),
    shape=st.sampled_from([(7, 5, 40), (40, 3, 5), (3, 4, 300), (1, 1, 1), (12, 1, 17)]),
    chunks=st.booleans(),
    key=st.sampled_from(KEYS),
)
def test_groups_by_position_are_those_by_hashing(where, drawn, shape, chunks, key):
    dense, hashed, _ = key
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "v.nc"
        write(path, drawn, shape, chunks=chunks)
        source = sieva.open(path)
        wanted = AGGREGATES
        if drawn[0].startswith("f"):
            wanted += ", sum(v)"
        n = len(dense.split(", "))
        by_position = rows(source, f"SELECT {dense}, {wanted} {where}GROUP BY {dense}")
        by_hash = rows(source, f"SELECT {hashed}, {wanted} {where}GROUP BY {hashed}")
        assert [r[n:] for r in by_hash] == [r[n:] for r in by_position]


@pytest.mark.parametrize("where", ["", "WHERE v IS NOT NULL AND y > -100 AND x % 2 = 0 ", "WHERE y > 10 "])
@settings(PROFILE, max_examples=12)
@given(
    drawn=st.tuples(
        st.sampled_from(["f4", "f8", "i2", "i8", "u8"]),
        st.integers(0, 2**32 - 1),
        st.sampled_from(["usual", "wide", "finite", "any"]),
    ),
    shape=st.sampled_from([(5, 150, 120), (3, 130, 140), (2, 300, 70)]),
    key=st.sampled_from(
        [*KEYS[:1], *KEYS[4:5], ("x, y", "kx, ky", (1, 2)), ("y, month(t), x", "ky, km, kx", (0, 1, 2))]
    ),
    how=st.tuples(st.sampled_from([1, 2, 3]), st.booleans(), st.booleans()),
)
def test_groups_in_panels_are_those_by_hashing(where, drawn, shape, key, how):
    (dense, hashed, _), (threads, kept, chunks) = key, how
    wanted = "count(*), count(v), min(v), max(v), avg(v), var_pop(v)"
    # Values that are kept make panels smaller, and are dropped with them.
    wanted += ", median(v), quantile(v, 0.3), count(DISTINCT v)" if kept else ""
    wanted += ", sum(v)" if drawn[0].startswith("f") else ""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "v.nc"
        write(path, drawn, shape, chunks=chunks, cut=4)
        source = sieva.open(path)
        n = len(dense.split(", "))
        text = f"SELECT {dense}, {wanted} {where}GROUP BY {dense}"
        by_position = rows(source, text, threads=threads)
        by_hash = rows(source, f"SELECT {hashed}, {wanted} {where}GROUP BY {hashed}")
        assert by_position == by_hash
        few = [r for r in by_hash if r[n] != by_hash[0][n]]
        having = rows(source, f"{text} HAVING count(*) <> {by_hash[0][n] if by_hash else 0}", threads=threads)
        assert having == few


@PROFILE
@given(
    kind=st.sampled_from(["f4", "f8"]),
    seed=st.integers(0, 2**32 - 1),
    how=st.sampled_from(["usual", "wide", "finite"]),
    key=st.sampled_from([k for k in KEYS if k[0] in ("y, x", "x", "y")]),
)
def test_sums_by_position_are_the_exact_ones(kind, seed, how, key):
    dense, _, dims = key
    shape = (9, 4, 33)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "v.nc"
        write(path, (kind, seed, how), shape, chunks=False)
        text = f"SELECT {dense}, sum(v) AS s, count(v) AS n, min(v) AS a, max(v) AS b GROUP BY {dense}"
        table = sieva.open(path).sql(text).to_arrow()
        with netCDF4.Dataset(path) as file:
            values = np.ma.masked_invalid(file["v"][:])
            at = {name: {x: i for i, x in enumerate(file[name][:].tolist())} for name in "tyx"}
    names = dense.split(", ")
    for row in zip(*(c.to_pylist() for c in table.columns), strict=True):
        index = [slice(None)] * 3
        for name, dim, coordinate in zip(names, dims, row, strict=False):
            index[dim] = at[name][coordinate]
        group = np.ma.compressed(values[tuple(index)]).astype("f8")
        got_sum, got_count, low, high = row[len(names) :]
        assert got_count == group.size
        if not group.size:
            assert (got_sum, low, high) == (None, None, None)
            continue
        try:
            expected = math.fsum(group.tolist())
        except OverflowError:
            continue
        assert got_sum == expected
        assert (low, high) == (group.min(), group.max())


MEASURED = """
import resource, sys, sieva
path, limit = sys.argv[1:]
q = sieva.open(path)
q.sql("SELECT max(v)").to_arrow()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
text = "SELECT y, x, avg(v), min(v), max(v), stddev(v) GROUP BY y, x"
try:
    rows = q.sql(text, memory=limit).to_arrow().num_rows
except MemoryError:
    rows = -1
print(rows, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


@pytest.mark.parametrize(("limit", "megabytes", "is_done"), [("256MiB", 256, True), ("32MiB", 32, False)])
def test_many_groups_stay_under_the_limit_or_are_refused(tmp_path, limit, megabytes, is_done):
    path = tmp_path / "many.nc"
    rng = np.random.default_rng(3)
    with netCDF4.Dataset(path, "w") as file:
        for name, n in (("t", 4), ("y", 700), ("x", 700)):
            file.createDimension(name, n)
            file.createVariable(name, "f8", (name,))[:] = np.arange(n)
        file.createVariable("v", "f4", ("t", "y", "x"))[:] = rng.standard_normal((4, 700, 700))
    command = [sys.executable, "-c", MEASURED, str(path), limit]
    rows, grown = map(int, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    assert (rows == 490_000) == is_done
    # The result itself is on top of what the query holds.
    assert grown < megabytes + (60 if is_done else 0)


def test_medians_and_quantiles_of_large_integers_are_those_of_numpy(tmp_path):
    values = np.array([321199303848878443, 1742591937245834956, -(2**63), 2**63 - 1, 5], "i8")
    for n in range(2, 6):
        with netCDF4.Dataset(tmp_path / f"{n}.nc", "w") as file:
            file.createDimension("x", n)
            file.createVariable("a", "i8", ("x",))[:] = values[:n]
        source = sieva.open(tmp_path / f"{n}.nc")
        found = source.sql("SELECT median(a), quantile(float64(a), 0.5)").to_arrow().to_pydict()
        got = [column[0] for column in found.values()]
        assert got == [np.median(values[:n]), np.quantile(values[:n].astype("f8"), 0.5)]
    pair = sieva.open(tmp_path / "2.nc").sql("SELECT quantile(a, 0.5) AS q, median(a) AS m").to_arrow()
    assert pair.to_pylist() == [{"q": np.quantile(values[:2], 0.5), "m": np.median(values[:2])}]


def test_histograms_of_groups_have_the_same_edges(tmp_path):
    with netCDF4.Dataset(tmp_path / "h.nc", "w") as file:
        file.createDimension("x", 4)
        file.createVariable("g", "i4", ("x",))[:] = [0, 0, 1, 1]
        file.createVariable("v", "f8", ("x",))[:] = [0.0, 1.0, 10.0, 20.0]
    source = sieva.open(tmp_path / "h.nc")
    found = source.sql("SELECT g, histogram(v, 2) AS h GROUP BY g").to_arrow().to_pylist()
    assert [f["h"]["edges"] for f in found] == [[0.0, 10.0, 20.0]] * 2
    assert [f["h"]["counts"] for f in found] == [[2, 0], [0, 2]]
    one = source.sql("SELECT g, histogram(v, 2) AS h WHERE v < 15 GROUP BY g HAVING g = 0").to_arrow()
    assert one.to_pylist() == [{"g": 0, "h": {"edges": [0.0, 5.0, 10.0], "counts": [2, 0]}}]
