"""The stock system, as the paper compares: each request puts a whole variable, and who asked fetches it.

By the same client as ours, with as many requests at a time; the variable's bytes are in the producer's memory
before.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from scibox_ours import AT_ONCE
from scibox_workload import Columns
from sieva._native import Objects

# Bytes of a request for a part of a long object.
PIECE = 8 << 20


@dataclass(frozen=True)
class Served:
    """What the stock system took.

    Attributes
    ----------
    done
        Requests that were served before the time was over.
    put, get
        Seconds for these.
    """

    done: int
    put: float
    get: float


def serve(place: str, columns: Columns, variables: Sequence[int], folder: Path, budget: float) -> Served:
    """Put and fetch a variable for each request, batch after batch, until all are served or the time is over.

    Parameters
    ----------
    place
        Where to.
    columns, variables
        The data, and which variable each request is of.
    folder
        Where consumers keep what they fetch.
    budget
        Seconds after which no batch begins.
    """
    objects, bodies = Objects(place), {v: columns[f"v{v}"].tobytes() for v in set(variables)}
    folder.mkdir(parents=True, exist_ok=True)
    done, put, get = 0, 0.0, 0.0
    # What is deleted between batches is not timed.
    batch = 2 * AT_ONCE
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while done < len(variables) and put + get < budget:
            some = range(done, min(done + batch, len(variables)))
            start = time.perf_counter()
            list(pool.map(lambda at: objects.put(f"stock/{at}", bodies[variables[at]]), some))
            middle = time.perf_counter()
            list(pool.map(lambda at: _fetch(objects, f"stock/{at}", folder / str(at)), some))
            put, get = put + middle - start, get + time.perf_counter() - middle
            for at in some:
                if (folder / str(at)).read_bytes() != bodies[variables[at]]:
                    raise SystemExit(f"the stock system gave other bytes for request {at}")
                (folder / str(at)).unlink()
            list(pool.map(lambda at: objects.delete(f"stock/{at}"), some))
            done = some.stop
    return Served(done, put, get)


def _fetch(objects: Objects, key: str, path: Path) -> None:
    data = objects.get(key)
    if data is None:
        raise SystemExit(f"{key} is not there")
    path.write_bytes(data)


class Putting:
    """The producer's side alone: a whole variable is put for each request.

    Parameters
    ----------
    place
        Where to.
    columns, variables
        The data, and which variable each request is of.
    """

    def __init__(self, place: str, columns: Columns, variables: Sequence[int]) -> None:
        self._objects, self._variables = Objects(place), variables
        self._bodies = {v: columns[f"v{v}"].tobytes() for v in set(variables)}

    def until(self, budget: float) -> int:
        """Put one after the other, as many at a time as a client may, and begin none after so many seconds.

        Returns
        -------
        int
            How many were put.
        """
        end = time.perf_counter() + budget

        def put(at: int) -> bool:
            if time.perf_counter() > end:
                return False
            self._objects.put(f"stock/{at}", self._bodies[self._variables[at]])
            return True

        with ThreadPoolExecutor(AT_ONCE) as pool:
            return sum(pool.map(put, range(len(self._variables))))


def fetch(objects: Objects, key: str, size: int, path: Path) -> None:
    """Fetch a long object piece by piece into a file."""
    with path.open("wb") as file:
        for at in range(0, size, PIECE):
            data = objects.get_range(key, at, min(PIECE, size - at))
            if data is None:
                raise SystemExit(f"{key} is not there")
            file.write(data)


def empty(place: str) -> None:
    """Delete all objects of a place."""
    objects = Objects(place)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(objects.delete, [key for key, _ in objects.list()]))
