"""Indexes that many processes build together: a job is cut into tasks, whoever runs them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sieva import _index, _native
from sieva._index import BuildReport
from sieva._memory import memory_bytes


@dataclass(frozen=True)
class BuildPrice:
    """What building what is left takes; made by `IndexJob.price`."""

    regions: int
    """Regions that get zone maps or bitmaps."""
    rows: int
    """Their elements."""
    bytes_read: int
    """Their bytes, decoded, each of which is read once."""
    bytes_sorted: int
    """Bytes of the arrays that sorted replicas carry: they are read, set aside and written again."""
    memory: int
    """Bytes that each thread should be let have, for the largest region."""
    states: tuple[tuple[int, int, int], ...]
    """The states of the sources: a build of others is another one."""


class IndexJob:
    """Builds indexes in tasks that run in any process that can open the source; made by `Source.index_job`.

    Stage follows stage: the tasks of one may run at the same time. No task reads what another reads. Zone
    maps and bitmaps are in the store once their task has ended, so that a job that is given up loses only
    what was under way; a sorted replica is there once the job is finished.

    Examples
    --------
    >>> job = src.index_job("TEMP")  # doctest: +SKIP
    >>> while tasks := job.tasks(8):  # doctest: +SKIP
    ...     job.take([src.run_index_task(task) for task in tasks])
    >>> job.finish()  # doctest: +SKIP
    <sieva.BuildReport 48 regions built, 0 kept; 37.6 MiB read in 0.2 s>
    """

    def __init__(
        self,
        native: _native.Source,
        arrays: Sequence[str],
        *,
        kinds: Sequence[str],
        memory: int | str | None,
        precision: int,
        region_size: int | str | None,
        columns: Sequence[str] | None,
        lock_timeout: float,
    ) -> None:
        _index.check_options(arrays, kinds, precision, columns, lock_timeout)
        self._started = time.perf_counter()
        self._native = _native.IndexJob.of(
            native,
            list(arrays),
            list(kinds),
            memory=memory_bytes(memory),
            precision=precision,
            region_size=memory_bytes(region_size),
            columns=None if columns is None else list(columns),
            lock_timeout=timedelta(seconds=lock_timeout),
        )

    def price(self) -> BuildPrice:
        """Return what is left to be built takes; nothing is read for it."""
        told = self._native.price()
        return BuildPrice(**{**told, "states": tuple(map(tuple, told["states"]))})

    def tasks(self, n: int) -> list[_native.IndexTask]:
        """Return about `n` tasks that may run now; none where all is done.

        Raises
        ------
        InvalidValue
            What the last tasks gave was not taken yet.
        """
        if n < 1:
            raise ValueError(f"n={n}: expected at least 1")
        return self._native.tasks(n)

    def take(self, done: Sequence[bytes]) -> None:
        """Take what the tasks gave, each once, in the order of the tasks.

        Raises
        ------
        InvalidValue
            They are not as many as the tasks, or are damaged.
        """
        self._native.take(list(done))

    def finish(self) -> BuildReport:
        """Return what was done, once there are no more tasks.

        Raises
        ------
        InvalidValue
            There are tasks that were not done.
        """
        return _index.report(self._native.finish(), time.perf_counter() - self._started)


def run(
    native: _native.Source,
    task: _native.IndexTask | bytes,
    *,
    jobs: int | None,
    memory: int | str | None,
    lock_timeout: float,
) -> bytes:
    """Run a task; see `Source.run_index_task`."""
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs={jobs}: expected at least 1")
    if isinstance(task, bytes):
        task = _native.IndexTask.from_bytes(task)
    return _native.run_index_task(
        native,
        task,
        jobs=jobs,
        memory=memory_bytes(memory),
        lock_timeout=timedelta(seconds=lock_timeout),
    )
