"""The ways to read a batch of calls, each as a command of all ranks."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from ctypes.util import find_library
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batches import RECORDS, Asked

HERE = Path(__file__).resolve().parent
MODES = ("independent", "collective", "nonblocking")
Result = dict[str, Any]
DEADLINE = 600
# How MPICH's ROMIO ends where it cannot take a file view: the one failure that is expected.
NO_VIEW = re.compile(r"Out of memory in file \S*\bflatten\.c\b[^\n]*")
NO_MPICH = "MPICH is not installed"


class Refused(Exception):  # noqa: N818 - not an error: it is expected, and its reason stands in the table
    """ROMIO cannot run a batch, for a reason that is known; the text is the reason."""


@dataclass(frozen=True)
class Way:
    """Who reads, and how: ``pnetcdf``, ``ompio``, ``romio`` or ``hila``, in one of `MODES`."""

    who: str
    mode: str

    def __str__(self) -> str:
        return f"{self.who}-{self.mode}"


class Runner:
    """Runs ways on so many ranks.

    Parameters
    ----------
    mounts, nodes
        The directory of the mounts, and how many there are.
    ranks
        How many processes.
    program
        The compiled pnetcdf.c.
    """

    def __init__(self, mounts: Path, nodes: int, ranks: int, program: Path) -> None:
        self.mounts, self.nodes, self.ranks, self.program = mounts, nodes, ranks, program
        # Where each rank sees the file system of its node.
        self.common = mounts / "seen"
        self.common.mkdir()
        self.mpirun = shutil.which("mpirun.openmpi") or "mpirun"
        self.mpich = shutil.which("mpirun.mpich")

    def run(self, way: Way, asked: Asked, file: str, runs: int, **more: int) -> Result:
        """Return the seconds of each run, and what else a way says.

        Raises
        ------
        Refused
            ROMIO could not take the file view, or MPICH is not there.
        SystemExit
            It failed in another way, or read other values than were written.
        """
        if way.who == "romio" and (self.mpich is None or _libmpich() is None):
            raise Refused(NO_MPICH)
        path = str(self.common / file)
        if way.who == "pnetcdf":
            numbers = (asked.calls, asked.step, RECORDS, asked.groups, runs)
            done = self._start([str(self.program), way.mode, *map(str, numbers), path])
            return {"seconds": [float(line) for line in done.split()]}
        job = {"way": way.who, "mode": way.mode, "asked": asked.to_dict(), "runs": runs, "file": path, **more}
        job["way"] = "hila" if way.who == "hila" else "mpiio"
        command = [sys.executable, str(HERE / "rank.py"), json.dumps(job)]
        done = self._start(command, by_mpich=way.who == "romio")
        found: Result = json.loads(done.splitlines()[-1])
        return found

    def _start(self, command: list[str], *, by_mpich: bool = False) -> str:
        node = ["unshare", "-m", str(HERE / "node.sh"), str(self.mounts), str(self.nodes), str(self.common)]
        environ = {**os.environ, "OMP_NUM_THREADS": "1"}
        if by_mpich:
            run = [str(self.mpich)]
            environ |= {"MPI4PY_MPIABI": "mpich", "LD_LIBRARY_PATH": str(self._mpich_folder())}
        else:
            options = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
            # Shared memory by two copies: containers may not read each other's.
            quiet = ["--mca", "btl_vader_single_copy_mechanism", "none", "--mca", "mpi_yield_when_idle", "1"]
            run = [self.mpirun, *options, *quiet]
        done = subprocess.run(
            [*run, "-n", str(self.ranks), *node, *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE,
            env=environ,
        )
        if done.returncode:
            # In all of what it says: of many ranks, the end may be other words.
            if by_mpich and (reason := refusal(done.stdout + done.stderr)) is not None:
                raise Refused(reason)
            raise SystemExit(f"{' '.join(command)}: {done.stdout[-500:]}{done.stderr[-1500:]}")
        return done.stdout

    def _mpich_folder(self) -> Path:
        """Return a directory with MPICH's library by the name that mpi4py looks for: Debian has its own."""
        folder = self.mounts / "mpich"
        folder.mkdir(exist_ok=True)
        link, library = folder / "libmpi.so.12", _libmpich()
        if library is not None and not link.exists():
            link.symlink_to(library)
        return folder


def refusal(said: str) -> str | None:
    """Return why ROMIO could not take a file view, or None where it failed for another reason."""
    found = NO_VIEW.search(said)
    return found and found[0].strip()


def _libmpich() -> Path | None:
    """Return MPICH's library."""
    name = find_library("mpich")
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    places = (line.rpartition(" => ")[2] for line in listed.splitlines() if name and f"{name} " in line)
    return next((Path(place) for place in places), None)
