"""The queries of SDS and PDC on 100 million particles: every path of access against the conventional scan."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import conventional
import numpy as np
import ours
from cold import Cold
from figure import Figure, bounded, faster
from queries import AXES, Query, pdc_multi, pdc_single, sds
from timing import Run, Times, interleave, timed, warm

ARRAYS = ("Energy", *AXES)
COLD_RUNS = 3

# CLUSTER 2014, section IV.B: against a full scan on 1024 cores; "auto" is the best that SDS had.
SDS_PAPER = {
    ("SDS Q1", "auto"): "55x (sorted)",
    ("SDS Q1", "sorted"): "55x",
    ("SDS Q1", "bitmap"): "7x to 10x",
    ("SDS Q2", "auto"): "22x (bitmap)",
    ("SDS Q2", "sorted"): "the slowest of its indexes",
    ("SDS Q2", "bitmap"): "22x",
    ("SDS Q3", "auto"): "62x (sorted)",
    ("SDS Q3", "sorted"): "62x",
    ("SDS Q3", "bitmap"): "12x and 14x",
}
SDS_TARGETS = {("SDS Q1", "auto"): 55.0, ("SDS Q2", "auto"): 22.0, ("SDS Q3", "auto"): 62.0}
SDS_BITMAP = 10.0

# IPDPS 2020, section VI.A: PDC-H, PDC-HI and PDC-SH against its own full scan from memory (PDC-F).
PDC_PAPER = {
    "zonemap": "2x to 3x (histogram)",
    "bitmap": "4x to 14x",
    "sorted": "4x at 1.3 %, 1000x at 0.0004 %",
}
PDC_TARGETS = {"zonemap": 3.0, "bitmap": 14.0, "sorted": 10.0}
PDC_RAREST = 1000.0


def _files(path: Path) -> Callable[[], list[Path]]:
    def files() -> list[Path]:
        # What is in memory goes as well.
        ours.forget()
        return [path, *ours.store_files(path)]

    return files


def _things(path: Path, query: Query, ask: str) -> dict[str, Run]:
    """Return runs of the conventional way and of all paths, each asked for locations or values."""
    rival, mine = getattr(conventional, ask), getattr(ours, ask)
    things = {conventional.NAME: timed(lambda: rival(path, query))}
    for way in ours.ways():
        things[f"sieva, {way}"] = timed(partial(mine, path, query, way))
    return things


def _measure(path: Path, query: Query, ask: str, runs: int, cold: Cold | None = None) -> dict[str, Times]:
    things = _things(path, query, ask)
    if cold is None:
        return interleave(things, runs)
    return interleave({name: cold.run(run) for name, run in things.items()}, runs, warm_up=False)


def sds_queries(path: Path, runs: int) -> Iterator[Figure]:
    """Measure the queries of SDS, with x, y, z fetched, warm and cold."""
    path = ours.indexed(path, ARRAYS)
    warm(path)
    for query in sds():
        hits = ours.check(path, query)
        cold = Cold(_files(path))
        for state in ("warm", "cold"):
            dropped = cold if state == "cold" else None
            times = _measure(path, query, "values", COLD_RUNS if dropped else runs, dropped)
            for way in ours.ways():
                target = SDS_BITMAP if way == "bitmap" else SDS_TARGETS.get((query.name, way))
                name = f"{query.name}, {way}, {state}"
                figure = faster(name, target, f"sieva, {way}", conventional.NAME, times)
                figure.paper = SDS_PAPER.get((query.name, way), "")
                figure.notes = {"hits": hits, "condition": query.text}
                if dropped:
                    figure.notes["cold"] = str(dropped)
                yield figure
        warm(path)


def pdc_queries(path: Path, runs: int) -> Iterator[Figure]:
    """Measure the 15 and the 6 queries of PDC: hits with locations, then the values as well."""
    path = ours.indexed(path, ARRAYS)
    warm(path)
    single, multi = pdc_single(), pdc_multi()
    for queries in (single, multi):
        arrays = tuple(dict.fromkeys(array for array, _, _ in queries[0].terms))
        columns = conventional.read(path, arrays)
        reading = interleave({"read": timed(partial(conventional.read, path, arrays))}, runs)["read"]
        for query in queries:
            hits = ours.check(path, query)
            scan = timed(partial(conventional.rows, query, columns))
            amortised = scan() + reading.median / len(queries)
            for ask, asked in (("locations", "hits and locations"), ("values", "values")):
                times = _measure(path, query, ask, runs)
                shared = amortised if ask == "locations" else None
                yield from _pdc(query, asked, times, hits, amortised=shared, rarest=query is single[-1])
        del columns
    yield from _pdc_cold(path, [single[0], single[-1], multi[0], multi[-1]])


def _pdc(
    query: Query, asked: str, times: dict[str, Times], hits: int, *, amortised: float | None, rarest: bool
) -> Iterator[Figure]:
    for way in ours.ways():
        # The promise is of what the paper calls query time.
        target = PDC_TARGETS.get(way) if amortised else None
        if rarest and target and way == "sorted":
            target = PDC_RAREST
        figure = faster(f"{query.name}, {asked}, {way}", target, f"sieva, {way}", conventional.NAME, times)
        figure.paper = PDC_PAPER.get(way, "") if amortised else ""
        figure.notes = {"hits": hits, "condition": query.text}
        if amortised:
            figure.notes["full scan with the reading shared by all queries, ms"] = round(1e3 * amortised, 2)
        yield figure


def _pdc_cold(path: Path, queries: list[Query]) -> Iterator[Figure]:
    """Measure the first and the last query of each kind with the page cache dropped."""
    for query in queries:
        cold = Cold(_files(path))
        for ask, asked in (("locations", "hits and locations"), ("values", "values")):
            times = _measure(path, query, ask, COLD_RUNS, cold)
            for way in ours.ways():
                name = f"{query.name}, {asked}, {way}, cold"
                figure = faster(name, None, f"sieva, {way}", conventional.NAME, times)
                figure.notes = {"cold": str(cold)}
                yield figure
    warm(path)


def needles(path: Path, runs: int) -> Iterator[Figure]:
    """Find 100 particles among all: the most energetic ones, and 100 in the middle of the tail."""
    path = ours.indexed(path, ARRAYS)
    warm(path)
    for name, query in _needles(path):
        hits = ours.check(path, query)
        things = {f"sieva, {way}": timed(partial(_opened_anew, path, query, way)) for way in ours.ways()}
        times = interleave(things, max(runs, 3) * 3)
        best = times["sieva, auto"]
        figure = bounded(f"{hits} hits, {name}, opening included", "< 10", best.median * 1e3, "ms")
        figure.times, figure.notes = times, {"condition": query.text}
        yield figure


def _opened_anew(path: Path, query: Query, way: str) -> dict[str, np.ndarray]:
    ours.forget()
    return ours.values(path, query, way)


def _needles(path: Path) -> list[tuple[str, Query]]:
    energy = conventional.read(path, ("Energy",))["Energy"]
    count = min(100, len(energy) // 100)
    energy.sort()
    middle = int(energy.searchsorted(1.5))
    # Bounds are between two values, so that 9 digits of float32 say them exactly enough.
    top = (float(energy[-count - 1]) + float(energy[-count])) / 2
    low = (float(energy[middle - 1]) + float(energy[middle])) / 2
    high = (float(energy[middle + count - 1]) + float(energy[middle + count])) / 2
    return [
        ("the most energetic", Query("needles at the top", (("Energy", ">", f"{top:.12g}"),), AXES)),
        (
            "in the tail",
            Query(
                "needles in the tail", (("Energy", ">", f"{low:.12g}"), ("Energy", "<", f"{high:.12g}")), AXES
            ),
        ),
    ]
