"""Figure 5 of PDC: small objects by metadata and data, in a catalog of millions, on one and two ranks."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import sieva
from h5boss import DECDEG, GROUPS, RADEG, SELECTED, SHARES, make
from pdc_cluster import timed

Result = dict[str, Any]
RANK = Path(__file__).with_name("pdc_rank.py")
COLLECTION = "h5boss"
# Where the objects are said to be that make the catalog large; no such files are opened.
ELSEWHERE = "/data/h5boss/"
RANKS = (1, 2)


def by_numpy(paths: list[Path], highs: tuple[int, ...]) -> dict[str, list[tuple[str, int]]]:
    """Return the hits of each object, by reading every flux and the attributes of its group."""
    found: dict[str, list[tuple[str, int]]] = {str(high): [] for high in highs}
    for path in paths:
        with h5py.File(path) as file:
            for plate in file:
                for day in file[plate]:
                    for fiber in file[f"{plate}/{day}"]:
                        group = file[f"{plate}/{day}/{fiber}"]
                        if (group.attrs["RADEG"], group.attrs["DECDEG"]) != (RADEG, DECDEG):
                            continue
                        flux = group["flux"][()]
                        for high in highs:
                            if hits := int(np.count_nonzero((flux >= 0) & (flux <= np.float32(high)))):
                                found[str(high)].append((f"{plate}/{day}/{fiber}", hits))
    return {high: sorted(hits) for high, hits in found.items()}


def catalog_of(folder: Path, paths: list[Path], objects: int, fill: Path, say: Callable[[str], None]) -> Path:
    """Return a catalog of the files and of so many objects besides, made where it is missing.

    Raises
    ------
    SystemExit
        The program that fills catalogs is not there.
    """
    catalog = folder / f"catalog-{objects}.sqlite"
    if catalog.exists():
        return catalog
    aside = folder / f"partial-{objects}.sqlite"
    for left in folder.glob(f"{aside.name}*"):
        left.unlink()
    if objects:
        if not fill.exists():
            raise SystemExit(
                f"{fill} is not there, which puts {objects} objects into the catalog: build it by "
                "`cargo build --release --locked -p sieva-catalog --example fill`, or say --catalog-objects 0"
            )
        took, _ = timed(
            lambda: subprocess.run(
                [fill, "--objects", str(objects), "--db", str(aside)], check=True, stderr=subprocess.DEVNULL
            )
        )
        say(f"{objects} objects put into the catalog in {took:.0f} s")
    with sieva.Catalog(aside) as known:
        report = known.add(*paths, collection=COLLECTION)
        if objects:
            known.collect(COLLECTION, ELSEWHERE)
    say(f"{report.objects} objects of {len(paths)} files registered")
    aside.rename(catalog)
    return catalog


def ranks(n: int, job: Result, mpirun: str) -> Result:
    """Return what rank 0 says."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(job, file)
        file.flush()
        version = subprocess.run([mpirun, "--version"], capture_output=True, text=True, check=True).stdout
        options = ["--allow-run-as-root", "--oversubscribe"] if "Open" in version.splitlines()[0] else []
        command = [mpirun, *options, "-n", str(n), sys.executable, str(RANK), file.name]
        env = {**os.environ, "OMPI_MCA_mpi_yield_when_idle": "1", "SIEVA_LEARN": "0"}
        done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def mpirun_of(given: str | None) -> str:
    """Return the program that starts ranks of MPI.

    Raises
    ------
    SystemExit
        There is none.
    """
    found = given or shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if found is None:
        raise SystemExit("figure 5 runs ranks of MPI, and mpirun is not there: say `make mpi-packages`")
    return found


def measure(folder: Path, files: int, *, options: Result) -> Result:
    """Measure traversals by h5py, and queries of the collection, on as many ranks.

    Parameters
    ----------
    folder
        Where the files and catalogs are, made where they are missing.
    files
        How many of 100 objects each.
    options
        ``objects`` besides in the catalog; ``fill`` and ``mpirun``, programs; ``runs``, ``cold_runs``,
        ``say``.
    """
    mpirun = mpirun_of(options["mpirun"])
    paths = make(folder / str(files), files)
    catalog = catalog_of(folder / str(files), paths, options["objects"], options["fill"], options["say"])
    wants = by_numpy(paths, SHARES)
    if any(len(hits) != SELECTED * files for hits in wants.values()):
        raise SystemExit(f"{folder}: the files are not those that were meant: remove the directory")
    rows = []
    for n in RANKS:
        for way in ("h5py", "sieva"):
            for state in ("warm", "cold"):
                runs = options["runs"] if state == "warm" else options["cold_runs"]
                highs = SHARES
                if way == "h5py":
                    # It takes a hundred times as long, whatever the range is.
                    highs, runs = (SHARES[len(SHARES) // 2],), runs if state == "warm" else min(runs, 3)
                job = {"files": [str(path) for path in paths], "catalog": str(catalog), "way": way}
                done = ranks(n, {**job, "highs": highs, "runs": runs, "cold": state == "cold"}, mpirun)
                for high, seconds in done["seconds"].items():
                    if [tuple(hit) for hit in done["found"][high]] != wants[high]:
                        raise SystemExit(f"{way} on {n} ranks, flux up to {high}: not numpy's answer")
                    about = {"ranks": n, "way": way, "state": state, "share": int(high)}
                    rows.append({**about, "objects": len(wants[high]), "seconds": seconds})
                options["say"](f"{n} ranks, {way}, {state}")
    with sieva.Catalog(catalog, read_only=True) as known:
        total = known.count(kind=None, collection=COLLECTION)
    return {
        "rows": rows,
        "files": files,
        "groups": files * GROUPS,
        "catalog_objects": total,
        "catalog_bytes": catalog.stat().st_size,
        "mpirun": mpirun,
    }


def gain(rows: list[Result], n: int, state: str, share: int) -> float:
    """Return how many times faster a query is than the traversal on as many ranks."""
    traversal = [
        statistics.median(row["seconds"])
        for row in rows
        if (row["ranks"], row["way"], row["state"]) == (n, "h5py", state)
    ]
    [mine] = [
        row["seconds"]
        for row in rows
        if (row["ranks"], row["way"], row["state"], row["share"]) == (n, "sieva", state, share)
    ]
    return statistics.median(traversal) / statistics.median(mine)


def spread(rows: list[Result], n: int, state: str) -> float:
    """Return how much longer the slowest share takes than the fastest, as a part of it."""
    of = [
        statistics.median(row["seconds"])
        for row in rows
        if (row["ranks"], row["way"], row["state"]) == (n, "sieva", state)
    ]
    return max(of) / min(of) - 1
