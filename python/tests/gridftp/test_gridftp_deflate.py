"""Results in deflated chunks: in any order as they are made, or written first where the length is asked."""

import itertools

import h5py
import netCDF4
import numpy as np
import pytest
from conftest import FEW, MANY, NONE
from gridftp_server import Server, copy, fetch, fetch_part, reply, retrieve
from local_result import local_result

FORMS = ["netcdf", "hdf5"]


def columns(path, form):
    """Return the columns of a file, and how each is compressed, as the format's own library reads them."""
    if form == "hdf5":
        with h5py.File(path) as file:
            return {name: (file[name][:], file[name].compression_opts) for name in file}
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        assert file.data_model == "NETCDF4"
        assert list(file.dimensions) == ["obs"]
        return {name: (v[:], v.filters()["complevel"]) for name, v in file.variables.items()}


@pytest.mark.parametrize(
    "case",
    list(
        itertools.product(
            FORMS, (1, 9), (("-p", 2), ("-p", 4, "-bs", 5000), ()), ("", ";order=any", ";order=ascending")
        )
    ),
)
def test_values(server, ocean_file, ocean_values, target, case):
    form, level, streams, order = case
    option = f";format={form};deflate={level}{order}"
    got = fetch(server.url(ocean_file, f";sql={MANY}{option}"), target, *streams)
    assert got == local_result(ocean_file, MANY, form, level)
    hits = np.nonzero(ocean_values["TEMP"] > 0)
    found = columns(target, form)
    assert list(found) == ["TEMP", "SALT"]
    for name, (values, used) in found.items():
        assert used == level
        np.testing.assert_array_equal(values, ocean_values[name][hits])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", ["", ";order=any"])
def test_no_rows(server, ocean_file, target, form, order):
    option = f";format={form};deflate=1{order}"
    got = fetch(server.url(ocean_file, f";sql={NONE}{option}"), target, "-p", 2)
    assert got == local_result(ocean_file, NONE, form, 1)
    assert len(columns(target, form)["TEMP"][0]) == 0


def test_level_0_is_as_ever(session, ocean_file):
    for form in FORMS:
        got = retrieve(session, f"{ocean_file};sql={FEW};format={form};deflate=0;order=any")
        assert got == local_result(ocean_file, FEW, form)


def test_in_stream_mode_blocks_ascend(session, ocean_file):
    expected = local_result(ocean_file, MANY, "netcdf", 1)
    asked = f"{ocean_file};sql={MANY};deflate=1;order=any"
    assert retrieve(session, asked) == expected
    assert session.size(asked) == len(expected)
    assert retrieve(session, asked) == expected
    assert retrieve(session, asked, rest=1000) == expected[1000:]


@pytest.mark.parametrize("options", [("-p", 2), ()])
def test_parts(server, ocean_file, target, options):
    expected = local_result(ocean_file, MANY, "hdf5", 1)
    url = server.url(ocean_file, f";sql={MANY};format=hdf5;deflate=1;order=any")
    for offset, length in ((0, 100), (777, 50_000), (len(expected) - 5, 5)):
        assert fetch_part(url, target, offset, length, *options) == expected[offset : offset + length]


def test_a_checksum(server, ocean_file, target):
    option = ";format=netcdf;deflate=1;order=any"
    expected = local_result(ocean_file, MANY, "netcdf", 1)
    got = fetch(server.url(ocean_file, f";sql={MANY}{option}"), target, "-p", 2, "-verify-checksum")
    assert got == expected


def test_what_is_sent_in_any_order_is_not_spooled(share, ocean_file, target):
    with Server(share, settings={"SIEVA_GRIDFTP_SPOOL_LIMIT": "10000"}) as tight:
        asked = f";sql={MANY};deflate=1"
        said = reply(tight.session(), f"SIZE {ocean_file}{asked}")
        assert said.startswith("552")
        got = fetch(tight.url(ocean_file, f"{asked};order=any"), target, "-p", 2)
        assert got == local_result(ocean_file, MANY, "netcdf", 1)
        failed = copy("-p", 2, tight.url(ocean_file, asked), f"file://{target}", check=False)
        assert "memory-limit" in failed.stderr


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("deflate=10", "`deflate=10`: levels are 0 (not compressed), and 1 (fast) to 9 (small)"),
        ("deflate=-1", "`deflate=-1`: levels are 0"),
        ("deflate=fast", "`deflate=fast`: levels are 0"),
        ("format=csv;deflate=1", "deflate=1: results as csv have no deflate; hint: take netcdf or hdf5"),
        ("deflate=2;as=x.parquet", "deflate=2: results as parquet have no deflate"),
        ("order=random", "`order=random`: one of ascending, any"),
    ],
)
def test_what_is_asked_wrongly(session, ocean_file, option, words):
    said = reply(session, f"SIZE {ocean_file};sql={FEW};{option}")
    assert said.startswith("501")
    assert words in said


def test_another_level_is_another_result(session, ocean_file):
    sizes = [session.size(f"{ocean_file};sql={MANY};deflate={level}") for level in (0, 1, 9, 1, 0)]
    assert sizes[0] == sizes[4] > sizes[1] == sizes[3] > sizes[2]
    said = [
        retrieve(session, f"{ocean_file};sql={MANY};deflate={level};describe").split(b'"')[3]
        for level in (0, 1, 9, 1)
    ]
    assert len(set(said)) == 3
    assert said[1] == said[3]
