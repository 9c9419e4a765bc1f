"""What asking by many ranks takes: one evaluation, each byte once, metadata once, and even shares."""

import os
import re
import shutil

import h5py
import netCDF4
import numpy as np
import pytest
from mpi_programs import run

RANKS = (1, 2, 4, 7)

CHUNK = 5000

# Bytes of a source by which its state is known, looked at by rank 0.
SAMPLES = 65_536


@pytest.fixture
def values():
    """Return values whose great ones lie together, so that few ranks find most hits."""
    drawn = np.random.default_rng(7).normal(size=300_000)
    drawn[250_000:] += 3
    return drawn


@pytest.fixture
def path(tmp_path, values):
    path = tmp_path / "values.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=values, chunks=(CHUNK,))
    # Nothing is kept of a file that was changed just now: its clock may not tell the next change.
    os.utime(path, (1.7e9, 1.7e9))
    return path


@pytest.mark.parametrize("ranks", RANKS)
def test_shares_are_even_and_bytes_are_read_once(mpi, ranks, path, values, tmp_path):
    done = run(mpi, ranks, "tests/reader", path, "v > 1.5", "v", tmp_path / "out", tmp_path=tmp_path)
    assert "0 failures" in done.stdout.splitlines(), done.stdout + done.stderr
    hits = values[values > 1.5]
    np.testing.assert_array_equal(np.fromfile(tmp_path / "out"), hits)
    told = re.findall(
        r"^rank (\d+) opened with (\d+) bytes, scanned (\d+), first (\d+), count (\d+)$",
        done.stdout,
        re.MULTILINE,
    )
    rank, opening, scanned, first, count = np.array(sorted(told, key=lambda line: int(line[0])), dtype=int).T
    assert rank.tolist() == list(range(ranks))
    assert (first.tolist(), count.sum()) == ([0, *np.cumsum(count)[:-1].tolist()], len(hits))
    assert count.max() / count.mean() <= 1.01
    assert opening[1:].tolist() == [0] * (ranks - 1)
    # All ranks together read the values, no more.
    assert scanned.sum() - values.nbytes in {0, SAMPLES}
    assert (scanned[1:] > 0).all()
    total = re.search(r"^all hits (\d+) scanned (\d+) evaluations (\d+)$", done.stdout, re.MULTILINE)
    assert total is not None
    assert (int(total[1]), int(total[3])) == (len(hits), 1)


def test_other_ranks_read_no_metadata(mpi, path, values, tmp_path):
    """Their copy has no metadata any more, which they do not notice: all that they read are values."""
    copy = tmp_path / "copy.h5"
    shutil.copy2(path, copy)
    state = copy.stat()
    with copy.open("r+b") as file:
        data = file.read()
        start = data.index(values[:CHUNK].tobytes())
        file.seek(0)
        file.write(bytes(start))
    os.utime(copy, ns=(state.st_atime_ns, state.st_mtime_ns))
    done = run(mpi, 3, "tests/opening", path, copy, "v", tmp_path=tmp_path)
    assert "0 failures" in done.stdout.splitlines(), done.stdout + done.stderr
    sums = dict(re.findall(r"^rank (\d) sum (\S+)$", done.stdout, re.MULTILINE))
    assert sums.keys() == {"0", "1", "2"}
    assert len(set(sums.values())) == 1
    assert float(sums["0"]) == pytest.approx(values.sum())


def test_many_files_are_opened_by_each_rank(mpi, values, tmp_path):
    for number, part in enumerate(np.split(values, 3)):
        with netCDF4.Dataset(tmp_path / f"part{number}.nc", "w") as file:
            file.createDimension("t", None)
            file.createVariable("t", "f8", ("t",))[:] = np.arange(len(part)) + number * len(part)
            file.createVariable("v", "f8", ("t",))[:] = part
    pattern = tmp_path / "part*.nc"
    asked = [pattern, "v > 1.5", "v", tmp_path / "out", "shared"]
    done = run(mpi, 2, "tests/reader", *asked, tmp_path=tmp_path)
    assert "0 failures" in done.stdout.splitlines(), done.stdout + done.stderr
    np.testing.assert_array_equal(np.fromfile(tmp_path / "out"), values[values > 1.5])
    # Nothing is kept of joined files from question to question: the query itself knows what it found.
    assert "evaluations 1" in done.stdout
