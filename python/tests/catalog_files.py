"""Files and databases for the tests of the catalog."""

import contextlib
import os
import shutil
import socket
import subprocess
from pathlib import Path

import h5py
import netCDF4
import numpy as np


def write_spectra(path: Path, plate: int, fibers: int = 6) -> dict[str, dict[str, object]]:
    """Write a file of spectra; return the attributes of each group by its path."""
    rng = np.random.default_rng(plate)
    said: dict[str, dict[str, object]] = {}
    with h5py.File(path, "w") as file:
        file.attrs["survey"] = "boss"
        for fiber in range(fibers):
            attrs = {
                "RADEG": float(rng.integers(150, 156)) + 0.17,
                "DECDEG": float(rng.integers(20, 26)) + 0.06,
                "fiber": fiber,
                "kind": str(rng.choice(["star", "galaxy", "sky"])),
            }
            group = file.create_group(f"{plate}/{fiber}")
            group.attrs.update(attrs)
            group.attrs["wide"] = np.arange(40)
            group["flux"] = (rng.normal(plate, 1, 50)).astype("f4")
            said[f"{plate}/{fiber}"] = attrs
    return said


def write_step(path: Path, step: int) -> None:
    """Write one time step of two variables."""
    rng = np.random.default_rng(abs(step))
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 5)
        time = file.createVariable("time", "f8", ("time",))
        time.units = "days since 2000-01-01"
        time[:] = [step]
        x = file.createVariable("x", "f4", ("x",))
        x[:] = np.arange(5)
        for name in ("TEMP", "SALT"):
            values = rng.normal(step, 1, (1, 5)).astype("f4")
            values[rng.random(values.shape) < 0.2] = np.nan
            file.createVariable(name, "f4", ("time", "x"), fill_value=-9.0)[:] = values


def _programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


@contextlib.contextmanager
def postgres(directory: Path):
    """Run a PostgreSQL server of the tests' own; gives None where there is none to run."""
    programs = _programs()
    if programs is None:
        yield None
        return
    directory.mkdir(parents=True)
    user: list[str] = []
    if os.geteuid() == 0:
        shutil.chown(directory, "postgres")
        user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = directory / "data"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": directory}
    init = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D", data]
    subprocess.run([*user, programs / "initdb", *init], check=True, **quiet)
    options = f"-h 127.0.0.1 -p {port} -k {directory} -c fsync=off -c shared_buffers=32MB"
    control = [*user, programs / "pg_ctl", "-D", data, "-s", "-w"]
    start = ["-t", "60", "-o", options, "-l", directory / "log", "start"]
    subprocess.run([*control, *start], check=True, **quiet)
    try:
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=False, **quiet)
