"""What the asking side does: it cuts a query into work, and puts together what comes back."""

from __future__ import annotations

import json
import math
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sieva import _native, errors
from sieva._memory import memory_bytes
from sieva._price import Price
from sieva.engines import _effort
from sieva.engines._frames import pack, unpack_columns, unpack_values
from sieva.engines._places import affinity_of
from sieva.engines._work import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from sieva._index import BuildReport
    from sieva._index_job import IndexJob
    from sieva._source import Source
    from sieva.engines import Engine

# Bytes that a sort may take by default.
_SORT = 1 << 30
# Parts for each worker: who is done first takes more, and one that is lost costs little.
PARTS = 4
# Rows of one part of a result: what is in flight is so many for each worker.
FETCHED_ROWS = 1 << 20


class Asking:
    """A query of a source, by an engine.

    Parameters
    ----------
    source
        The open source; workers open it once more.
    native
        The query.
    engine
        Who runs its parts.
    running
        Options of running it, for each worker.
    """

    def __init__(
        self, source: Source, native: _native.Query, engine: Engine, running: Mapping[str, Any]
    ) -> None:
        self.source = source
        self.native = native
        self.engine = engine
        self._running = {name: value for name, value in running.items() if name != "cross"}
        self.is_stopped: Callable[[], bool] = lambda: False
        # Into how many parts the rows were cut to find the positions.
        self._found_in: int | None = None

    def parts(self, native: _native.Query, kind: str | None) -> int:
        """Return into how many parts the work of a query is cut."""
        most = self.engine.workers() * int(getattr(self.engine, "parts_of_each", PARTS))
        at_once = int(getattr(self.engine, "at_once", 0))
        if not at_once:
            return most
        return min(most, _effort.parts(native.effort(kind), at_once, -(-most // at_once)))

    def finished(self, kind: str | None, native: _native.Query | None = None) -> _native.Query:
        """Return a query that knows its answer by what workers found.

        Parameters
        ----------
        kind
            As of `Query.tasks`.
        native
            Another query of the same source; None: this one.

        Raises
        ------
        Unsupported
            It is not to be had in parts.
        """
        query = self.native if native is None else native
        tell_price(self.engine, query, self._running)
        parts = self.parts(query, kind)
        if query is self.native:
            self._found_in = parts
        work = [self._work_of(task) for task in query.shares(parts, kind)]
        reduce = getattr(self.engine, "reduce", None)
        found = reduce(work) if reduce is not None else [found for _, found in self._run(work)]
        # Where several processes finish it, what one of them meets is raised on all.
        agreed = getattr(self.engine, "agreed", None)
        finish = partial(query.finish_bytes, found)
        finished: _native.Query = finish() if agreed is None else agreed(finish)
        return finished

    def reads_here(self, selection: _native.Selection) -> bool:
        """Return whether values at these positions are better read here than by workers."""
        return len(selection) <= int(getattr(self.engine, "reads_here", 0))

    def _work_of(self, task: _native.Task) -> Work:
        path = "\n".join(self.source.files)
        return Work(
            "query",
            bytes(task),
            affinity_of(path, [*task.start, *(task.number or ())], task.shape),
            math.prod(task.shape) // (task.number[1] if task.number else 1),
            how_of(self.source, self._running),
        )

    def _run(self, work: Sequence[Work]) -> Iterator[tuple[int, bytes]]:
        for done in self.engine.run(work):
            if self.is_stopped():
                raise errors.Cancelled("the query was cancelled")
            yield done

    def tables(self, selection: _native.Selection) -> Iterator[pa.Table]:
        """Yield the columns of the query at a selection, in order, as workers read them."""
        for data in self._fetched(selection, {"columns": True}):
            yield unpack_columns(data)

    def values(self, selection: _native.Selection, name: str | None) -> Iterator[NDArray[Any]]:
        """Yield the values of an array or expression at a selection, in order."""
        for data in self._fetched(selection, {"columns": False, "value": name}):
            yield unpack_values(data)

    def _fetched(self, selection: _native.Selection, wanted: dict[str, Any]) -> Iterator[bytes]:
        task = self.native.tasks(1, "selection")[0]
        what = json.dumps(wanted).encode()
        how = how_of(self.source, self._running)
        cuts = self._cuts(selection)
        window = 2 * self.engine.workers()
        for first in range(0, len(cuts), window):
            work = [
                Work("fetch", pack(bytes(task), bytes(selection.part(a, b)), what), affinity, b - a, how)
                for a, b, affinity in cuts[first : first + window]
            ]
            yield from _in_order(self._run(work))

    def _cuts(self, selection: _native.Selection) -> list[tuple[int, int, int | None]]:
        """Return first and last rank of each part, and the number of its region where that matters."""
        n = len(selection)
        if getattr(self.engine, "keeps_regions", False) and (bounds := self._region_bounds(selection)):
            return [cut for a, b, region in bounds for cut in _pieces(a, b, FETCHED_ROWS, region)]
        # As many pieces for each worker, so that all have as many rows, within one of each piece.
        workers = self.engine.workers()
        pieces = workers * -(-n // (workers * FETCHED_ROWS))
        return _pieces(0, n, max(1, -(-n // max(1, pieces))), None)

    def _region_bounds(self, selection: _native.Selection) -> list[tuple[int, int, int]]:
        """Return the ranks of each region's positions; none where regions are no runs of rows."""
        found = []
        path = "\n".join(self.source.files)
        parts = self.parts(self.native, "selection") if self._found_in is None else self._found_in
        for task in self.native.tasks(parts, "selection"):
            run = run_of(task.start, task.shape, selection.shape)
            if run is None:
                return []
            ranks = selection.rank(run[0]), selection.rank(run[1])
            found.append((*ranks, affinity_of(path, task.start, task.shape)))
        return sorted(found)


def build_index(
    source: Source,
    asked: Mapping[str, Any],
    engine: Engine,
    running: Mapping[str, Any],
) -> BuildReport:
    """Build indexes by the workers of an engine, stage by stage; what they built is told as one.

    Parameters
    ----------
    source
        The open source; workers open it once more.
    asked
        What is to be built: arguments of `Source.index_job`, its arrays by the name ``arrays``.
    running
        Options of `Source.run_index_task`, for each worker.
    """
    how = how_of(source, running)
    job = _job(source, asked, engine)
    parts = engine.workers() * int(getattr(engine, "parts_of_each", PARTS))
    # Of ranks that ask together one has the job; what goes wrong there is told on all.
    leads = getattr(engine, "rank", 0) == 0
    agreed: Callable[[Callable[[], Any]], Any] = getattr(engine, "agreed", lambda step: step())
    while True:
        tasks = agreed(lambda: job.tasks(parts) if leads else [])
        done = dict(engine.run([Work("index", bytes(task), None, 0, how) for task in tasks]))
        if not done:
            break
        in_order = [done[number] for number in range(len(done))]
        agreed(partial(job.take, in_order) if leads else _nothing)
    report: BuildReport = agreed(job.finish if leads else _nothing)
    comm = getattr(engine, "comm", None)
    if comm is not None:
        report = comm.bcast(report)
    return report


def _job(source: Source, asked: Mapping[str, Any], engine: Engine) -> IndexJob:
    """Return what is left to be built, once what is under way of the same has ended."""
    options = dict(asked)
    arrays = options.pop("arrays")
    memory, most = memory_bytes(options["memory"]), getattr(engine, "most_memory", None)
    options["memory"] = memory if most is None else min(memory or most, most)
    job = source.index_job(*arrays, **options)
    building = getattr(engine, "building", None)
    if building is None:
        return job
    price = job.price()
    what = {name: options[name] for name in ("kinds", "precision", "region_size", "columns")}
    # Of which states the sources are is a part of the question.
    question = {"arrays": arrays, **what, "states": price.states, "how": how_of(source, {})}
    is_other = building(price, json.dumps(question, sort_keys=True), options["memory"] or _SORT)
    return source.index_job(*arrays, **options) if is_other else job


def _nothing() -> None:
    """Stand for what another rank does."""


def tell_price(
    engine: Engine, query: _native.Query | _native.CollectionQuery, running: Mapping[str, Any]
) -> None:
    """Tell an engine that asks for it what a query takes: how many tasks, for how long."""
    priced = getattr(engine, "priced", None)
    if priced is not None:
        priced(Price.of(query.price()), memory_bytes(running.get("memory")))


def how_of(source: Source, running: Mapping[str, Any]) -> str:
    """Return how a source is opened and work on it is run, as text that a worker reads.

    Raises
    ------
    Unsupported
        The source was not opened by its name.
    """
    if source._opened is None:
        raise errors.Unsupported(
            f"{source.path!r} was opened in a way that another process cannot repeat",
            "open it by sieva.open(path), or ask without engine=",
        )
    opened = json.loads(source._opened.to_json())
    return json.dumps({"open": opened, "run": dict(running)}, sort_keys=True)


def run_of(start: Sequence[int], shape: Sequence[int], of: Sequence[int]) -> tuple[int, int] | None:
    """Return the rows of a box as one run in C order; None where they are several."""
    strides = [math.prod(of[d + 1 :]) for d in range(len(of))]
    first = sum(a * stride for a, stride in zip(start, strides, strict=True))
    rows = math.prod(shape)
    if rows == 0:
        return first, first
    last = first + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    return (first, last + 1) if last + 1 - first == rows else None


def _pieces(start: int, stop: int, most: int, region: int | None) -> list[tuple[int, int, int | None]]:
    """Return a range in equal pieces of at most so many."""
    n = -(-(stop - start) // most)
    ends = [start + (stop - start) * i // n for i in range(n + 1)] if n else []
    return [(a, b, region) for a, b in pairwise(ends)]


def _in_order(results: Iterator[tuple[int, bytes]]) -> Iterator[bytes]:
    """Yield results in the order of their numbers."""
    waiting: dict[int, bytes] = {}
    following = 0
    for number, result in results:
        waiting[number] = result
        while following in waiting:
            yield waiting.pop(following)
            following += 1
