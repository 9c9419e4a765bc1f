"""The format of a result, asked for by name or by a suffix, read with the libraries that others use."""

import io
import json

import h5py
import netCDF4
import numpy as np
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from conftest import FEW
from gridftp_server import fetch, reply, retrieve
from local_result import local_result


def read_netcdf(path):
    with netCDF4.Dataset(path) as file:
        return {name: np.asarray(variable[:]) for name, variable in file.variables.items()}


def read_hdf5(path):
    with h5py.File(path) as file:
        return {name: file[name][:] for name in file}


def read_table(table):
    return {name: table[name].to_numpy() for name in table.column_names}


def read_rows(answer):
    assert list(answer) == ["columns", "rows"]
    return dict(zip(answer["columns"], np.array(answer["rows"]).T, strict=True))


READERS = {
    "netcdf": read_netcdf,
    "hdf5": read_hdf5,
    "arrow": lambda path: read_table(pyarrow.feather.read_table(path)),
    "parquet": lambda path: read_table(pyarrow.parquet.read_table(path)),
    "csv": lambda path: read_table(pyarrow.csv.read_csv(path)),
    "json": lambda path: read_rows(json.loads(path.read_text(encoding="utf-8"))),
}
SUFFIXES = {
    "netcdf": "nc",
    "hdf5": "h5",
    "arrow": "arrow",
    "parquet": "parquet",
    "csv": "csv",
    "json": "json",
}


@pytest.mark.parametrize("form", READERS)
def test_values(server, ocean_file, ocean_values, target, form):
    got = fetch(server.url(ocean_file, f";sql={FEW};format={form}"), target, "-p", 2)
    assert got == local_result(ocean_file, FEW, form)
    columns = READERS[form](target)
    hits = np.nonzero(ocean_values["TEMP"] > 20)
    assert sorted(columns) == ["TEMP", "z_t"]
    np.testing.assert_array_equal(columns["TEMP"].astype("f4"), ocean_values["TEMP"][hits])
    np.testing.assert_array_equal(columns["z_t"].astype("f4"), ocean_values["z_t"][hits[1]])


@pytest.mark.parametrize("form", READERS)
@pytest.mark.parametrize(
    "option", ["{mark}as=out.{suffix}", "{mark}format={form}", "{mark}as=x.nc{mark}format={form}"]
)
@pytest.mark.parametrize("mark", [";", "&"])
def test_asked_for(session, ocean_file, form, option, mark):
    asked = option.format(mark=mark, suffix=SUFFIXES[form], form=form)
    assert retrieve(session, f"{ocean_file};sql={FEW}{asked}") == local_result(ocean_file, FEW, form)


def test_asked_for_by_other_routes(session, server, ocean_file, target):
    expected = local_result(ocean_file, FEW, "csv")
    session.sendcmd(f"SITE SIEVA {FEW};format=csv")
    assert retrieve(session, ocean_file) == expected
    assert fetch(server.url(ocean_file), target, "-smn", "sieva", "-smp", f"{FEW};as=out.csv") == expected


def test_text_of_the_query_is_no_option(session, ocean_file):
    said = reply(session, f"SIZE {ocean_file};sql=SELECT TEMP WHERE ':format=csv' = 'a;format=csv'")
    assert "no format of results" not in said


def test_formats_that_there_are_not(session, ocean_file):
    for option in ("format=xml", "as=out.docx", "as=noname"):
        said = reply(session, f"SIZE {ocean_file};sql={FEW};{option}")
        assert said.startswith("501")
        assert "is no format of results: table, csv, json, arrow, parquet, netcdf, hdf5" in said


def test_csv_is_text(session, ocean_file):
    lines = io.StringIO(retrieve(session, f"{ocean_file};sql={FEW};format=csv").decode()).readlines()
    assert lines[0].strip() == "TEMP,z_t"
