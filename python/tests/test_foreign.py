"""Sources that Python code describes and reads: the answers of numpy, and errors that say whose they are."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sieva
from sieva._foreign import open_foreign

RNG = np.random.default_rng(7)
SHAPE = (6, 40, 30)
BLOCK = (1, 20, 30)


def drawn(dtype):
    """Return an array of a type, with all that comparisons may stumble over."""
    values = RNG.integers(0, 200, SHAPE).astype(dtype)
    if np.dtype(dtype).kind == "f":
        values += RNG.random(SHAPE).astype(dtype)
        flat = values.reshape(-1)
        flat[[3, 700, 701]] = np.nan
        flat[[5, 900]] = np.inf, -np.inf
        flat[[9, 10]] = -0.0, 0.0
    elif np.dtype(dtype).kind in "iu":
        values.reshape(-1)[[0, 5000]] = np.iinfo(dtype).min, np.iinfo(dtype).max
    return values


class Arrays:
    """A reader of arrays in memory; counts the boxes that it is asked for."""

    def __init__(self, arrays, limits=None):
        self.arrays, self._limits, self.boxes = arrays, limits or {}, []

    def read(self, path, start, shape):
        """Return a box."""
        self.boxes.append((path, start, shape))
        box = tuple(slice(s, s + n) for s, n in zip(start, shape, strict=True))
        return self.arrays[path][box]

    def limits(self, path):
        """Return what was given."""
        return self._limits.get(path)

    def open(self, dims=("t", "y", "x"), block=BLOCK, attrs=None, **options):
        """Return the source that it reads."""
        lengths = dict(zip(dims, SHAPE, strict=True))
        description = {
            "format": "memory",
            "how": "read from memory",
            "files": [],
            "version": "1",
            "groups": [{"path": "", "attrs": {"title": "test"}}],
            "dims": [
                {"path": name, "length": n, "unlimited": False, "named": True} for name, n in lengths.items()
            ],
            "arrays": [
                {
                    "path": path,
                    "dtype": "str" if values.dtype.kind in "UO" else values.dtype.newbyteorder("=").name,
                    "dims": list(dims[: values.ndim]),
                    "attrs": attrs or {},
                    "block": None if values.ndim < len(dims) else block,
                }
                for path, values in self.arrays.items()
            ],
            "left_out": [("waves", "is of complex numbers")],
            "warnings": [],
        }
        return open_foreign("memory", description, self, **options)


TYPES = ["i1", "u1", "i2", ">i2", "u2", "i4", ">i4", "u4", "i8", "u8", "f2", "f4", ">f4", "f8", ">f8", "?"]


@pytest.mark.parametrize("dtype", TYPES)
def test_answers_are_those_of_numpy(dtype):
    values = drawn("i1").astype(bool) if dtype == "?" else drawn(dtype)
    source = Arrays({"a": values}).open()
    stored = source._native.read("a", [0, 0, 0], list(SHAPE), raw=True)
    assert stored.astype(values.dtype).tobytes() == values.tobytes()
    wide = values.astype("f8")
    for condition, expected in {
        "a > 100": wide > 100,
        "a <= 0": wide <= 0,
        "a = 0": wide == 0,
        "a BETWEEN 17 AND 99.5": (wide >= 17) & (wide <= 99.5),
        "NOT a < 150": ~(wide < 150) & ~np.isnan(wide),
        "a IS NULL": np.isnan(wide),
        "a > 100 AND idx(y) < 13": (wide > 100) & (np.arange(40)[:, None] < 13),
    }.items():
        query = source.query(condition, select=["a"])
        assert np.array_equal(query.selection().mask(), expected), condition
        assert np.array_equal(query.read("a"), values[expected].astype(query.read("a").dtype), equal_nan=True)


def test_texts_scalars_and_fills():
    texts = np.array(["a", "b,", "", "ünï", "a", "z"], dtype=object)
    arrays = {"name": texts, "a": drawn("i4"), "one": np.array(3.5)}
    arrays["a"][2, :5] = -7
    source = Arrays(arrays).open(attrs={"_FillValue": np.int32(-7)})
    assert source.query("name = 'a'").selection().coords().tolist() == [[0], [4]]
    assert source.query("name >= 'b'", select=["name"]).read("name").tolist() == ["b,", "ünï", "z"]
    assert source.query("a IS NULL").count() == (arrays["a"] == -7).sum()
    assert source["one"][...] == 3.5
    assert source.attrs == {"title": "test"}
    with pytest.raises(sieva.SievaError, match="'waves' is of complex numbers"):
        source.query("waves > 1")


def blocks(values, block=BLOCK):
    """Return start, shape, least and greatest of the blocks of an array."""
    for t in range(0, SHAPE[0], block[0]):
        for y in range(0, SHAPE[1], block[1]):
            part = values[t : t + block[0], y : y + block[1]]
            yield (t, y, 0), part.shape, part.min(), part.max()


@pytest.mark.parametrize("dtype", ["i2", "u8", "f4", "f8"])
def test_limits_leave_blocks_unread_and_answers_as_they_are(dtype, monkeypatch):
    # Large enough that each block is a box of its own.
    monkeypatch.setitem(globals(), "SHAPE", (6, 40, 3000))
    values = np.broadcast_to(np.arange(6)[:, None, None] * 10, SHAPE).astype(dtype)
    values = values + RNG.integers(0, 10, SHAPE).astype(dtype)
    reader = Arrays({"a": values}, {"a": list(blocks(values, (1, 40, 3000)))})
    source = reader.open(block=(1, 40, 3000))
    query = source.query("a >= 37 AND a <= 44")
    assert np.array_equal(query.selection().mask(), (values >= 37) & (values <= 44))
    assert {start[0] for _, start, _ in reader.boxes} == {3, 4}
    read = len(reader.boxes)
    assert source.query("a > 70", access="zonemap").count() == 0
    assert len(reader.boxes) == read
    assert source.query("a > 70", access="scan").count() == 0
    assert len(reader.boxes) >= read + 6


def test_limits_never_take_a_block_unread():
    values = np.full(SHAPE, 5, "f4")
    values[0, 0, :3] = np.nan
    low_and_high = [((0, 0, 0), SHAPE, 5, 5)]
    source = Arrays({"a": values}, {"a": low_and_high}).open(attrs={"_FillValue": np.float32(5)})
    assert source.query("raw(a) = 5").count() == values.size - 3
    assert source.query("a IS NULL").count() == values.size
    assert source.query("a = 5").count() == 0


@pytest.mark.parametrize(
    "limits",
    [
        [((0, 0, 0), (1, 40, 30), 0, 1)],  # not of the whole array
        [((0, 0, 0), (7, 40, 30), 0, 1)],  # beyond it
        [((0, 0), (6, 40), 0, 1)],
        [((0, 0, 0), SHAPE, None, None)],
        [((0, 0, 0), SHAPE, 9, 1)],
        [((0, 0, 0), SHAPE, "a", "b")],
        [((0, 0, 0), (2**63, 2**63, 2**63), 0, 1)],
        ["nonsense"],
        7,
    ],
)
def test_limits_that_make_no_sense_are_left_aside(limits):
    values = drawn("i4")
    source = Arrays({"a": values}, {"a": limits}).open()
    assert source.query("a > 100").count() == (values > 100).sum()


@pytest.mark.parametrize("kind", ["zonemap", "bitmap", "sorted"])
def test_indexes_are_built_and_used(kind, tmp_path):
    values = drawn("f8")
    source = Arrays({"a": values}).open(store=os.fspath(tmp_path))
    source.build_index("a", kinds=[kind])
    query = source.query("a BETWEEN 20 AND 22.5", select=["a"], access=kind)
    with np.errstate(invalid="ignore"):
        expected = (values >= 20) & (values <= 22.5)
    assert np.array_equal(query.selection().mask(), expected)
    assert np.array_equal(query.read("a"), values[expected])
    assert source.verify_index(all=True)


def test_many_threads_read_at_once():
    arrays = {"a": drawn("f4"), "b": drawn("i4")}
    reader = Arrays(arrays)
    source = reader.open()

    def ask(n):
        return source.query(f"a > {n} AND b > {n}", threads=4).count()

    with ThreadPoolExecutor(8) as pool, np.errstate(invalid="ignore"):
        expected = [((arrays["a"] > n) & (arrays["b"] > n)).sum() for n in range(64)]
        assert list(pool.map(ask, range(64))) == expected


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (OSError(5, "disk is gone"), "io-error", "disk is gone"),
        (ValueError("bad header"), "corrupt-file", "bad header (ValueError)"),
        (MemoryError(), "memory-limit", "MemoryError"),
        (sieva.errors.FilterUnavailable("no such filter", "get it"), "filter-unavailable", "no such filter"),
    ],
)
def test_errors_of_the_reader_keep_their_kind_and_words(error, kind, words):
    reader = Arrays({"flux": drawn("i4")})

    def fail(*_):
        raise error

    reader.read = fail
    source = reader.open()
    with pytest.raises(sieva.SievaError) as caught:
        source.query("flux > 1").count()
    assert caught.value.kind == kind
    assert words in str(caught.value)
    assert "'flux'" in str(caught.value)
    assert caught.value.hint == getattr(error, "hint", None)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda box: box.astype("f8"), "gave float64 of shape"),
        (lambda box: box[..., :1], "expected int32 of shape (6, 40, 30)"),
        (lambda box: box.tobytes()[:-1], "gave 28799 bytes, expected 28800"),
        (lambda _: None, "dtype"),
    ],
)
def test_boxes_of_another_kind_are_refused(given, words):
    values = drawn("i4")
    reader = Arrays({"a": values})
    read = reader.read
    reader.read = lambda path, start, shape: given(read(path, start, shape))
    with pytest.raises(sieva.SievaError) as caught:
        reader.open().query("a > 1").count()
    assert words in str(caught.value)


def test_bytes_are_taken_as_they_are():
    values = drawn("f4")
    reader = Arrays({"a": values})
    read = reader.read
    reader.read = lambda path, start, shape: np.ascontiguousarray(read(path, start, shape)).tobytes()
    with np.errstate(invalid="ignore"):
        assert reader.open().query("a > 100").count() == (values > 100).sum()


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_ctrl_c_in_the_reader_passes(handler):
    """Also where SIGINT is ignored, as in a shell's background jobs: the reader may raise it by itself."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        check_ctrl_c_in_the_reader()
    finally:
        signal.signal(signal.SIGINT, before)


def check_ctrl_c_in_the_reader():
    reader = Arrays({"a": drawn("i4")})
    asked = threading.Event()

    def stop(*_):
        asked.set()
        raise KeyboardInterrupt

    reader.read = stop
    source = reader.open()
    with pytest.raises(KeyboardInterrupt):
        source.query("a > 1").count()
    assert asked.is_set()
    del reader.read
    assert source.query("a > 1").count() == (reader.arrays["a"] > 1).sum()


def test_ctrl_c_ends_a_query_that_waits_for_the_reader():
    reader = Arrays({"a": drawn("i4")})
    read, asked = reader.read, threading.Event()

    def slow(path, start, shape):
        asked.set()
        time.sleep(0.2)
        return read(path, start, shape)

    def interrupt():
        asked.wait()
        signal.raise_signal(signal.SIGINT)

    reader.read = slow
    source = reader.open()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=interrupt)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            source.query("a > 1 AND sin(a) > 0", threads=2).count()
    finally:
        signal.signal(signal.SIGINT, before)
        thread.join()
    assert source.query("a > 1").count() == (reader.arrays["a"] > 1).sum()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": ""}, "a source without files needs a version"),
        ({"dims": []}, "has a dimension 't' that is not described"),
        ({"dtype": "complex64"}, "is of type 'complex64'"),
        ({"block": [0, 1, 1]}, "blocks of [0, 1, 1] do not cut 'a'"),
        ({"axes": ["t", "t", "x"]}, "has one dimension twice"),
        ({"files": ["/no/such/file"]}, "cannot look at '/no/such/file'"),
    ],
)
def test_descriptions_that_contradict_themselves_are_refused(change, words):
    array = {"path": "a", "dtype": "int32", "dims": ["t", "y", "x"], "attrs": {}, "block": None}
    array |= {key: change[key] for key in ("dtype", "block") if key in change}
    array["dims"] = change.get("axes", array["dims"])
    dims = [
        {"path": p, "length": n, "unlimited": False, "named": True} for p, n in zip("tyx", SHAPE, strict=True)
    ]
    description = {
        "format": "memory",
        "how": "read from memory",
        "files": change.get("files", []),
        "version": change.get("version", "1"),
        "groups": [{"path": "", "attrs": {}}],
        "dims": change.get("dims", dims),
        "arrays": [array],
        "left_out": [],
        "warnings": [],
    }
    with pytest.raises(sieva.SievaError) as caught:
        open_foreign("memory", description, Arrays({"a": drawn("i4")}))
    assert words in str(caught.value)
