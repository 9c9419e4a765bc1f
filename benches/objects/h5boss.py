"""Measures queries by metadata and data over many small objects, beside a traversal of the files with h5py.

Usage: h5boss.py [--quick] [--runs N] [--data DIRECTORY] [--cold] [--json FILE]

As in section VI.C of the PDC paper: 25 000 objects in 250 HDF5 files, a condition on attributes that 1000 of
them satisfy, and seven ranges of flux that select 11 % to 65 % of the elements of those. Both sides give the
number of elements of each object; the answers are compared before anything is timed. "first" is the first
query of a process (without starting Python), the others find the manifests of the files decoded. `--cold`
drops the files and the catalog from the page cache before each run.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import sieva

if TYPE_CHECKING:
    from collections.abc import Callable

GROUPS = 100
LENGTH = 4620
RADEG, DECDEG = 153.17, 23.06
SELECTED = 4  # of each file
# Upper ends of flux BETWEEN 0 AND x, by the share of elements that they select: flux is uniform in [0, 100).
SHARES = (11, 20, 29, 38, 47, 56, 65)


def make(folder: Path, files: int) -> list[Path]:
    """Write the files that are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"plate-{n:04d}.h5" for n in range(files)]
    for n, path in enumerate(paths):
        if path.exists():
            continue
        rng = np.random.default_rng(n)
        chosen = set(rng.choice(GROUPS, SELECTED, replace=False).tolist())
        aside = path.with_suffix(".new")
        with h5py.File(aside, "w") as file:
            for g in range(GROUPS):
                group = file.create_group(f"{3000 + n}/{55000 + n % 700}/{g + 1}")
                here = g in chosen
                group.attrs["RADEG"] = RADEG if here else float(rng.uniform(0, 360))
                group.attrs["DECDEG"] = DECDEG if here else float(rng.uniform(-10, 70))
                group.attrs["plate"], group.attrs["mjd"], group.attrs["fiber"] = (
                    3000 + n,
                    55000 + n % 700,
                    g + 1,
                )
                group.attrs["class"] = ("STAR", "GALAXY", "QSO")[g % 3]
                group["flux"] = rng.uniform(0, 100, LENGTH).astype(np.float32)
                group["ivar"] = rng.uniform(0, 1, LENGTH).astype(np.float32)
                group["loglam"] = np.linspace(3.55, 4.02, LENGTH, dtype=np.float32)
        aside.rename(path)
    return paths


def traverse(path: Path, high: float) -> list[tuple[str, int]]:
    """Return the hits of the objects of one file, by its attributes and then its data."""
    found = []

    def visit(group: h5py.Group, name: str) -> None:
        attrs = group.attrs
        if "RADEG" in attrs:
            if attrs["RADEG"] == RADEG and attrs["DECDEG"] == DECDEG:
                flux = group["flux"][()]
                hits = int(np.count_nonzero((flux >= 0) & (flux <= high)))
                if hits:
                    found.append((name, hits))
            return
        for key in group:
            visit(group[key], f"{name}/{key}" if name else key)

    with h5py.File(path, "r") as file:
        visit(file, "")
    return found


def _traverse(job: tuple[Path, float]) -> list[tuple[str, int]]:
    return traverse(*job)


def by_h5py(paths: list[Path], high: float) -> list[tuple[str, int]]:
    """Return the hits of all objects, file after file."""
    return [hit for path in paths for hit in traverse(path, high)]


def by_pool(pool: multiprocessing.pool.Pool, paths: list[Path], high: float) -> list[tuple[str, int]]:
    """Return the hits of all objects by a process for each core, which are there already."""
    return [hit for part in pool.map(_traverse, [(path, high) for path in paths], 4) for hit in part]


def by_sieva(catalog: str, high: float) -> list[tuple[str, int]]:
    """Return the hits of all objects, from opening the catalog on."""
    text = (
        f"SELECT object, count(*) FROM collection('h5boss') WHERE RADEG = {RADEG} AND DECDEG = {DECDEG} "
        f"AND flux BETWEEN 0 AND {high} GROUP BY object"
    )
    table = sieva.sql(text, catalog=catalog).to_arrow()
    return list(zip(table[0].to_pylist(), table[1].to_pylist(), strict=True))


def timed(work: Callable[[], object], runs: int, cold: list[Path]) -> list[float]:
    """Return the seconds of each run, before which the files ``cold`` leave the page cache."""
    seconds = []
    for _ in range(runs):
        drop(cold)
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return seconds


def first(catalog: str, high: float, cold: list[Path]) -> float:
    """Return the seconds of the first query of a new process."""
    drop(cold)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_timed_query, (catalog, high))


def _timed_query(catalog: str, high: float) -> float:
    # Loading modules is part of starting Python: those of h5py are loaded before its traversal, too.
    importlib.import_module("pyarrow")
    start = time.perf_counter()
    by_sieva(catalog, high)
    return time.perf_counter() - start


def drop(paths: list[Path]) -> None:
    """Drop files from the page cache."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def figures_of(share: int, paths: list[Path], catalog: str, runs: int, cold: list[Path]) -> dict[str, Any]:
    """Return the seconds of all ways for one range of flux."""
    with multiprocessing.get_context("spawn").Pool() as pool:
        ours = sorted(by_sieva(catalog, share))
        answers = (sorted(by_h5py(paths, share)), sorted(by_pool(pool, paths, share)))
        if answers != (ours, ours) or len(ours) != SELECTED * len(paths):
            raise SystemExit(f"answers differ at {share} %: {len(ours)} objects")
        others = max(1, runs // 2)
        return {
            "share": share,
            "sieva": timed(lambda: by_sieva(catalog, share), runs, cold),
            "first": [first(catalog, share, cold) for _ in range(runs)],
            "h5py": timed(lambda: by_h5py(paths, share), others, cold),
            "h5py_pool": timed(lambda: by_pool(pool, paths, share), others, cold),
        }


def shown(seconds: list[float]) -> str:
    """Return the median and the range."""
    return f"{statistics.median(seconds):.3f} ({min(seconds):.3f} to {max(seconds):.3f})"


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--data", type=Path, default=Path("bench-data/objects"))
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    files = 5 if arguments.quick else 250
    folder = arguments.data / str(files)
    paths = make(folder, files)
    catalog = str(folder / "catalog.sqlite")
    if not Path(catalog).exists():
        start = time.perf_counter()
        with sieva.Catalog(catalog) as known:
            report = known.add(*paths, collection="h5boss")
        print(f"registered {report.objects} objects in {time.perf_counter() - start:.1f} s")
    dropped = [*paths, Path(catalog)] if arguments.cold else []
    state = "cold" if arguments.cold else "warm"
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    print(f"{cores} cores, load {load:.1f}, {state}; seconds, median and range\n")
    print("| selected | sieva | sieva, first | h5py | h5py, all cores | ratio | ratio, first |")
    print("|---|---|---|---|---|---|---|")
    all_figures = []
    for share in SHARES:
        one = figures_of(share, paths, catalog, arguments.runs, dropped)
        best = min(statistics.median(one["h5py"]), statistics.median(one["h5py_pool"]))
        ways = " | ".join(shown(one[way]) for way in ("sieva", "first", "h5py", "h5py_pool"))
        ratios = [best / statistics.median(one[way]) for way in ("sieva", "first")]
        print(f"| {share} % | {ways} | {ratios[0]:.0f} x | {ratios[1]:.0f} x |", flush=True)
        all_figures.append(one)
    if arguments.json:
        arguments.json.write_text(json.dumps({"figures": all_figures, "load": os.getloadavg()}, indent=1))


if __name__ == "__main__":
    main()
