"""What each process of `run.py` does: the calls by sieva, or by MPI-IO of mpi4py.

``rank.py JSON``.

Of each run rank 0 says the seconds from a barrier to the end of the last rank, after opening; values are
compared with numpy's after each.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import sieva
import sieva.mpi
from batches import NAME, SHAPE, Asked, values
from mpi4py import MPI
from sieva._ranks import together

COMM = MPI.COMM_WORLD
Reader = Callable[[], list[np.ndarray[Any, Any]]]
Boxes = list[tuple[list[int], list[int]]]


def main() -> None:
    """Run the job of the command line."""
    job = json.loads(sys.argv[1])
    asked = Asked(**job["asked"])
    boxes = asked.of_rank(COMM.rank, COMM.size)
    read = {"hila": by_sieva, "mpiio": by_mpiio}[job["way"]](job, asked, boxes)
    seconds = []
    for _ in range(job["runs"]):
        forget(job["file"])
        COMM.barrier()
        begin = MPI.Wtime()
        found = read()
        COMM.barrier()
        seconds.append(MPI.Wtime() - begin)
        right = len(found) == len(boxes) and all(
            got.tobytes() == values(*box).tobytes() for got, box in zip(found, boxes, strict=True)
        )
        if not COMM.allreduce(int(right), MPI.MIN):
            raise SystemExit("other values than were written")
        del found
    more = told() if job["way"] == "hila" else {}
    if COMM.rank == 0:
        print(
            json.dumps(
                {"seconds": seconds, "mpi": MPI.Get_library_version().split(",")[0].strip()[:60], **more}
            )
        )


def forget(path: str) -> None:
    """Drop what the kernel keeps of the file on this node."""
    file = os.open(path, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def by_sieva(job: dict[str, Any], _: Asked, boxes: Boxes) -> Reader:
    """Return what reads by `sieva.mpi.read_many`."""
    source = sieva.open(job["file"], learn=False, **job.get("options", {}))
    # What tells its state is read once.
    source._native.state()  # noqa: SLF001
    keys = [tuple(slice(a, a + n) for a, n in zip(*box, strict=True)) for box in boxes]
    requests = [(source, NAME, key) for key in keys]
    sieva.mpi.read_many(COMM, [], mode=job["mode"])
    return lambda: sieva.mpi.read_many(COMM, requests, mode=job["mode"], memory=job.get("memory"))


def told() -> dict[str, Any]:
    """Return what the last run did on all ranks."""
    did = together.last
    return {
        "values": COMM.allreduce(did.asked),
        "read": COMM.allgather(did.read),
        "sent": COMM.allreduce(did.sent),
        "pieces": did.pieces,
        "boxes": COMM.allreduce(did.boxes),
        "waves": did.waves,
        "planning": COMM.allreduce(did.planning, MPI.MAX),
    }


def by_mpiio(job: dict[str, Any], asked: Asked, boxes: Boxes) -> Reader:
    """Return what reads by MPI-IO, with a file view for each box."""
    mode, offset = job["mode"], job["offset"]
    each = COMM.size // asked.groups
    comm = COMM if mode == "nonblocking" else COMM.Split(COMM.rank // each, COMM.rank)
    file = MPI.File.Open(comm, job["file"], MPI.MODE_RDONLY)
    single = np.dtype(">f4")

    def read() -> list[np.ndarray[Any, Any]]:
        found, waiting = [], []
        for start, shape in boxes:
            kind = MPI.FLOAT.Create_subarray(list(SHAPE), shape, start).Commit()
            out = np.empty(shape, single)
            file.Set_view(offset, MPI.FLOAT, kind)
            if mode == "independent":
                file.Read([out, MPI.FLOAT])
            elif mode == "collective":
                file.Read_all([out, MPI.FLOAT])
            else:
                waiting.append(file.Iread_all([out, MPI.FLOAT]))
                # The view may be changed only once nothing is under way.
                waiting.pop().Wait()
            kind.Free()
            found.append(out)
        MPI.Request.Waitall(waiting)
        return [one.astype("=f4") for one in found]

    return read


if __name__ == "__main__":
    main()
