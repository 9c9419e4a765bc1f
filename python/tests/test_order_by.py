"""ORDER BY, LIMIT and DISTINCT: rows, and which of equal ones, are those of a stable sort in numpy.

Files are small but of several tiles, as the queries run with little memory. Values are hostile: NaN, zeros of
either sign, infinities, fill values, packed integers of either sign of the scale, uint64 beyond 2^63, texts,
big-endian, few different ones.
"""

import tempfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import sieva
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st
from sieva import errors
from test_cli import run
from test_oracle import PROFILE

KINDS = (
    "f4",
    "f8",
    ">f4",
    ">f8",
    "f2",
    "i1",
    "u1",
    "i2",
    ">i2",
    "i4",
    "u4",
    "i8",
    ">i8",
    "u8",
    "packed",
    "falling",
    "text",
)
SHAPES = ((40_000,), (7, 60, 90), (30_000, 1), (0,), (3, 0), (1,))
ACCESS = ("auto", "scan")


def values_of(rng, kind, shape):
    """Return stored values, attributes, and the values as Python compares them, None where missing."""
    spread = rng.choice(["few", "many", "ascending", "constant"])
    n = int(np.prod(shape))
    if kind == "text":
        words = np.array(["", "a", "ab", "b", "é", "zz", "a" * 40], object)
        stored = rng.choice(words, n).reshape(shape)
        return stored, {}, stored.ravel().tolist()
    attrs = {}
    dtype = np.dtype("i2" if kind in ("packed", "falling") else kind)
    base = {
        "few": rng.integers(0, 4, n),
        "many": rng.integers(0 if dtype.kind == "u" else -120, 120, n),
        "ascending": np.arange(n) * 120 // max(n, 1),
        "constant": np.full(n, 3),
    }[str(spread)]
    stored = base.astype(dtype)
    if dtype.kind == "f":
        stored = (base * 0.25).astype(dtype)
        special = np.array([np.nan, 0.0, -0.0, np.inf, -np.inf], "f8").astype(dtype)
    else:
        info = np.iinfo(dtype)
        special = np.array([info.min, info.max, info.max - 1, 0], dtype.newbyteorder("=")).astype(dtype)
    if rng.random() < 0.6 and spread != "constant":
        where = rng.random(n) < rng.choice([0.001, 0.2])
        stored = np.where(where, rng.choice(special, n), stored).astype(dtype)
    if rng.random() < 0.5:
        attrs["_FillValue"] = dtype.type(3).astype(dtype.newbyteorder("="))
    native = stored.astype(dtype.newbyteorder("="))
    missing = np.isnan(native) if dtype.kind == "f" else np.zeros(n, bool)
    if attrs:
        missing = missing | (native == attrs["_FillValue"])
    if kind in ("packed", "falling"):
        attrs["scale_factor"], attrs["add_offset"] = (0.01, 273.15) if kind == "packed" else (-2.0, 1.0)
        native = native.astype("f8") * attrs["scale_factor"] + attrs["add_offset"]
    numbers = [None if m else v for v, m in zip(native.astype("O").tolist(), missing.tolist(), strict=True)]
    return stored.reshape(shape), attrs, numbers


def write(path, arrays):
    """Write arrays, each of which is stored values, attributes, and chunks."""
    with h5py.File(path, "w") as file:
        for name, (stored, attrs, chunks) in arrays.items():
            dtype = h5py.string_dtype() if stored.dtype == object else stored.dtype
            made = file.create_dataset(name, data=stored, dtype=dtype, chunks=chunks)
            for key, value in attrs.items():
                made.attrs[key] = value
        names = ["d0", "d1", "d2"]
        for name, (stored, _, _) in arrays.items():
            for d in range(stored.ndim):
                file[name].dims[d].label = names[d]


def in_order(rows, keys):
    """Return rows sorted by keys, each of which is values, descending, nulls first; a stable sort."""
    for values, descending, nulls_first in reversed(keys):
        there = sorted(
            (r for r in rows if values[r] is not None), key=lambda r: values[r], reverse=descending
        )
        gone = [r for r in rows if values[r] is None]
        rows = gone + there if nulls_first else there + gone
    return rows


def ordered(draw, names):
    """Draw the keys of ORDER BY: their text, and what they mean."""
    keys = []
    for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=3)):
        descending, nulls = draw(st.booleans()), draw(st.sampled_from([None, True, False]))
        text = name + (" DESC" if descending else "")
        text += {None: "", True: " NULLS FIRST", False: " NULLS LAST"}[nulls]
        keys.append((text, name, descending, bool(nulls)))
    return keys


# An example takes too long for many of them to be tried in search of a smaller one.
@settings(PROFILE, max_examples=PROFILE.max_examples // 2, phases=[Phase.reuse, Phase.generate])
@given(data=st.data())
def test_rows_come_in_the_order_of_a_stable_sort(data):
    draw = data.draw
    shape = draw(st.sampled_from(SHAPES), label="shape")
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=2, max_size=2), label="kinds")
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    n = int(np.prod(shape))
    arrays, values = {}, {}
    for name, kind in zip(["a", "b"], kinds, strict=True):
        stored, attrs, values[name] = values_of(rng, kind, shape)
        chunks = (
            tuple(max(1, -(-m // 3)) for m in shape) if n and draw(st.booleans(), label="chunked") else None
        )
        arrays[name] = (stored, attrs, chunks)
    arrays["n"] = (np.arange(n, dtype="i8").reshape(shape), {}, None)
    values["n"] = list(range(n))
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "in.h5"
        write(path, arrays)
        source = sieva.open(path)
        indexed = draw(st.booleans(), label="indexed")
        if indexed and n:
            numeric = [
                name for name, kind in zip(["a", "b"], kinds, strict=True) if kind not in ("text", "f2")
            ]
            if numeric:
                source.build_index(*numeric, kinds=["zonemap", "bitmap"])
                source.build_index(numeric[0], kinds=["sorted"])
        for _ in range(3):
            keys = ordered(draw, ["a", "b"])
            where = draw(st.sampled_from(["", "n >= 1000", "n % 7 < 3", "a IS NOT NULL", "n < 5", "n < 0"]))
            held = {
                "": lambda _: True,
                "n >= 1000": lambda r: r >= 1000,
                "n % 7 < 3": lambda r: r % 7 < 3,
                "a IS NOT NULL": lambda r: values["a"][r] is not None,
                "n < 5": lambda r: r < 5,
                "n < 0": lambda _: False,
            }[where]
            limit = draw(st.sampled_from([None, 0, 1, 3, 10, 1000, n, n + 5]))
            offset = draw(st.sampled_from([0, 0, 2, 500]))
            text = "SELECT n, a, b" + (f" WHERE {where}" if where else "")
            text += " ORDER BY " + ", ".join(key[0] for key in keys)
            text += (f" LIMIT {limit}" if limit is not None else "") + (f" OFFSET {offset}" if offset else "")
            memory = draw(st.sampled_from(["4MiB", "64MiB"]))
            access = draw(st.sampled_from(ACCESS)) if indexed else "auto"
            threads = draw(st.sampled_from([1, 2]))
            note(f"{text}; {memory}, {access}, {threads} threads")
            query = source.sql(text, memory=memory, access=access, threads=threads)
            if draw(st.integers(0, 3)) == 0:
                query.selection()
            got = query.to_arrow()["n"].to_pylist()
            rows = in_order(
                [r for r in range(n) if held(r)], [(values[name], *rest) for _, name, *rest in keys]
            )
            want = rows[offset:][: n if limit is None else limit]
            assert got == want


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Make a file of 1.2 million numbers, with trends and noise."""
    path = tmp_path_factory.mktemp("order") / "in.h5"
    rng = np.random.default_rng(5)
    trend = np.linspace(0, 1, 1_200_000)
    with h5py.File(path, "w") as file:
        file["v"] = (trend + 0.01 * rng.standard_normal(trend.size)).astype("f4")
        file["noise"] = rng.integers(0, 1000, trend.size).astype("i2")
        file["n"] = np.arange(trend.size)
        for name in ("v", "noise", "n"):
            file[name].dims[0].label = "row"
    return path


@pytest.mark.parametrize("order", ["", " DESC"])
@pytest.mark.parametrize("where", ["", " WHERE noise < 500"])
def test_tiles_that_cannot_be_among_the_first_are_not_read(measured, order, where):
    source = sieva.open(measured)
    source.build_index("v", kinds=["zonemap"])
    query = source.sql(f"SELECT n, v{where} ORDER BY v{order} LIMIT 10")
    got = query.to_arrow()["n"].to_numpy()
    with h5py.File(measured) as file:
        v, noise = file["v"][:], file["noise"][:]
    kept = np.flatnonzero(noise < 500) if where else np.arange(v.size)
    values = -v[kept] if order else v[kept]
    np.testing.assert_array_equal(got, kept[np.argsort(values, kind="stable")[:10]])
    stats = query.stats()
    assert stats["tiles_scanned"] <= 5, stats
    assert stats["bytes_read"] < 4_000_000, stats


def test_expressions_are_ordered_by_where_no_value_can_fail(measured):
    query = sieva.open(measured).sql("SELECT n ORDER BY abs(v - 0.5), noise DESC LIMIT 7 OFFSET 2")
    with h5py.File(measured) as file:
        v, noise = file["v"][:].astype("f8"), file["noise"][:].astype("i8")
    want = np.lexsort((-noise, np.abs(v - 0.5)))[2:9]
    np.testing.assert_array_equal(query.to_arrow()["n"].to_numpy(), want)


def test_rows_of_another_shape_are_ordered(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as file:
        rng = np.random.default_rng(3)
        file["t"], file["y"] = rng.random((9, 8)), rng.permutation(8)
        for d, name in enumerate(["k", "y"]):
            file["t"].dims[d].label = name
        file["y"].dims[0].label = "y"
        t, y = file["t"][:], file["y"][:]
    source = sieva.open(tmp_path / "in.h5")
    got = source.sql("SELECT t, y ORDER BY y DESC, t LIMIT 12").to_arrow()
    both = np.broadcast_to(y, t.shape).ravel()
    want = np.lexsort((t.ravel(), -both))[:12]
    assert got["t"].to_pylist() == t.ravel()[want].tolist()
    assert got["y"].to_pylist() == both[want].tolist()


def directory_of(monkeypatch, path):
    """Have temporary files made in a directory of their own."""
    path.mkdir()
    monkeypatch.setenv("TMPDIR", str(path))
    return path


ORDERS = ["n DESC", "noise, n DESC", "noise DESC NULLS FIRST, v", "v"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("limit", ["", " LIMIT 900000 OFFSET 7"])
def test_more_than_memory_is_sorted_on_disk(measured, tmp_path, monkeypatch, order, limit):
    spilled = directory_of(monkeypatch, tmp_path / "spilled")
    text = f"SELECT n ORDER BY {order}{limit}"
    source = sieva.open(measured)
    with pytest.raises(errors.MemoryLimit, match="ORDER BY of 1200000 rows"):
        source.sql(text, memory="8MiB", spill=0).to_arrow()
    with pytest.raises(errors.MemoryLimit, match="spilled"):
        source.sql(text, memory="8MiB", spill="5MiB").to_arrow()
    query = source.sql(text, memory="8MiB")
    got = np.concatenate([batch["n"].to_numpy() for batch in query.batches(50_000)])
    np.testing.assert_array_equal(got, source.sql(text, spill=0).to_arrow()["n"].to_numpy())
    with h5py.File(measured) as file:
        keys = {name: file[name][:].astype("f8") for name in ("n", "noise", "v")}
    signed = [-keys[k.split()[0]] if "DESC" in k else keys[k] for k in order.split(", ")]
    want = np.lexsort(signed[::-1])
    np.testing.assert_array_equal(got, want[7:900_007] if limit else want)
    assert not list(spilled.iterdir())


@pytest.mark.parametrize(
    "text", ["SELECT DISTINCT n", "SELECT DISTINCT noise, v", "SELECT DISTINCT n % 400000 AS m"]
)
@pytest.mark.parametrize("rest", ["", " LIMIT 300000 OFFSET 150000", " ORDER BY noise DESC"])
def test_more_different_rows_than_memory_are_told_apart_on_disk(measured, tmp_path, monkeypatch, text, rest):
    spilled = directory_of(monkeypatch, tmp_path / "spilled")
    source = sieva.open(measured)
    if "noise" not in text:
        rest = rest.replace("noise", text.split()[2])
    with pytest.raises(errors.MemoryLimit):
        source.sql(text + rest, memory="8MiB", spill=0).to_arrow()
    query = source.sql(text + rest, memory="8MiB")
    got = query.to_arrow()
    assert got.equals(source.sql(text + rest, spill=0).to_arrow())
    assert query.count() == got.num_rows
    assert not list(spilled.iterdir())


def test_what_may_be_spilled_is_said_everywhere(measured, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spilled = directory_of(monkeypatch, tmp_path / "spilled")
    text = f"SELECT n FROM '{measured}' ORDER BY n DESC"
    with sieva.Session() as session:
        for ask in (sieva.sql, session.sql):
            with pytest.raises(errors.MemoryLimit, match="ORDER BY of 1200000 rows"):
                ask(text, memory="8MiB", spill=0).to_arrow()
            assert ask(text, memory="8MiB", spill="1GiB").to_arrow()["n"][0].as_py() == 1_199_999
    for spill, status in (("0", 1), ("1GiB", 0), ("nothing", 2)):
        done = run("query", text, "--memory", "8MiB", "--spill", spill, "-o", "out.csv")
        assert done.returncode == status, done.stderr
    assert "ORDER BY of 1200000 rows" in run("query", text, "--memory", "8MiB", "--spill", "0").stderr
    assert (tmp_path / "out.csv").read_text().startswith("n\n1199999\n1199998\n")
    assert not list(spilled.iterdir())


def test_what_is_spilled_is_gone_when_a_result_is_left(measured, tmp_path, monkeypatch):
    spilled = directory_of(monkeypatch, tmp_path / "spilled")
    batches = sieva.open(measured).sql("SELECT n ORDER BY v", memory="8MiB").batches(1000)
    assert len(next(iter(batches))) == 1000
    assert not list(spilled.iterdir())
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    with pytest.raises(errors.SievaError, match="temporary file"):
        sieva.open(measured).sql("SELECT n ORDER BY v", memory="8MiB").to_arrow()


def test_a_result_on_disk_is_written_in_order(measured, tmp_path):
    query = sieva.open(measured).sql("SELECT n, v ORDER BY v DESC", memory="8MiB")
    query.to_netcdf(tmp_path / "out.nc")
    with h5py.File(measured) as file:
        want = np.argsort(-file["v"][:].astype("f8"), kind="stable")
    with h5py.File(tmp_path / "out.nc") as file:
        np.testing.assert_array_equal(file["n"][:], want)


@pytest.mark.parametrize("kind", ["f8", ">f4", "u8", "packed", "text"])
@pytest.mark.parametrize("window", ["", " LIMIT 3", " LIMIT 4 OFFSET 2", " LIMIT 0", " LIMIT 9 OFFSET 90"])
def test_duplicates_go_first_where_the_order_is_of_what_is_selected(tmp_path, kind, window):
    rng = np.random.default_rng(11)
    path = tmp_path / "d.h5"
    with h5py.File(path, "w") as file:
        t = file.create_dataset("t", data=rng.integers(0, 3, 5000).astype("i2"))
        t.make_scale("t")
        if kind == "text":
            data = np.array([b"", b"b", b"a", b"ab"], "S3")[rng.integers(0, 4, 5000)]
        elif kind in ("u8", "packed"):
            data = rng.choice(np.array([0, 2**16 - 1, 7, 9], "u2"), 5000)
            data = data.astype("u8") << np.uint64(48) if kind == "u8" else data.astype("i2")
        else:
            data = rng.choice(np.array([np.nan, 0.0, -0.0, np.inf, -np.inf, 1.5], kind), 5000)
        v = file.create_dataset("v", data=data, chunks=(700,))
        v.dims[0].attach_scale(t)
        if kind == "packed":
            v.attrs["scale_factor"], v.attrs["_FillValue"] = -0.5, np.int16(7)
        w = file.create_dataset("w", data=rng.choice(np.array([0.0, -0.0, 2.0]), 5000))
        w.dims[0].attach_scale(t)
    # What is ordered by an expression that is not selected is ordered before duplicates go.
    first = "v" if kind == "text" else "1 * v"
    for descending in ("", " DESC"):
        with sieva.open(path, learn=False) as source:
            text = f"SELECT DISTINCT v, w WHERE w >= 0 ORDER BY w{descending}, v"
            found = source.sql(text + window).to_pandas()
            text = f"SELECT DISTINCT v, w WHERE w >= 0 ORDER BY 1 * w{descending}, {first}"
            expected = source.sql(text + window).to_pandas()
        assert len(found) == len(expected)
        assert window or len(found) > 5
        for name in ("v", "w"):
            a, b = found[name].to_numpy(), expected[name].to_numpy()
            assert a.dtype == b.dtype
            assert list(a) == list(b) if a.dtype == object else a.tobytes() == b.tobytes()
