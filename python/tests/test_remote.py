"""Sources on web servers and object stores: the same answers as from the disk, in few requests.

The files are those of the shared data, where they are there, and made ones. Stores that are not installed are
skipped: see ``make services``.
"""

import contextlib
import os
import shutil
import warnings

import h5py
import numpy as np
import pytest
import sieva
import zarr
from services.range_server import RangeServer
from services.stores import moto, swift
from sieva.generate import write_ocean
from test_conformance import CASES, ask, check_rows, check_selection, files  # noqa: F401
from test_shared_data import DATA, DEV, QUERIES, condition_text, lined_up, quoted

PLACES = ("http", "moto", "swift-s3", "swift")
READABLE = ("netcdf3/", "netcdf4/", "hdf5/", "zarr/", "fits/")
REAL = [name for name in DEV if name.startswith(READABLE)]


def write_values(path, time):
    """Write values along a time that begins at `time`, some of them missing."""
    rng = np.random.default_rng(time)
    values = rng.normal(10, 5, (7, 30, 41)).astype("f4")
    values[rng.random(values.shape) < 0.05] = np.nan
    with h5py.File(path, "w") as file:
        file["time"] = np.arange(time, time + 7, dtype="f8")
        file["time"].make_scale("time")
        v = file.create_dataset("v", data=values, chunks=(2, 16, 16), compression="gzip", shuffle=True)
        v.dims[0].attach_scale(file["time"])


def write_zarr(path, version, consolidated):
    """Write a Zarr group with one array in chunks that do not divide it, some of which are absent."""
    group = zarr.open_group(path, mode="w", zarr_format=version)
    names = {"dimension_names": ("y", "x")} if version == 3 else {}
    shape = (50, 70)
    v = group.create_array("v", shape=shape, chunks=(16, 16), dtype="<i4", fill_value=-1, **names)
    if version == 2:
        v.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    v[10:45, 20:] = np.arange(35 * 50, dtype="i4").reshape(35, 50) % 97
    if consolidated:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of version 3, for which it is no standard yet
            zarr.consolidate_metadata(path)


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Return a directory of files of all kinds."""
    folder = tmp_path_factory.mktemp("made")
    write_ocean(folder / "ocean.nc", times=2, depths=5, lats=12, lons=16)
    for n, time in enumerate((0, 7, 14)):
        write_values(folder / f"part.{n}.h5", time)
    for version in (2, 3):
        write_zarr(folder / f"plain{version}.zarr", version, consolidated=False)
        write_zarr(folder / f"known{version}.zarr", version, consolidated=True)
    for name in ("netcdf3/fnoc1.nc", "fits/test0.fits"):
        if (DATA / "dev" / name).exists():
            shutil.copy(DATA / "dev" / name, folder / name.rsplit("/", 1)[1])
    return folder


@pytest.fixture(scope="session")
def running(made, tmp_path_factory):
    """Return a function that starts a place when it is first asked for, and fills it."""
    with contextlib.ExitStack() as stack:
        known = {}

        def start(name):
            if name not in known:
                known.update(begin(name))
            if isinstance(known[name], str):
                pytest.skip(known[name])
            return known[name]

        def begin(name):
            if name == "http":
                root = tmp_path_factory.mktemp("web")
                (root / "made").symlink_to(made)
                if DATA.is_dir():
                    (root / "dev").symlink_to(DATA / "dev")
                server = stack.enter_context(RangeServer(root))
                return {"http": ({}, f"{server.url}/{{}}".format)}
            folder = tmp_path_factory.mktemp(name)
            try:
                if name == "moto":
                    stores = [stack.enter_context(moto(folder))]
                else:
                    stores = stack.enter_context(swift(folder))
            except pytest.skip.Exception as e:
                # Asked for again and again, it would be looked for each time.
                return dict.fromkeys(("swift", "swift-s3") if "swift" in name else (name,), str(e))
            tree = tmp_path_factory.mktemp("objects")
            shutil.copytree(made, tree / "made")
            if DATA.is_dir():
                shutil.copytree(DATA / "dev", tree / "dev", ignore=shutil.ignore_patterns("*.json", "bp"))
                # Metadata of Zarr are JSON, too.
                shutil.copytree(DATA / "dev" / "zarr", tree / "dev" / "zarr", dirs_exist_ok=True)
            stores[0].upload(tree)
            return {store.name: (store.environment, store.url) for store in stores}

        yield start


@pytest.fixture(params=PLACES)
def place(request, running, monkeypatch, tmp_path):
    """Return the function that gives the address of a file, in each place; nothing is remembered."""
    environment, url = running(request.param)
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SIEVA_CACHE", str(tmp_path))
    if "swift" in request.param:
        monkeypatch.setenv("SIEVA_TEST_SLOW_STORE", "1")
    return url


def wanted(name, address):
    """Skip what a place cannot give, and large files where each takes a slow store seconds."""
    path = DATA / "dev" / name
    if address.startswith("http") and path.is_dir() and not (path / ".zmetadata").exists():
        pytest.skip("a web server's directory cannot be listed")
    if os.environ.get("SIEVA_TEST_SLOW_STORE") and is_large(path):
        pytest.skip("left to the faster places")


def is_large(path):
    return path.is_file() and path.stat().st_size > 400_000


@pytest.mark.parametrize("name", REAL)
def test_values_of_real_files(name, place):
    address = place(f"dev/{name}")
    wanted(name, address)
    there, here = sieva.open(address), sieva.open(DATA / "dev" / name)
    assert list(there) == list(here)
    for array in here:
        shape = list(here._native.info(array)["shape"])
        for fact in ("shape", "dtype", "dims"):
            assert there._native.info(array)[fact] == here._native.info(array)[fact], array
        found, expected = (s._native.read(array, [0] * len(shape), shape, raw=True) for s in (there, here))
        if expected.dtype == object:
            assert found.tolist() == expected.tolist(), array
        else:
            assert (found.dtype, found.tobytes()) == (expected.dtype, expected.tobytes()), array


@pytest.mark.parametrize(
    "query",
    [q for q in QUERIES if q["file"] in REAL and not q["file"].startswith("fits/")],
    ids=lambda q: f"{q['file']}: {condition_text(q)}",
)
def test_queries_on_real_files(query, place):
    address = place(f"dev/{query['file']}")
    wanted(query["file"], address)
    source = sieva.open(address, dims=lined_up(query))
    asked = source.query(condition_text(query), select=[quoted(query["target"], query["file"])])
    selection = asked.selection()
    linear = np.ravel_multi_index(tuple(selection.coords().T), query["shape"]) if query["shape"] else [0]
    assert (asked.count(), len(selection)) == (query["hits"], query["hits"])
    found = (linear[0], linear[-1], int(np.sum(linear)))
    assert found == (query["first"], query["last"], query["idxsum"])


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        ("ocean.nc", "TEMP > 5 AND z_t < 200000"),
        ("part.1.h5", "v BETWEEN 5 AND 12"),
        ("known2.zarr", "v > 40"),
        ("known3.zarr", "v > 40"),
        ("plain2.zarr", "v > 40"),
        ("plain3.zarr", "v > 40"),
        ("fnoc1.nc", "u > 5"),
        ("test0.fits", "primary > 100"),
    ],
)
def test_rows_are_those_of_the_disk(name, condition, place, made):
    path = made / name
    if not path.exists():
        pytest.skip(f"no {name} in {DATA}")
    here = sieva.open(path)
    if name == "test0.fits":
        condition = f'"{next(iter(here))}" > 100'
    url = place(f"made/{name}")
    if name.startswith("plain") and url.startswith("http"):
        with pytest.raises(sieva.SievaError):
            sieva.open(url)
        return
    for select in (None, [next(iter(here))]):
        expected = here.query(condition, select=select).to_arrow()
        asked = sieva.open(url).query(condition, select=select)
        assert asked.to_arrow().equals(expected)
        assert asked.count() == expected.num_rows


def test_many_objects_are_one_source(place, made):
    names = [f"part.{n}.h5" for n in range(3)]
    there = sieva.open([place(f"made/{name}") for name in names])
    here = sieva.open([made / name for name in names])
    assert there["v"].shape == (21, 30, 41)
    query = dict(condition="v > 15 AND time BETWEEN 5 AND 16", select=["v", "time"])
    assert there.query(**query).to_arrow().equals(here.query(**query).to_arrow())
    whole = np.concatenate([h5py.File(made / name)["v"][:] for name in names])
    assert there.query("v > 15").count() == np.count_nonzero(whole > 15)


class Web:
    """A directory on a web server, to which names are added as to a path."""

    def __init__(self, url):
        self.url = url

    def __truediv__(self, name):
        return f"{self.url}/{name}"


@pytest.fixture(scope="session")
def web(files):  # noqa: F811
    """Return the directory of the conformance suite on a web server."""
    with RangeServer(files) as server:
        yield Web(server.url)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "error" not in case])
def test_conformance_over_http(name, web, files, monkeypatch, tmp_path):  # noqa: F811
    case = CASES[name]
    if (files / case["file"]).is_dir():
        pytest.skip("a web server's directory cannot be listed")
    monkeypatch.setenv("SIEVA_CACHE", str(tmp_path))
    check = check_rows if "sql" in case else check_selection
    check(case, ask(case, web))
