#!/usr/bin/env python3
"""Several value queries at once beside one by one, and beside h5py and numpy that share one scan.

    benches/fasm.py [--megabytes N] [--runs N] [--queries N]... [--data DIR] [--results FILE]

Queries count the values of a float32 array over a level, each within a box of times of its own: boxes that
are all of the array, that overlap by three quarters with the next, and that do not overlap. The array lies
plainly (netCDF-3) and in deflated chunks (HDF5). Opening is included, the page cache is warm, and the answers
are compared first. `less` is what running together saves of one by one: the figure of FASM with HiLa (Liu et
al., section V.C, Figure 8: 20 to 55 %).
"""

import argparse
import json
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import sieva
from machine import machine
from timing import Times, interleave, timed, warm

ROOT = Path(__file__).resolve().parent.parent
LATS, LONS, SLAB = 360, 720, 8
NUMBERS = (2, 5, 10, 20)
# A query: the box of its times, and the level that values are over.
Query = tuple[int, int, float]


def make(directory: Path, megabytes: int) -> dict[str, Path]:
    """Make the files that are not there yet."""
    directory.mkdir(parents=True, exist_ok=True)
    times = max(80, megabytes * 10**6 // (4 * LATS * LONS) // SLAB * SLAB)
    files = {
        "contiguous": directory / f"fasm-{times}.nc",
        "deflated": directory / f"fasm-{times}.h5",
    }
    writers = {"contiguous": _write_plain, "deflated": _write_deflated}
    for kind, path in files.items():
        if not path.exists():
            partial = path.with_suffix(".partial")
            writers[kind](partial, times)
            partial.rename(path)
    return files


def _slab(first: int, rng: np.random.Generator) -> np.ndarray:
    days = np.arange(first, first + SLAB)[:, None, None]
    pattern = 15 + 12 * np.cos(np.linspace(-1.5, 1.5, LATS))[None, :, None] + 3 * np.sin(days / 58)
    noise = np.round(rng.standard_normal((SLAB, LATS, LONS)) * 8) / 4
    return (np.round((pattern + noise) * 64) / 64).astype("f4")


def _write_plain(path: Path, times: int) -> None:
    rng = np.random.default_rng(1)
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_DATA") as file:
        for name, length in (("time", times), ("lat", LATS), ("lon", LONS)):
            file.createDimension(name, length)
        field = file.createVariable("T", "f4", ("time", "lat", "lon"))
        for first in range(0, times, SLAB):
            field[first : first + SLAB] = _slab(first, rng)


def _write_deflated(path: Path, times: int) -> None:
    rng = np.random.default_rng(1)
    shape = (times, LATS, LONS)
    with h5py.File(path, "w") as file:
        how = {"compression": "gzip", "compression_opts": 1, "shuffle": True}
        field = file.create_dataset("T", shape, "f4", chunks=(SLAB, 180, 180), **how)
        for d, name in enumerate(("time", "lat", "lon")):
            field.dims[d].label = name
        for first in range(0, times, SLAB):
            field[first : first + SLAB] = _slab(first, rng)


def boxes(overlap: str, n: int, times: int) -> list[Query]:
    """Return `n` queries; boxes begin and end where whole slabs do."""
    levels = [20 + 10 * i / n for i in range(n)]
    if overlap == "all":
        return [(0, times, level) for level in levels]
    length = times // n if overlap == "none" else 4 * times // (n + 3)
    length = max(SLAB, length // SLAB * SLAB)
    step = length if overlap == "none" else max(SLAB, length // 4 // SLAB * SLAB)
    starts = [min(i * step, times - length) for i in range(n)]
    return [(start, start + length, level) for start, level in zip(starts, levels, strict=True)]


def _condition(query: Query) -> str:
    first, end, level = query
    return f"idx(time) >= {first} AND idx(time) < {end} AND T > {level}"


def one_by_one(path: Path, queries: list[Query]) -> list[int]:
    """Return the numbers of values, each query asked by itself of a source that is opened once."""
    source = sieva.open(path, learn=False)
    return [source.query(_condition(query)).count() for query in queries]


def together(path: Path, queries: list[Query]) -> tuple[list[int], dict[str, int]]:
    """Return the same of queries that are run at once, and what that did."""
    with sieva.Session(cache=0) as session:
        source = session.open(path, learn=False)
        ran = session.run([source.query(_condition(query)) for query in queries])
        return [query.count() for query in ran], ran.stats


def shared_scan(path: Path, queries: list[Query]) -> list[int]:
    """Return the same by h5py or netCDF4 and numpy: each slab of times read once, for all queries."""
    counts = [0] * len(queries)
    levels = [np.float32(level) for *_, level in queries]
    is_plain = path.suffix == ".nc"
    file = netCDF4.Dataset(path) if is_plain else h5py.File(path)
    with file:
        field = file["T"]
        if is_plain:
            field.set_auto_maskandscale(False)
        for first in range(0, field.shape[0], SLAB):
            wanted = [i for i, (a, b, _) in enumerate(queries) if a <= first < b]
            if wanted:
                slab = field[first : first + SLAB]
                for i in wanted:
                    counts[i] += int(np.count_nonzero(slab > levels[i]))
    return counts


def measure(path: Path, queries: list[Query], runs: int) -> tuple[dict[str, Times], dict[str, int]]:
    """Return the times of all ways, and what running together did; raises where an answer differs."""
    expected = shared_scan(path, queries)
    counts, did = together(path, queries)
    if not counts == one_by_one(path, queries) == expected:
        raise ValueError(f"{path.name}: {counts}, expected {expected}")
    ways = {
        "one by one": timed(lambda: one_by_one(path, queries)),
        "together": timed(lambda: together(path, queries)),
        "numpy, one scan": timed(lambda: shared_scan(path, queries)),
    }
    return interleave(ways, runs), did


def row(kind: str, overlap: str, n: int, times: dict[str, Times], did: dict[str, int]) -> str:
    """Return a row of the table."""
    alone, at_once, peer = (times[way].median for way in ("one by one", "together", "numpy, one scan"))
    less = 100 * (1 - at_once / alone)
    return (
        f"| {kind} | {overlap} | {n} | {times['one by one']} | {times['together']} | {less:.0f} % | "
        f"{peer / at_once:.1f} | {did['read_bytes'] / 1e6:.0f} of {did['asked_bytes'] / 1e6:.0f} MB |"
    )


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--megabytes", type=int, default=400)
    options.add_argument("--runs", type=int, default=7)
    options.add_argument("--queries", type=int, action="append")
    options.add_argument("--data", type=Path, default=ROOT / "target" / "bench-data")
    options.add_argument("--results", type=Path)
    given = options.parse_args()
    files = make(given.data, given.megabytes)
    print("| array | boxes overlap | queries | one by one | together | less | numpy, ratio | read |")
    print("|---|---|---|---|---|---|---|---|")
    kept = []
    for kind, path in files.items():
        warm(path)
        with sieva.open(path) as source:
            times = source["T"].shape[0]
        for overlap in ("all", "partly", "none"):
            for n in given.queries or NUMBERS:
                queries = boxes(overlap, n, times)
                took, did = measure(path, queries, given.runs)
                print(row(kind, overlap, n, took, did), flush=True)
                seconds = {way: list(of.seconds) for way, of in took.items()}
                kept.append({"array": kind, "overlap": overlap, "queries": n, "seconds": seconds, "did": did})
    if given.results:
        given.results.write_text(json.dumps({"machine": machine(), "figures": kept}, indent=1) + "\n")


if __name__ == "__main__":
    main()
