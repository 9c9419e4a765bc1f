"""Figure 8: several value queries at once (FASM) on the striped file, beside one by one.

A query counts the values over a threshold among some records. The values are those of a sea: each level is
colder than the one above it, with seasons and noise, so that statistics of regions (zone maps, built once)
tell most regions without reading. What is left open is read: by each query for itself, or together.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import netCDF4
import numpy as np
import sieva

if TYPE_CHECKING:
    from cephfs import Ceph

FILE = "values.nc"
# time, level, lat, lon: 311 MB.
SHAPE = (200, 20, 120, 162)
NUMBERS = (2, 5, 10, 20)
# Coldest and warmest threshold; degrees between two levels, of seasons, and of noise.
LOW, HIGH = 2.0, 24.0
STEP, SEASON, NOISE = 1.4, 3.0, 2.0
# First record, last + 1, threshold.
Query = tuple[int, int, float]
Result = dict[str, Any]


def write(path: Path) -> None:
    """Write the file: netCDF-3 CDF-5, one record variable."""
    rng = np.random.default_rng(8)
    level = 28 - STEP * np.arange(SHAPE[1])[:, None, None]
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_DATA") as file:
        for name, n in zip(("time", "level", "lat", "lon"), (None, *SHAPE[1:]), strict=True):
            file.createDimension(name, n)
        variable = file.createVariable("T", "f4", ("time", "level", "lat", "lon"))
        for record in range(SHAPE[0]):
            noise = NOISE * rng.random(SHAPE[1:])
            variable[record] = (level + SEASON * np.sin(record / 20) + noise).astype("f4")


def queries(n: int, overlaps: bool) -> list[Query]:
    """Return `n` queries: records that overlap by half with the next query's, or of all."""
    levels = np.linspace(LOW, HIGH, n).tolist()
    if overlaps:
        return [(0, SHAPE[0], level) for level in levels]
    length = 2 * SHAPE[0] // (n + 1)
    return [(i * length // 2, min(i * length // 2 + length, SHAPE[0]), x) for i, x in enumerate(levels)]


def measured(cluster: Ceph, path: Path, truth: Path, *, store: Path, runs: int) -> list[Result]:
    """Return the seconds of both ways for each number of queries, and what the OSDs read in one run.

    Parameters
    ----------
    cluster
        Where it lies.
    path, truth
        The file there, and a copy on a plain disk that numpy answers from.
    store
        The directory of the zone maps.
    runs
        How many count; one before them does not.
    """
    with sieva.open(path, store=store) as source:
        source.build_index("T", kinds=["zonemap"])
    cells = []
    for overlaps in (False, True):
        for n in NUMBERS:
            asked = queries(n, overlaps)
            expected = by_numpy(truth, asked)
            for way in (one_by_one, together):
                before, seconds = cluster.traffic(), []
                for _ in range(runs + 1):
                    forget(path)
                    begin = time.perf_counter()
                    got = way(path, store, asked)
                    seconds.append(time.perf_counter() - begin)
                    if got != expected:
                        raise SystemExit(f"{way.__name__}: {got}, numpy says {expected}")
                after = cluster.traffic()
                counted = {
                    name: sum(b - a for a, b in zip(before[name], after[name], strict=True)) / (runs + 1)
                    for name in after
                }
                cell = {"queries": n, "overlaps": overlaps, "way": way.__name__, "seconds": seconds[1:]}
                cells.append(cell | counted)
                print("values", n, overlaps, way.__name__, f"{np.median(seconds[1:]):.3f} s", flush=True)
    return cells


def one_by_one(path: Path, store: Path, asked: list[Query]) -> list[int]:
    """Ask each query by itself, of a source that is opened once."""
    with sieva.Session(cache=0) as session:
        source = session.open(path, store=store, learn=False)
        return [source.query(condition(query)).count() for query in asked]


def together(path: Path, store: Path, asked: list[Query]) -> list[int]:
    """Run the same queries at once."""
    with sieva.Session(cache=0) as session:
        source = session.open(path, store=store, learn=False)
        return [query.count() for query in session.run([source.query(condition(q)) for q in asked])]


def condition(query: Query) -> str:
    """Return a query as text."""
    first, end, level = query
    return f"idx(time) >= {first} AND idx(time) < {end} AND T > {level!r}"


def by_numpy(path: Path, asked: list[Query]) -> list[int]:
    """Return the same from a copy of the file."""
    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        values = file["T"][...]
    # As numbers: beside a Python float numpy would round the threshold to float32.
    return [int(np.count_nonzero(values[a:b] > np.float64(level))) for a, b, level in asked]


def forget(path: Path) -> None:
    """Drop what the kernel keeps of the file."""
    file = os.open(path, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)
