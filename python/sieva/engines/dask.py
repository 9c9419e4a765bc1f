"""Dask: a `distributed.Client` runs the parts, each region on the worker that knows it."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sieva import errors
from sieva._extras import required
from sieva.engines import _work
from sieva.engines._places import place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sieva.engines._work import Work

# Partial results that are merged at once, on a worker that has some of them.
FAN_IN = 8
# Seconds after which what does not come is looked at.
LOOK = 2.0
# Parts for each thread of a worker.
PARTS = 4
# What one message to the scheduler carries, about: Dask warns of 10 MB.
GRAPH_BYTES = 8_000_000


def make(
    client: Any = None,  # noqa: ANN401 - a Client
    *,
    scheduler: str | None = None,
    workers: int | None = None,
) -> DaskEngine:
    """Return the engine of a scheduler, by its address; without one, of a cluster of this machine.

    Parameters
    ----------
    client
        A `distributed.Client`, in place of an address.
    scheduler
        Such as ``"tcp://10.0.0.1:8786"``.
    workers
        Processes of the cluster of this machine; None: one for each core.
    """
    distributed = required("distributed", "the engine dask", "dask")
    if client is not None:
        return DaskEngine(client)
    if scheduler is not None:
        if workers is not None:
            raise errors.InvalidValue(
                "workers= beside scheduler=", "a scheduler has its workers: leave workers= out"
            )
        return DaskEngine(distributed.Client(scheduler, set_as_default=False), is_own=True)
    cluster = distributed.LocalCluster(
        n_workers=workers or len(os.sched_getaffinity(0)),
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
    )
    return DaskEngine(distributed.Client(cluster, set_as_default=False), is_own=True, cluster=cluster)


class DaskEngine:
    """The workers of a Dask cluster.

    What a task found goes from worker to worker and to the client, not through the scheduler. A worker that
    is lost costs a retry: Dask runs its tasks on another.

    Parameters
    ----------
    client
        A `distributed.Client` that is not asynchronous.
    """

    name = "dask"
    # A worker's session keeps what it decoded.
    keeps_regions = True

    def __init__(self, client: Any, *, is_own: bool = False, cluster: Any = None) -> None:  # noqa: ANN401
        if client.asynchronous:
            raise errors.Unsupported(
                "the client is asynchronous", "give one that waits: Client(address, asynchronous=False)"
            )
        self.client = client
        self._is_own = is_own
        self._cluster = cluster

    def workers(self) -> int:
        """Return how many workers there are."""
        return len(self._threads())

    @property
    def at_once(self) -> int:
        """How many parts run at once."""
        return max(1, sum(self._threads().values()))

    @property
    def parts_of_each(self) -> int:
        """Parts for each worker, so that all of its threads have some."""
        threads = self._threads()
        return PARTS * max(1, -(-sum(threads.values()) // len(threads)))

    def _threads(self) -> dict[str, int]:
        if self.client.status in ("closed", "closing"):
            raise errors.Unsupported(
                "the Dask client of this engine is closed",
                "ask before client.close(), or open the source by another: sieva.dask.open(path, client)",
            )
        threads: dict[str, int] = self.client.nthreads()
        while not threads:
            self.client.wait_for_workers(1)
            threads = self.client.nthreads()
        return threads

    def run(self, work: Sequence[Work]) -> Iterator[tuple[int, bytes]]:
        """Yield the number of each work and its result, as they end.

        Raises
        ------
        SievaError
            What a work raised; the others are cancelled.
        IoError
            Workers were lost over the same work several times.
        """
        if not work:
            return
        leaves, _ = self._submitted(work, [])
        numbers = {leaf: number for number, leaf in enumerate(leaves)}
        try:
            for some in self._as_they_end(leaves):
                yield from zip([numbers[leaf] for leaf in some], self._results(some), strict=True)
        finally:
            self._cancel([leaf.future for leaf in leaves])

    def reduce(self, work: Sequence[Work]) -> list[bytes]:
        """Return partial results of work of the kind ``"query"``, more than `FAN_IN` merged by workers."""
        if len(work) <= FAN_IN:
            return [found for _, found in sorted(self.run(work))]
        leaves, future = self._submitted(work, _levels(len(work)))
        root = _Leaf(self, None, None, future)
        try:
            # A result that is lost with its worker is made again, which may need help.
            while not self._comes(root, leaves):
                for some in self._as_they_end(leaves):
                    if any(leaf.future.status == "error" for leaf in some):
                        self._results(some)  # which raises
                root = _Leaf(self, None, None, self._merged([leaf.future for leaf in leaves]))
            return self._results([root])
        finally:
            self._cancel([leaf.future for leaf in leaves])

    def _merged(self, level: Sequence[Any]) -> Any:  # noqa: ANN401 - a Future
        while len(level) > 1:
            level = [
                self.client.submit(merged, level[i : i + FAN_IN], key=_key("merge"), pure=False)
                for i in range(0, len(level), FAN_IN)
            ]
        return level[0]

    def _submitted(self, work: Sequence[Work], levels: Sequence[Sequence[range]]) -> tuple[list[_Leaf], Any]:
        """Submit work and what merges it; return the work, and the future of the last merge."""
        placed = place([w.affinity for w in work], sorted(self._threads()))
        return self._graph(list(zip(work, placed, strict=True)), levels)

    def _graph(
        self, work: Sequence[tuple[Work, str]], levels: Sequence[Sequence[range]]
    ) -> tuple[list[_Leaf], Any]:
        """Submit work for workers as one graph, or as several where it is large."""
        from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

        data = [bytes(one) for one, _ in work]
        if not levels and len(work) > 1 and sum(map(len, data)) > GRAPH_BYTES:
            halves = work[: len(work) // 2], work[len(work) // 2 :]
            return [leaf for half in halves for leaf in self._graph(half, [])[0]], None
        keys = [_key(one.kind) for one, _ in work]
        of_address: dict[str, dict[str, Any]] = {}
        for key, one, (_, address) in zip(keys, data, work, strict=True):
            of_address.setdefault(address, {})[key] = (run_work, one)
        layers = {}
        for address, tasks in of_address.items():
            where = {"workers": [address], "allow_other_workers": True}
            layers[next(iter(tasks))] = MaterializedLayer(tasks, annotations=where)
        needs: dict[str, set[str]] = {name: set() for name in layers}
        merges: dict[str, Any] = {}
        level = keys
        for ranges in levels:
            above = [_key("merge") for _ in ranges]
            merges |= {key: (merged, level[r.start : r.stop]) for key, r in zip(above, ranges, strict=True)}
            level = above
        if merges:
            needs[level[0]] = set(layers)
            layers[level[0]] = MaterializedLayer(merges)
        wanted = [*keys, level[0]] if merges else keys
        futures = self.client.get(HighLevelGraph(layers, needs), wanted, sync=False)
        leaves = [_Leaf(self, *one, future) for one, future in zip(work, futures[: len(keys)], strict=True)]
        return leaves, futures[-1]

    def _as_they_end(self, leaves: Sequence[_Leaf]) -> Iterator[list[_Leaf]]:
        """Yield work that has ended, each once; together what ended meanwhile."""
        ended: queue.SimpleQueue[_Leaf] = queue.SimpleQueue()
        waited = set(leaves)
        for leaf in leaves:
            leaf.tell(ended)
        while waited:
            try:
                some = [ended.get(timeout=LOOK)]
            except queue.Empty:
                for leaf in [leaf for leaf in waited if leaf.rescue()]:
                    leaf.tell(ended)
                continue
            while not ended.empty():
                some.append(ended.get())
            if some := [leaf for leaf in dict.fromkeys(some) if leaf in waited]:
                waited.difference_update(some)
                yield some

    def _comes(self, root: _Leaf, leaves: Sequence[_Leaf]) -> bool:
        """Wait for what needs all leaves; False where some of them had to be submitted anew."""
        ended: queue.SimpleQueue[_Leaf] = queue.SimpleQueue()
        root.tell(ended)
        while True:
            try:
                ended.get(timeout=LOOK)
            except queue.Empty:
                if sum(leaf.rescue() for leaf in leaves):
                    self._cancel([root.future])
                    return False
            else:
                return True

    def _results(self, leaves: Sequence[_Leaf]) -> list[bytes]:
        from distributed.scheduler import KilledWorker

        try:
            return _Transfer(self.client, leaves).results()
        except KilledWorker as error:
            raise errors.IoError(
                f"workers were lost over the same work: {error}",
                "they may have been killed for want of memory: have fewer threads, or more memory",
            ) from error

    def _cancel(self, futures: Sequence[Any]) -> None:
        if unfinished := [future for future in futures if not future.done()]:
            self.client.cancel(unfinished)

    def close(self) -> None:
        """Leave the cluster, and stop it where it was started here."""
        if self._is_own:
            self.client.close()
        if self._cluster is not None:
            self._cluster.close()


class _Leaf:
    """Work that was submitted, to the worker that knows its region.

    Parameters
    ----------
    engine
        Whose cluster it is.
    work
        What is to be done; None of what is not sieva's work.
    address
        Of the worker; None: any.
    future
        What was submitted already.
    """

    def __init__(
        self,
        engine: DaskEngine,
        work: Work | None,
        address: str | None,
        future: Any = None,  # noqa: ANN401 - a Future
    ) -> None:
        self._client = engine.client
        self._work = work
        self._address = address
        self.future = self._submit() if future is None else future

    def _submit(self) -> Any:  # noqa: ANN401
        assert self._work is not None  # noqa: S101 - only futures have none
        where = {} if self._address is None else {"workers": [self._address], "allow_other_workers": True}
        data, key = bytes(self._work), _key(self._work.kind)
        return self._client.submit(run_work, data, key=key, pure=False, **where)

    def tell(self, ended: queue.SimpleQueue[_Leaf]) -> None:
        """Put this into a queue when it has ended."""
        self.future.add_done_callback(lambda _: ended.put(self))

    def rescue(self) -> bool:
        """Submit again what nobody will run; return whether that was so.

        Where all workers are lost at once, the scheduler keeps work for one that does not come back: those
        that come have other addresses.
        """
        if self._work is None or self._address is None or self.future.done():
            return False
        workers = self._client.nthreads()
        if not workers or self._address in workers:
            return False
        if any(self.future.key in keys for keys in self._client.processing().values()):
            return False
        self.future.cancel()
        self._address = None
        self.future = self._submit()
        return True


class _Transfer:
    """What work found comes straight from the workers that have it, not through the scheduler.

    It has all the time that it takes. It begins anew only where work had to be submitted again, or where the
    scheduler has given up a worker that had some of it: such a one may hold the connection without a word.

    Parameters
    ----------
    client
        Of the cluster.
    leaves
        Whose results are wanted, in this order.
    """

    def __init__(self, client: Any, leaves: Sequence[_Leaf]) -> None:  # noqa: ANN401 - a Client
        self._client = client
        self._leaves = leaves
        self._task: asyncio.Future[list[bytes]] | None = None
        self._holders: set[str] = set()

    def results(self) -> list[bytes]:
        """Return them once they are here."""
        try:
            while True:
                self._client.sync(self._wait)
                if self._task is not None and self._task.done():
                    return self._task.result()
                if self._is_lost():
                    self._stop()
        finally:
            self._stop()

    async def _wait(self) -> None:
        if self._task is None:
            futures = [leaf.future for leaf in self._leaves]
            # From the first on: a worker may be given up before anybody looks.
            held = await self._client.scheduler.who_has(keys=[future.key for future in futures])
            self._holders = {address for each in held.values() for address in each}
            self._task = asyncio.ensure_future(self._client._gather(futures, direct=True))
        await asyncio.wait([self._task], timeout=LOOK)

    def _is_lost(self) -> bool:
        """Tell whether what is under way may never come."""
        if sum(leaf.rescue() for leaf in self._leaves):
            return True
        lost = self._holders - set(self._client.nthreads())
        holders = self._client.who_has([leaf.future for leaf in self._leaves]).values()
        self._holders = {address for each in holders for address in each}
        return bool(lost)

    def _stop(self) -> None:
        if self._task is not None and not self._task.done():
            self._client.loop.add_callback(self._task.cancel)
        self._task = None


def _levels(n: int) -> list[list[range]]:
    """Return which of the results of one level each merge of the next takes, until one is left."""
    levels = []
    while n > 1:
        levels.append([range(i, min(n, i + FAN_IN)) for i in range(0, n, FAN_IN)])
        n = len(levels[-1])
    return levels


def _key(kind: str) -> str:
    return f"sieva-{kind}-{uuid4().hex}"


def run_work(data: bytes) -> bytes:
    """Run work on a worker, whose session and sources are kept for what comes after."""
    from distributed import get_worker

    return worker_of(get_worker()).execute(_work.Work.from_bytes(data))


_lock = threading.Lock()


def worker_of(dask_worker: Any) -> _work.Worker:  # noqa: ANN401 - a distributed.Worker
    """Return what runs work in a Dask worker, with half of its memory; its tasks have a thread each."""
    with _lock:
        found: _work.Worker | None = getattr(dask_worker, "sieva_worker", None)
        if found is None:
            limit = dask_worker.memory_manager.memory_limit
            # The other half is for what comes and goes between workers.
            found = _work.Worker(memory=limit // 2 if limit else None, threads=1)
            dask_worker.sieva_worker = found
    return found


def merged(parts: Sequence[bytes]) -> bytes:
    """Return partial results as one."""
    from sieva import Partial

    return bytes(Partial.merged(list(parts)))


def counters(dask_worker: Any) -> dict[str, int]:  # noqa: ANN401 - Dask hands it in by this name
    """Return what was read and done on a Dask worker so far."""
    return worker_of(dask_worker).counters()
