"""Dask: a `distributed.Client` runs the parts, each region on the worker that knows it."""

from __future__ import annotations

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
    def parts_of_each(self) -> int:
        """Parts for each worker, so that all of its threads have some."""
        threads = self._threads()
        return PARTS * max(1, -(-sum(threads.values()) // len(threads)))

    def _threads(self) -> dict[str, int]:
        if self.client.status in ("closed", "closing"):
            raise errors.Unsupported(
                "the Dask client of this engine is closed", "ask while it is open, or give another"
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
        leaves = self._submitted(work)
        numbers = {leaf: number for number, leaf in enumerate(leaves)}
        try:
            for leaf in self._as_they_end(leaves):
                yield numbers[leaf], self._result(leaf)
        finally:
            self._cancel([leaf.future for leaf in leaves])

    def reduce(self, work: Sequence[Work]) -> bytes:
        """Return the partial results of work of the kind ``"query"``, merged in a tree on the workers."""
        leaves = self._submitted(work)
        try:
            while True:
                for leaf in self._as_they_end(leaves):
                    if leaf.future.status == "error":
                        return self._result(leaf)  # which raises
                root = _Leaf(self, None, None, self._merged([leaf.future for leaf in leaves]))
                # A result that is lost with its worker is made again, which may need help.
                if self._comes(root, leaves):
                    return self._result(root)
        finally:
            self._cancel([leaf.future for leaf in leaves])

    def _merged(self, level: Sequence[Any]) -> Any:  # noqa: ANN401 - a Future
        while len(level) > 1:
            level = [
                self.client.submit(merged, level[i : i + FAN_IN], key=_key("merge"), pure=False)
                for i in range(0, len(level), FAN_IN)
            ]
        return level[0]

    def _submitted(self, work: Sequence[Work]) -> list[_Leaf]:
        addresses = sorted(self._threads())
        placed = place([w.affinity for w in work], addresses)
        return [_Leaf(self, w, address) for w, address in zip(work, placed, strict=True)]

    def _as_they_end(self, leaves: Sequence[_Leaf]) -> Iterator[_Leaf]:
        """Yield work that has ended, each once."""
        ended: queue.SimpleQueue[_Leaf] = queue.SimpleQueue()
        waited = set(leaves)
        for leaf in leaves:
            leaf.tell(ended)
        while waited:
            try:
                leaf = ended.get(timeout=LOOK)
            except queue.Empty:
                for leaf in [leaf for leaf in waited if leaf.rescue()]:
                    leaf.tell(ended)
                continue
            if leaf in waited:
                waited.discard(leaf)
                yield leaf

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

    def _result(self, leaf: _Leaf) -> bytes:
        from distributed.scheduler import KilledWorker

        patience = LOOK
        while True:
            try:
                # Straight from the worker, not through the scheduler.
                found: bytes = self.client.sync(
                    self.client._gather, leaf.future, direct=True, callback_timeout=patience
                )
            except TimeoutError:
                leaf.rescue()
                patience *= 2
            except KilledWorker as error:
                raise errors.IoError(
                    f"workers were lost over the same work: {error}",
                    "they may have been killed for want of memory: have fewer threads, or more memory",
                ) from error
            else:
                return found

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

    first, *rest = (Partial.from_bytes(part) for part in parts)
    for part in rest:
        first = first.merge(part)
    return bytes(first)


def counters(dask_worker: Any) -> dict[str, int]:  # noqa: ANN401 - Dask hands it in by this name
    """Return what was read and done on a Dask worker so far."""
    return worker_of(dask_worker).counters()
