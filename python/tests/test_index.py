"""Building indexes and looking after them: status, places, histograms, and what scans leave."""

import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import sieva
import zarr
from index_files import ALL, N, assert_right, energy_of, write
from sieva import _native, errors

READ_ONLY = """
import os, sys, sieva
source = sieva.open(sys.argv[1])
if os.geteuid() == 0:
    os.setuid(65534)
for work in (source.build_index, lambda: source.build_index("x", kinds=["sorted"]), source.calibrate):
    try:
        work()
    except sieva.errors.PermissionDenied as error:
        assert "SIEVA_STORE" in error.hint
        print(error.kind)
print(source.query("energy > 3.21").count())
source.close()
"""


@pytest.fixture
def path(tmp_path):
    """Return the path of a file without indexes."""
    write(tmp_path / "data.h5")
    return tmp_path / "data.h5"


@pytest.fixture
def indexed(path):
    """Return the path of a file with indexes of all kinds."""
    source = sieva.open(path)
    source.build_index()
    source.build_index("energy", kinds=["sorted"], columns=["x"])
    return path


def test_a_build_tells_what_it_did_and_does_it_once(path):
    source = sieva.open(path)
    first = source.build_index()
    assert (first.regions_built, first.regions_kept, first.regions_renewed) == (13, 0, 0)
    assert first.bytes_read == N * 4 * 2 + 300_000 * 2
    assert first.unreadable == ()
    assert repr(first).startswith("<sieva.BuildReport 13 regions built, 0 kept; 2.9 MiB read in ")
    again = source.build_index()
    assert (again.regions_built, again.regions_kept, again.bytes_read) == (0, 13, 0)
    assert source.build_index("energy", kinds=["sorted"]).replicas_built == 1
    assert source.build_index(source["energy"], kinds=["sorted"]).replicas_built == 0


def test_bitmaps_are_added_to_zone_maps(path):
    source = sieva.open(path)
    source.build_index("energy", kinds=["zonemap"])
    with pytest.raises(errors.NoIndex, match="energy"):
        source.query("energy > 3", access="bitmap")
    assert source.build_index("energy", "x", kinds=["bitmap"]).regions_built == 10
    assert source.query("energy > 3", access="bitmap").count() == (energy_of(path) > 3).sum()


def test_each_way_is_the_one_that_is_taken(indexed):
    source = sieva.open(indexed)

    def stats(condition, **options):
        query = source.query(condition, **options)
        query.count()
        return query.stats()

    assert stats("energy > 3.21", access="scan")["by_scan"] == 5
    assert stats("energy > 3.21", access="zonemap")["by_scan"] == 5
    by_bitmap = stats("energy > 3.2", access="bitmap")
    assert (by_bitmap["by_bitmap"], by_bitmap["bytes_read"]) == (5, 0)
    assert stats("energy > 3.21", access="sorted")["by_replica"] == (energy_of(indexed) > 3.21).sum()
    assert stats("energy > 100", access="zonemap")["bytes_read"] == 0


def test_progress_is_told_and_can_stop_a_build(path):
    source = sieva.open(path)
    told = []
    source.build_index("energy", progress=lambda done, total: told.append((done, total)))
    # Workers tell of it in any order.
    assert max(told) == (N * 4, N * 4)
    assert len(told) == len(set(told)) == 5

    def stop(*_):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        source.build_index("x", progress=stop)
    assert_right(path)


@pytest.mark.parametrize(
    ("arrays", "options", "error", "text"),
    [
        (("nothing",), {}, errors.UnknownArray, "nothing"),
        ((), {"kinds": ["sorted"]}, errors.InvalidValue, "sorted by one array"),
        (("energy",), {"kinds": ["magic"]}, errors.InvalidValue, "magic"),
        (("energy",), {"kinds": "bitmap"}, TypeError, "kinds is a list"),
        (("energy",), {"kinds": ["sorted"], "columns": "x"}, TypeError, "columns is a list"),
        (("energy",), {"columns": ["x"]}, errors.InvalidValue, "sorted replica"),
        (("energy",), {"kinds": ["sorted"], "columns": ["class"]}, errors.DimensionMismatch, "class"),
        (("energy",), {"jobs": 0}, ValueError, "jobs=0"),
        (("energy",), {"precision": 0}, ValueError, "precision=0"),
        (("energy",), {"memory": "lots"}, ValueError, "lots"),
        ((1,), {}, TypeError, "by its name"),
    ],
)
def test_wrong_arguments_of_a_build(path, arrays, options, error, text):
    with pytest.raises(error, match=text):
        sieva.open(path).build_index(*arrays, **options)
    assert not Path(f"{path}.sieva").exists()


def test_text_is_not_indexed(tmp_path):
    with h5py.File(tmp_path / "text.h5", "w") as file:
        file["name"], file["value"] = ["a", "b"], [1, 2]
    source = sieva.open(tmp_path / "text.h5")
    with pytest.raises(errors.TypeMismatch, match="name"):
        source.build_index("name")
    source.build_index()
    assert [array.path for array in source.index_status().arrays] == ["value"]


def test_status_prints_as_a_table(indexed):
    source = sieva.open(indexed)
    status = source.index_status()
    assert status.exists
    assert not status.stale
    assert status.notes == ()
    assert status.store == Path(f"{indexed}.sieva")
    energy = next(array for array in status.arrays if array.path == "energy")
    assert (energy.regions, energy.with_zonemap, energy.with_bitmap, energy.data_bytes) == (5, 5, 5, N * 4)
    assert 0 < energy.zonemap_bytes < energy.bitmap_bytes < N
    (replica,) = status.replicas
    assert (replica.key, replica.columns) == ("energy", ("energy", "x"))
    assert replica.path.parent == status.store
    lines = repr(status).splitlines()
    assert lines[2].split() == [
        "array",
        "regions",
        "each",
        "zone",
        "maps",
        "bitmaps",
        "bytes",
        "%",
        "of",
        "data",
    ]
    assert [line.split()[0] for line in lines[3:6]] == ["class", "energy", "x"]
    assert "energy, x" in lines[-1]


def test_status_of_nothing(path):
    status = sieva.open(path).index_status()
    assert (status.exists, status.arrays, status.replicas) == (False, (), ())
    assert "there is none" in repr(status)


def test_verify(path):
    source = sieva.open(path)
    with pytest.raises(errors.NoIndex):
        source.verify_index()
    source.build_index()
    source.build_index("energy", kinds=["sorted"])
    told = []
    report = source.verify_index(all=True, progress=lambda *numbers: told.append(numbers))
    assert report
    assert (report.regions, report.rows) == (13, N)
    assert told[-1] == (4, 4)
    assert "all as it should be" in str(report)


def test_drop(indexed):
    source = sieva.open(indexed)
    with pytest.raises(errors.Unsupported, match="bitmap") as raised:
        source.drop_index(kinds=["bitmap"])
    assert "build" in raised.value.hint
    with pytest.raises(errors.Unsupported, match="energy"):
        source.drop_index("energy")
    with pytest.raises(errors.InvalidValue):
        source.drop_index(kinds=["magic"])
    assert not source.drop_index("x", kinds=["sorted"])
    assert source.drop_index("energy", kinds=["sorted"])
    assert source.index_status().replicas == ()
    assert assert_right(indexed) == ALL[:-1]
    assert source.drop_index()
    assert assert_right(indexed) == ["auto", "scan"]


def test_calibrate(path):
    found = sieva.open(path).calibrate()
    assert found.kept_in.parent == Path(f"{path}.sieva")
    assert found.costs["direct.request_ns"][1] > 0
    assert "direct.request_ns" in repr(found)


def test_nothing_stays_of_a_store_that_is_dropped(path):
    source = sieva.open(path)
    source.build_index("energy")
    source.calibrate()
    assert source.drop_index()
    assert not Path(f"{path}.sieva").exists()
    assert not source.drop_index()


def test_stores_of_a_directory(path, tmp_path, monkeypatch):
    given = tmp_path / "stores"
    source = sieva.open(path, store=given)
    source.build_index("energy", kinds=["bitmap"])
    assert source.index_status().store.parent == given
    assert assert_right(path, store=given) == ["auto", "scan", "zonemap", "bitmap"]
    assert assert_right(path) == ["auto", "scan"]
    monkeypatch.setenv("SIEVA_STORE", str(given))
    assert assert_right(path) == ["auto", "scan", "zonemap", "bitmap"]
    assert sieva.sql(f"SELECT energy FROM '{path}' WHERE energy > 3", access="bitmap").count() > 0
    assert not Path(f"{path}.sieva").exists()
    # A store that was made beside the file is found all the same.
    monkeypatch.delenv("SIEVA_STORE")
    sieva.open(path).build_index("energy", kinds=["bitmap"])
    assert assert_right(path, store=tmp_path / "others") == ["auto", "scan", "zonemap", "bitmap"]


def test_a_directory_that_cannot_be_written(path, tmp_path):
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, so that no directory can be made in it")
    source = sieva.open(path, store=blocked)
    with pytest.raises((errors.IoError, errors.PermissionDenied), match="blocked"):
        source.build_index("energy")
    with pytest.raises((errors.IoError, errors.PermissionDenied)):
        source.calibrate()
    assert assert_right(path, store=blocked) == ["auto", "scan"]


def test_a_read_only_directory():
    # pytest's own directories are for one user alone, and root may write anywhere: a child is somebody else.
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "data.h5"
        write(path)
        path.parent.chmod(0o555)
        child = subprocess.run(
            [sys.executable, "-c", READ_ONLY, path], capture_output=True, text=True, check=True
        )
        count = (energy_of(path) > 3.21).sum()
        path.parent.chmod(0o755)
    assert child.stdout.splitlines() == ["permission-denied"] * 3 + [str(count)]


def test_a_replica_is_read_by_zarr(indexed):
    (replica,) = sieva.open(indexed).index_status().replicas
    group = zarr.open_group(replica.path, mode="r")
    about = group.attrs["sieva"]
    columns = {column["name"]: group[column["path"]][:] for column in about["columns"]}
    with h5py.File(indexed) as file:
        energy, x = file["energy"][:], file["x"][:]
    order = np.argsort(energy, kind="stable")
    np.testing.assert_array_equal(group["row"][:], order)
    np.testing.assert_array_equal(columns["energy"], energy[order])
    np.testing.assert_array_equal(columns["x"], x[order])


def test_histograms_merge_exactly_across_files(tmp_path):
    energy = np.random.default_rng(3).normal(0, 5, N).astype("f4")
    parts = [energy[: N // 3], energy[N // 3 :]]
    for i, part in enumerate([energy, *parts]):
        write(tmp_path / f"{i}.h5", energy=part)
        sieva.open(tmp_path / f"{i}.h5").build_index("energy", kinds=["zonemap"])
    whole, first, second = (sieva.open(tmp_path / f"{i}.h5").histogram("energy") for i in range(3))
    for merged in (first + second, second + first):
        assert merged.rows == N
        assert merged.range == whole.range == (energy.min(), energy.max())
        counts, edges = merged
        assert counts.sum() == N
        np.testing.assert_array_equal(np.histogram(energy.astype("f8"), edges)[0], counts)


def test_histograms_of_arrays_together(indexed):
    source = sieva.open(indexed)
    both = source.histogram("energy", source["x"])
    assert both.rows == 2 * N
    assert both.counts.sum() == 2 * N
    assert repr(both).startswith("<sieva.Histogram 600,000 values from ")
    with pytest.raises(errors.TypeMismatch, match="int16"):
        source.histogram("energy", "class")
    with pytest.raises(TypeError, match="unsupported operand"):
        both + 1
    with pytest.raises(TypeError, match="names of arrays"):
        source.histogram()
    with pytest.raises(errors.UnknownArray):
        source.histogram("nothing")


def test_histograms_of_integers_have_integer_edges(indexed):
    counts, edges = sieva.open(indexed).histogram("class")
    assert (counts.dtype, edges.dtype) == (np.int64, np.int64)
    assert edges.tolist() == list(range(-3, 5))
    assert sieva.open(indexed).histogram("class").range == (-3, 3)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (2**60 + np.arange(300, dtype="i8"), "int64"),
        (np.array([-(2**63), 2**63 - 5, 5], "i8"), "float64"),
        (2**63 + np.arange(7, 300, dtype="u8") * 3, "uint64"),
        (2**64 - 1 - np.arange(300, dtype="u8"), "float64"),
    ],
)
def test_histograms_beyond_2_to_53_hold_their_values(tmp_path, values, dtype):
    with h5py.File(tmp_path / "large.h5", "w") as file:
        file["v"] = values
    source = sieva.open(tmp_path / "large.h5")
    source.build_index("v", kinds=["zonemap"])
    found = source.histogram("v")
    whole = [int(v) for v in values]
    assert found.edges.dtype == dtype
    assert found.range == (min(whole), max(whole))
    edges = [int(edge) for edge in found.edges]
    assert edges == sorted(edges)
    assert edges[0] <= min(whole)
    assert edges[-1] > max(whole)
    assert found.counts.sum() == len(whole)
    if dtype != "float64":
        expected = [sum(a <= v < b for v in whole) for a, b in itertools.pairwise(edges)]
        assert found.counts.tolist() == expected


@pytest.mark.parametrize("scale", [1e307, -1e307])
def test_histograms_count_what_unpacking_makes_infinite(tmp_path, scale):
    stored = np.arange(-100, 101, dtype="i2")
    with h5py.File(tmp_path / "packed.h5", "w") as file:
        file["v"] = stored
        file["v"].attrs["scale_factor"] = scale
    source = sieva.open(tmp_path / "packed.h5")
    source.build_index("v", kinds=["zonemap"])
    found = source.histogram("v")
    with np.errstate(over="ignore"):
        values = stored * scale
    low, high = found.infinities
    assert found.counts.sum() + low + high == found.rows == values.size
    # Bins hold four stored numbers; the one at either end may hold infinities beside finite values.
    assert (values == -np.inf).sum() - 3 <= low <= (values == -np.inf).sum()
    assert (values == np.inf).sum() - 3 <= high <= (values == np.inf).sum()
    assert np.isfinite(found.edges[1:-1]).all()
    assert (np.diff(found.edges) > 0).all()


def test_histograms_read_no_data_and_need_zone_maps(path):
    source = sieva.open(path)
    with pytest.raises(errors.NoIndex, match="energy") as raised:
        source.histogram("energy")
    assert "build_index" in raised.value.hint
    source.build_index("energy", kinds=["zonemap"])
    assert source.histogram("energy").missing == 0


def test_histograms_are_plotted(indexed):
    class Axes:
        def stairs(self, values, edges, **options):
            self.drawn = values, edges, options

    axes, found = Axes(), sieva.open(indexed).histogram("energy")
    assert found.plot(axes, fill=True) is axes
    assert axes.drawn[2] == {"fill": True}
    assert len(axes.drawn[0]) + 1 == len(axes.drawn[1])


def learning(path, share=1e9):
    """Return a source whose scans may spend any time on zone maps, of arrays of any size."""
    return sieva.Source(_native.Source.open([str(path)], {"learn": (share, 0)}))


@pytest.fixture
def long_path(tmp_path):
    """Return a file of 32 chunks that are costly to decode."""
    path = tmp_path / "long.h5"
    values = np.random.default_rng(5).normal(0, 1, (32, 70_000)).astype("f4") + np.arange(32)[:, None]
    with h5py.File(path, "w") as file:
        file.create_dataset("t", data=values.astype("f4"), chunks=(1, 70_000), compression="gzip")
    return path


def test_scans_leave_zone_maps(long_path):
    with h5py.File(long_path) as file:
        values = file["t"][:]
    with learning(long_path) as source:
        assert source.query("t > 20.5").count() == (values > 20.5).sum()
    source = sieva.open(long_path, learn=False)
    (array,) = source.index_status().arrays
    assert array.with_zonemap == 32
    query = source.query("t > 30.5", access="zonemap")
    assert query.count() == (values > 30.5).sum()
    assert query.stats()["chunks_decoded"] < 16
    # They are of use to a build, and a build is not less for them.
    source.build_index()
    assert source.histogram("t").counts.sum() == values.size
    assert source.verify_index(all=True)


def test_what_scans_leave_is_saved_without_closing(long_path):
    learning(long_path).query("t > 20.5").count()
    assert sieva.open(long_path).index_status().arrays


@pytest.mark.parametrize("how", ["option", "environment"])
def test_scans_leave_nothing_where_that_is_asked_for(long_path, monkeypatch, how):
    if how == "environment":
        monkeypatch.setenv("SIEVA_LEARN", "0")
    with sieva.open(long_path, learn=how == "environment") as source:
        source.query("t > 20.5").count()
    assert not Path(f"{long_path}.sieva").exists()


def test_what_is_learnt_does_not_replace_what_is_stale(long_path):
    sieva.open(long_path).build_index()
    with h5py.File(long_path, "r+") as file:
        file["t"][5, 5] = 1000
    with learning(long_path) as source:
        assert source.query("t > 999").count() == 1
    source = sieva.open(long_path)
    assert source.index_status().stale
    assert source.build_index().regions_renewed == 31


def test_xarray_uses_indexes(indexed, tmp_path):
    xr = pytest.importorskip("xarray")
    with xr.open_dataset(indexed, engine="sieva", store=tmp_path, learn=False) as dataset:
        query = dataset.sieva.query("energy > 3.2", access="bitmap", fetch="direct")
        assert query.count() == (energy_of(indexed) > 3.2).sum()
