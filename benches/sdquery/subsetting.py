"""Figures 9 and 11 of SDQuery: ways of fetching, and evaluation and indexing by more threads. No network."""

import shutil
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import sieva
from cells import Cell, Run, fill
from draw import NAMES, Drawn
from oceans import Ocean

HERE = Path(__file__).resolve().parent
POINTS = "direct, points"
# The paper's names, and what sieva calls them.
WAYS = {"direct, segments": "direct", "memory filter": "block", "hybrid": "auto"}
THREADS = (1, 2)
# Runs of each number of threads that are counted.
BUILDS = 3
# As many points are read one by one as tell the time of one; the rest is reckoned.
SINGLE, SINGLE_QUERIES = 500_000, 2
KINDS = ["zonemap", "bitmap"]


def condition(query: Drawn) -> str:
    """Return what follows WHERE."""
    return query.sql.split(" WHERE ", 1)[1]


def store(path: Path) -> Path:
    """Return where the indexes of a file are."""
    return path.with_name(f"{path.name}.sieva")


def build_indexes(ocean: Ocean, jobs: int) -> float:
    """Build the indexes of the array with conditions, and of the coordinates, anew; return the seconds."""
    shutil.rmtree(store(ocean.path), ignore_errors=True)
    source: Any = sieva.open(ocean.path)
    start = time.perf_counter()
    source.build_index(ocean.arrays[0], kinds=KINDS, jobs=jobs)
    return time.perf_counter() - start


def index_bytes(ocean: Ocean) -> int:
    """Return the size of a file's indexes."""
    return sum(path.stat().st_size for path in store(ocean.path).rglob("*") if path.is_file())


def _fetch(ocean: Ocean, queries: list[Drawn], way: str, at: int) -> Run:
    """Evaluate the condition, then time the fetch alone, as section 5.2 does, and compare the values."""
    name, query = ocean.arrays[0], queries[at]
    asked = sieva.open(ocean.path).query(condition(query), select=[name], fetch=WAYS[way])
    hits = len(asked.selection())
    start = time.perf_counter()
    values = asked.read(name)
    seconds = time.perf_counter() - start
    found = np.ascontiguousarray(values)
    found[np.isnan(found)] = np.nan
    if hits != query.hits or zlib.crc32(found) != query.checksums[name]:
        raise SystemExit(f"{way}: {hits} hits, numpy {query.hits}, or other values: {query.sql}")
    return Run(at, 4 * hits, seconds, 4 * hits)


@dataclass
class Places:
    """Where the bytes of each time of the first array are in the file.

    Attributes
    ----------
    of_time
        Returns the offset of each element of a time, shaped (depth, latitude, longitude).
    dtype
        Of a value as it is stored.
    """

    of_time: Callable[[int], np.ndarray]
    dtype: str

    @classmethod
    def of(cls, ocean: Ocean) -> "Places | None":
        """Find them; None where values are not stored plainly."""
        space = ocean.shape[1:]
        inside = 4 * np.arange(int(np.prod(space)), dtype=np.int64).reshape(space)
        if ocean.name == "POP":
            begin, step = _record(ocean)
            return cls(lambda time: begin + time * step + inside, ">f4") if step else None
        with h5py.File(ocean.path) as f:
            array = f[ocean.arrays[0]]
            chunks = array.id.get_num_chunks()
            starts = {c.chunk_offset: c.byte_offset for c in map(array.id.get_chunk_info, range(chunks))}
            depth = array.chunks[1]
        plane = 4 * space[1] * space[2]

        def of_time(time: int) -> np.ndarray:
            places = np.empty(space, np.int64)
            for low in range(0, space[0], depth):
                places[low : low + depth] = starts[time, low, 0, 0] + inside[low : low + depth] - low * plane
            return places

        return cls(of_time, "<f4")

    def check(self, path: Path, places: np.ndarray, values: np.ndarray) -> None:
        """Refuse places that hold other values than those."""
        with path.open("rb") as f:
            for place, value in zip(places[:100], values[:100], strict=True):
                f.seek(place)
                stored = np.frombuffer(f.read(4), self.dtype)[0]
                if not np.isnan(value) and stored != value:
                    raise SystemExit(f"{path.name}: {stored} at {place}, not {value}")


def _record(ocean: Ocean) -> tuple[int, int]:
    """Return the offset of the first array of netCDF-3 and the stride of its times; 0 for another format."""
    with ocean.path.open("rb") as f:
        if f.read(4) != b"CDF\x02":
            return 0, 0
    # The record of a time is its date, 8 bytes, then the arrays; records end the file.
    each = 4 * int(np.prod(ocean.shape[1:]))
    step = each * len(ocean.arrays) + 8
    begin = ocean.path.stat().st_size - step * ocean.shape[0] + 8
    return begin, step


def _by_points(program: Path, ocean: Ocean, places: Places, at: int, query: Drawn) -> Run:
    """Read values one by one; the time of all is reckoned from that of some hundred thousand."""
    found: list[np.ndarray] = []
    count = 0
    for number, step in enumerate(ocean.steps()):
        mask = query.mask(ocean.axes, step[ocean.arrays[0]])
        found.append(places.of_time(number)[mask])
        if len(found) == 1:
            places.check(ocean.path, found[0], step[ocean.arrays[0]][mask])
        count += found[-1].size
        if count >= SINGLE:
            break
    chosen = np.concatenate(found)[:SINGLE]
    scratch = program.with_name("places")
    chosen.tofile(scratch)
    command = [str(program), str(ocean.path), str(scratch)]
    told = subprocess.run(command, check=True, capture_output=True, text=True)
    scratch.unlink()
    seconds = float(told.stdout) * query.hits / len(chosen)
    return Run(at, 4 * query.hits, seconds, 4 * len(chosen))


def fetching(ocean: Ocean, queries: list[Drawn], directory: Path, budget: float) -> Iterator[Cell]:
    """Yield figure 9: by each way the fetch of each class, on a warm page cache."""
    program = directory / "points"
    subprocess.run(["cc", "-O2", "-Wall", "-o", str(program), str(HERE / "points.c")], check=True)
    places = Places.of(ocean)
    for number, name in enumerate(NAMES):
        of_class = [query for query in queries if query.number == number]
        cells = [Cell(ocean.name, way, name) for way in WAYS]
        ways = [partial(_fetch, ocean, of_class, way) for way in WAYS]
        fill(cells, ways, len(of_class), budget)
        yield from cells
        if places:
            cell = Cell(ocean.name, POINTS, name)
            cell.runs = [
                _by_points(program, ocean, places, at, query)
                for at, query in enumerate(of_class[:SINGLE_QUERIES])
            ]
            yield cell


def evaluating(ocean: Ocean, queries: list[Drawn], budget: float) -> Iterator[Cell]:
    """Yield figure 11: evaluation of the conditions by one thread and by two."""
    for number, name in enumerate(NAMES):
        of_class = [query for query in queries if query.number == number]
        cells = [Cell(ocean.name, _threads(threads), name) for threads in THREADS]
        ways = [partial(_evaluate, ocean, of_class, threads) for threads in THREADS]
        fill(cells, ways, len(of_class), budget)
        yield from cells


def _evaluate(ocean: Ocean, queries: list[Drawn], threads: int, at: int) -> Run:
    query = queries[at]
    asked = sieva.open(ocean.path).query(condition(query), select=list(ocean.arrays), threads=threads)
    start = time.perf_counter()
    hits = len(asked.selection())
    seconds = time.perf_counter() - start
    if hits != query.hits:
        raise SystemExit(f"{threads} threads: {hits} hits, numpy {query.hits}: {query.sql}")
    return Run(at, 1, seconds, 1)


def _threads(number: int) -> str:
    return f"{number} thread{'s' * (number > 1)}"


def building(ocean: Ocean) -> Iterator[Cell]:
    """Yield how long the indexes take by one thread and by two; what the last made stays.

    The first is not counted: it reads the file from the disk. Then the numbers of threads take turns.
    """
    cells = [Cell(ocean.name, _threads(threads), "building the indexes") for threads in THREADS]
    size = ocean.path.stat().st_size
    build_indexes(ocean, THREADS[-1])
    for _ in range(BUILDS):
        for cell, threads in zip(cells, THREADS, strict=True):
            cell.runs.append(Run(0, size, build_indexes(ocean, threads), size))
    yield from cells
