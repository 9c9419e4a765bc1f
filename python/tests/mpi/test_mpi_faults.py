"""Errors of one rank are told on all; a rank that is lost ends the run."""

import h5py
import numpy as np
import pytest
from mpi_programs import run


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "values.h5"
    with h5py.File(path, "w") as file:
        file["v"] = np.random.default_rng(3).normal(size=200_000)
    return path


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_errors_are_told_on_all_ranks(mpi, ranks, path, tmp_path):
    done = run(mpi, ranks, "tests/faults", path, tmp_path=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout.splitlines()
    assert f"file-not-found: rank {ranks - 1}: " in done.stdout
    assert f"invalid-value: rank {ranks - 1}: room for " in done.stdout


def test_a_source_that_changes_is_stale_on_all_ranks(mpi, path, tmp_path):
    done = run(mpi, 3, "tests/faults", path, "changed", tmp_path=tmp_path)
    assert "0 failures" in done.stdout.splitlines(), done.stdout + done.stderr
    assert "stale-source: rank 0: " in done.stdout


def test_a_lost_rank_ends_the_run(mpi, path, tmp_path):
    """It does not hang: the run has a deadline, after which this fails."""
    done = run(mpi, 3, "tests/faults", path, "lost", tmp_path=tmp_path)
    assert done.returncode != 0
    assert "counted without" not in done.stdout
    assert "failures" not in done.stdout
