"""What ranks do for figure 5 of PDC: ``mpirun -n N python pdc_rank.py JOB.json``; rank 0 prints JSON.

Times are from a barrier to the last rank's end, without starting MPI and importing.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "objects"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import sieva.mpi
from cold import evict
from h5boss import DECDEG, RADEG, traverse
from rank import COMM, forget, timed

Job = dict[str, Any]
Found = list[tuple[str, int]]


def by_h5py(job: Job, high: float) -> Found:
    """Traverse a share of the files on each rank, and bring together what was found."""
    mine = [hit for path in job["files"][COMM.rank :: COMM.size] for hit in traverse(Path(path), high)]
    parts = COMM.gather(mine)
    return [hit for part in parts or [] for hit in part]


def by_sieva(job: Job, high: float) -> Found:
    """Ask the collection on all ranks, from opening the catalog on."""
    text = (
        f"SELECT object, count(*) FROM collection('h5boss') WHERE RADEG = {RADEG} AND DECDEG = {DECDEG} "
        f"AND flux BETWEEN 0 AND {high} GROUP BY object"
    )
    table = sieva.mpi.sql(text, COMM, catalog=job["catalog"]).to_arrow()
    return list(zip(table[0].to_pylist(), table[1].to_pylist(), strict=True))


WAYS: dict[str, Callable[[Job, float], Found]] = {"h5py": by_h5py, "sieva": by_sieva}


def ask(job: Job) -> Job:
    """Ask for all ranges of flux in turn, several times; tell what was found."""
    work = WAYS[job["way"]]
    seconds: dict[str, list[float]] = {str(high): [] for high in job["highs"]}
    found: dict[str, Found] = {}
    for run in range(job["runs"] if job["cold"] else job["runs"] + 1):
        for high in job["highs"]:
            forget()
            if job["cold"] and COMM.rank == 0:
                evict([Path(path) for path in (*job["files"], job["catalog"])])
            took, hits = timed(lambda high=high: work(job, high))
            if COMM.rank == 0 and found.setdefault(str(high), sorted(hits)) != sorted(hits):
                raise SystemExit(f"flux up to {high}: another answer than in the run before")
            if run or job["cold"]:
                # On warm pages the first time is that of loading modules.
                seconds[str(high)].append(took)
    return {"seconds": seconds, "found": found}


if __name__ == "__main__":
    given: Job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    result = ask(given)
    if COMM.rank == 0:
        print(json.dumps(result))
