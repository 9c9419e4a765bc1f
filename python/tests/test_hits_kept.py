"""Values at the positions that a condition selected, which evaluating read: a session reads them once."""

import os
import time

import h5py
import netCDF4
import numpy as np
import pytest
import sieva

# More than a session keeps whole.
N = 5_000_000


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(3)
    values = rng.standard_normal(N)
    values[::9], values[1::1000], values[2::1000], values[3::1000] = np.nan, -0.0, np.inf, -np.inf
    return values


@pytest.fixture(scope="module")
def files(numbers, tmp_path_factory):
    """Return files of arrays that lie plainly, big-endian and packed with missing values among them."""
    folder = tmp_path_factory.mktemp("hits")
    paths = {"h5": folder / "plain.h5", "nc": folder / "plain.nc"}
    with h5py.File(paths["h5"], "w") as file:
        file["v"] = numbers.reshape(500, -1)
        file["big"] = numbers.astype(">f4").reshape(500, -1)
    with netCDF4.Dataset(paths["nc"], "w", format="NETCDF3_64BIT_OFFSET") as file:
        file.createDimension("n", N)
        packed = file.createVariable("packed", "i2", ("n",), fill_value=-7)
        packed.set_auto_maskandscale(False)
        packed.scale_factor, packed.add_offset = 0.5, 3.0
        packed[:] = np.random.default_rng(4).integers(-100, 100, N).astype("i2")
    for path in paths.values():
        # What was changed just now is not kept.
        os.utime(path, (time.time() - 60,) * 2)
    return paths


def read_bytes(src):
    return src._native.traffic()["bytes_read"]


@pytest.mark.parametrize("how", ["count", "selection"])
@pytest.mark.parametrize(
    ("kind", "condition", "name"),
    [
        ("h5", "v > 1.9", "v"),
        ("h5", "v <= 0 AND v >= 0", "v"),
        ("h5", "abs(v) > 1e300", "v"),
        ("h5", "big < -2.25", "big"),
        ("nc", "packed > 51 OR packed < -46", "packed"),
        ("nc", "packed > 1e9", "packed"),
    ],
)
def test_a_read_after_an_evaluation_reads_nothing(kind, condition, name, how, files):
    plain = sieva.open(files[kind], learn=False)
    want = plain.query(condition, access="scan").read(name)
    with sieva.Session() as session:
        src = session.open(files[kind], learn=False)
        query = src.query(condition, select=[name])
        assert (query.count() if how == "count" else len(query.selection())) == len(want)
        query.selection()
        before = read_bytes(src)
        assert before >= N
        assert query.read(name).tobytes() == want.tobytes()
        # Another query of the same rows, in batches of another size.
        again = src.query(condition, select=[name])
        table = again.to_arrow()
        assert table.equals(plain.query(condition, select=[name]).to_arrow())
        assert sum(batch.num_rows for batch in again.batches(size=1000)) == len(want)
        assert read_bytes(src) == before


def test_another_array_is_read(files):
    with sieva.Session() as session:
        src = session.open(files["h5"], learn=False)
        query = src.query("v > 2.5", access="scan")
        assert query.count() > 1000
        before = read_bytes(src)
        got = query.read("big")
        assert read_bytes(src) > before
        want = sieva.open(files["h5"], learn=False).query("v > 2.5").read("big")
        assert got.tobytes() == want.tobytes()


def test_many_hits_are_not_kept(files):
    with sieva.Session(memory="256MiB", cache="8MiB") as session:
        src = session.open(files["h5"], learn=False)
        query = src.query("v > -1", access="scan")
        assert query.count() > N / 2
        before = read_bytes(src)
        assert len(query.read("v")) == query.count()
        assert read_bytes(src) > before
        assert session.stats()["cache_bytes"] <= 8 << 20


def test_nothing_is_kept_without_a_session(files):
    src = sieva.open(files["h5"], learn=False)
    query = src.query("v > 3", access="scan")
    assert query.count() > 100
    before = read_bytes(src)
    query.read("v")
    assert read_bytes(src) > before
