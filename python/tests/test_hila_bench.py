"""The repetition of HiLa: only the failure of ROMIO that is known is passed over, and the table tells it."""

import importlib
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("netCDF4", reason="the benchmark writes its file by netCDF4, an extra")

HERE = Path(__file__).resolve().parents[2] / "benches"
NO_VIEW = "Out of memory in file adio/common/flatten.c, line 719"
CELL = {
    "stripe": "large",
    "way": "ompio-independent",
    "asked": {"calls": 2},
    "overlaps": False,
    "seconds": [1.0],
    "requests": [3],
    "bytes": [8_000_000],
    "distinct": 4_000_000,
}


@pytest.fixture(scope="module")
def modules():
    """Return the modules of the benchmark that a test asks for by name."""
    places = [str(HERE / "hila"), str(HERE / "parallel"), str(HERE / "sdquery"), str(HERE)]
    sys.path[:0] = places
    yield importlib.import_module
    for place in places:
        sys.path.remove(place)


@pytest.fixture
def start(modules, tmp_path, monkeypatch):
    """Return what runs a batch with a command in place of mpirun, which says words and fails."""
    ways, batches = modules("ways"), modules("batches")

    def run(says, who="romio"):
        program = tmp_path / "mpirun"
        program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\nexit 1\n")
        program.chmod(0o755)
        monkeypatch.setattr(ways, "_libmpich", lambda: program)
        mounts = tmp_path / "mounts"
        mounts.mkdir()
        runner = ways.Runner(mounts, 1, 1, program)
        runner.mpirun = runner.mpich = str(program)
        return runner.run(ways.Way(who, "independent"), batches.Asked(1, 1), "data.nc", 1)

    return run


def test_the_known_failure_of_romio_is_told(start, modules):
    # The words stand before much else, as where many ranks end.
    with pytest.raises(modules("ways").Refused, match=r"flatten\.c, line 719$"):
        start(f"{NO_VIEW}\n" + "application called MPI_Abort\n" * 200)


@pytest.mark.parametrize(
    ("says", "who"),
    [
        ("other values than were written", "romio"),
        ("Out of memory in file adio/common/ad_read.c, line 3", "romio"),
        ("ImportError: no module", "romio"),
        # Of another way it is unknown.
        (NO_VIEW, "ompio"),
        (NO_VIEW, "hila"),
    ],
)
def test_any_other_failure_is_an_error(start, says, who):
    with pytest.raises(SystemExit, match=re.escape(says)):
        start(says, who)


def test_without_mpich_romio_is_told_as_failed(modules, tmp_path, monkeypatch):
    ways = modules("ways")
    runner = ways.Runner(tmp_path, 1, 1, tmp_path)
    monkeypatch.setattr(runner, "mpich", None)
    with pytest.raises(ways.Refused, match="MPICH is not installed"):
        runner.run(ways.Way("romio", "collective"), modules("batches").Asked(1, 1), "data.nc", 1)


def test_what_failed_stands_in_the_table(modules):
    hila_page = modules("hila_page")
    failed = {"stripe": "large", "calls": 2, "overlaps": False, "way": "romio-independent"}
    cells = hila_page.Cells({"cells": [CELL], "failed": [{**failed, "reason": NO_VIEW}]})
    rows = hila_page.rows_of(cells, "large", [2], ["ompio", "romio"]).splitlines()[2:]
    assert len(rows) == 2
    assert rows[0].startswith("| 2 | no | ompio-independent | 1,000 ")
    assert rows[1] == f"| 2 | no | romio-independent | failed: {NO_VIEW} |  |  |  |"
