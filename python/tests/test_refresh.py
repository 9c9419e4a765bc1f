"""Sources that grow: what came is taken up by `refresh`, and never mixed with what was there."""

import os
import shutil

import h5py
import netCDF4
import numpy as np
import pytest
import sieva
import zarr
from sieva import errors


def write(path, first, records, *, depth=3, extra=False):
    """Write a file of some records; its values are their own numbers."""
    with netCDF4.Dataset(path, "w", format="NETCDF4") as file:
        file.createDimension("time", None)
        file.createDimension("z", depth)
        time = file.createVariable("time", "f8", ("time",))
        time.units = "days since 2000-01-01"
        values = file.createVariable("T", "f4", ("time", "z"), fill_value=np.float32(-9))
        if extra:
            file.createVariable("S", "i2", ("time",))[:] = np.arange(records)
        time[:] = first + np.arange(records)
        values[:] = numbers(first, records, depth)


def numbers(first, records, depth=3):
    found = (first + np.arange(records))[:, None] * 10 + np.arange(depth)[None]
    return found.astype("f4")


def append(path, records):
    with netCDF4.Dataset(path, "a") as file:
        had = len(file.dimensions["time"])
        first = int(file["time"][0])
        file["time"][had:] = first + had + np.arange(records)
        file["T"][had:] = numbers(first + had, records)


def later(path):
    """Make the time of a change another one, whatever the clock of the file system tells apart."""
    found = path.stat()
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 1_000_000_000))


def renewed(source):
    """Return a source as it is now, of which something changed."""
    fresh = source.refresh()
    assert fresh is not source
    return fresh


def times(source):
    return source.sql("SELECT time, T").to_arrow()["T"].to_numpy().reshape(-1, 3)


def test_a_file_that_got_records(tmp_path):
    path = tmp_path / "a.nc"
    write(path, 0, 4)
    source = sieva.open(path)
    before, query = source["T"], source.query("T >= 10")
    assert source.refresh() is source
    assert query.count() == 9
    append(path, 3)
    later(path)
    source = renewed(source)
    assert source["T"].shape == (7, 3)
    assert np.array_equal(times(source), numbers(0, 7))
    assert source.query("T >= 60").count() == 3
    # What was taken before is of what there was, and says so.
    for asked in (lambda: before[...], lambda: query.read("T")):
        with pytest.raises(errors.StaleSource):
            asked()
    assert source.refresh() is source


def test_a_glob_that_got_a_file_and_lost_one(tmp_path):
    for number in range(3):
        write(tmp_path / f"run.{number}.nc", 4 * number, 4)
    source = sieva.open(tmp_path / "run.*.nc")
    query = source.sql("SELECT T")
    assert source.refresh() is source
    write(tmp_path / "run.3.nc", 12, 2)
    source = renewed(source)
    assert len(source.files) == 4
    assert np.array_equal(times(source), numbers(0, 14))
    # No file that it is of has changed: the answer is what it was, in all that comes of it.
    assert np.array_equal(query.to_arrow()["T"].to_numpy().reshape(-1, 3), numbers(0, 12))
    assert np.array_equal(query.to_xarray()["T"].to_numpy().reshape(-1, 3), numbers(0, 12))
    assert query.source["T"].shape == (12, 3)
    (tmp_path / "run.0.nc").unlink()
    source = renewed(source)
    assert np.array_equal(times(source), numbers(4, 10))
    append(tmp_path / "run.3.nc", 5)
    later(tmp_path / "run.3.nc")
    source = renewed(source)
    assert np.array_equal(times(source), numbers(4, 15))
    assert source.refresh() is source
    # As if it were opened now, to the last attribute: what is told of files that are alike is of the first.
    again = sieva.open(tmp_path / "run.*.nc")
    assert source._native.state() == again._native.state()
    assert source.schema().to_json() == again.schema().to_json()


def test_the_first_of_files_that_differ_in_what_is_told_of_them(tmp_path):
    for number, level in enumerate((1, 5, 9)):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            chunks = (2, number + 1)
            file.create_dataset("v", data=np.full((4, 3), number, "i4"), chunks=chunks, compression=level)
            file["v"].attrs["history"] = f"made as number {number}"
    source = sieva.open(tmp_path / "*.h5", join="run", dims={"v": ["x", "y"]})
    for gone in ("0.h5", "1.h5"):
        (tmp_path / gone).unlink()
        shutil.copy(tmp_path / "2.h5", tmp_path / f"3{gone}")
        source = renewed(source)
        again = sieva.open(tmp_path / "*.h5", join="run", dims={"v": ["x", "y"]})
        assert source._native.state() == again._native.state()
        assert source["v"].attrs == again["v"].attrs
        assert np.array_equal(source["v"][...], again["v"][...])


def test_only_what_changed_is_opened(tmp_path):
    for number in range(40):
        write(tmp_path / f"{number:02}.nc", 4 * number, 4)
    source = sieva.open(tmp_path / "*.nc")
    write(tmp_path / "40.nc", 160, 4)
    # Were another one opened it could not be read: it is where it was, with the same time and length.
    hidden = tmp_path / "20.nc"
    data, stamp = hidden.read_bytes(), hidden.stat()
    hidden.write_bytes(b"\0" * len(data))
    os.utime(hidden, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    source = renewed(source)
    hidden.write_bytes(data)
    os.utime(hidden, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert np.array_equal(times(source), numbers(0, 164))


def test_one_file_that_becomes_two_and_one_again(tmp_path):
    write(tmp_path / "a.nc", 0, 2)
    source = sieva.open(tmp_path / "*.nc")
    assert np.array_equal(times(source), numbers(0, 2))
    write(tmp_path / "b.nc", 2, 3)
    source = renewed(source)
    assert np.array_equal(times(source), numbers(0, 5))
    (tmp_path / "a.nc").unlink()
    source = renewed(source)
    assert np.array_equal(times(source), numbers(2, 3))


def test_what_does_not_fit_is_told_and_the_source_stays(tmp_path):
    for number in range(2):
        write(tmp_path / f"{number}.nc", 4 * number, 4)
    source = sieva.open(tmp_path / "*.nc")
    write(tmp_path / "2.nc", 8, 4, depth=5)
    with pytest.raises(errors.DimensionMismatch):
        source.refresh()
    assert np.array_equal(times(source), numbers(0, 8))
    (tmp_path / "2.nc").unlink()
    assert source.refresh() is source
    for number in range(2):
        (tmp_path / f"{number}.nc").unlink()
    with pytest.raises(FileNotFoundError):
        source.refresh()


def test_a_hierarchy_that_grew(tmp_path):
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=3)
    array = group.create_array("T", shape=(4, 3), chunks=(2, 3), dtype="f4", dimension_names=("time", "z"))
    array[...] = numbers(0, 4)
    source = sieva.open(tmp_path / "a.zarr")
    array.resize((6, 3))
    array[4:] = numbers(4, 2)
    source = renewed(source)
    assert np.array_equal(source["T"][...], numbers(0, 6))


def test_indexes_of_what_was_are_left_aside(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=np.arange(200_000, dtype="f8"), maxshape=(None,), chunks=(1000,))
    source = sieva.open(path)
    source.build_index("v")
    assert source.query("v >= 199990").count() == 10
    with h5py.File(path, "a") as file:
        file["v"].resize((200_050,))
        file["v"][200_000:] = 1e6
    later(path)
    source = renewed(source)
    assert source.query("v >= 199990").count() == 60
    assert source.index_status().stale


def test_tasks_of_before_are_refused(tmp_path):
    for number in range(2):
        write(tmp_path / f"{number}.nc", 4 * number, 4)
    source = sieva.open(tmp_path / "*.nc")
    (task, *_) = source.sql("SELECT max(T) AS most").tasks(1)
    write(tmp_path / "2.nc", 8, 4)
    with pytest.raises(errors.StaleSource):
        source.refresh().run_task(task)


def rewrite(path, order):
    """Write two arrays in place, in an order: bytes of the one are then where the other's were."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 1000)
        for name in order:
            file.createVariable(name, "f4", ("x",))[:] = {"a": 1, "b": 2}[name]


@pytest.mark.parametrize("names", [["0.nc"], ["0.nc", "1.nc"]], ids=["one", "many"])
@pytest.mark.parametrize("is_read", [False, True], ids=["new", "read"])
def test_what_was_asked_before_a_file_was_rewritten_is_stale(tmp_path, names, is_read):
    for name in names:
        rewrite(tmp_path / name, "ab")
        os.utime(tmp_path / name, ns=(0, 0))
    source = sieva.open([tmp_path / name for name in names], join="run", learn=False)
    array, query = source["a"], source.query("a = 2")
    summed = source.sql("SELECT sum(a) AS s, max(a) AS m WHERE a > 0")
    if is_read:
        assert array[...].max() == 1
    rewrite(tmp_path / names[0], "ba")
    for asked in (query.count, summed.to_arrow, lambda: array[...], lambda: query.read("a")):
        with pytest.raises(errors.StaleSource, match=names[0]):
            asked()
    assert source.refresh().query("a = 2").count() == 0


def test_a_file_that_took_the_name_of_one_that_was_read_is_told(tmp_path):
    path = tmp_path / "0.nc"
    rewrite(path, "ab")
    source = sieva.open(path, learn=False)
    query = source.query("a = 1")
    assert query.count() == 1000
    other = source.query("b = 2")
    rewrite(tmp_path / "1.nc", "ba")
    (tmp_path / "1.nc").replace(path)
    with pytest.raises(errors.StaleSource):
        other.count()


def test_virtual_data_of_a_file_that_grew(tmp_path):
    part, whole = tmp_path / "part.h5", tmp_path / "whole.h5"
    with h5py.File(part, "w") as file:
        file.create_dataset("x", data=np.arange(6.0), maxshape=(None,), chunks=(4,))
    with h5py.File(whole, "w") as file:
        layout = h5py.VirtualLayout((6,), "f8", maxshape=(None,))
        source = h5py.VirtualSource("part.h5", "x", (6,), maxshape=(None,))
        layout[0 : h5py.h5s.UNLIMITED] = source[0 : h5py.h5s.UNLIMITED]
        file.create_virtual_dataset("T", layout)
        file["linked"] = h5py.ExternalLink("part.h5", "x")
    one = sieva.open(whole, external=[tmp_path])
    several = sieva.open([whole], join="run", external=[tmp_path])
    assert one["T"].shape == (6,)
    with h5py.File(part, "a") as file:
        file["x"].resize((10,))
        file["x"][6:] = 100
    later(part)
    for source in (one, several):
        fresh = source.refresh()
        for name in ("T", "linked"):
            assert fresh.sql(f"SELECT sum({name}) AS s").to_arrow()["s"].to_pylist() == [415.0]
