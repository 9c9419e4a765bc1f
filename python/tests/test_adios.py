"""ADIOS2 BP files: the answers of a scan by numpy, and blocks that their own extremes leave unread."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sieva
from sieva import _adios, _adios_limits

ROOT = Path(__file__).resolve().parent.parent.parent
DATA = Path(os.environ.get("SIEVA_SHARED_DATA") or ROOT.parent / "shared" / "data") / "dev"
STEPS, SHAPE, HALF = 4, (256, 512), 128
NAMES = {"T", "k", "u", "zeros", "grp/deep/x", "time", "label", "once", "some", "byte"}

try:
    import adios2
except ImportError:
    adios2 = None
needs_adios2 = pytest.mark.skipif(adios2 is None, reason="adios2 is not installed")


def field(step):
    """Return real numbers with NaN, infinities and both zeros; most blocks have a range of their own."""
    rng = np.random.default_rng(step)
    values = rng.random(SHAPE) * 10 + 100 * step
    values[HALF:] += 50
    values[0, :5] = np.nan, np.inf, -np.inf, -0.0, 0.0
    values[-1, -1] = np.nan
    return values


def whole(step):
    """Return integers, 1000 and more from block to block."""
    numbers = np.random.default_rng(step).integers(0, 900, SHAPE) + 10_000 * step
    numbers[HALF:] += 1000
    return numbers.astype("i4")


@pytest.fixture(scope="module", params=["BP4", "BP5"])
def path(request, tmp_path_factory):
    """Return a file of four steps, whose arrays are written in two blocks each."""
    if adios2 is None:
        pytest.skip("adios2 is not installed")
    path = str(tmp_path_factory.mktemp("bp") / f"{request.param}.bp")
    io = adios2.Adios().declare_io("writer")
    io.set_engine(request.param)
    with adios2.Stream(io, path, "w") as file:
        file.write_attribute("title", "a test")
        file.write_attribute("sizes", np.array([1, 2**64 - 1], "u8"))
        file.write_attribute("names", ["one", "two"])
        for _ in file.steps(STEPS):
            write_step(file, file.current_step())
    return path


def write_step(file, step):
    """Write all variables of a step."""
    for name, values in {"T": field(step), "k": whole(step), "u": whole(step).astype("u8") + 2**63}.items():
        for first in (0, HALF):
            file.write(
                name, np.ascontiguousarray(values[first : first + HALF]), SHAPE, [first, 0], [HALF, 512]
            )
    file.write("zeros", np.full((2, 4), 7, "i4"), [3, 4], [0, 0], [2, 4])  # the last row is never written
    file.write("grp/deep/x", np.arange(5, dtype="f4") + step, [5], [0], [5])
    file.write("byte", np.array([49, 1, 7], "u1"), [3], [0], [3])
    file.write("time", np.array(0.5 * step))
    file.write("label", f"step {step}")
    file.write("wave", np.arange(5) * 1j, [5], [0], [5])
    file.write("grow", np.arange(3.0 + step), [3 + step], [0], [3 + step])
    file.write("local", np.arange(3.0), [], [], [3])
    if step == 0:
        file.write("once", np.arange(4.0), [4], [0], [4])
        file.write_attribute("units", "K", "T")
        file.write_attribute("note", "of x", "grp/deep/x")
    if step in {1, 3}:
        file.write("some", np.full(4, step, "i4"), [4], [0], [4])


@pytest.fixture
def source(path, tmp_path):
    return sieva.open(path, store=tmp_path)


@pytest.fixture
def field_values():
    return np.stack([field(step) for step in range(STEPS)])


@pytest.fixture
def whole_values():
    return np.stack([whole(step) for step in range(STEPS)])


def test_what_there_is(source):
    assert set(source.arrays) == NAMES
    assert source.format == "ADIOS2 BP"
    assert source["T"].dims == ("step", "dim_256", "dim_512")
    assert source["T"].shape == (STEPS, *SHAPE)
    assert (source["time"].dims, source["once"].shape, source["some"].dims[0]) == (
        ("step",),
        (4,),
        "some.step",
    )
    assert {"title": "a test", "names": ["one", "two"]}.items() <= source.attrs.items()
    assert source.attrs["sizes"].tolist() == [1, 2**64 - 1]
    assert source["T"].attrs == {"units": "K"}
    assert source["grp/deep/x"].attrs == {"note": "of x"}


def test_all_values_are_those_written(source, field_values, whole_values):
    read = source._native.read
    box = ([0, 0, 0], [STEPS, *SHAPE])
    assert read("T", *box).tobytes() == field_values.tobytes()
    assert read("k", *box).tobytes() == whole_values.tobytes()
    assert np.array_equal(read("u", *box), whole_values.astype("u8") + 2**63)
    assert read("T", [1, 100, 7], [2, 60, 3]).tobytes() == field_values[1:3, 100:160, 7:10].tobytes()
    assert read("time", [0], [4]).tolist() == [0, 0.5, 1, 1.5]
    assert read("time", [3], [1]).tolist() == [1.5]
    assert read("label", [0], [4]).tolist() == ["step 0", "step 1", "step 2", "step 3"]
    assert read("some", [0, 0], [2, 4]).tolist() == [[1] * 4, [3] * 4]
    assert read("once", [1], [3]).tolist() == [1, 2, 3]
    assert read("byte", [0, 0], [4, 3]).tolist() == [[49, 1, 7]] * 4
    # What no block covers is zero.
    assert read("zeros", [0, 0, 0], [4, 3, 4])[3].tolist() == [[7] * 4, [7] * 4, [0] * 4]


CONDITIONS = {
    "T > 153.5": lambda v: v.t > 153.5,
    "T <= 0": lambda v: v.t <= 0,
    "T = 0": lambda v: v.t == 0,
    "T IS NULL": lambda v: np.isnan(v.t),
    "T >= 1e300": lambda v: v.t >= 1e300,
    "k BETWEEN 10500 AND 11200": lambda v: (v.k >= 10500) & (v.k <= 11200),
    "k > 40000": lambda v: v.k > 40000,
    "k < 200 OR T > 355": lambda v: (v.k < 200) | (v.t > 355),
    "NOT k >= 1000": lambda v: ~(v.k >= 1000),
    "T < 5 AND idx(step) = 0 AND k < 450": lambda v: (
        (v.t < 5) & (np.arange(STEPS) == 0)[:, None, None] & (v.k < 450)
    ),
    "time > 0.9 AND T > 250": lambda v: (np.arange(STEPS) * 0.5 > 0.9)[:, None, None] & (v.t > 250),
    "label = 'step 2' AND k < 20300": lambda v: (np.arange(STEPS) == 2)[:, None, None] & (v.k < 20300),
}


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("access", ["auto", "scan"])
def test_answers_are_those_of_a_scan(source, field_values, whole_values, condition, access):
    expected = CONDITIONS[condition](SimpleNamespace(t=field_values, k=whole_values))
    query = source.query(condition, select=["T", "k"], access=access)
    assert np.array_equal(query.selection().mask(), expected)
    assert query.count() == expected.sum()
    assert np.array_equal(query.read("T"), field_values[expected], equal_nan=True)
    assert np.array_equal(query.read("k"), whole_values[expected])


@pytest.mark.parametrize("kind", ["zonemap", "bitmap", "sorted"])
def test_answers_by_indexes_are_those_of_a_scan(source, field_values, whole_values, kind):
    source.build_index("T", "k", kinds=[kind])
    for condition in ("T > 153.5", "T <= 0", "k BETWEEN 10500 AND 11200"):
        expected = CONDITIONS[condition](SimpleNamespace(t=field_values, k=whole_values))
        assert np.array_equal(source.query(condition, access=kind).selection().mask(), expected)
    assert source.verify_index(all=True)


def test_blocks_that_hold_nothing_of_interest_are_not_read(source, whole_values):
    condition = "k BETWEEN 21000 AND 30500"  # the second half of the third step, the first half of the fourth
    expected = (whole_values >= 21000) & (whole_values <= 30500)
    query = source.query(condition)
    assert query.count() == expected.sum()
    assert query.stats()["library_reads"] == 2
    scanned = source.query(condition, access="scan")
    assert scanned.count() == expected.sum()
    assert scanned.stats()["library_reads"] == 2 * STEPS
    assert source.query("k > 31900", access="zonemap").count() == 0
    above = source.query("u > 9223372036854775808 + 50000")
    assert above.count() == 0


def overlap(start, count, other_start, other_count):
    """Return whether two blocks have a cell in common."""
    ends = zip(start, count, other_start, other_count, strict=True)
    return all(a < c + d and c < a + b for a, b, c, d in ends)


@needs_adios2
@pytest.mark.parametrize("engine", ["BP4", "BP5"])
def test_blocks_of_any_shape_hide_nothing(engine, tmp_path):
    rng = np.random.default_rng(11)
    io = adios2.Adios().declare_io("writer")
    io.set_engine(engine)
    path = str(tmp_path / "blocks.bp")
    with adios2.Stream(io, path, "w") as file:
        for step in file.steps(3):
            del step
            for name, lengths in {"a": (700, 300), "b": (5000,)}.items():
                written = []
                for _ in range(30):
                    start = [int(rng.integers(0, n - 1)) for n in lengths]
                    most = [max(2, (n - s) // 2) for n, s in zip(lengths, start, strict=True)]
                    count = [int(rng.integers(1, n)) for n in most]
                    # Which of two blocks that overlap is read is not even the same from one read to the next.
                    if any(overlap(start, count, *other) for other in written):
                        continue
                    written.append((start, count))
                    values = rng.integers(-50, 50, count) + int(rng.integers(-3000, 3000))
                    file.write(name, np.ascontiguousarray(values), list(lengths), start, count)
    source = sieva.open(path)
    with adios2.FileReader(path) as file:
        for name in ("a", "b"):
            values = np.stack([file.read(name, step_selection=[k, 1]) for k in range(3)])
            for low in range(-3100, 3100, 97):
                found = source.query(f"{name} BETWEEN {low} AND {low + 60}").selection().mask()
                assert np.array_equal(found, (values >= low) & (values <= low + 60)), (name, low)


def test_nothing_of_what_holes_and_bytes_hold_is_missed(source):
    assert source.query("zeros = 0").count() == 4 * STEPS
    assert source.query("zeros < 7").count() == 4 * STEPS
    # Printed as a character, 49 is "1".
    assert source.query("byte = 1").count() == STEPS
    assert source.query("some = 3").count() == 4


def test_extremes_of_real_numbers_are_believed_only_if_vouched_for(
    source, field_values, tmp_path, monkeypatch
):
    with np.errstate(invalid="ignore"):
        expected = ((field_values > 250) & (field_values < 255)).sum()
    reads = source.query("T > 250 AND T < 255")
    assert (reads.count(), reads.stats()["library_reads"]) == (expected, 2 * STEPS)
    monkeypatch.setenv("SIEVA_ADIOS_NO_NAN", "1")
    io = adios2.Adios().declare_io("writer")
    path = str(tmp_path / "finite.bp")
    with adios2.Stream(io, path, "w") as file:
        for _ in file.steps(STEPS):
            values = np.floor(np.random.default_rng(1).random(SHAPE) * 1024) / 1024 + file.current_step()
            file.write("T", values, SHAPE, [0, 0], SHAPE)
    query = sieva.open(path).query("T >= 2.2 AND T < 2.8")
    expected = ((values - 1 >= 2.2) & (values - 1 < 2.8)).sum()  # of the step before the last
    assert (query.count(), query.stats()["library_reads"]) == (expected, 1)


def test_what_is_left_out_says_why(source):
    for name, words in {
        "wave": "complex numbers, which have no order",
        "grow": "has shape (3,) in its first step and (4,) in step 1",
        "local": "is a LocalArray: its blocks have no places in one array",
    }.items():
        assert any(name in warning and words in warning for warning in source.warnings)
        with pytest.raises(sieva.errors.Unsupported) as caught:
            source.query(f"{name} > 0")
        assert words in str(caught.value)


def test_threads_share_a_file(source, whole_values):
    def ask(n):
        return source.query(f"k > {n}", threads=2).count()

    bounds = range(0, 40_000, 1_250)
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(ask, bounds)) == [(whole_values > n).sum() for n in bounds]


def test_a_file_that_is_written_anew_is_not_answered_from(path, tmp_path):
    copy = tmp_path / "copy.bp"
    shutil.copytree(path, copy)
    source = sieva.open(copy)
    with (copy / "data.0").open("ab") as file:
        file.write(b"more")
    with pytest.raises(sieva.errors.StaleSource, match="changed since it was opened"):
        source.query("k > 0").count()


def test_dimensions_can_be_named(path):
    source = sieva.open(path, dims={"T": ["step", "y", "x"], "k": ["step", "y", "x"]})
    assert source["k"].dims == ("step", "y", "x")
    assert source.query("idx(y) = 0 AND k >= 0").count() == STEPS * SHAPE[1]


def test_the_command_and_sql_take_it(path, whole_values):
    sql = f"SELECT max(k) FROM '{path}' WHERE time < 1"
    assert sieva.sql(sql).to_arrow().column(0).to_pylist() == [whole_values[:2].max()]
    command = [sys.executable, "-m", "sieva", "query", sql, "--format", "json"]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(told.stdout)["rows"] == [[int(whole_values[:2].max())]]


def test_without_the_package_it_says_how_to_get_it(tmp_path, monkeypatch):
    (tmp_path / "x.bp").mkdir()
    (tmp_path / "x.bp" / "md.idx").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "adios2", None)
    with pytest.raises(sieva.errors.Unsupported) as caught:
        sieva.open(tmp_path / "x.bp")
    assert "x.bp" in str(caught.value)
    assert caught.value.hint == "pip install 'sieva[adios]'"


@needs_adios2
@pytest.mark.parametrize("name", ["md.idx", "md.0"])
def test_a_damaged_file_is_an_error_or_answers(path, tmp_path, name):
    # In a process of its own: what the library does with it is not ours to say.
    copy = tmp_path / "damaged.bp"
    shutil.copytree(path, copy)
    (copy / name).write_bytes(b"\xff" * 100)
    script = (
        "import sieva, sys\n"
        "try:\n    sieva.open(sys.argv[1]).query('k > 0').count()\n"
        "except sieva.SievaError as e:\n    print(e.kind, e)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script, copy], capture_output=True, text=True, timeout=60, check=False
    )
    if told.returncode < 0:
        pytest.skip(f"adios2 ends the process with signal {-told.returncode}: open such files isolated")
    assert told.returncode == 0, told.stderr
    assert told.stdout.split(" ", 1)[0] in {"corrupt-file", "unknown-array", "unsupported"}
    assert "damaged.bp" in told.stdout


def test_formats_are_told_by_their_bytes(tmp_path):
    for name, content in {"short": b"ADIOS-BP v", "text.bp": b"x" * 200, "empty.bp": b""}.items():
        (tmp_path / name).write_bytes(content)
        assert not _adios.is_adios(str(tmp_path / name))
    (tmp_path / "dir.bp").mkdir()
    assert not _adios.is_adios(str(tmp_path / "dir.bp"))
    assert not _adios.is_adios(str(tmp_path / "absent"))
    (tmp_path / "bp3").write_bytes(b"data" + b"ADIOS-BP v2.8.0".ljust(28) + bytes(28))
    assert _adios.is_adios(str(tmp_path / "bp3"))


def test_printed_extremes_hold_for_what_was_printed():
    rng = np.random.default_rng(3)
    exponents = rng.integers(-320, 308, 4000)
    values = np.concatenate(
        [(rng.random(4000) - 0.5) * 10.0**exponents, [0.0, -0.0, 99999.95, 5e-324, 1e308, -1e-5]]
    )
    for value in values.tolist():
        low, high = _adios_limits.extremes(f"{value:g}", f"{value:g}", "float64")
        assert low <= value <= high
    assert _adios_limits.extremes("-inf", "inf", "float32") == (-np.inf, np.inf)
    assert _adios_limits.extremes("nan", "1", "float32") == (None, None)
    assert _adios_limits.extremes("", "", "int32") == (None, None)
    assert _adios_limits.extremes("-9223372036854775808", "18446744073709551615", "uint64") == (
        -(2**63),
        2**64 - 1,
    )


def block(start, count, low="1", high="2", **more):
    return {"Start": start, "Count": count, "Min": low, "Max": high, **more}


def test_limits_of_blocks():
    first, second = block("0,0", "2,4"), block("2,0", "2,4", "5", "9")
    whole_step = _adios_limits.of_step([first, second], (4, 4), "int32")
    assert whole_step == [((0, 0), (2, 4), 1, 2), ((2, 0), (2, 4), 5, 9)]
    # A gap is read as zeros, and so may be what lies under blocks that overlap.
    gap = _adios_limits.of_step([first, block("2,0", "1,4")], (4, 4), "int32")
    assert gap[-1] == ((0, 0), (4, 4), 0, 0)
    overlapping = _adios_limits.of_step([first, block("1,0", "2,4")], (4, 4), "int32")
    assert overlapping[-1] == ((0, 0), (4, 4), 0, 0)
    assert _adios_limits.of_step([first, second, block("0,0", "0,0")], (4, 4), "int32") == whole_step
    for wrong in (block("0,0", "5,4"), block("0", "4"), block("0,0", "4,4", IsReverseDims="True")):
        assert _adios_limits.of_step([wrong], (4, 4), "int32") is None
    assert _adios_limits.of_step([], (4, 4), "int32") is None


def real_queries():
    queries = DATA / "queries.json"
    listed = json.loads(queries.read_text(encoding="utf-8")) if queries.exists() else []
    return [q for q in listed if q["file"].startswith("bp/")]


@needs_adios2
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no real data at {DATA}")
def test_queries_on_real_files():
    queries = real_queries()
    assert len(queries) == 9
    for q in queries:
        source = sieva.open(DATA / q["file"])
        conditions, steps = [], set()
        for name, operator, value in q["conditions"]:
            array, _, step = name.partition("@")
            steps |= {int(step)} if step else set()
            conditions.append(f"{array} {operator} {value}")
        conditions += [f"idx(step) = {step}" for step in steps]
        asked = source.query(" AND ".join(conditions))
        places = asked.selection().coords()[:, len(steps) :]
        linear = np.ravel_multi_index(tuple(places.T), q["shape"])
        found = (asked.count(), linear[0], linear[-1], linear.sum())
        assert found == (q["hits"], q["first"], q["last"], q["idxsum"]), q


@needs_adios2
@pytest.mark.parametrize("engine", ["BP4", "BP5"])
def test_bytes_beyond_ascii_hide_nothing(tmp_path, engine):
    """adios2 tells extremes of bytes as characters, which 0x80 and more are none."""
    path = tmp_path / "bytes.bp"
    io = adios2.Adios().declare_io("writer")
    io.set_engine(engine)
    high = np.array([200, 250, 130], "u1")
    with adios2.Stream(io, str(path), "w") as file:
        for _ in file.steps(2):
            file.write("u", high, [3], [0], [3])
            file.write("x", np.array([1.0, 2.0, 3.0]), [3], [0], [3])
    source = sieva.open(path)
    np.testing.assert_array_equal(source["u"][...], [high, high])
    assert source.query("u > 140 AND x < 3").count() == 4


@needs_adios2
@pytest.mark.parametrize("engine", ["BP4", "BP5"])
def test_old_text_in_attributes_costs_attributes_only(tmp_path, engine):
    path = tmp_path / "old.bp"
    io = adios2.Adios().declare_io("writer")
    io.set_engine(engine)
    with adios2.Stream(io, str(path), "w") as file:
        file.write_attribute("place", "caf.")
        file.write("x", np.array([1.0, 2.0, 3.0]), [3], [0], [3])
        file.write_attribute("units", "K", "x")
    for part in path.iterdir():
        part.write_bytes(part.read_bytes().replace(b"caf.", b"caf\xe9"))
    source = sieva.open(path)
    assert source.query("x > 1").count() == 2
    assert source["x"].attrs == {"units": "K"}
    assert any("not UTF-8" in warning for warning in source.warnings)


@needs_adios2
def test_a_group_takes_files_as_they_are(path, tmp_path, whole_values):
    steps = tmp_path / "steps"
    steps.mkdir()
    shutil.copytree(path, steps / "run.bp")
    environment = os.environ | {"SIEVA_ADIOS2": str(Path(adios2.__file__).parent)}

    def share(*args):
        command = [sys.executable, "-m", "sieva", "share", *map(str, args), "--as", "ada"]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout

    group = tmp_path / "group"
    share("create", group, steps)
    share("ask", group, "high", "SELECT k WHERE k > 20500", "--format", "json")
    share("produce", group, "--once", "--settle", "0s")
    found = share("follow", group, "high", "-o", tmp_path / "high", "--once").split()
    (rows,) = [json.loads(Path(file).read_text(encoding="utf-8"))["rows"] for file in found]
    np.testing.assert_array_equal(np.ravel(rows), whole_values[whole_values > 20500])
