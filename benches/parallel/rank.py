"""What the ranks of one measurement do: ``mpirun -n N python rank.py JSON``; rank 0 prints JSON.

A time is from a barrier to the last rank's end, without starting MPI and importing; files are opened anew.
"""

import fcntl
import json
import os
import resource
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import h5py
import numpy as np
import sieva
import sieva.mpi
from conventional import _COMPARE
from data import GROUP
from mpi4py import MPI
from sieva import _native
from sieva.engines._work import this_worker

COMM = MPI.COMM_WORLD
Job = dict[str, Any]
Values = dict[str, np.ndarray]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that all ranks took together, and what this one did."""
    COMM.Barrier()
    start = time.perf_counter()
    done = work()
    COMM.Barrier()
    return time.perf_counter() - start, done


def share(n: int) -> tuple[int, int]:
    """Return the rows of this rank, of `n`."""
    return n * COMM.rank // COMM.size, n * (COMM.rank + 1) // COMM.size


def by_h5py(job: Job) -> Values:
    """Read this rank's share of every array that is named, and take the values at the hits."""
    with h5py.File(job["file"]) as f:
        group = f[GROUP]
        low, high = share(group[job["fetch"][0]].shape[0])
        names = dict.fromkeys([*(array for array, _, _ in job["terms"]), *job["fetch"]])
        columns = {name: group[name][low:high] for name in names}
    mask = np.logical_and.reduce([_COMPARE[op](columns[a], np.float32(v)) for a, op, v in job["terms"]])
    hits = np.flatnonzero(mask)
    return {name: columns[name][hits] for name in job["fetch"]}


def by_sieva(job: Job) -> Values:
    """Evaluate the condition together, and read as many rows on each rank; nothing is known from before."""
    with sieva.mpi.open(job["file"], COMM, store=job["store"]) as source:
        query = source.query(job["text"], access=job["access"], memory=job.get("memory"))
        if not job["fetch"]:
            return {"": np.asarray([query.count()])}
        return {name: query.read(name, gather="none") for name in job["fetch"]}


def unbalanced(job: Job) -> Values:
    """Let each rank read the hits in its own share of the rows."""
    with sieva.open(job["file"], store=job["store"]) as source:
        array = source[job["fetch"][0]]
        low, high = share(array.shape[0])
        dim = array.dims[0]
        text = f"{job['text']} AND idx({dim}) >= {low} AND idx({dim}) < {high}"
        query = source.query(text, access=job["access"])
        return {name: query.read(name) for name in job["fetch"]}


WAYS = {"h5py": by_h5py, "sieva": by_sieva, "unbalanced": unbalanced}


def forget() -> None:
    """Let neither selections nor chunks stay from the query before."""
    this_worker().session.forget()
    _native.Session.shared().forget()


def ask(job: Job) -> Job:
    """Ask a query several times; values stay on the ranks."""
    seconds, found = [], {}
    for run in range(job["runs"] + 1):
        forget()
        took, found = timed(lambda: WAYS[job["way"]](job))
        if run == 0:
            # Modules are loaded, and the first pages of memory taken.
            continue
        seconds.append(took)
    hits = [len(next(iter(found.values())))]
    counts = COMM.gather(hits[0])
    parts = COMM.gather(found)
    if parts is None or counts is None:
        return {}
    digest = {name: zlib.crc32(np.concatenate([part[name] for part in parts]).tobytes()) for name in found}
    return {"seconds": seconds, "hits": counts, "digest": digest, "peak": _peak()}


def build(job: Job) -> Job:
    """Build an index together, anew each time."""
    seconds: list[float] = []
    report = None
    for _ in range(job["runs"]):
        if COMM.rank == 0:
            sieva.open(job["file"], store=job["store"]).drop_index()
        COMM.Barrier()
        with sieva.mpi.open(job["file"], COMM, store=job["store"]) as source:
            took, report = timed(
                lambda source=source: source.build_index(
                    job["array"],
                    kinds=[job["kind"]],
                    columns=job.get("columns"),
                    memory=job.get("memory"),
                    # A rank is a core, as in the paper: one rank alone would take all that there are.
                    jobs=1,
                )
            )
        seconds.append(took)
    peaks = COMM.gather(_peak())
    if report is None or peaks is None:
        return {}
    status = sieva.open(job["file"], store=job["store"]).index_status()
    size = sum(a.zonemap_bytes + a.bitmap_bytes for a in status.arrays) + sum(
        r.bytes for r in status.replicas
    )
    return {"seconds": seconds, "bytes": size, "read": report.bytes_read, "peak": max(peaks)}


def shared_file(job: Job) -> Job:
    """Write what `build` writes into one file of all ranks, region after region, as FastQuery does.

    The file's length is a shared number, so that whoever writes holds its lock; parallel HDF5 is as strict.
    """
    seconds: list[float] = []
    size = 0
    place = Path(job["store"])
    for run in range(job["runs"]):
        own = place / f"{run}-{COMM.rank}"
        target = place / "shared"
        if COMM.rank == 0:
            target.write_bytes(b"")

        def work(own: Path = own, target: Path = target) -> None:
            with sieva.open(job["file"], store=own) as source:
                tasks = source.index_job(job["array"], kinds=[job["kind"]]).tasks(job["pieces"])
                for task in tasks[COMM.rank :: COMM.size]:
                    source.run_index_task(task, jobs=1)
                    segments = sorted(own.rglob("*.seg"), key=os.path.getmtime)
                    _append(target, segments[-1].read_bytes())

        took, _ = timed(work)
        seconds.append(took)
        size = target.stat().st_size
    return {"seconds": seconds, "bytes": size}


def _append(target: Path, data: bytes) -> None:
    with target.open("r+b") as f:
        fcntl.lockf(f, fcntl.LOCK_EX)
        f.seek(0, os.SEEK_END)
        f.write(data)
        f.flush()
        os.fsync(f.fileno())


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    given: Job = json.loads(sys.argv[1])
    result = {"ask": ask, "build": build, "shared": shared_file}[given["do"]](given)
    if COMM.rank == 0:
        print(json.dumps(result))
