"""A source that is opened by a manifest: what it reads, that it answers alike, and what is refused."""

import os
import pickle
import subprocess
import sys

import h5py
import numpy as np
import pytest
import sieva

CONDITIONS = ["TEMP > 20", "TEMP BETWEEN 5 AND 15 AND z_t < 5000", "KMT > 3", "TEMP IS NULL"]


def write_chunked(path, compression=None):
    """Write /g/a (64, 50), f4 with NaN and infinities, in 80 chunks, and /g/b (50), u2."""
    rng = np.random.default_rng(7)
    a = rng.normal(size=(64, 50)).astype("f4")
    a.flat[::97], a.flat[5::101] = np.nan, np.inf
    b = rng.integers(0, 65536, 50).astype("u2")
    with h5py.File(path, "w") as file:
        file.create_dataset("g/a", data=a, chunks=(8, 5), compression=compression)
        file["g/b"] = b
    return a, b


def settled(path):
    """Make a file look as if it had been written long ago."""
    os.utime(path, (1_000_000_000, 1_000_000_000))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_answers_are_the_same(ocean_path, condition):
    first = sieva.open(ocean_path)
    other = sieva.open(ocean_path, manifest=first.manifest())
    assert list(other.arrays) == list(first.arrays)
    assert other.attrs == first.attrs
    ours, theirs = (s.query(condition, select=["TEMP", "SALT"]) for s in (other, first))
    assert ours.selection() == theirs.selection()
    np.testing.assert_array_equal(ours.read("SALT"), theirs.read("SALT"))
    assert other.manifest() == first.manifest()


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_only_values_are_read(tmp_path, compression):
    path = tmp_path / "a.h5"
    a, _ = write_chunked(path, compression)
    known = sieva.open(path).manifest()
    src = sieva.open(path, manifest=known, learn=False)
    query = src.query("a > 0.5")
    assert query.stats()["bytes_read"] == 0
    assert query.count() == int((a > 0.5).sum())
    with h5py.File(path) as file:
        stored = file["g/a"].id.get_storage_size()
    assert query.stats()["bytes_read"] == stored


def test_nothing_is_read_where_indexes_decide(tmp_path):
    path = tmp_path / "a.h5"
    a, _ = write_chunked(path)
    src = sieva.open(path)
    src.build_index("g/a")
    known = sieva.open(path).manifest()
    src = sieva.open(path, manifest=known)
    query = src.query("a > 1.7")
    assert query.count() == int((a > 1.7).sum())
    stats = query.stats()
    assert stats["index_bytes_read"] > 0
    assert stats["bytes_read"] == 0


def test_tasks_of_one_run_in_the_other(tmp_path):
    path = tmp_path / "a.h5"
    a, _ = write_chunked(path)
    first = sieva.open(path)
    other = sieva.open(path, manifest=first.manifest())
    query = first.query("a > 0")
    parts = [other.run_task(task) for task in query.tasks(3, kind="count")]
    assert query.finish(parts).count() == int((a > 0).sum())


def test_another_process_reads_no_byte_to_open(tmp_path):
    path = tmp_path / "a.h5"
    a, _ = write_chunked(path)
    known = tmp_path / "known"
    known.write_bytes(sieva.open(path).manifest())
    program = (
        "import os, sys, sieva\n"
        "path, known = sys.argv[1:]\n"
        "src = sieva.open(path, manifest=open(known, 'rb').read())\n"
        "links = [f'/proc/self/fd/{n}' for n in os.listdir('/proc/self/fd')]\n"
        "assert os.path.realpath(path) not in [os.readlink(name) for name in links if os.path.islink(name)]\n"
        "query = src.query('a > 1')\n"
        "print(len(src.arrays), query.stats()['bytes_read'], query.count())\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", program, str(path), str(known)], capture_output=True, text=True, check=True
    )
    assert out.stdout.split() == ["2", "0", str(int((a > 1).sum()))]


def test_another_state_is_stale(tmp_path):
    path = tmp_path / "a.h5"
    write_chunked(path)
    known = sieva.open(path).manifest()
    settled(path)
    with pytest.raises(sieva.errors.StaleSource, match="was changed since its manifest was taken"):
        sieva.open(path, manifest=known)
    known = sieva.open(path).manifest()
    src = sieva.open(path, manifest=known)
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(sieva.errors.StaleSource):
        src.query("a > 1").count()
    with pytest.raises(sieva.errors.StaleSource, match="bytes, it had"):
        sieva.open(path, manifest=known)
    path.unlink()
    with pytest.raises(sieva.errors.FileNotFound):
        sieva.open(path, manifest=known)


def test_damaged_bytes_are_told(tmp_path):
    path = tmp_path / "a.h5"
    write_chunked(path)
    known = sieva.open(path).manifest()
    for at in range(0, len(known), 5):
        damaged = bytearray(known)
        damaged[at] ^= 1
        with pytest.raises(sieva.errors.CorruptIndex) as e:
            sieva.open(path, manifest=bytes(damaged))
        assert e.value.hint
    for part in [b"", b"none", known[:-1], known + b"\0"]:
        with pytest.raises(sieva.errors.CorruptIndex):
            sieva.open(path, manifest=part)
    with pytest.raises(TypeError, match="the bytes that Source"):
        sieva.open(path, manifest="text")


def test_what_has_no_manifest(tmp_path):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    group.create_array("a", data=np.arange(10.0))
    with pytest.raises(sieva.errors.Unsupported):
        sieva.open(tmp_path / "a.zarr").manifest()
    for name in ("a", "b"):
        write_chunked(tmp_path / f"{name}.h5")
    both = [tmp_path / "a.h5", tmp_path / "b.h5"]
    with pytest.raises(sieva.errors.Unsupported, match="several files"):
        sieva.open(both, join="n").manifest()
    known = sieva.open(both[0]).manifest()
    with pytest.raises(sieva.errors.InvalidValue, match="a manifest is of one file"):
        sieva.open(both, join="n", manifest=known)
    with pytest.raises(sieva.errors.InvalidValue, match="opened with dims="):
        sieva.open(both[0], manifest=known, dims={"g/b": ["n"]})


def test_names_of_dimensions_go_along(tmp_path):
    path = tmp_path / "a.h5"
    a, b = write_chunked(path)
    dims = {"g/a": ["t", "n"], "g/b": ["n"]}
    known = sieva.open(path, dims=dims).manifest()
    src = sieva.open(path, dims=dims, manifest=known)
    assert src.query("a > 0 AND b > 30000").count() == int(((a > 0) & (b > 30000)).sum())


def test_a_subquery_of_another_file_is_parsed(tmp_path):
    write_chunked(tmp_path / "a.h5")
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["limit"] = np.array([0.25, 0.75])
    path = tmp_path / "a.h5"
    a, _ = write_chunked(path)
    known = sieva.open(path).manifest()
    src = sieva.open(path, manifest=known)
    query = src.sql(f"SELECT a WHERE a > (SELECT max(\"limit\") FROM '{tmp_path / 'b.h5'}')")
    assert query.count() == int((a > np.float32(0.75)).sum())


def mask_of(boxes, shape):
    out = np.zeros(shape, bool)
    for start, length in boxes:
        out[tuple(slice(s, s + n) for s, n in zip(start, length, strict=True))] = True
    return out


def test_selections_of_boxes_and_positions_are_those_of_numpy():
    rng = np.random.default_rng(11)
    for _ in range(60):
        shape = [int(n) for n in rng.integers(1, 9, rng.integers(1, 5))]
        dims = [f"d{i}" for i in range(len(shape))]
        boxes = []
        for _ in range(rng.integers(0, 4)):
            start = [int(rng.integers(0, n + 1)) for n in shape]
            boxes.append(
                (start, [int(rng.integers(0, n - s + 1)) for s, n in zip(start, shape, strict=True)])
            )
        mask = mask_of(boxes, shape)
        selection = sieva.Selection.from_boxes(boxes, dims, shape)
        np.testing.assert_array_equal(selection.mask(), mask)
        positions = np.flatnonzero(mask)
        np.testing.assert_array_equal(selection.positions(), positions)
        drawn = rng.permutation(np.concatenate([positions, positions[:2]])).astype("u8")
        assert sieva.Selection.from_positions(drawn, dims, shape) == selection
        coords = np.argwhere(mask).astype("u8")
        assert sieva.Selection.from_positions(coords, dims, shape) == selection
        assert sieva.Selection.from_bytes(bytes(selection)) == selection
        assert pickle.loads(pickle.dumps(selection)) == selection  # noqa: S301 - our own bytes


def test_a_selection_of_coordinates_meets_that_of_a_query(ocean):
    warm = ocean.query("TEMP > 20").selection()
    again = sieva.Selection.from_positions(warm.coords().astype("u8"), warm.dims, warm.shape)
    assert again == warm
    assert len(again & ~warm) == 0


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: sieva.Selection.from_positions(np.array([6], "u8"), ["y", "x"], [2, 3]), "InvalidValue"),
        (
            lambda: sieva.Selection.from_positions(np.array([[0, 3]], "u8"), ["y", "x"], [2, 3]),
            "InvalidValue",
        ),
        (
            lambda: sieva.Selection.from_positions(np.zeros((1, 3), "u8"), ["y", "x"], [2, 3]),
            "DimensionMismatch",
        ),
        (lambda: sieva.Selection.from_boxes([([0, 2], [1, 2])], ["y", "x"], [2, 3]), "InvalidValue"),
        (lambda: sieva.Selection.from_boxes([([0], [1])], ["y", "x"], [2, 3]), "DimensionMismatch"),
        (lambda: sieva.Selection.from_boxes([], ["y"], [2, 3]), "DimensionMismatch"),
        (lambda: sieva.Selection.from_bytes(b"none"), "CorruptFile"),
    ],
)
def test_wrong_selections_are_told(make, error):
    with pytest.raises(getattr(sieva.errors, error)):
        make()
