"""Work, and what a worker does: opens sources once, keeps them with a session, and runs what it is given."""

from __future__ import annotations

import json
import threading
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sieva import _native, errors
from sieva._opened import Opened
from sieva.engines._frames import pack, pack_columns, pack_values, unpack

if TYPE_CHECKING:
    from collections.abc import Callable

    from sieva._source import Source

# Sources that a worker holds open.
MOST_SOURCES = 64


@dataclass(frozen=True)
class Work:
    """A part of something that was asked, as data.

    Attributes
    ----------
    kind
        ``"query"``, whose payload is a `Task` and whose result a `Partial`; ``"fetch"``, the values at
        positions; ``"index"``, a task of building an index. See `KINDS`.
    payload
        What is to be done, as bytes.
    affinity
        A number of the region that is looked at, the same for all queries: work of the same number is best
        done by the same worker. None: by any.
    rows
        About how many rows are looked at, by which work can be shared out.
    how
        JSON text: how the source is opened (``open``) and the work is run (``run``).
    """

    kind: str
    payload: bytes
    affinity: int | None = None
    rows: int = 0
    how: str = "{}"

    def __bytes__(self) -> bytes:
        head = {"kind": self.kind, "affinity": self.affinity, "rows": self.rows, "how": self.how}
        return pack(json.dumps(head).encode(), self.payload)

    @staticmethod
    def from_bytes(data: bytes) -> Work:
        """Return the work that `bytes` gave.

        Raises
        ------
        InvalidValue
            These are no bytes of work, or were changed or cut off.
        """
        head, payload = unpack(data, 2)
        try:
            found = json.loads(head)
            return Work(found["kind"], payload, found["affinity"], found["rows"], found["how"])
        except (ValueError, KeyError, TypeError) as error:
            raise errors.InvalidValue("these are no bytes of work") from error


class Worker:
    """What runs work: a session, and the sources that it has opened.

    Parameters
    ----------
    memory, cache, threads
        As of `sieva.Session`.
    """

    def __init__(
        self,
        *,
        memory: int | str | None = None,
        cache: int | str | None = None,
        threads: int | None = None,
    ) -> None:
        from sieva._session import Session

        self.session = Session(memory=memory, cache=cache, threads=threads)
        self._lock = threading.Lock()
        self._sources: OrderedDict[str, Source] = OrderedDict()
        self._traffic: dict[str, int] = {}

    def execute(self, work: Work) -> bytes:
        """Run work.

        Raises
        ------
        InvalidValue
            There is no work of that kind.
        StaleSource
            The source is in another state than that of which the work was made.
        """
        if work.kind == "collection":
            return self._of_collection(work)
        run = KINDS.get(work.kind)
        if run is None:
            raise errors.InvalidValue(
                f"there is no work {work.kind!r}", f"there is collection, {', '.join(KINDS)}"
            )
        how = json.loads(work.how)
        opened = Opened.from_json(json.dumps(how["open"]))
        running = how.get("run", {})
        try:
            return run(self._source(opened), work.payload, running)
        except errors.StaleSource:
            if work.kind == "index":
                raise
            # It may be this worker that opened it before it was replaced.
            self._forget(opened)
            return run(self._source(opened), work.payload, running)

    def _of_collection(self, work: Work) -> bytes:
        """Run a task of a collection, whose sources are opened for it."""
        from sieva._collection import collection

        how = json.loads(work.how)
        place = how["collection"]
        asked = collection(place["name"], catalog=place["catalog"], **place["options"])
        return bytes(asked.run_task(_native.CollectionTask.from_bytes(work.payload), **how.get("run", {})))

    def counters(self) -> dict[str, int]:
        """Return what was read of all sources so far, and what the session did."""
        with self._lock:
            total = dict(self._traffic)
            for source in self._sources.values():
                _add(total, source._native.traffic())
        return total | self.session.stats()

    def adopt(self, opened: Opened, source: Source) -> None:
        """Take over a source that was opened in this process, in the worker's session."""
        with self._lock:
            self._drop(opened.to_json())
            self._sources[opened.to_json()] = source

    def _source(self, opened: Opened) -> Source:
        key = opened.to_json()
        with self._lock:
            if key in self._sources:
                self._sources.move_to_end(key)
                return self._sources[key]
        # Opening takes time, and may be of another file than what others wait for.
        source = opened.open(self.session._native)
        with self._lock:
            source = self._sources.setdefault(key, source)
            while len(self._sources) > MOST_SOURCES:
                self._drop(next(iter(self._sources)))
        return source

    def _forget(self, opened: Opened) -> None:
        with self._lock:
            self._drop(opened.to_json())

    def _drop(self, key: str) -> None:
        source = self._sources.pop(key, None)
        if source is not None:
            _add(self._traffic, source._native.traffic())

    def close(self) -> None:
        """Save what scans learnt, and let no more work run."""
        with self._lock:
            for source in self._sources.values():
                source.close()
            self._sources.clear()
        self.session.close()


def _add(total: dict[str, int], more: dict[str, int]) -> None:
    for name, n in more.items():
        total[name] = total.get(name, 0) + n


def _query(source: Source, payload: bytes, running: dict[str, Any]) -> bytes:
    return bytes(source._native.run_task(_native.Task.from_bytes(payload), running))


def _fetch(source: Source, payload: bytes, running: dict[str, Any]) -> bytes:
    """Return the columns of a query, or the values of one name: at a selection, or in the rows of a task."""
    data, selection, wanted = unpack(payload, 3)
    part = _last_part.of(source, data, selection, running)
    what = json.loads(wanted)
    if what["columns"]:
        from sieva._query import Query

        return pack_columns(Query(part, source, "").to_arrow())
    return pack_values(part.read(what["value"]))


class _LastPart:
    """The query of the part that was fetched last, which knows where its rows lie: names come one by one.

    One for all workers of a process; it takes at most a quarter of the memory of a query.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: tuple[int, bytes, bytes, str] | None = None
        self._part: _native.Query | None = None
        self._source: weakref.ref[Source] | None = None

    def of(self, source: Source, data: bytes, selection: bytes, running: dict[str, Any]) -> _native.Query:
        """Return the query of a task at a selection; of no selection, that of the rows of the task."""
        key = (id(source), data, selection, json.dumps(running, sort_keys=True))
        with self._lock:
            if (
                self._part is not None
                and self._key == key
                and self._source is not None
                and self._source() is source
            ):
                return self._part
        task = _native.Task.from_bytes(data)
        if selection:
            part = source._native.query_of(task, running).at(_native.Selection.from_bytes(selection))
        else:
            part = source._native.query_of(task, running, alone=True)
        with self._lock:
            self._key, self._part, self._source = key, part, weakref.ref(source, self._gone)
        return part

    def _gone(self, source: weakref.ref[Source]) -> None:
        """Let go of what belongs to a source that is no more."""
        if self._source is source:
            self._key = self._part = self._source = None


def _index(source: Source, payload: bytes, running: dict[str, Any]) -> bytes:
    """Build a part of an index."""
    return source.run_index_task(payload, **running)


_last_part = _LastPart()

# What a worker can be asked to do.
KINDS: dict[str, Callable[[Source, bytes, dict[str, Any]], bytes]] = {
    "query": _query,
    "fetch": _fetch,
    "index": _index,
}

_lock = threading.Lock()
_worker: Worker | None = None


def this_worker() -> Worker:
    """Return the worker of this process."""
    global _worker  # noqa: PLW0603 - there is one of a process
    with _lock:
        if _worker is None:
            _worker = Worker()
        return _worker


def configure(*, memory: int | None = None, cache: int | None = None, threads: int | None = None) -> None:
    """Make the worker of this process anew, with limits."""
    global _worker  # noqa: PLW0603
    with _lock:
        if _worker is not None:
            _worker.close()
        _worker = Worker(memory=memory, cache=cache, threads=threads)


def execute(work: Work) -> bytes:
    """Run work in this process."""
    return this_worker().execute(work)


def counters() -> dict[str, int]:
    """Return what the worker of this process read and did so far."""
    return this_worker().counters()
