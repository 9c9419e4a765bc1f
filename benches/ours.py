"""What is asked of sieva: building, and the same query along each path of access."""

import inspect
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import sieva
from conventional import locations as numpy_locations
from conventional import values as numpy_values
from queries import Query

WAYS = ("auto", "sorted", "bitmap", "zonemap", "scan")
# A scan leaves statistics behind unless this says `off`.
SWITCH = "SIEVA_LEARN"


def has_indexes() -> bool:
    """Say whether this build of sieva makes indexes."""
    return hasattr(sieva.Source, "build_index")


def has_fetch() -> bool:
    """Say whether the way of fetching can be forced."""
    return "fetch" in inspect.signature(sieva.Source.query).parameters


def ways() -> tuple[str, ...]:
    """Return the paths of access that there are."""
    return WAYS if has_indexes() else ("auto", "scan")


def linked(path: Path, name: str) -> Path:
    """Return the same file under a directory of its own, so that its indexes are nobody else's."""
    link = path.parent / name / path.name
    link.parent.mkdir(exist_ok=True)
    if not link.exists():
        os.link(path, link)
    return link


def store(path: Path) -> Path:
    """Return where the indexes of a file are."""
    return path.with_name(f"{path.name}.sieva")


def store_files(path: Path) -> list[Path]:
    """Return the files of the indexes of a file."""
    return [p for p in store(path).rglob("*") if p.is_file()]


def store_bytes(path: Path) -> int:
    """Return the bytes of the indexes of a file."""
    return sum(p.stat().st_size for p in store_files(path))


def drop(path: Path) -> None:
    """Remove the indexes of a file."""
    shutil.rmtree(store(path), ignore_errors=True)


def build(path: Path, arrays: Iterable[str], kinds: list[str], jobs: int = 2) -> float:
    """Build what is missing of some kinds for some arrays; return the seconds."""
    start = time.perf_counter()
    source: Any = sieva.open(path)
    for array in arrays:
        source.build_index(array, kinds=kinds, jobs=jobs)
    return time.perf_counter() - start


def indexed(path: Path, arrays: tuple[str, ...]) -> Path:
    """Return the file with zone maps and bitmaps of some arrays, and sorted by the first one."""
    link = linked(path, "indexed")
    if has_indexes():
        print(f"indexing {path.name} ...", file=sys.stderr)
        build(link, arrays, ["zonemap", "bitmap"])
        build(link, arrays[:1], ["sorted"])
    return link


_open: dict[Path, sieva.Source] = {}


def ask(path: Path, query: Query, way: str) -> sieva.Query:
    """Make the query of a file that stays open, as in a session or in PDC's servers."""
    if path not in _open:
        _open[path] = sieva.open(path)
    return _open[path].query(query.text, select=list(query.fetch), access=way)


def forget() -> None:
    """Close all files: the next query opens its own anew."""
    for source in _open.values():
        source.close()
    _open.clear()


def locations(path: Path, query: Query, way: str) -> np.ndarray:
    """Return the hits as positions."""
    return ask(path, query, way).selection().coords()[:, 0]


def values(path: Path, query: Query, way: str) -> dict[str, np.ndarray]:
    """Return the values at the hits."""
    return columns(ask(path, query, way), query)


def columns(made: sieva.Query, query: Query) -> dict[str, np.ndarray]:
    """Return the values of a query that is made."""
    table = made.to_arrow()
    return {name: table.column(name).to_numpy() for name in query.fetch}


def check(path: Path, query: Query) -> int:
    """Compare the answers of all paths with numpy's, bit for bit; return the number of hits."""
    wanted, expected = numpy_locations(path, query), numpy_values(path, query)
    for way in ways():
        found = locations(path, query, way)
        if not np.array_equal(found, wanted):
            raise SystemExit(f"{query.name}, {way}: {len(found)} positions, numpy has {len(wanted)} others")
        if (hits := ask(path, query, way).count()) != len(wanted):
            raise SystemExit(f"{query.name}, {way}: counted {hits}, numpy {len(wanted)}")
        for name, got in values(path, query, way).items():
            if not np.array_equal(got.view("u4"), expected[name].view("u4")):
                raise SystemExit(f"{query.name}, {way}: the values of {name} differ from numpy's")
    return len(wanted)


@contextmanager
def statistics(switch: str) -> Iterator[None]:
    """Set whether scans leave statistics behind: ``on`` or ``off``."""
    before = os.environ.get(SWITCH)
    os.environ[SWITCH] = "0" if switch == "off" else "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SWITCH]
        else:
            os.environ[SWITCH] = before
