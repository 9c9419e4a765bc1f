"""Programs of the MPI tests: compiled by ``make mpi``, started by the launcher of their own MPI."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))

# Each MPI as Debian names its programs; elsewhere there is one, without a name.
NAMED = [name for name in ("openmpi", "mpich") if shutil.which(f"mpicc.{name}")]
MPIS = [f"mpicc.{name}" for name in NAMED] or (["mpicc"] if shutil.which("mpicc") else [])

# Seconds until a run is taken for hung: many ranks share few cores.
DEADLINE = 900


def directory(mpi):
    """Return where ``make mpi`` puts what this MPI's compiler makes."""
    return TARGET / "mpi" / mpi


def require(mpi, program):
    """Return the path of a program, or skip and say how to get it."""
    path = directory(mpi) / program
    if not path.exists():
        pytest.skip(f"no {path}: `make mpi` builds it")
    return path


def command(mpi, ranks):
    """Return the beginning of a command that starts so many ranks on this machine."""
    launcher = mpi.replace("mpicc", "mpirun")
    said = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=True).stdout
    options = []
    if "Open MPI" in said or "OpenRTE" in said:
        options = ["--oversubscribe", "--mca", "btl_vader_single_copy_mechanism", "none"]
        if os.geteuid() == 0:
            options.append("--allow-run-as-root")
    return [launcher, *options, "-n", str(ranks)]


def environment(tmp_path):
    """Return variables for a run: a store of its own, and no cores bound, as tests share them."""
    own = {"SIEVA_STORE": str(tmp_path / "store"), "OMPI_MCA_hwloc_base_binding_policy": "none"}
    return {**os.environ, **own}


def run(mpi, ranks, program, *arguments, tmp_path):
    """Run a program on so many ranks, to its end."""
    started = [*command(mpi, ranks), str(require(mpi, program)), *map(str, arguments)]
    return subprocess.run(
        started, capture_output=True, text=True, check=False, timeout=DEADLINE, env=environment(tmp_path)
    )
