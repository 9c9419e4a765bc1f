"""Indexes built by all ranks: those of one process, no byte read twice, an error of one told on all."""

import hashlib
import os
import re

import h5py
import netCDF4
import numpy as np
import pytest
import sieva
from mpi_programs import run

ROWS = 300_000
ZONEMAP, BITMAP, SORTED = 1, 2, 4

# Bytes of a source by which its state is known, looked at by rank 0, before and after.
SAMPLES = 65_536


@pytest.fixture
def path(tmp_path):
    """Return a file of arrays contiguous, chunked and compressed, with all that is odd among floats."""
    draw = np.random.default_rng(5)
    x = draw.normal(size=ROWS).astype("f4")
    x[draw.integers(0, ROWS, 500)] = draw.choice([np.nan, np.inf, -np.inf, -0.0], 500)
    path = tmp_path / "parts.h5"
    with h5py.File(path, "w") as file:
        file["x"] = x
        values = draw.integers(-9, 9, ROWS).astype(">i2")
        file.create_dataset("y", data=values, chunks=(20_000,), compression="gzip")
        packed = file.create_dataset(
            "packed", data=draw.integers(0, 200, (40, 100, 75)).astype("u1"), chunks=(7, 30, 75)
        )
        packed.attrs["scale_factor"] = np.float32(0.1)
    os.utime(path, (1.7e9, 1.7e9))
    return path


def files_of(store):
    return {file: file.stat().st_size for file in store.rglob("*") if file.is_file()}


def sums_of(store):
    """Return what the files of sorted replicas hold, whatever their directories are called."""
    return sorted(
        (file.name, hashlib.sha256(file.read_bytes()).hexdigest())
        for file in store.rglob("*")
        if file.is_file() and "c" in file.parts[-2:-1]
    )


@pytest.mark.parametrize("ranks", [1, 2, 4, 7])
def test_the_store_is_that_of_one_process(mpi, ranks, path, tmp_path):
    alone = sieva.open(path, store=tmp_path / "one", learn=False)
    counter = alone.query("x > 1.5")
    before = counter.stats()["bytes_read"]
    built = alone.build_index("x", "y", "packed")
    by_one = counter.stats()["bytes_read"] - before
    asked = [path, tmp_path / "all", ZONEMAP + BITMAP, "x > 1.5 AND y = 3", "x", "y", "packed"]
    done = run(mpi, ranks, "tests/builder", *asked, tmp_path=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout.splitlines(), done.stdout + done.stderr
    told = re.search(r"^regions (\d+) replicas (\d+) bytes (\d+) hits (\d+)$", done.stdout, re.MULTILINE)
    regions, replicas, decoded, hits = (int(n) for n in told.groups())
    assert (regions, replicas, decoded) == (built.regions_built, 0, built.bytes_read)
    assert hits == alone.query("x > 1.5 AND y = 3", access="scan").count()
    read = [int(n) for n in re.findall(r"^rank \d+ read (\d+) bytes", done.stdout, re.MULTILINE)]
    assert len(read) == ranks
    with h5py.File(path) as file:
        stored = sum(array.id.get_storage_size() for array in file.values())
    # All ranks together read what one process reads: the arrays once, and samples; no rank reads all.
    assert stored <= min(sum(read), by_one)
    assert max(sum(read), by_one) <= stored + 3 * SAMPLES
    assert ranks == 1 or max(read) < stored
    built_by_all = sieva.open(path, store=tmp_path / "all", learn=False)
    assert built_by_all.index_status().arrays == alone.index_status().arrays
    assert built_by_all.verify_index(all=True)
    one, others = (sum(files_of(tmp_path / name).values()) for name in ("one", "all"))
    assert others <= 1.01 * one
    for condition in ("x > 1.5", "y = 3", "packed >= 19.9", "x IS NULL", "x = 0"):
        found = built_by_all.query(condition, access="bitmap").count()
        assert found == alone.query(condition, access="scan").count(), condition


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_replica_is_that_of_one_process(mpi, ranks, path, tmp_path):
    alone = sieva.open(path, store=tmp_path / "one", learn=False)
    alone.build_index("x", kinds=["sorted"])
    done = run(mpi, ranks, "tests/builder", path, tmp_path / "all", SORTED, "x > 1.5", "x", tmp_path=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout.splitlines(), done.stdout + done.stderr
    assert re.search(r"^regions 0 replicas 1 ", done.stdout, re.MULTILINE)
    built = sieva.open(path, store=tmp_path / "all", learn=False)
    assert built.verify_index(all=True)
    assert sums_of(tmp_path / "all") == sums_of(tmp_path / "one")
    assert sums_of(tmp_path / "all")
    assert built.query("x > 1.5", access="sorted").count() == alone.query("x > 1.5", access="scan").count()


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_rank_that_fails_is_told_on_all(mpi, ranks, path, tmp_path):
    done = run(mpi, ranks, "tests/builder", path, tmp_path / "all", "fail", "x", tmp_path=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout.splitlines(), done.stdout + done.stderr
    assert f"cancelled: rank {ranks - 1}: " in done.stdout
    assert sieva.open(path, store=tmp_path / "all").verify_index(all=True)


def test_joined_files_are_indexed_each(mpi, tmp_path):
    parts = np.random.default_rng(2).normal(size=(3, 40_000))
    for number, part in enumerate(parts):
        with netCDF4.Dataset(tmp_path / f"part{number}.nc", "w") as file:
            file.createDimension("t", None)
            file.createVariable("t", "f8", ("t",))[:] = np.arange(len(part)) + number * len(part)
            file.createVariable("v", "f8", ("t",))[:] = part
        os.utime(tmp_path / f"part{number}.nc", (1.7e9, 1.7e9))
    asked = [tmp_path / "part*.nc", tmp_path / "all", BITMAP, "v > 1.5", "v"]
    done = run(mpi, 2, "tests/builder", *asked, tmp_path=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout.splitlines(), done.stdout + done.stderr
    for number, part in enumerate(parts):
        source = sieva.open(tmp_path / f"part{number}.nc", store=tmp_path / "all", learn=False)
        assert source.verify_index(all=True)
        assert source.query("v > 1.5", access="bitmap").count() == (part > 1.5).sum()


def test_fortran_builds(mpi, path, tmp_path):
    done = run(mpi, 2, "tests/builder_f", path, "x", "y", tmp_path=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    first, more, wrong = done.stdout.splitlines()[:3]
    regions, replicas = re.match(r"regions (\d+) replicas (\d+)$", first).groups()
    alone = sieva.open(path, store=tmp_path / "one", learn=False)
    assert int(regions) == alone.build_index("x", "y", region_size="64KiB").regions_built
    assert replicas == "1"
    assert re.match(r"more [1-9]\d*$", more)
    assert wrong.startswith("6 rank 0: no array")
    source = sieva.open(path, store=tmp_path / "store")
    assert source.verify_index(all=True)
    assert {array.path for array in source.index_status().arrays} == {"x", "y", "packed"}
