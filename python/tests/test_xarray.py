"""The engine: equal to xarray's own, and lazy."""

import pickle

import h5py
import netCDF4
import numpy as np
import pytest
import sieva
import xarray as xr
from sieva import errors
from sieva._xarray import LazyArray, SievaBackendEntrypoint

ENGINE = SievaBackendEntrypoint


@pytest.fixture
def reads(monkeypatch):
    """Return the list of reads of lazy arrays so far."""
    seen = []
    original = LazyArray._read

    def told(self, key):
        seen.append((self.path, key))
        return original(self, key)

    monkeypatch.setattr(LazyArray, "_read", told)
    return seen


def encodings_agree(a, b):
    for name in a.variables:
        for key in ("_FillValue", "scale_factor", "add_offset", "units", "calendar", "dtype", "coordinates"):
            mine, theirs = a[name].encoding.get(key), b[name].encoding.get(key)
            assert mine == theirs or (mine != mine and theirs != theirs), (name, key, mine, theirs)  # noqa: PLR0124


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
@pytest.mark.parametrize("which", ["ocean_path", "mixed_path"])
def test_equals_other_engines(request, which, engine):
    path = request.getfixturevalue(which)
    with xr.open_dataset(path, engine=engine) as theirs, xr.open_dataset(path, engine=ENGINE) as ours:
        assert list(ours.variables) == list(theirs.variables)
        encodings_agree(ours, theirs)
        xr.testing.assert_identical(ours.load(), theirs.load())
        assert {n: v.dtype for n, v in ours.items()} == {n: v.dtype for n, v in theirs.items()}


@pytest.mark.parametrize(
    "options",
    [
        {"mask_and_scale": False},
        {"decode_times": False},
        {"decode_cf": False},
        {"drop_variables": ["packed", "text"]},
        {"decode_coords": "all"},
    ],
)
def test_options_of_xarray_work(mixed_path, options):
    with xr.open_dataset(mixed_path, engine="netcdf4", **options) as theirs:
        xr.testing.assert_identical(
            xr.open_dataset(mixed_path, engine=ENGINE, **options).load(), theirs.load()
        )


def test_opening_reads_coordinates_of_dimensions_alone(ocean_path, reads):
    dataset = xr.open_dataset(ocean_path, engine=ENGINE)
    # xarray makes indexes of these.
    assert {path for path, _ in reads} <= {"time", "z_t"}
    dataset.TEMP.variable.isel(time=0, z_t=0).load()
    assert [path for path, _ in reads if path not in ("time", "z_t")] == ["TEMP"]


@pytest.mark.parametrize(
    "index",
    [
        {"time": 1, "z_t": slice(1, 4), "nlat": slice(None, None, 3)},
        {"nlat": slice(10, 2, -3), "nlon": [5, 1, 1, 15]},
        {"z_t": [0, -1], "nlat": np.array([], dtype=int)},
        {"z_t": -1, "nlon": slice(3, 3)},
        {"time": [True, False]},
        {"nlat": xr.DataArray([1, 2], dims="p"), "nlon": xr.DataArray([3, 4], dims="p")},
    ],
)
def test_every_index_equals_numpys(ocean_path, index):
    with xr.open_dataset(ocean_path, engine="netcdf4") as theirs:
        expected = theirs.TEMP.isel(index).load()
    xr.testing.assert_identical(xr.open_dataset(ocean_path, engine=ENGINE).TEMP.isel(index).load(), expected)


def test_groups_are_opened_by_path(tmp_path):
    with netCDF4.Dataset(tmp_path / "g.nc", "w") as file:
        file.createDimension("x", 3)
        group = file.createGroup("a/b")
        group.title = "inner"
        variable = group.createVariable("v", "f4", ("x",))
        variable[:] = [1, 2, 3]
    dataset = xr.open_dataset(tmp_path / "g.nc", engine=ENGINE, group="/a/b")
    with xr.open_dataset(tmp_path / "g.nc", engine="netcdf4", group="/a/b") as theirs:
        xr.testing.assert_identical(dataset.load(), theirs.load())
    with pytest.raises(errors.InvalidValue, match="no group 'a/c'"):
        xr.open_dataset(tmp_path / "g.nc", engine=ENGINE, group="a/c")


def test_scalars_and_empty_arrays_open(tmp_path):
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["scalar"] = np.int16(7)
        file["empty"] = np.zeros((0,), "u2")
    dataset = xr.open_dataset(tmp_path / "s.h5", engine=ENGINE).load()
    assert dataset.scalar.item() == 7
    assert dataset.scalar.dtype == np.int16
    assert dataset.empty.shape == (0,)
    assert dataset.empty.dtype == np.uint16


def test_chunks_are_told(ocean_path):
    encoding = xr.open_dataset(ocean_path, engine=ENGINE).TEMP.encoding
    assert encoding["chunksizes"] == (1, 5, 12, 16)
    assert encoding["preferred_chunks"] == {"time": 1, "z_t": 5, "nlat": 12, "nlon": 16}


def test_datasets_pickle_unread(ocean_path):
    dataset = pickle.loads(pickle.dumps(xr.open_dataset(ocean_path, engine=ENGINE)))  # noqa: S301
    with xr.open_dataset(ocean_path, engine="netcdf4") as theirs:
        np.testing.assert_array_equal(dataset.SALT.values, theirs.SALT.values)


def test_accessor_asks_the_file(ocean_path):
    dataset = xr.open_dataset(ocean_path, engine=ENGINE)
    query = dataset.sieva.query("TEMP > 5")
    assert query.count() == sieva.open(ocean_path).query("TEMP > 5").count() > 0
    assert dataset.sieva.query(sieva.col("TEMP") > 5, ["SALT"]).columns == ["SALT"]


def test_accessor_needs_a_file():
    with pytest.raises(errors.InvalidValue, match="does not know the file"):
        xr.Dataset({"x": ("d", [1])}).sieva.query("x > 0")


def test_engine_is_installed(ocean_path):
    engines = xr.backends.list_engines()
    if "sieva" not in engines:
        pytest.skip("the package was installed before the engine was declared: make build")
    assert xr.open_dataset(ocean_path, engine="sieva").sizes["z_t"] == 5


CHANGES = {
    "selected": lambda ds: ds.isel(time=0),
    "a part of it": lambda ds: ds.isel(z_t=slice(0, 2)),
    "the other way round": lambda ds: ds.isel(z_t=slice(None, None, -1)),
    "computed": lambda ds: ds * 2,
    "computed in memory": lambda ds: ds.load() * 2,
    "computed, attributes kept": lambda ds: ds.map(lambda a: a + 1, keep_attrs=True).assign_attrs(ds.attrs),
    "assigned": lambda ds: ds.assign(TEMP=ds.TEMP + 1),
    "another name": lambda ds: ds.rename(TEMP="SALT", SALT="TEMP"),
    "transposed": lambda ds: ds.transpose("nlon", ...),
    "other coordinates": lambda ds: ds.assign_coords(z_t=ds.z_t * 2),
    "joined": lambda ds: xr.concat([ds, ds], "time", data_vars="all"),
}


@pytest.mark.parametrize("engine", [ENGINE, "netcdf4", "h5netcdf"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_dataset_that_is_not_its_file_is_refused(ocean_path, engine, change):
    with xr.open_dataset(ocean_path, engine=engine) as dataset:
        made = change(dataset)
        # What the file's name is lost from is refused for that.
        made.encoding.setdefault("source", dataset.encoding["source"])
        if engine is ENGINE:
            made.encoding.setdefault("sieva", dataset.encoding["sieva"])
        with pytest.raises(errors.InvalidValue, match="this dataset is not what its file holds") as caught:
            made.sieva.query("TEMP > 5")
    assert "say the rest in the condition" in caught.value.hint


@pytest.mark.parametrize("engine", [ENGINE, "netcdf4", "h5netcdf"])
@pytest.mark.parametrize(
    "same",
    [
        lambda ds: ds,
        lambda ds: ds.load(),
        lambda ds: ds.copy(deep=True),
        lambda ds: ds.drop_vars("SALT"),
        lambda ds: ds.assign(twice=ds.TEMP * 2),
        lambda ds: ds.isel(time=slice(None)),
        lambda ds: ds.set_coords("KMT"),
        lambda ds: (ds.TEMP.mean(), ds)[1],
        lambda ds: pickle.loads(pickle.dumps(ds)),  # noqa: S301 - our own
    ],
)
def test_a_dataset_that_is_its_file_answers(ocean_path, engine, same):
    with xr.open_dataset(ocean_path, engine=engine) as dataset:
        made = same(dataset)
        assert made.sieva.query("TEMP > 5").count() == sieva.open(ocean_path).query("TEMP > 5").count()


def test_chunks_of_dask_answer_until_they_are_computed_with(ocean_path):
    with xr.open_dataset(ocean_path, engine=ENGINE, chunks={}) as dataset:
        assert dataset.sieva.query("TEMP > 5").count() > 0
        with pytest.raises(errors.InvalidValue, match="not what its file holds"):
            (dataset + 1).assign_attrs(dataset.attrs).pipe(with_encoding, dataset).sieva.query("TEMP > 5")


def with_encoding(made, dataset):
    made.encoding = dataset.encoding
    return made
