"""Boxes that all ranks ask for together, of servers that stop, and of ranks that give up or are killed.

Each program has to end by itself within a minute, right or with an error that says what was wrong.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from services import striped
from services.slurm import await_that
from test_mpi import PROGRAM, mpirun  # noqa: F401 - a fixture
from test_mpi_read_many import MODES, told

DEADLINE = 60


def daemons(name, directory):
    """Return the ids of the processes of a program that serve what is below a directory."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().split(b"\0")
        except OSError:
            continue
        if Path(os.fsdecode(words[0])).name == name and str(directory).encode() in b" ".join(words):
            found.append(int(place.parent.name))
    return found


class Stopped:
    """Processes that stand still, for some seconds at most."""

    def __init__(self, pids, seconds):
        assert pids
        self._pids = pids
        self._end = threading.Timer(seconds, self._send, [signal.SIGCONT])

    def _send(self, what):
        for pid in self._pids:
            os.kill(pid, what)

    def __enter__(self):
        self._send(signal.SIGSTOP)
        self._end.start()

    def __exit__(self, *_):
        self._end.cancel()
        self._end.join()
        self._send(signal.SIGCONT)


def is_there(path):
    """Whether a file can be read."""
    try:
        return len(path.read_bytes()) > 8_000_000
    except OSError:
        return False


def forget(path):
    """Drop what this machine keeps of a file."""
    file = os.open(path, os.O_RDWR)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def written(folder):
    """Write 8 MB that lie in two shards of 4 MiB and a little."""
    path = folder / "rows.h5"
    with h5py.File(path, "w") as file:
        file["T"] = np.arange(64 * 16384.0).reshape(64, 16384)
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="FUSE of Linux")
def test_a_server_that_stands_still_for_a_while_costs_time_alone(mpirun, tmp_path):  # noqa: F811
    (tmp_path / "fs").mkdir()
    path = written(tmp_path)
    with striped.ceph(tmp_path / "fs") as mounted:
        shutil.copy(path, mounted / "rows.h5")
        for mode in MODES:
            with Stopped(daemons("ceph-osd", tmp_path), seconds=5):
                found = told(mpirun, 3, "rows_of_ramp", mounted / "rows.h5", mode)
            assert found["right"] == [True] * 3


@pytest.mark.skipif(sys.platform != "linux", reason="FUSE of Linux")
def test_a_server_that_is_gone_is_told_to_who_needs_it(mpirun, tmp_path):  # noqa: F811
    (tmp_path / "fs").mkdir()
    path = written(tmp_path)
    with striped.gluster(tmp_path / "fs", patience=2) as mounted:
        shutil.copy(path, mounted / "rows.h5")
        bricks = [n for n in (0, 1) if list((tmp_path / "fs" / f"brick{n}" / ".shard").glob("*.[0-9]*"))]
        pids = daemons("glusterfsd", tmp_path / "fs" / f"brick{bricks[0]}.vol")
        assert len(pids) == 1
        forget(mounted / "rows.h5")
        begin = time.monotonic()
        with Stopped(pids, seconds=40):
            found = told(mpirun, 3, "gone", mounted / "rows.h5", "nonblocking")
        assert time.monotonic() - begin < DEADLINE
        kinds = {kind for kinds in found["said"] for kind in kinds}
        assert kinds <= {"right", "io-error", "file-not-found"}
        assert kinds != {"right"}
        # It is there again, once the client of the file system has seen that.
        await_that(lambda: is_there(mounted / "rows.h5"), "a file that can be read again")
        assert told(mpirun, 3, "rows_of_ramp", mounted / "rows.h5", "nonblocking")["right"] == [True] * 3


@pytest.mark.parametrize("mode", MODES)
def test_a_rank_that_is_interrupted_lets_the_others_go_on(mode, mpirun, tmp_path):  # noqa: F811
    path = tmp_path / "rows.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("T", data=np.arange(64 * 16384.0).reshape(64, 16384), chunks=(1, 16384))
    found = told(mpirun, 3, "interrupted", path, mode)
    assert found["raised"] == [None, "KeyboardInterrupt", None]
    # All ask for all: what the second was to read is missing.
    assert found["said"][0] == found["said"][2] == "cancelled"
    assert found["words"][0].startswith("rank 1: ")
    # The next call is as if nothing had been.
    assert found["again"] == [True] * 3


def test_a_rank_that_is_killed_ends_all(mpirun, tmp_path):  # noqa: F811
    path = written(tmp_path)
    command, environ = mpirun
    program = PROGRAM.with_name("mpi_read_program.py")
    done = subprocess.run(
        [*command, "3", sys.executable, str(program), "killed", str(path), "collective"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
        cwd=program.parent,
    )
    assert done.returncode != 0
    assert "unreachable" not in done.stdout
