"""Runs `rank.py` on ranks of this machine."""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

RANK = Path(__file__).with_name("rank.py")
Result = dict[str, Any]


class Ranks:
    """Runs `rank.py` on so many ranks."""

    def __init__(self, mpirun: str) -> None:
        self.mpirun = mpirun
        told = subprocess.run([mpirun, "--version"], capture_output=True, text=True, check=True)
        self.version = told.stdout.splitlines()[0]

    def run(self, n: int, job: dict[str, Any]) -> Result:
        """Return what rank 0 says."""
        options = ["--allow-run-as-root", "--oversubscribe"] if "Open" in self.version else []
        command = [self.mpirun, *options, "-n", str(n), sys.executable, str(RANK), json.dumps(job)]
        env = {**os.environ, "OMPI_MCA_mpi_yield_when_idle": "1", "SIEVA_LEARN": "0"}
        done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
        return json.loads(done.stdout.splitlines()[-1])


def shown(seconds: list[float]) -> str:
    """Return the median and the range in ms."""
    low, high = min(seconds) * 1e3, max(seconds) * 1e3
    return f"{statistics.median(seconds) * 1e3:.1f} ({low:.1f}..{high:.1f})"
