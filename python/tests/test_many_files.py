"""Many files as one source: the same answers as over the arrays put together by numpy and xarray."""

import subprocess
import sys
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest
import sieva
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ACCESS = ("auto", "scan", "zonemap", "bitmap")


def write_month(path: Path, number: int, length: int, *, packed: bool = True, cells: int = 12) -> None:
    """Write one file of an archive: its own time units, packing and compression."""
    rng = np.random.default_rng(number)
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", cells)
        file.createDimension("two", 2)
        time = file.createVariable("time", "f8", ("time",))
        time.units, time.calendar, time.bounds = (
            f"hours since 2001-{number + 1:02}-01",
            "standard",
            "time_bnds",
        )
        time[:] = 24 * np.arange(length) + 12
        bounds = file.createVariable("time_bnds", "f8", ("time", "two"))
        bounds[:] = np.stack([24 * np.arange(length), 24 * np.arange(length) + 24], axis=1)
        x = file.createVariable("x", "f4", ("x",))
        x[:] = np.arange(cells) / 4
        depth = file.createVariable("depth", "f4", ("x",))
        depth[:] = np.arange(cells)[::-1]
        wind = file.createVariable("wind", "f4", ("time", "x"), zlib=number % 2 == 0, fill_value=-1.0)
        values = rng.normal(0, 10, (length, cells)).astype("f4")
        values[rng.random(values.shape) < 0.1] = np.nan
        values[rng.random(values.shape) < 0.1] = -0.0
        wind[:] = values
        temp = file.createVariable("temp", "i2", ("time", "x"), fill_value=-999)
        if packed:
            temp.scale_factor, temp.add_offset = 0.01 * (number + 1), 10.0 * number
        temp.set_auto_maskandscale(False)
        temp[:] = rng.integers(-900, 900, (length, cells))
        temp[: min(length, 1), 0] = -999


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """Months of different lengths, one of them empty, named so that their order is not that of time."""
    folder = tmp_path_factory.mktemp("archive")
    for name, number, length in (("d", 0, 31), ("b", 1, 28), ("c", 2, 0), ("a", 3, 7)):
        write_month(folder / f"{name}.nc", number, length)
    return folder


@pytest.fixture(scope="module")
def whole(archive):
    with xr.open_mfdataset(
        [archive / "d.nc", archive / "b.nc", archive / "a.nc"],
        combine="nested", concat_dim="time", data_vars="minimal", coords="minimal", compat="override",
        join="override",
    ) as opened:  # fmt: skip
        return opened.load()


def test_values_are_those_of_the_files_one_after_another(archive, whole):
    src = sieva.open(str(archive / "*.nc"))
    assert [Path(f).name for f in src.files] == ["a.nc", "b.nc", "c.nc", "d.nc"]
    assert src["time"].shape == (66,)
    assert src["wind"].dtype == "float32"
    for name in ("wind", "temp", "depth", "x"):
        np.testing.assert_array_equal(src[name][...], whole[name].values)
    # 31 days of January, then February from its own date on.
    np.testing.assert_array_equal(src["time"][...], np.r_[:31, 31:59, 90:97] * 24.0 + 12)
    np.testing.assert_array_equal(src["time_bnds"][...][:, 0], src["time"][...] - 12)
    np.testing.assert_array_equal(src["wind"][29:33, 3:5], whole["wind"].values[29:33, 3:5])


def test_the_schema_says_which_file_holds_what(archive):
    physical = {e["array"]: e for e in sieva.open(str(archive / "*.nc")).schema()["physical"]}
    parts = [(Path(p["file"]).name, p["start"], p["count"]) for p in physical["wind"]["parts"]]
    assert parts == [("d.nc", 0, 31), ("b.nc", 31, 28), ("a.nc", 59, 7), ("c.nc", 66, 0)]
    assert Path(physical["depth"]["file"]).name == "d.nc"


@pytest.mark.parametrize("access", ACCESS)
def test_every_access_answers_alike(archive, whole, access):
    glob = str(archive / "*.nc")
    if access != "scan":
        sieva.open(glob).build_index("wind")
    src = sieva.open(glob)
    wind, depth = whole["wind"].values, whole["depth"].values
    q = src.query("wind > 8 OR wind BETWEEN -2.9999 AND 0 AND depth > 6", access=access)
    mask = (wind > 8) | ((wind >= -2.9999) & (wind <= 0) & (depth > 6))
    assert q.count() == mask.sum()
    np.testing.assert_array_equal(q.read("wind"), wind[mask])
    np.testing.assert_array_equal(q.read("temp"), whole["temp"].values[mask])
    np.testing.assert_array_equal(q.selection().mask(), mask)
    late = src.query("time >= '2001-02-20' AND wind > 0", access=access).count()
    assert late == (wind[whole["time"].values >= np.datetime64("2001-02-20")] > 0).sum()


def test_a_file_that_holds_nothing_of_interest_is_not_read(tmp_path):
    for number in range(4):
        with netCDF4.Dataset(tmp_path / f"{number}.nc", "w") as file:
            file.createDimension("t", None)
            file.createDimension("n", 1000)
            file.createVariable("t", "i4", ("t",))[:] = np.arange(10) + 10 * number
            file.createVariable("v", "f8", ("t", "n"))[:] = (
                number * 100 + np.arange(10_000).reshape(10, 1000) / 1e4
            )
    glob = str(tmp_path / "*.nc")
    sieva.open(glob).build_index("v", kinds=["zonemap"])
    q = sieva.open(glob).query("v > 300.5", access="zonemap")
    assert q.count() == 4999
    stats = q.stats()
    assert (stats["tiles_scanned"], stats["tiles_skipped"]) == (1, 3)
    # One file of four, and what tells that none of them was changed since it was indexed.
    assert stats["bytes_read"] < 200_000


def test_one_variable_in_each_file(tmp_path, archive):
    with xr.open_dataset(archive / "d.nc", decode_cf=False) as month:
        for name in ("wind", "temp"):
            month[["time_bnds", name]].to_netcdf(tmp_path / f"{name}.nc")
    src = sieva.open(str(tmp_path / "*.nc"))
    one = sieva.open(archive / "d.nc")
    assert set(src) == {"time", "time_bnds", "x", "wind", "temp"}
    text = "wind > 0 AND temp < 2"
    assert src.query(text).count() == one.query(text).count() > 0


def test_files_of_two_kinds_are_joined_each_and_laid_side_by_side(tmp_path, archive):
    for letter in "dba":
        with xr.open_dataset(archive / f"{letter}.nc", decode_cf=False) as month:
            for name in ("wind", "temp"):
                month[[name]].to_netcdf(tmp_path / f"{name}.{letter}.nc")
    src = sieva.open(str(tmp_path / "*.nc"))
    both = sieva.open([archive / f"{letter}.nc" for letter in "abd"])
    np.testing.assert_array_equal(src["temp"][...], both["temp"][...])
    text = "wind > 0 AND temp < 2"
    assert src.query(text).count() == both.query(text).count() > 0


def test_a_new_dimension_is_in_the_order_of_the_list(tmp_path):
    values = np.arange(24, dtype="u2").reshape(3, 2, 4)
    paths = []
    for number in (2, 0, 1):
        paths.append(tmp_path / f"{number}.nc")
        with netCDF4.Dataset(paths[-1], "w", format="NETCDF3_64BIT_DATA") as file:
            file.createDimension("y", 2)
            file.createDimension("x", 4)
            file.createVariable("member", "i4")[...] = 100 + number
            file.createVariable("v", "u2", ("y", "x"))[:] = values[number]
    src = sieva.open(paths, join="member")
    assert src["v"].dims == ("member", "y", "x")
    np.testing.assert_array_equal(src["v"][...], values[[2, 0, 1]])
    assert src.query("member = 100", select=["v"]).read("v").tolist() == values[0].ravel().tolist()
    with pytest.raises(sieva.errors.DimensionMismatch, match="cannot be told") as told:
        sieva.open(paths)
    assert "join=" in told.value.hint


def test_a_falling_coordinate_is_joined_as_it_falls(tmp_path):
    for number, levels in enumerate(([1000, 850], [300, 100], [700, 500])):
        with netCDF4.Dataset(tmp_path / f"{number}.nc", "w") as file:
            file.createDimension("level", 2)
            file.createVariable("level", "i4", ("level",))[:] = levels
            file.createVariable("v", "f4", ("level",))[:] = levels
    src = sieva.open(str(tmp_path / "*.nc"))
    assert src["level"][...].tolist() == [1000, 850, 700, 500, 300, 100]
    assert src["v"][...].tolist() == [1000, 850, 700, 500, 300, 100]


def change(path: Path, what) -> None:
    with netCDF4.Dataset(path, "a") as file:
        what(file)


MISMATCHES = {
    "coordinate": (
        lambda f: f["x"].__setitem__(3, 99.0),
        r"several dimensions.*'x' \(value 3 is 0.75 in .*d.nc', 99 in",
    ),
    "units": (
        lambda f: f["wind"].setncattr("units", "knots"),
        r"b.nc': units of 'wind' is knots, in .*d.nc' it is nothing",
    ),
    "calendar": (
        lambda f: f["time"].setncattr("calendar", "noleap"),
        r"b.nc': calendar of 'time' is noleap",
    ),
    "array": (
        lambda f: f.renameVariable("depth", "height"),
        r"'height' is in '.*b.nc' only, 'depth' is in '.*d.nc' only",
    ),
    "overlap": (
        lambda f: f["time"].__setitem__(slice(None), np.arange(28) - 300.0),
        r"ends at time = .*they overlap",
    ),
}


@pytest.mark.parametrize("case", MISMATCHES)
def test_what_does_not_fit_is_named(tmp_path, case):
    what, message = MISMATCHES[case]
    write_month(tmp_path / "d.nc", 0, 31)
    write_month(tmp_path / "b.nc", 1, 28)
    change(tmp_path / "b.nc", what)
    with pytest.raises(sieva.errors.DimensionMismatch, match=message):
        sieva.open([tmp_path / "d.nc", tmp_path / "b.nc"])


def test_types_that_float64_cannot_hold_are_not_mixed(tmp_path):
    for number, dtype in enumerate(("i8", "f4")):
        with netCDF4.Dataset(tmp_path / f"{number}.nc", "w") as file:
            file.createDimension("t", 2)
            file.createVariable("t", "f8", ("t",))[:] = [number, number + 0.5]
            file.createVariable("v", dtype, ("t",))[:] = [1, 2]
    with pytest.raises(sieva.errors.DimensionMismatch, match=r"type of 'v' is float32, .* it is int64"):
        sieva.open(str(tmp_path / "*.nc"))


def test_a_file_that_is_changed_or_gone_is_told(tmp_path):
    for number in range(3):
        write_month(tmp_path / f"{number}.nc", number, 5)
    src = sieva.open(str(tmp_path / "*.nc"))
    write_month(tmp_path / "1.nc", 1, 6)
    with pytest.raises(sieva.errors.StaleSource, match=r"1.nc' was changed"):
        src.query("wind > 0").count()
    (tmp_path / "2.nc").unlink()
    with pytest.raises(sieva.SievaError, match=r"[12].nc"):
        sieva.open(str(tmp_path / "?.nc")).query("wind > 0").count() and src.query("wind > 0").count()


def test_nothing_matches_and_a_file_that_cannot_be_read(tmp_path, archive):
    with pytest.raises(sieva.errors.FileNotFound, match="no file matches"):
        sieva.open(str(tmp_path / "*.nc"))
    (tmp_path / "bad.nc").write_bytes(b"CDF\x01" + b"\xff" * 60)
    with pytest.raises(sieva.SievaError, match=r"bad\.nc"):
        sieva.open([archive / "d.nc", tmp_path / "bad.nc"])
    with pytest.raises(ValueError, match="empty"):
        sieva.open([])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lengths=st.lists(st.integers(0, 9), min_size=2, max_size=5),
    dtype=st.sampled_from(["i1", "u2", "i4", "u8", "f4", "f8"]),
    box=st.tuples(st.integers(0, 20), st.integers(0, 25)),
    threshold=st.integers(-5, 120),
    seed=st.integers(0, 1000),
)
def test_any_cut_into_files_answers_alike(tmp_path_factory, *, lengths, dtype, box, threshold, seed):
    folder = tmp_path_factory.mktemp("cut")
    rng = np.random.default_rng(seed)
    total = sum(lengths)
    values = rng.integers(0, 120, (3, total, 4)).astype(dtype)
    start = 0
    for number, length in enumerate(lengths):
        with netCDF4.Dataset(folder / f"{number}.nc", "w") as file:
            for name, size in (("a", 3), ("t", length), ("b", 4)):
                file.createDimension(name, size or None)
            file.createVariable("t", "i4", ("t",))[:] = np.arange(start, start + length)
            v = file.createVariable("v", dtype, ("a", "t", "b"), fill_value=False)
            v[:] = values[:, start : start + length]
        start += length
    src = sieva.open(str(folder / "*.nc"), join="t")
    np.testing.assert_array_equal(src["v"][...], values)
    low, high = sorted(box)
    mask = (values > threshold) & ((np.arange(total) >= low) & (np.arange(total) <= high))[None, :, None]
    q = src.query(f"v > {threshold} AND t >= {low} AND t <= {high}")
    assert q.count() == mask.sum()
    np.testing.assert_array_equal(q.read("v"), values[mask])


def test_sorted_replicas_of_joined_files_are_refused_with_what_to_do(tmp_path):
    for step in range(2):
        with h5py.File(tmp_path / f"s{step}.h5", "w") as file:
            file["a"] = np.arange(1000, dtype="f4")
    told = "queries of such a source do not use them"
    for name in (str(tmp_path / "s*.h5"), [tmp_path / "s0.h5", tmp_path / "s1.h5"]):
        with pytest.raises(sieva.errors.Unsupported, match=told) as caught:
            sieva.open(name, join="step").build_index("a", kinds=["sorted"])
        assert "leave --kind (kinds=) away" in caught.value.hint
        sieva.open(name, join="step").build_index("a")
        assert sieva.open(name, join="step").index_status().exists
    command = ["index", str(tmp_path / "s*.h5"), "--kind", "sorted", "--var", "a", "--join", "step"]
    done = subprocess.run(
        [sys.executable, "-m", "sieva", *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert told in done.stderr
    assert "leave --kind (kinds=) away" in done.stderr
    assert not list(tmp_path.glob("**/*.zarr"))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
@pytest.mark.parametrize("fills", [(7, None), (None, 7), (7, 8), (None, None)])
def test_coordinates_are_compared_as_numbers(tmp_path, dtype, fills):
    for number, fill in enumerate(fills):
        with netCDF4.Dataset(tmp_path / f"{number}.nc", "w") as file:
            file.createDimension("t", 2)
            file.createDimension("y", 2)
            file.createVariable("t", "f8", ("t",))[:] = np.arange(2) + 2 * number
            y = file.createVariable("y", dtype, ("y",), fill_value=fill)
            y.set_auto_mask(False)
            # Both zeros are one number.
            y[:] = [0.0 if number else -0.0, -2]
            file.createVariable("a", "f4", ("t", "y"))[:] = np.arange(4).reshape(2, 2)
    src = sieva.open(str(tmp_path / "*.nc"))
    found = src.sql("SELECT y, sum(a) AS s GROUP BY y").to_arrow().to_pylist()
    assert found == [{"y": -2, "s": 8.0}, {"y": 0, "s": 4.0}]


@pytest.mark.parametrize("other", [[0, -3], [0, 7], [1, -2]])
def test_coordinates_of_other_numbers_do_not_fit(tmp_path, other):
    for number, values in enumerate(([0, -2], other)):
        with netCDF4.Dataset(tmp_path / f"{number}.nc", "w") as file:
            file.createDimension("t", 2)
            file.createDimension("y", 2)
            file.createVariable("t", "f8", ("t",))[:] = np.arange(2) + 2 * number
            y = file.createVariable("y", "f4", ("y",), fill_value=7 if number else None)
            y.set_auto_mask(False)
            y[:] = values
            file.createVariable("a", "f4", ("t", "y"))[:] = np.arange(4).reshape(2, 2)
    with pytest.raises(sieva.errors.DimensionMismatch, match="'y'"):
        sieva.open(str(tmp_path / "*.nc"))
