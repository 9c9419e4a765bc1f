"""The ways to read a batch of calls, each as a command of all ranks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batches import RECORDS, Asked

HERE = Path(__file__).resolve().parent
MODES = ("independent", "collective", "nonblocking")
Result = dict[str, Any]
DEADLINE = 600


@dataclass(frozen=True)
class Way:
    """Who reads, and how: ``pnetcdf``, ``mpiio`` or ``hila``, in one of `MODES`."""

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

    def run(self, way: Way, asked: Asked, file: str, runs: int, **more: int) -> Result:
        """Return the seconds of each run, and what else a way says.

        Raises
        ------
        SystemExit
            It failed, or read other values than were written.
        """
        path = str(self.common / file)
        if way.who == "pnetcdf":
            numbers = (asked.calls, asked.step, RECORDS, asked.groups, runs)
            done = self._start([str(self.program), way.mode, *map(str, numbers), path])
            return {"seconds": [float(line) for line in done.split()]}
        job = {"way": way.who, "mode": way.mode, "asked": asked.to_dict(), "runs": runs, "file": path, **more}
        done = self._start([sys.executable, str(HERE / "rank.py"), json.dumps(job)])
        found: Result = json.loads(done.splitlines()[-1])
        return found

    def _start(self, command: list[str]) -> str:
        node = ["unshare", "-m", str(HERE / "node.sh"), str(self.mounts), str(self.nodes), str(self.common)]
        options = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
        # Shared memory by two copies: containers may not read each other's.
        quiet = ["--mca", "btl_vader_single_copy_mechanism", "none", "--mca", "mpi_yield_when_idle", "1"]
        done = subprocess.run(
            [self.mpirun, *options, *quiet, "-n", str(self.ranks), *node, *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: {done.stdout[-500:]}{done.stderr[-1500:]}")
        return done.stdout
