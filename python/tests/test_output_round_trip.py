"""Every output of every type, read back by another library: the values that are there, and no others."""

import csv
import math

import h5py
import netCDF4
import numpy as np
import pyarrow.parquet as pq
import pytest
import sieva
import xarray as xr
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

try:
    import adios2
except ImportError:
    adios2 = None
needs_adios2 = pytest.mark.skipif(adios2 is None, reason="adios2 is not installed")

INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
FLOATS = ["f2", "f4", "f8"]
# Integers whose default fill values, and their neighbours as float64, are among the extremes.
EXTREMES = st.sampled_from([0, 1, 2, 3, -1, -2, -127, -128])


@st.composite
def columns(draw):
    """Draw values of a type, and what is missing among them."""
    dtype = np.dtype(draw(st.sampled_from(INTEGERS + FLOATS)))
    n = draw(st.integers(0, 30))
    if dtype.kind == "f":
        odd = st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5, float(np.finfo(dtype).max)])
        values = np.array(draw(st.lists(odd, min_size=n, max_size=n)), dtype)
    else:
        limits = np.iinfo(dtype)
        near = EXTREMES.map(lambda k: limits.min + k if k >= 0 else limits.max + 1 + k)
        values = np.array(draw(st.lists(near, min_size=n, max_size=n)), dtype)
    missing = draw(st.sampled_from([None, *values[:3].tolist()]))
    return values, None if missing is None or missing != missing else dtype.type(missing)  # noqa: PLR0124


def number(text):
    return int(text) if text.lstrip("-").isdigit() else float(text)


def read_back(kind, path):
    """Return values of the variable x as float64 or exact integers, None where there is none."""
    if kind == "csv":
        with path.open(newline="") as file:
            return [number(row[0]) if row[0] else None for row in list(csv.reader(file))[1:]]
    if kind == "parquet":
        return pq.read_table(path)["x"].to_pylist()
    if kind == "zarr":
        array = zarr.open_group(path, mode="r")["x"]
        fill, values = array.attrs.get("_FillValue"), array[...]
        fill = array.fill_value if fill is not None else None
    elif kind == "bp":
        return read_bp(path)
    elif kind == "netcdf":
        with netCDF4.Dataset(path) as file:
            file.set_auto_maskandscale(False)
            fill, values = getattr(file["x"], "_FillValue", None), file["x"][:]
    else:
        with h5py.File(path) as file:
            fill, values = file["x"].attrs.get("_FillValue"), file["x"][:]
            fill = None if fill is None else fill[0]
    return [None if v == fill or v != v else v.item() for v in values]  # noqa: PLR0124


def read_bp(path):
    """Return values of x as ADIOS2 reads them, None where there is none."""
    adios = adios2.Adios()
    io = adios.declare_io("reader")
    engine = io.open(str(path), adios2.bindings.Mode.ReadRandomAccess)
    variable = io.inquire_variable("x")
    kinds = {"char": "i1", "float": "f4", "double": "f8"}
    values = np.zeros(variable.shape(), kinds.get(variable.type(), variable.type().removesuffix("_t")))
    if values.size:
        engine.get(variable, values, adios2.bindings.Mode.Sync)
    attribute = io.inquire_attribute("x/_FillValue")
    fill = None if attribute is None else attribute.data()
    engine.close()
    fill = None if fill is None else np.atleast_1d(fill)[0]
    return [None if v == fill or v != v else v.item() for v in values]  # noqa: PLR0124


def same(a, b):
    if a is None or b is None:
        return a is b
    return a == b and math.copysign(1, a) == math.copysign(1, b)


@pytest.mark.parametrize(
    "kind",
    [
        "netcdf",
        "hdf5",
        "zarr",
        pytest.param("bp", marks=needs_adios2),
        "parquet",
        "csv",
        "netcdf columns",
        "hdf5 columns",
    ],
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(column=columns(), layout=st.sampled_from(["grid", "points"]))
def test_a_column_comes_back(tmp_path, kind, column, layout):
    values, missing = column
    kind, _, one = kind.partition(" ")
    source, out = tmp_path / "in.h5", tmp_path / f"out.{kind}"
    with h5py.File(source, "w") as file:
        file["x"] = values
        # Every second row is wanted: a grid has gaps.
        file["wanted"] = np.arange(values.size) % 2
        if missing is not None:
            file["x"].attrs["_FillValue"] = missing
    query = sieva.open(source).query("wanted = 1", ["x"])
    layout = one or layout
    if kind in {"csv", "parquet"}:
        getattr(query, f"to_{kind}")(out)
    else:
        getattr(query, f"to_{kind}")(out, layout)
    hits = [None if v == missing or v != v else v.item() for v in values[1::2]]  # noqa: PLR0124
    got = read_back(kind, out)
    if kind == "csv" and values.dtype.kind == "f":
        # The shortest text that is the value again, in its own width.
        got = [None if v is None else np.float32(v).item() if values.dtype != "f8" else v for v in got]
    if layout == "grid" and kind in {"netcdf", "hdf5", "zarr", "bp"}:
        # The box around the hits: every second place is empty.
        assert all(v is None for v in got[1::2])
        got = got[::2]
    assert len(got) == len(hits)
    assert all(same(a, b) for a, b in zip(got, hits, strict=True)), (got, hits)


def test_texts_that_netcdf_keeps_as_characters_are_texts_in_zarr(tmp_path):
    names = ["a", "", "dé", "ü" * 3]
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", len(names))
        file.createDimension("letters", 8)
        variable = file.createVariable("name", "S1", ("x", "letters"))
        variable[:] = np.array([name.encode() for name in names], "S8").view("S1").reshape(-1, 8)
        variable._Encoding = "utf-8"
    sieva.open(tmp_path / "a.nc").sql("SELECT name").to_zarr(tmp_path / "a.zarr")
    assert list(zarr.open_group(tmp_path / "a.zarr", mode="r")["name"][:]) == names
    # xarray would decode once more what says how its characters are encoded.
    with xr.open_zarr(tmp_path / "a.zarr", consolidated=False) as found:
        assert list(found["name"].to_numpy()) == names
