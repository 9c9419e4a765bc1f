"""What every peer's script shares: a job comes in as JSON, the times go out as JSON.

A job is ``{"source": file, "group": group, "store": directory, "runs": n, "threads": n, "queries":
[...]}``; a query is ``{"name", "terms": [[array, operator, float32], ...], "fetch": [array, ...]}``. Out
comes one record for each variant of the peer: seconds and bytes of loading, and for each query the hits,
a digest of the values, and the seconds of all runs.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np

# Seconds from which a question is asked fewer times.
SLOW, SLOW_RUNS = 1.0, 3
Columns = Mapping[str, np.ndarray]
NAMES = ("Energy", "x", "y", "z", "Ux", "Uy", "Uz")
# Odd numbers without a pattern: the digest of a row depends on which value is in which column.
MIXERS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)


@dataclass(frozen=True)
class Query:
    """A conjunction of bounds that are exact in float32, and what is fetched of its rows."""

    name: str
    terms: tuple[tuple[str, str, float], ...]
    fetch: tuple[str, ...]

    def sql(self, constant: Callable[[float], str] = repr) -> str:
        """Return the condition as SQL."""
        return " AND ".join(f'"{array}" {op} {constant(value)}' for array, op, value in self.terms)


@dataclass(frozen=True)
class Job:
    """What is asked of a peer."""

    source: Path
    group: str
    store: Path
    runs: int
    threads: int
    queries: tuple[Query, ...]

    def columns(self) -> dict[str, np.ndarray]:
        """Read all arrays of the source."""
        with h5py.File(self.source) as f:
            return {name: f[self.group][name][:] for name in NAMES}


@dataclass
class Variant:
    """One way to use a peer: loads, then answers; made ready by `load`, which returns what it cost."""

    name: str
    load: Callable[[], dict[str, float]]
    count: Callable[[Query], int]
    fetch: Callable[[Query], Columns]
    close: Callable[[], None] = field(default=lambda: None)


def digest(columns: Columns, names: Iterable[str]) -> str:
    """Return a number that depends on the rows, bit for bit, and not on their order."""
    mixed: Any = np.uint64(0)
    for name, mixer in zip(names, MIXERS, strict=False):
        bits = np.ascontiguousarray(columns[name], "f4").view("u4").astype("u8")
        mixed = mixed ^ (bits + np.uint64(1)) * np.uint64(mixer)
    mixed = np.atleast_1d(mixed)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(MIXERS[0])
    return f"{len(columns[next(iter(names))])}:{int(np.bitwise_xor.reduce(mixed, initial=0)):016x}"


def seconds(work: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def size(path: Path) -> int:
    """Return the bytes of a file, or of all files in a directory."""
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return sum(p.stat().st_size for p in files)


def answer(variant: Variant, query: Query, runs: int) -> dict[str, Any]:
    """Ask one query: once for the answer, then for the times."""
    start = time.perf_counter()
    values = variant.fetch(query)
    spent = time.perf_counter() - start
    record: dict[str, Any] = {
        "hits": variant.count(query),
        "digest": digest(values, query.fetch),
        "count": [],
        "fetch": [],
    }
    del values
    for _ in range(runs if spent < SLOW else min(runs, SLOW_RUNS)):
        record["count"].append(seconds(lambda: variant.count(query)))
        record["fetch"].append(seconds(lambda: variant.fetch(query)))
    return record


def serve(variants: Callable[[Job], Iterable[Variant]], versions: Mapping[str, str]) -> None:
    """Do the job on standard input."""
    raw = json.load(sys.stdin)
    queries = tuple(
        Query(q["name"], tuple((a, o, v) for a, o, v in q["terms"]), tuple(q["fetch"]))
        for q in raw["queries"]
    )
    source, store = Path(raw["source"]), Path(raw["store"])
    job = Job(source, raw["group"], store, raw["runs"], raw["threads"], queries)
    store.mkdir(parents=True, exist_ok=True)
    results = []
    for variant in variants(job):
        print(f"    {variant.name} ...", file=sys.stderr, flush=True)
        load = variant.load()
        asked = {query.name: answer(variant, query, job.runs) for query in queries}
        variant.close()
        results.append({"variant": variant.name, "load": load, "queries": asked})
    json.dump({"versions": dict(versions), "variants": results}, sys.stdout)
