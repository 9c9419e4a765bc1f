"""Regions of any size: answers stay numpy's, regions are whole chunks, another size takes one's place."""

import json
import os
import tempfile
from pathlib import Path

import draws
import h5py
import netCDF4
import numpy as np
import pytest
import sieva
from click.testing import CliRunner
from draw_conditions import conditions
from draws import FORMATS
from hypothesis import given, note, settings
from hypothesis import strategies as st
from index_files import ALL, assert_right, energy_of, write
from sieva import cli, errors
from test_foreign import Arrays, blocks
from test_index_oracle import ACCESS, LAYOUTS, WAYS, assert_answered, index_all, large_arrays, mock
from test_oracle import PROFILE, files, opened

SIZES = st.one_of(
    st.none(),
    st.integers(0, 23).map(lambda bits: 1 << bits),
    st.integers(1, 3_000_000),
    st.sampled_from([3, 4097, 65_535, 262_145, 2**40]),
)
"""From a byte to more than the array; round ones and odd ones."""


@pytest.fixture
def path(tmp_path):
    """Return the path of a file without indexes."""
    write(tmp_path / "data.h5")
    return tmp_path / "data.h5"


def status_of(source, array):
    return next(a for a in source.index_status().arrays if a.path == array)


def segments(path):
    return sorted(Path(f"{path}.sieva").glob("*.seg"))


@pytest.mark.parametrize("file_format", FORMATS)
def test_answers_are_numpys_with_regions_of_any_size(file_format):
    @settings(PROFILE, max_examples=PROFILE.max_examples // 10)
    @given(data=st.data())
    def law(data):
        drawn = data.draw(files(file_format), label="file")
        asked = data.draw(conditions(drawn), label="condition")
        selected = data.draw(st.lists(st.sampled_from(drawn), min_size=1, unique_by=id), label="select")
        with tempfile.TemporaryDirectory() as directory:
            source = opened(directory, file_format, drawn, data.draw(st.booleans(), label="unlimited"))
            index_all(source, [array.name for array in drawn])
            for array in drawn:
                size = data.draw(SIZES, label=f"region of {array.name}")
                source.build_index(array.name, region_size=size)
            for access, fetch in WAYS:
                note(f"{access}, {fetch}: {asked.text}")
                assert_answered(source, asked, selected, access, fetch)
            assert source.verify_index(all=True)
            assert source.index_notes == []

    law()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_large_arrays_have_numpys_answer_with_regions_of_any_size(layout, tmp_path):
    layout = LAYOUTS[layout]
    with mock.patch.dict(draws.DIMS, layout.dims, clear=True):
        arrays = large_arrays(layout)
        source = opened(tmp_path, layout.file_format, arrays, unlimited=False)
        names = [array.name for array in arrays if array.stored.size > 1000]
        index_all(source, names, columns=names[-2:])

        @settings(PROFILE, max_examples=PROFILE.max_examples // 30)
        @given(data=st.data())
        def law(data):
            mine = data.draw(
                st.lists(st.sampled_from(arrays), min_size=1, max_size=3, unique_by=id), label="arrays"
            )
            if all(array.stored.size <= 1000 for array in mine):
                mine.append(arrays[-1])
            for array in mine:
                size = data.draw(SIZES, label=f"region of {array.name}")
                source.build_index(array.name, region_size=size)
            condition = data.draw(conditions(mine), label="condition")
            selected = data.draw(st.lists(st.sampled_from(arrays), min_size=1, max_size=2, unique_by=id))
            memory = data.draw(st.sampled_from([None, "2MiB"]), label="memory")
            for access in ACCESS:
                note(f"{access}: {condition.text}")
                try:
                    assert_answered(source, condition, selected, access, "auto")
                    count = source.query(condition.text, access=access, memory=memory, threads=2).count()
                    assert count == source.query(condition.text, access="scan").count()
                except errors.NoIndex:
                    assert access == "sorted"
            columns = ", ".join(f"{f}({mine[-1].name})" for f in ("count", "min", "max", "avg"))
            text = f"SELECT count(*), {columns} WHERE {condition.text}"
            expected = repr(source.sql(text, access="scan").to_arrow().to_pylist())
            assert repr(source.sql(text).to_arrow().to_pylist()) == expected
            assert source.index_notes == []

        law()
        assert source.verify_index(all=True)


def test_regions_are_whole_chunks_of_about_the_size(path):
    source = sieva.open(path)
    source.build_index("energy", "class", region_size="64KiB")
    energy, classes = status_of(source, "energy"), status_of(source, "class")
    assert (energy.region, energy.region_bytes, energy.regions) == ((16_384,), 65_536, 19)
    # 500 x 600 of two bytes in chunks of 100 x 100: three of them fit.
    assert (classes.region, classes.region_bytes, classes.regions) == ((100, 300), 60_000, 10)
    source.build_index("class", region_size=1)
    assert status_of(source, "class").region == (100, 100)
    source.build_index("class", region_size=150_000)
    assert status_of(source, "class").region == (100, 600)
    source.build_index("class", region_size="250KiB")
    assert status_of(source, "class").region == (200, 600)
    source.build_index("class", region_size="1TiB")
    classes = status_of(source, "class")
    assert (classes.region, classes.regions, classes.region_bytes) == ((500, 600), 1, 600_000)
    assert assert_right(path) == ALL[:-1]


def test_many_small_regions_are_not_more_than_there_may_be(tmp_path):
    with h5py.File(tmp_path / "many.h5", "w") as file:
        file["v"] = (np.arange(1_000_000) % 256).astype("u1")
    source = sieva.open(tmp_path / "many.h5")
    source.build_index("v", kinds=["zonemap"], region_size=1)
    assert status_of(source, "v").region == (256,)
    assert source.query("v = 100", access="zonemap").count() == 3906


def test_status_tells_the_size(path):
    source = sieva.open(path)
    source.build_index("energy", region_size="128KiB")
    lines = repr(source.index_status()).splitlines()
    assert lines[2].split()[:4] == ["array", "regions", "each", "zone"]
    assert lines[3].split()[:4] == ["energy", "10", "128", "KiB"]
    found = CliRunner().invoke(cli.cli, ["index", str(path), "--status", "--json"])
    (array,) = json.loads(found.stdout)["arrays"]
    assert (array["region"], array["region_bytes"]) == ([32_768], 131_072)


def test_the_command_line(path):
    run = CliRunner().invoke(cli.cli, ["index", str(path), "--var", "energy", "--region-size", "1MiB"])
    assert run.exit_code == 0, run.output
    assert "2 regions" in run.stderr
    assert status_of(sieva.open(path), "energy").region_bytes == 1 << 20
    for wrong, said in (("lots", "no size"), ("0", "positive"), ("-4", "size")):
        run = CliRunner().invoke(cli.cli, ["index", str(path), "--region-size", wrong])
        assert run.exit_code == 2
        assert said in run.stderr
    run = CliRunner().invoke(cli.cli, ["index", str(path), "--status", "--region-size", "1MiB"])
    assert run.exit_code == 2
    assert "--region-size does not go with --status" in run.stderr


@pytest.mark.parametrize(
    ("size", "error"),
    [(0, ValueError), (-1, ValueError), ("", ValueError), (1.5, TypeError), (True, TypeError)],
)
def test_sizes_that_are_none(path, size, error):
    source = sieva.open(path)
    with pytest.raises(error, match="size"):
        source.build_index("energy", region_size=size)
    with pytest.raises(error, match="size"):
        source.index_job("energy", region_size=size)
    assert not Path(f"{path}.sieva").exists()


def test_who_asks_for_no_size_keeps_what_there_is(path):
    source = sieva.open(path)
    source.build_index("energy", kinds=["zonemap"], region_size="100KiB")
    before = segments(path)
    report = source.build_index("energy", kinds=["zonemap"])
    assert (report.regions_built, report.regions_kept) == (0, 12)
    # The same size by another number of bytes, as regions are whole elements.
    assert source.build_index("energy", kinds=["zonemap"], region_size=102_403).regions_built == 0
    assert source.build_index("energy").regions_built == 12
    assert set(before) < set(segments(path))
    energy = status_of(source, "energy")
    assert (energy.region_bytes, energy.with_zonemap, energy.with_bitmap) == (102_400, 12, 12)
    # Of an array without an index, regions are as they are by themselves.
    source.build_index()
    assert [status_of(source, name).regions for name in ("energy", "x", "class")] == [12, 5, 3]
    assert assert_right(path) == ALL[:-1]


def test_another_size_builds_anew_all_that_there_is(path):
    source = sieva.open(path)
    source.build_index("energy", "x")
    source.build_index("energy", kinds=["sorted"])
    before, replica = segments(path), source.index_status().replicas
    size = sum(file.stat().st_size for file in before)
    # Bitmaps, too, though zone maps alone are asked for: those of other regions do not count any more.
    report = source.build_index("energy", "x", kinds=["zonemap"], region_size="512KiB")
    assert (report.regions_built, report.regions_kept) == (6, 0)
    for name in ("energy", "x"):
        array = status_of(source, name)
        assert (array.regions, array.with_zonemap, array.with_bitmap) == (3, 3, 3)
    assert not set(before) & set(segments(path))
    assert sum(file.stat().st_size for file in segments(path)) < 1.1 * size
    status = source.index_status()
    assert (status.replicas, status.notes) == (replica, ())
    assert source.verify_index(all=True)
    assert assert_right(path) == ALL


def test_what_another_array_has_stays(path):
    source = sieva.open(path)
    source.build_index("energy", "x", jobs=1)
    (both,) = segments(path)
    source.build_index("energy", region_size="1MiB")
    # The segment of both stays, as `x` is in it.
    assert both in segments(path)
    assert [status_of(source, name).regions for name in ("energy", "x")] == [2, 5]
    source.build_index("x", region_size="1MiB")
    assert both not in segments(path)
    assert source.index_status().notes == ()
    assert assert_right(path) == ALL[:-1]


def test_a_reader_that_has_the_old_regions_open_reads_on(path):
    reader = sieva.open(path)
    sieva.open(path).build_index("energy", "x")
    expected = (energy_of(path) > 3).sum()
    assert reader.query("energy > 3", access="bitmap").count() == expected
    sieva.open(path).build_index("energy", "x", region_size="1MiB")
    assert reader.query("energy > 3", access="bitmap").count() == expected
    reader.close()
    assert reader.query("energy > 3", access="bitmap").count() == expected
    assert status_of(reader, "energy").regions == 2


def test_what_scans_leave_does_not_hide_regions_of_a_size(path):
    learner = sieva.open(path, learn=(1.0, 0))
    learner.query("energy > 3", access="scan").count()
    builder = sieva.open(path)
    builder.build_index("energy", region_size="400KiB")
    learner.query("energy > 2.5", access="scan").count()
    learner.close()
    assert status_of(builder, "energy").region_bytes == 400 * 1024
    assert sieva.open(path).query("energy > 3", access="bitmap").count() == (energy_of(path) > 3).sum()
    assert builder.index_status().notes == ()


def test_a_build_that_was_stopped_goes_on(path):
    source = sieva.open(path)
    source.build_index("energy", "x")
    done = []

    def stop(*_):
        done.append(1)
        if len(done) == 3:
            raise LookupError

    with pytest.raises(LookupError):
        source.build_index("energy", "x", region_size="64KiB", jobs=1, progress=stop)
    assert_right(path)
    report = source.build_index("energy", "x", region_size="64KiB")
    assert report.regions_built + report.regions_kept == 38
    assert report.regions_kept == 3
    assert [status_of(source, name).with_bitmap for name in ("energy", "x")] == [19, 19]
    assert assert_right(path) == ALL[:-1]


@pytest.mark.parametrize("n", [1, 3, 50])
def test_jobs_of_many_processes_build_the_same(path, tmp_path, n):
    alone = sieva.open(path, store=tmp_path / "one")
    alone.build_index(region_size="48KiB")
    many = sieva.open(path, store=tmp_path / "many")
    many.build_index("energy")
    job = many.index_job(kinds=["zonemap"], region_size="48KiB")
    tasks = job.tasks(n)
    # Each by a source of its own, in any order; what others publish meanwhile changes nothing.
    done = [sieva.open(path, store=tmp_path / "many").run_index_task(bytes(task)) for task in tasks[::-1]]
    job.take(done[::-1])
    job.finish()
    found = {a.path: a for a in many.index_status().arrays}
    for array in alone.index_status().arrays:
        mine = found[array.path]
        assert (mine.region, mine.with_zonemap) == (array.region, array.with_zonemap)
        assert mine.with_bitmap == (array.regions if array.path == "energy" else 0)
    assert many.verify_index(all=True)
    assert many.index_status().notes == ()


def test_regions_of_a_size_outlive_growth(tmp_path):
    path = tmp_path / "grows.nc"
    rng = np.random.default_rng(1)
    values = rng.normal(0, 10, (60, 50, 40)).astype("f4")
    with netCDF4.Dataset(path, "w") as file:
        for name, n in (("t", None), ("y", 50), ("x", 40)):
            file.createDimension(name, n)
        v = file.createVariable("v", "f4", ("t", "y", "x"), chunksizes=(2, 50, 40))
        v[:] = values[:20]
    source = sieva.open(path)
    source.build_index("v", region_size="96KiB")
    assert status_of(source, "v").region == (12, 50, 40)
    with netCDF4.Dataset(path, "a") as file:
        file["v"][20:] = values[20:]
    grown = sieva.open(path)
    report = grown.build_index("v")
    assert (report.regions_built, report.regions_renewed) == (5, 1)
    assert status_of(grown, "v").region == (12, 50, 40)
    assert grown.query("v > 12.5", access="bitmap").count() == (values > np.float32(12.5)).sum()
    assert grown.verify_index(all=True)


def test_small_arrays_that_grow_have_regions_by_themselves(tmp_path):
    path = tmp_path / "grows.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("t", None)
        file.createVariable("v", "f4", ("t",), chunksizes=(1000,))[:] = np.arange(3000)
    sieva.open(path).build_index()
    with netCDF4.Dataset(path, "a") as file:
        file["v"][3000:] = np.arange(3000, 400_000)
    source = sieva.open(path)
    source.build_index()
    assert status_of(source, "v").region[0] > 65_536


def test_files_that_are_joined(tmp_path):
    rng = np.random.default_rng(2)
    lengths = (28, 31, 0, 3, 30)
    parts = [rng.normal(0, 10, (n, 40, 50)).astype("f4") for n in lengths]
    for number, part in enumerate(parts):
        with netCDF4.Dataset(tmp_path / f"{number}.nc", "w") as file:
            for name, n in (("t", None), ("y", 40), ("x", 50)):
                file.createDimension(name, n)
            file.createVariable("t", "i4", ("t",))[:] = np.arange(len(part)) + 100 * number
            file.createVariable("v", "f4", ("t", "y", "x"), chunksizes=(4, 40, 50))[:] = part
    values = np.concatenate(parts)
    everything = str(tmp_path / "*.nc")
    for size in ("64KiB", "256KiB", None, "1GiB", 1):
        sieva.open(everything).build_index("v", region_size=size)
        source = sieva.open(everything)
        for access in ("auto", "zonemap", "bitmap"):
            query = source.query("v > 22.5", access=access)
            np.testing.assert_array_equal(query.selection().mask(), values > np.float32(22.5))
            np.testing.assert_array_equal(query.read("v"), values[values > np.float32(22.5)])
        assert source.query("v > 20", access="bitmap").stats()["bytes_read"] == 0
        query = source.query("v > 20", access="bitmap")
        assert query.count() == (values > 20).sum()
        assert query.stats()["by_scan"] == 0
        assert source.verify_index(all=True)
    assert status_of(source, "v").region == (4, 40, 50)


def test_files_of_different_regions_are_scanned_where_they_differ(tmp_path):
    values = np.random.default_rng(3).normal(0, 10, (3, 100_000)).astype("f4")
    for number, part in enumerate(values):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            t = file.create_dataset("t", data=np.arange(100_000) + 100_000 * number)
            t.make_scale("t")
            file["v"] = part
            file["v"].dims[0].attach_scale(t)
    for number, size in enumerate(("32KiB", "64KiB", None)):
        sieva.open(tmp_path / f"{number}.h5").build_index("v", region_size=size)
    source = sieva.open(str(tmp_path / "*.h5"))
    for access in ("auto", "zonemap", "bitmap", "scan"):
        assert source.query("v > 20.5", access=access).count() == (values > np.float32(20.5)).sum()


@pytest.mark.parametrize("size", [1, "1KiB", "16KiB", "1MiB"])
def test_what_a_format_tells_of_blocks_is_told_of_the_regions_that_there_are(size, tmp_path):
    shape = (6, 40, 30)
    values = np.broadcast_to(np.arange(6)[:, None, None] * 10, shape).astype("i4")
    values = values + np.random.default_rng(4).integers(0, 10, shape).astype("i4")
    reader = Arrays({"a": values}, {"a": list(blocks(values))})
    source = reader.open(store=os.fspath(tmp_path))
    source.build_index("a", kinds=["zonemap"], region_size=size)
    for low in range(0, 60, 7):
        query = source.query(f"a >= {low} AND a <= {low + 3}", access="zonemap")
        np.testing.assert_array_equal(query.selection().mask(), (values >= low) & (values <= low + 3))


def test_tiles_follow_regions(path):
    energy = energy_of(path)
    source = sieva.open(path)
    for size, tiles in (("1MiB", 2), ("4MiB", 1), ("16KiB", 74)):
        source.build_index("energy", region_size=size)
        query = source.query("energy > 3", access="bitmap")
        assert query.count() == (energy > 3).sum()
        assert query.stats()["by_bitmap"] == tiles, size


def test_regions_larger_than_what_memory_holds_are_read(tmp_path):
    rng = np.random.default_rng(5)
    values = rng.normal(0, 1, 3_000_000).astype("f4")
    with h5py.File(tmp_path / "large.h5", "w") as file:
        file["v"] = values
    source = sieva.open(tmp_path / "large.h5")
    source.build_index("v", region_size="8MiB")
    for memory in ("1MiB", "3MiB", "64MiB"):
        for access in ("auto", "bitmap", "zonemap"):
            query = source.query("v > 2", access=access, memory=memory, threads=2)
            assert query.count() == (values > 2).sum()
    assert source.query("v > 2", access="bitmap", memory="64MiB").count() == (values > 2).sum()
    with pytest.raises(errors.MemoryLimit):
        source.build_index("v", region_size="64MiB", memory="8MiB")


def test_statistics_of_large_regions_answer_aggregates(tmp_path):
    values = np.arange(2_000_000, dtype="i4")
    with h5py.File(tmp_path / "ordered.h5", "w") as file:
        file["v"] = values
    source = sieva.open(tmp_path / "ordered.h5")
    source.build_index("v", kinds=["zonemap"], region_size="1MiB")
    query = source.sql("SELECT count(*) AS n, sum(v) AS s, max(v) AS m WHERE v >= 524288")
    row = query.to_arrow().to_pylist()[0]
    assert row == {"n": 2_000_000 - 524_288, "s": int(values[524_288:].sum()), "m": 1_999_999}
    assert query.stats()["bytes_read"] == 0
