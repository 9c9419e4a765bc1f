"""Figure 3 of PDC: 15 queries of one object in sequence, by regions of several sizes, on two workers.

A series begins with workers that have kept nothing, so that what a query finds in memory was left by those
before it, as in the paper. After each query the values at its hits are fetched.
"""

import os
import shutil
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import conventional
import h5py
import numpy as np
import sieva
from data import CHUNK, GROUP
from pdc_cluster import Cluster, Result, Values, cooled, hold, mask, settled, take, timed
from queries import AXES, Query

# Regions in MiB; the first is what an index has by default.
SIZES = (0.25, 1, 2, 4, 8, 16, 32)
# Ways that look at regions, and those to which their size is nothing. A way that is forced is gone each time:
# what was found before is used by the choice alone.
BY_REGIONS = ("zonemap", "bitmap")
CHOICE = "auto"
WAYS = ("scan", "zonemap", "bitmap", "sorted", CHOICE)
H5PY = "h5py"
# Energies of the deflated copy: as many as sessions of two workers keep.
DEFLATED = 20_000_000


@dataclass(frozen=True)
class Answer:
    """What numpy found.

    Attributes
    ----------
    hits
        Number of positions.
    positions, values
        Checksums of the positions, and of the values of each fetched array.
    """

    hits: int
    positions: int
    values: dict[str, int]


def answer(query: Query, columns: Values) -> Answer:
    """Return what numpy finds in arrays that were read."""
    hits = conventional.rows(query, columns)
    return Answer(len(hits), checksum(hits), {name: checksum(columns[name][hits]) for name in query.fetch})


def checksum(values: np.ndarray) -> int:
    """Return a checksum of values in order; of positions as 64 bits."""
    if values.dtype.kind in "iu":
        values = values.astype("u8", copy=False)
    return zlib.crc32(np.ascontiguousarray(values).view("u1"))


def compared(query: Query, way: str, found: tuple[np.ndarray, Values], want: Answer) -> None:
    """Refuse to go on with another answer than numpy's."""
    positions, values = found
    got = Answer(len(positions), checksum(positions), {name: checksum(v) for name, v in values.items()})
    if got != want:
        raise SystemExit(
            f"{query.name} ({query.text}) by {way}: {got} is not numpy's answer, {want}; "
            "nothing is measured where answers differ"
        )


def sorted_store(path: Path, store: Path) -> float:
    """Make the store that all others begin with: the replica by Energy, which has no regions."""
    shutil.rmtree(store, ignore_errors=True)
    arrays = [f"{GROUP}/{name}" for name in AXES]
    with sieva.open(path, store=store) as source:
        took, _ = timed(lambda: source.build_index(f"{GROUP}/Energy", kinds=["sorted"], columns=arrays))
    return took


def indexed(path: Path, base: Path, store: Path, size: float, arrays: tuple[str, ...]) -> Result:
    """Make a store of the replica, and of zone maps and bitmaps with regions of a size in MiB."""
    shutil.rmtree(store, ignore_errors=True)
    shutil.copytree(base, store, copy_function=_taken_over)
    names = [f"{GROUP}/{name}" for name in arrays]
    region = None if size == SIZES[0] else int(size * 2**20)
    with sieva.open(path, store=store) as source:
        took, _ = timed(lambda: source.build_index(*names, region_size=region))
        found = [array for array in source.index_status().arrays if array.path in names]
    return {
        "mib": size,
        "seconds": took,
        "region": found[0].region_bytes,
        "regions": found[0].regions,
        "bytes": sum(array.zonemap_bytes + array.bitmap_bytes for array in found),
    }


def _taken_over(source: str, target: str) -> None:
    """Link what is large and never written again; copy what may be replaced."""
    if Path(source).stat().st_size > 2**20:
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def series(cluster: Cluster, source: sieva.Source, queries: list[Query], way: str) -> list[Result]:
    """Ask queries one after the other, of workers that have kept nothing."""
    cluster.forget()
    rows = []
    before = cluster.bytes_read()
    for query in queries:
        asked = source.query(query.text, access=way)
        select, selection = timed(asked.selection)
        between = cluster.bytes_read()
        read, values = timed(lambda: {name: asked.read(name) for name in query.fetch})  # noqa: B023 -- called here
        after = cluster.bytes_read()
        row = {"select": select, "read": read, "bytes": between - before, "bytes_get": after - between}
        rows.append({**row, "found": (selection.positions(), values)})
        before = after
    return rows


def once_more(cluster: Cluster, source: sieva.Source, queries: list[Query]) -> list[Result]:
    """Ask the queries of a series again, of workers that have kept what they found."""
    rows = []
    before = cluster.bytes_read()
    for query in queries:
        asked = source.query(query.text, access=CHOICE)
        select, _ = timed(asked.selection)
        between = cluster.bytes_read()
        read, _ = timed(lambda: {name: asked.read(name) for name in query.fetch})  # noqa: B023 -- called here
        after = cluster.bytes_read()
        row = {"again": select, "again_read": read, "again_bytes": between - before}
        rows.append({**row, "again_bytes_get": after - between})
        before = after
    return rows


def series_h5py(cluster: Cluster, path: Path, queries: list[Query], n: int) -> list[Result]:
    """Read once, as much on each worker, and mask for each query; the reading is shared by all queries."""
    cluster.forget()
    arrays = list(dict.fromkeys(name for query in queries for name in query.arrays))
    reading, _ = timed(lambda: cluster.each(hold, str(path), arrays))
    rows = []
    for query in queries:
        select, hits = timed(lambda query=query: np.concatenate(cluster.each(mask, n, query.exact)))
        read, values = timed(
            lambda query=query, hits=hits: {
                name: np.concatenate(cluster.each(take, n, name, hits)) for name in query.fetch
            }
        )
        row = {"select": select + reading / len(queries), "alone": select + reading, "read": read}
        rows.append({**row, "found": (hits, values)})
    return rows


def repeated(
    make: Callable[[], list[Result]], cool: Callable[[], float] | None, options: Result
) -> list[Result]:
    """Run a series several times; return lists of what was measured, for each query.

    Parameters
    ----------
    make
        The series.
    cool
        What is done before each run where pages are to be cold; it returns the share that stayed.
    options
        ``runs`` and ``cold_runs``, and ``budget``: seconds after which there are no more than two.
    """
    kept: list[Result] = []
    runs = options["cold_runs"] if cool else options["runs"]
    begin = time.monotonic()
    for run in range(runs):
        if run >= 2 and time.monotonic() - begin > options["budget"]:
            break
        stayed = cool() if cool else 0.0
        for at, row in enumerate(make()):
            if len(kept) <= at:
                kept.append({"stayed": 0.0, **{name: [] for name in row}})
            kept[at]["stayed"] = max(kept[at]["stayed"], stayed)
            for name, value in row.items():
                kept[at][name].append(value)
    return kept


def by_ways(
    cluster: Cluster, path: Path, store: Path, queries: list[Query], columns: Values, *, options: Result
) -> list[Result]:
    """Measure queries in sequence along all ways of ``options["ways"]``, warm and cold.

    Parameters
    ----------
    cluster
        The workers.
    path, store
        The particles, and the indexes that there are.
    queries
        Asked in this order.
    columns
        The arrays that they name, for numpy's answers.
    options
        ``ways``; ``runs``, ``cold_runs`` and ``budget`` as of `repeated`; ``say``, a function that is told
        how far it is.
    """
    wants = [answer(query, columns) for query in queries]
    source = cluster.open(path, store)
    found = []
    for way in options["ways"]:

        def make(way: str = way) -> list[Result]:
            if way == H5PY:
                rows = series_h5py(cluster, path, queries, len(columns["Energy"]))
            else:
                rows = series(cluster, source, queries, way)
            for query, row, want in zip(queries, rows, wants, strict=True):
                compared(query, way, row.pop("found"), want)
            return rows

        # Modules are loaded, and files opened: the first series is not counted.
        make()
        again = once_more(cluster, source, queries) if way == CHOICE else []
        for state in ("warm", "cold"):
            cool = None if state == "warm" else lambda: cooled(path, store)
            rows = repeated(make, cool, options)
            if state == "warm":
                rows = [row | more for row, more in zip(rows, again or [{}] * len(rows), strict=True)]
            found += [
                {"way": way, "state": state, "query": query.name, "hits": want.hits, **row}
                for query, want, row in zip(queries, wants, rows, strict=True)
            ]
        options["say"](f"{store.name}, {way}")
    return found


def measure(
    cluster: Cluster, path: Path, queries: list[Query], columns: Values, place: Path, *, options: Result
) -> Result:
    """Measure all sizes of regions; parameters as of `by_ways`, ``options`` with ``sizes`` besides.

    ``place`` is the directory of the stores, of which ``base`` is there.
    """
    built, found = [], []
    for size in options["sizes"]:
        store = place / f"regions of {size:g} MiB"
        built.append(indexed(path, place / "base", store, size, ("Energy",)))
        ways = (*WAYS, H5PY) if size == options["sizes"][0] else BY_REGIONS
        rows = by_ways(cluster, path, store, queries, columns, options={**options, "ways": ways})
        found += [{"mib": size, **row} for row in rows]
    kept = deflated(cluster, place.parent / "deflated.h5", queries, columns)
    return {"built": built, "rows": found, "deflated": kept, "particles": len(columns["Energy"])}


def deflated(cluster: Cluster, path: Path, queries: list[Query], columns: Values) -> list[Result]:
    """Ask a series of deflated energies, without an index, and ask again: sessions keep decoded chunks."""
    part = columns["Energy"][:DEFLATED]
    if not path.exists():
        aside = path.with_suffix(".partial")
        with h5py.File(aside, "w") as file:
            options = {"chunks": (min(CHUNK, len(part)),), "compression": "gzip", "compression_opts": 1}
            file.create_dataset(f"{GROUP}/Energy", data=part, shuffle=True, **options)
        aside.rename(path)
    settled([path])
    source = cluster.open(path, path.with_suffix(".stores"))
    rows = series(cluster, source, queries, CHOICE)
    for query, row in zip(queries, rows, strict=True):
        compared(query, "deflated", row.pop("found"), answer(query, {"Energy": part}))
    more = once_more(cluster, source, queries)
    return [{"query": q.name, **row, **again} for q, row, again in zip(queries, rows, more, strict=True)]
