"""Dask workers of this machine, of one thread each, and what they do: ask sieva, or read and mask by h5py.

Imported by the workers, too: what `Cluster.each` is given runs there.
"""

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import distributed
import h5py
import numpy as np
import sieva
import sieva.dask
from cold import evict
from conventional import _COMPARE
from data import GROUP
from sieva.engines.dask import worker_of

Values = dict[str, np.ndarray]
Terms = list[tuple[str, str, float]]
Result = dict[str, Any]
# What workers of this process hold by h5py: their share of arrays.
_held: Values = {}


class Cluster:
    """So many workers of one thread, which begin with nothing.

    Parameters
    ----------
    n
        Their number.
    """

    def __init__(self, n: int) -> None:
        # Scans would leave zone maps for the ways that come after.
        os.environ["SIEVA_LEARN"] = "0"
        self.n = n
        self._cluster = distributed.LocalCluster(
            n_workers=n,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            silence_logs=50,
        )
        self.client = distributed.Client(self._cluster, set_as_default=False)
        self.addresses = sorted(self.client.nthreads())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()
        self._cluster.close()

    def open(self, path: Path, store: Path) -> sieva.Source:
        """Open a file whose queries the workers answer."""
        return sieva.dask.open(path, self.client, store=store, learn=False)

    def forget(self) -> None:
        """Let workers drop what they keep from query to query: selections, chunks, arrays of h5py."""
        self.client.run(forget)

    def bytes_read(self) -> int:
        """Return how many bytes of files, not of indexes, all workers together have read so far."""
        return sum(of_worker.get("bytes_read", 0) for of_worker in sieva.dask.counters(self.client).values())

    def each(self, work: Callable[..., Any], *given: object) -> list[Any]:
        """Return what ``work(number, of how many, *given)`` gave on each worker, in order."""
        futures = [
            self.client.submit(work, i, self.n, *given, workers=[address], pure=False)
            for i, address in enumerate(self.addresses)
        ]
        return self.client.gather(futures)


def forget(dask_worker: distributed.Worker) -> None:
    """Drop what a worker keeps."""
    worker_of(dask_worker).session.forget()
    _held.clear()


def share(number: int, of: int, rows: int) -> tuple[int, int]:
    """Return the rows of a worker, of all rows."""
    return rows * number // of, rows * (number + 1) // of


def hold(number: int, of: int, path: str, arrays: list[str]) -> None:
    """Read this worker's share of arrays by h5py, and keep it, as far as it is not there."""
    with h5py.File(path) as f:
        for name in arrays:
            if name not in _held:
                low, high = share(number, of, f[GROUP][name].shape[0])
                _held[name] = f[GROUP][name][low:high]


def mask(number: int, of: int, rows: int, terms: Terms) -> np.ndarray:
    """Return the positions in this worker's share that satisfy all terms, of arrays that it holds."""
    low, _ = share(number, of, rows)
    found: np.ndarray | None = None
    for array, name, value in terms:
        part = _COMPARE[name](_held[array], np.float32(value))
        found = part if found is None else np.logical_and(found, part, out=found)
    assert found is not None  # noqa: S101 -- a query has terms
    return np.flatnonzero(found) + low


def take(number: int, of: int, rows: int, array: str, hits: np.ndarray) -> np.ndarray:
    """Return the values at those of the positions that lie in this worker's share."""
    low, high = share(number, of, rows)
    first, last = np.searchsorted(hits, [low, high])
    return _held[array][hits[first:last] - low]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that something took, and what it gave."""
    start = time.perf_counter()
    done = work()
    return time.perf_counter() - start, done


def settled(paths: Iterable[Path]) -> None:
    """Let files look old: sessions do not keep what is of files that were changed in the last two seconds."""
    for path in paths:
        then = time.time() - 60
        if path.stat().st_mtime > then:
            os.utime(path, (then, then))


def cooled(path: Path, store: Path) -> float:
    """Drop a file and its stores from the page cache; return the share of pages that stayed."""
    return evict([path, *(p for p in store.rglob("*") if p.is_file())])
