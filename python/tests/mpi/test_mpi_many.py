"""Boxes that all ranks of a C program ask for, against the formula of their values."""

import h5py
import netCDF4
import numpy as np
import pytest
from mpi_programs import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    with h5py.File(folder / "arrays.h5", "w") as file:
        file["whole"] = np.arange(60.0 * 50 * 40).reshape(60, 50, 40)
        file["big"] = np.arange(300.0 * 70).reshape(300, 70).astype(">f8")
        file["line"] = np.arange(90_000.0)
        file["scalar"] = 0.0
        chunked = np.arange(64.0 * 33 * 17).reshape(64, 33, 17)
        file.create_dataset("chunked", data=chunked, chunks=(7, 10, 17), compression="gzip")
    with netCDF4.Dataset(folder / "records.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("time", None)
        file.createDimension("x", 31)
        values = np.arange(40.0 * 31).reshape(40, 31)
        file.createVariable("T", "f8", ("time", "x"))[:] = values
        file.createVariable("S", "i4", ("time", "x"))[:] = values
    return folder


@pytest.mark.parametrize("ranks", [1, 2, 4, 7])
@pytest.mark.parametrize("name", ["arrays.h5", "records.nc"])
def test_random_boxes(mpi, ranks, name, folder, tmp_path):
    arrays = ["whole", "chunked", "big", "line", "scalar"] if name == "arrays.h5" else ["T", "S"]
    done = run(mpi, ranks, "tests/many", folder / name, *arrays, tmp_path=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout.splitlines()
    asked = int(done.stdout.partition("asked ")[2].split()[0])
    assert asked > 100 * ranks


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_chunk_that_cannot_be_read_is_told_to_who_asked_for_it(mpi, ranks, tmp_path):
    path = tmp_path / "broken.h5"
    with h5py.File(path, "w") as file:
        data = file.create_dataset("v", data=np.arange(4096.0), chunks=(512,), fletcher32=True)
        place = data.id.get_chunk_info(2).byte_offset
    with path.open("r+b") as file:
        file.seek(place + 100)
        file.write(b"\xff" * 8)
    done = run(mpi, ranks, "tests/many", path, "v", "broken", tmp_path=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout.splitlines()
