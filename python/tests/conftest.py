"""Small files that the tests ask, made anew for each session."""

import netCDF4
import numpy as np
import pytest
import sieva
from hypothesis import HealthCheck, settings
from services.places import object_stores, place  # noqa: F401 - fixtures
from sieva.generate import write_ocean, write_particles

# These look at the clock: on a busy machine right answers would fail.
settings.register_profile("sieva", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("sieva")

# Files of few tests that take minutes: what comes last is waited for by one worker alone.
FIRST = (
    "test_scibox_bench",
    "test_hila_bench",
    "test_pdc_bench",
    "test_sdquery_bench",
    "test_bench_smoke",
    "test_mpi_read_faults",
    "test_mpi_read_many",
    "test_mpi",
    "test_slurm",
    "test_dask",
    "test_remote_faults",
    "test_remote",
    "test_docs",
    "test_order_by",
    "test_encode_deflate",
    "test_isolated",
    "test_adios_isolated",
    "test_share",
)


def pytest_collection_modifyitems(items):
    """Put first what takes longest; the order within a file stays."""
    ranks = {name: rank for rank, name in enumerate(FIRST)}
    items.sort(key=lambda item: ranks.get(item.path.stem, len(FIRST)))


@pytest.fixture(scope="session")
def ocean_path(tmp_path_factory):
    """Return a file of an ocean, (2, 5, 12, 16)."""
    path = tmp_path_factory.mktemp("ocean") / "ocean.nc"
    write_ocean(path, times=2, depths=5, lats=12, lons=16)
    return path


@pytest.fixture(scope="session")
def particles_path(tmp_path_factory):
    """Return a file of 20 000 particles."""
    path = tmp_path_factory.mktemp("particles") / "particles.h5"
    write_particles(path, n=20_000)
    return path


@pytest.fixture(scope="session")
def mixed_path(tmp_path_factory):
    """Return a file of packed, missing, infinite, huge, unsigned and text values, and of times."""
    path = tmp_path_factory.mktemp("mixed") / "mixed.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.title = 'a "quoted", title'
        file.createDimension("time", 6)
        file.createDimension("site", 2)
        time = file.createVariable("time", "f8", ("time",))
        time.units, time.calendar = "hours since 2000-01-01 00:00:00", "standard"
        time[:] = [0, 1.5, 24, 48, 72, 96]
        packed = file.createVariable("packed", "i2", ("time",), fill_value=-99)
        packed.scale_factor, packed.add_offset, packed.units = np.float32(0.5), np.float32(10), "m"
        packed.set_auto_maskandscale(False)
        packed[:] = [0, 1, -99, 3, 4, 5]
        real = file.createVariable("real", "f4", ("time",))
        real[:] = np.array([0.1, np.nan, np.inf, -np.inf, 1e-20, 16777216], "f4")
        big = file.createVariable("big", "i8", ("time",))
        big[:] = [2**53 + 1, -(2**63), 0, 1, 2, 2**63 - 1]
        byte = file.createVariable("byte", "i1", ("time", "site"))
        byte[:] = np.arange(12).reshape(6, 2) * 21 - 127
        unsigned = file.createVariable("unsigned", "u8", ("time",))
        unsigned[:] = np.array([2**64 - 1, 1, 2, 3, 4, 5], "u8")
        text = file.createVariable("text", str, ("time",))
        text[:] = np.array(["plain", 'has "quotes"', "a,b", "line\nbreak", "", "ünï"], dtype=object)
    return path


@pytest.fixture
def ocean(ocean_path):
    """Return the open ocean."""
    return sieva.open(ocean_path)


@pytest.fixture
def mixed(mixed_path):
    """Return the open file of mixed values."""
    return sieva.open(mixed_path)
