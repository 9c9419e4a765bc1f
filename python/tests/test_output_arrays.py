"""Outputs of arrays, read back by each format's own library: netCDF, HDF5, Zarr, xarray."""

import warnings

import h5py
import netCDF4
import numpy as np
import pytest
import sieva
import xarray as xr
import zarr
from sieva import errors
from sieva._output import grid

CONDITION = "TEMP > 15 AND z_t < 5000"


@pytest.fixture
def oracle(ocean_path):
    """Return the ocean by xarray, and where the condition holds."""
    with xr.open_dataset(ocean_path, engine="netcdf4") as file:
        dataset = file.load()
    hit = (dataset.TEMP.astype("f8") > 15) & (dataset.z_t < 5000)
    return dataset, hit.transpose(*dataset.TEMP.dims)


def box_of(hit):
    """Return the slices of the smallest box around what is true."""
    return tuple(slice(axis.min(), axis.max() + 1) for axis in np.nonzero(hit.values))


def opened(path, kind, **options):
    if kind == "zarr":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of zarr-python, about consolidated metadata and texts
            return xr.open_zarr(path, consolidated=False, **options).load()
    with xr.open_dataset(path, engine="h5netcdf", **options) as dataset:
        return dataset.load()


def write(query, kind, path, layout):
    {"netcdf": query.to_netcdf, "hdf5": query.to_hdf5, "zarr": query.to_zarr}[kind](path, layout)


@pytest.mark.parametrize("kind", ["netcdf", "hdf5", "zarr", "xarray"])
def test_a_grid_is_the_box_around_the_hits(ocean, oracle, tmp_path, kind):
    query = ocean.query(CONDITION, ["TEMP", "SALT", "KMT"])
    if kind == "xarray":
        made = query.to_xarray("grid")
    else:
        write(query, kind, tmp_path / "out", "grid")
        made = opened(tmp_path / "out", kind)
    dataset, hit = oracle
    box = box_of(hit)
    for name in ("TEMP", "SALT"):
        expected = dataset[name].where(hit)[box]
        np.testing.assert_array_equal(made[name].values, expected.values)
        assert made[name].dtype == np.float32
        assert made[name].attrs["units"] == dataset[name].attrs["units"]
        assert made[name].dims == dataset[name].dims
    seen = hit.any(("time", "z_t"))
    np.testing.assert_array_equal(made.KMT.values, dataset.KMT.where(seen)[box[2:]].values)
    for name in ("time", "z_t"):
        np.testing.assert_array_equal(
            made[name].values, dataset[name][box[dataset.TEMP.dims.index(name)]].values
        )
    for name in ("TLAT", "TLONG"):
        assert name in made.coords
        np.testing.assert_array_equal(made[name].values, dataset[name][box[2:]].values)
    np.testing.assert_array_equal(made.nlat.values, np.arange(box[2].start, box[2].stop))
    assert made.attrs["title"] == dataset.attrs["title"]
    assert made.attrs["sieva_query"] == CONDITION


@pytest.mark.parametrize("kind", ["netcdf", "hdf5", "zarr", "xarray"])
def test_points_are_the_hits_with_their_places(ocean, oracle, tmp_path, kind):
    query = ocean.query(CONDITION, ["TEMP", "KMT"])
    if kind == "xarray":
        points = query.to_xarray("points")
    else:
        write(query, kind, tmp_path / "out", "points")
        points = opened(tmp_path / "out", kind)
    dataset, hit = oracle
    places = np.nonzero(hit.values)
    for name, place in zip(hit.dims, places, strict=True):
        np.testing.assert_array_equal(points[f"{name}_index"].values, place)
    np.testing.assert_array_equal(points.TEMP.values, dataset.TEMP.values[places])
    np.testing.assert_array_equal(points.KMT.values, dataset.KMT.values[places[2:]])
    assert points.KMT.dtype == np.int32
    np.testing.assert_array_equal(points.time.values, dataset.time.values[places[0]])
    np.testing.assert_array_equal(points.TLAT.values, dataset.TLAT.values[places[2:]])
    assert {"time", "z_t", "TLAT", "TLONG"} <= set(points.coords)
    assert points.TEMP.attrs["long_name"] == "Potential Temperature"


@pytest.mark.parametrize("layout", ["grid", "points"])
def test_all_kinds_of_values_survive(mixed, tmp_path, layout):
    columns = ["packed", "real", "big", "unsigned", "text"]
    if layout == "grid":
        columns.remove("unsigned")  # its greatest value is the default fill value's neighbour; see below
    query = mixed.query("time >= 0", columns)
    query.to_netcdf(tmp_path / "out.nc", layout)
    with netCDF4.Dataset(tmp_path / "out.nc") as file:
        assert file["time"].units == "hours since 2000-01-01 00:00:00"
        np.testing.assert_array_equal(file["time"][:], [0, 1.5, 24, 48, 72, 96])
        packed = file["packed"][:]
        np.testing.assert_array_equal(packed.mask, [False, False, True, False, False, False])
        np.testing.assert_array_equal(packed.compressed(), [10, 10.5, 11.5, 12, 12.5])
        assert not hasattr(file["packed"], "scale_factor")
        real = np.ma.filled(file["real"][:], np.nan)
        np.testing.assert_array_equal(real, np.array([0.1, np.nan, np.inf, -np.inf, 1e-20, 16777216], "f4"))
        file.set_auto_mask(False)
        np.testing.assert_array_equal(file["big"][:], [2**53 + 1, -(2**63), 0, 1, 2, 2**63 - 1])
        assert list(file["text"][:]) == ["plain", 'has "quotes"', "a,b", "line\nbreak", "", "ünï"]
        if layout == "points":
            np.testing.assert_array_equal(file["unsigned"][:], np.array([2**64 - 1, 1, 2, 3, 4, 5], "u8"))
            np.testing.assert_array_equal(file["time_index"][:], np.arange(6))


def test_bytes_are_widened_so_that_none_is_the_fill_value(mixed, mixed_path):
    made = mixed.query("byte >= -127", ["byte"]).to_xarray("grid")
    with netCDF4.Dataset(mixed_path) as file:
        np.testing.assert_array_equal(made.byte.values, file["byte"][:].data)
    assert made.byte.encoding["dtype"] == np.int16


@pytest.mark.parametrize("kind", ["netcdf", "hdf5", "zarr", "xarray"])
@pytest.mark.parametrize(
    ("dtype", "value"), [("i4", -2147483647), ("u8", 2**64 - 2), ("i8", -(2**63) + 2), ("u4", 2**32 - 1)]
)
def test_a_fill_value_is_none_of_the_values(tmp_path, kind, dtype, value):
    with h5py.File(tmp_path / "in.h5", "w") as file:
        limits = np.iinfo(dtype)
        file["x"] = np.array([1, value, 3, limits.min, limits.max, 100], dtype)
    query = sieva.open(tmp_path / "in.h5").query("x <> 3")
    if kind == "xarray":
        made = query.to_xarray("grid")
        np.testing.assert_array_equal(made.x.isnull(), [False, False, True, False, False, False])
        return
    write(query, kind, tmp_path / "out", "grid")
    made = opened(tmp_path / "out", kind, mask_and_scale=False)
    (fill,) = {int(v) for v in made.x.values} - {1, value, int(limits.min), int(limits.max), 100}
    assert made.x.dtype == dtype
    assert int(made.x.attrs["_FillValue"]) == fill == int(made.x.values[2])
    np.testing.assert_array_equal(np.delete(made.x.values, 2), [1, value, limits.min, limits.max, 100])


def test_all_bytes_there_are_and_a_missing_one(tmp_path):
    """The greatest of each group is a computed byte: one of the groups has none."""
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["x"] = np.arange(255, dtype="u1") + np.uint8(1)
        file["x"].attrs["_FillValue"] = np.uint8(7)
        file["g"] = np.arange(255) % 254
    query = sieva.open(tmp_path / "in.h5").sql("SELECT g, max(x) AS m GROUP BY g ORDER BY g")
    query.to_netcdf(tmp_path / "out.nc")
    with netCDF4.Dataset(tmp_path / "out.nc") as file:
        m = file["m"][:]
    np.testing.assert_array_equal(np.nonzero(m.mask)[0], [6])
    expected = np.arange(1, 255)
    expected[0] = 255
    np.testing.assert_array_equal(m.compressed(), np.delete(expected, 6))


@pytest.mark.parametrize("layout", ["grid", "points"])
@pytest.mark.parametrize("kind", ["netcdf", "hdf5", "zarr", "xarray"])
def test_no_hits_make_empty_outputs(ocean, tmp_path, kind, layout):
    query = ocean.query("TEMP > 1000", ["TEMP"])
    if kind == "xarray":
        made = query.to_xarray(layout)
    else:
        write(query, kind, tmp_path / "out", layout)
        made = opened(tmp_path / "out", kind, decode_times=False)  # xarray decodes no empty times
    assert made.TEMP.size == 0


def test_rows_of_sql_keep_order_limit_and_new_names(ocean):
    made = ocean.sql("SELECT TEMP * 2 AS TEMP, SALT WHERE TEMP > 5 ORDER BY SALT DESC LIMIT 7").to_xarray(
        "points"
    )
    expected = ocean.query("TEMP > 5", ["TEMP", "SALT"]).to_pandas()
    expected = expected.sort_values("SALT", ascending=False, kind="stable")[:7]
    np.testing.assert_array_equal(made.SALT.values, expected.SALT.to_numpy())
    np.testing.assert_array_equal(made.TEMP.values, 2 * expected.TEMP.to_numpy().astype("f8"))
    # It is not the array of that name, and has none of its attributes.
    assert "units" not in made.TEMP.attrs
    assert made.SALT.attrs["units"] == "psu"


def test_a_grid_of_few_rows_is_the_box_around_them(ocean):
    made = ocean.sql("SELECT TEMP WHERE TEMP > 5 ORDER BY TEMP DESC LIMIT 3").to_xarray("grid")
    values = made.TEMP.values[~np.isnan(made.TEMP.values)]
    expected = np.sort(ocean.query("TEMP > 5").read("TEMP"))[-3:]
    np.testing.assert_array_equal(np.sort(values), expected)
    assert not np.isnan(made.TEMP.values).all(axis=(1, 2, 3)).any()


def test_select_star_is_written(ocean):
    made = ocean.sql("SELECT * WHERE TEMP > 5").to_xarray("points")
    assert {"TEMP", "TLAT", "z_t_index"} <= set(made.variables)
    assert made.sizes["obs"] == ocean.query("TEMP > 5").count()


def test_groups_and_distinct_rows_are_lists(ocean):
    made = ocean.sql("SELECT z_t, avg(TEMP) AS mean GROUP BY z_t ORDER BY z_t").to_xarray()
    assert made["mean"].dims == ("obs",)
    distinct = ocean.sql("SELECT DISTINCT KMT WHERE KMT > 0")
    np.testing.assert_array_equal(np.sort(distinct.to_xarray().KMT.values), np.unique(distinct.read("KMT")))
    for query in (distinct, ocean.sql("SELECT count(TEMP)")):
        with pytest.raises(errors.Unsupported, match="no points of a grid"):
            query.to_xarray("grid")


def test_slabs_out_of_order_are_merged(ocean, monkeypatch, tmp_path):
    monkeypatch.setattr(grid, "_SLAB_BYTES", 1)  # a slab for each step of the first dimension
    query = ocean.sql("SELECT TEMP WHERE TEMP > 5 ORDER BY TEMP")
    expected = ocean.query("TEMP > 5", ["TEMP"]).to_xarray("grid")
    query.to_netcdf(tmp_path / "out.nc", "grid")
    query.to_zarr(tmp_path / "out.zarr", "grid")
    for made in (query.to_xarray("grid"), opened(tmp_path / "out.nc", "netcdf")):
        np.testing.assert_array_equal(made.TEMP.values, expected.TEMP.values)
    np.testing.assert_array_equal(opened(tmp_path / "out.zarr", "zarr").TEMP.values, expected.TEMP.values)


def test_hdf5_has_scales_and_zarr_has_names(ocean, tmp_path):
    query = ocean.query(CONDITION, ["TEMP"])
    query.to_hdf5(tmp_path / "out.h5")
    with h5py.File(tmp_path / "out.h5") as file:
        assert [d.label for d in file["TEMP"].dims] == ["time", "z_t", "nlat", "nlon"]
        assert file["TEMP"].dims[1][0].name == "/z_t"
    query.to_zarr(tmp_path / "out.zarr")
    group = zarr.open_group(tmp_path / "out.zarr", mode="r")
    assert group.metadata.zarr_format == 3
    assert group["TEMP"].metadata.dimension_names == ("time", "z_t", "nlat", "nlon")


def test_outputs_can_be_asked_again(ocean, tmp_path):
    query = ocean.query(CONDITION, ["TEMP"])
    query.to_netcdf(tmp_path / "grid.nc", "grid")
    query.to_netcdf(tmp_path / "points.nc", "points")
    for name in ("grid.nc", "points.nc"):
        again = sieva.open(tmp_path / name).query("TEMP > -1000")
        assert again.count() == query.count()
        np.testing.assert_array_equal(again.read("TEMP"), query.read("TEMP"))


@pytest.mark.parametrize("kind", ["table", "csv", "json", "arrow", "parquet", "netcdf", "hdf5"])
def test_files_appear_complete_or_not_at_all(ocean, tmp_path, kind):
    query = ocean.query(CONDITION, ["TEMP"])
    target = tmp_path / "out"
    target.write_text("before")

    def fail(_):
        raise KeyboardInterrupt

    # Called when the first rows are written.
    query._on_rows = fail
    with pytest.raises(KeyboardInterrupt):
        query._write(target, kind)
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]


def test_foreign_directories_are_not_replaced(ocean, tmp_path):
    query = ocean.query(CONDITION, ["TEMP"])
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("meow")
    with pytest.raises(errors.InvalidValue, match="something else than Zarr or BP"):
        query.to_zarr(tmp_path / "photos")
    query.to_zarr(tmp_path / "out.zarr")
    query.to_zarr(tmp_path / "out.zarr")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.zarr", "photos"]
    with pytest.raises(errors.InvalidValue, match="it is a directory"):
        query.to_csv(tmp_path / "photos")


def test_the_source_is_never_overwritten(ocean_path, tmp_path):
    path = tmp_path / "copy.nc"
    path.write_bytes(ocean_path.read_bytes())
    with pytest.raises(errors.InvalidValue, match="never changed"):
        sieva.open(path).query(CONDITION).to_netcdf(path)
    assert path.read_bytes() == ocean_path.read_bytes()
