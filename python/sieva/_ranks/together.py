"""What all ranks ask for, read together."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sieva import _native, errors
from sieva._array import Array
from sieva._box import Box, as_box
from sieva._opened import Opened
from sieva._ranks import exchange
from sieva._ranks.interrupt import Interrupts
from sieva._ranks.waves import Reads
from sieva.engines import _work
from sieva.engines._frames import unpack_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from sieva._source import Source
    from sieva.engines.mpi import MpiEngine

# Bytes of a piece: small enough for all ranks to have some, large enough for one request of a file system.
SMALLEST_PIECE, LARGEST_PIECE = 64 << 10, 4 << 20
# Bytes that a rank sends at once: little enough for memory to be used again while caches have it.
LARGEST_WAVE = 8 << 20
# Bytes of a plan by those of the pieces that ranks tell one another; and what any plan may take.
PLAN_OF_TOLD, LEAST_PLAN = 5, 64 << 20


class Wanted(NamedTuple):
    """An array that a rank asks of, as others know it.

    Attributes
    ----------
    opened
        How its source is opened; see `Opened.to_json`.
    state
        Of the source.
    path
        Of the array.
    dtype
        Of the values; ``"O"`` for texts.
    shape
        Of the array.
    is_chunked
        Whether what is read at once are chunks.
    may_miss
        Whether these are integers of which some may be missing: they travel with a mark for each, as whether
        any is decides the type of an answer, which is the asker's.
    """

    opened: str
    state: tuple[int, int, int]
    path: str
    dtype: str
    shape: tuple[int, ...]
    is_chunked: bool
    may_miss: bool

    @property
    def sent(self) -> np.dtype[Any]:
        """How values travel."""
        return np.dtype([("value", self.dtype), ("missing", "?")]) if self.may_miss else np.dtype(self.dtype)


Boxes = dict[Wanted, list[tuple[int, list[int], list[int]]]]


@dataclass
class Did:
    """What the last call did on this rank.

    Attributes
    ----------
    asked, read, sent
        Bytes of values that this rank asked for, read for all, and sent to others.
    pieces, boxes, waves
        Pieces of all ranks' requests; boxes that this rank read; waves.
    planning
        Seconds until the first byte is read: cutting, telling others, dealing out.
    """

    asked: int = 0
    read: int = 0
    sent: int = 0
    pieces: int = 0
    boxes: int = 0
    waves: int = 0
    planning: float = 0.0


@dataclass
class Mine:
    """Requests of this rank: where their answers go, and what could not be asked."""

    boxes: list[Box | None] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)
    wrong: dict[int, BaseException] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)


last = Did()


def read_many(
    engine_of: Callable[[], MpiEngine], requests: Sequence[tuple[Source, str, object]], mode: str, memory: int
) -> list[NDArray[Any] | BaseException]:
    """Return what each request of this rank gives, or what went wrong with it; collective.

    Parameters
    ----------
    engine_of
        Gives the ranks. Making them known to sieva is collective, and not interrupted either.
    requests
        Source, name of the array, and numpy's basic index.
    mode
        As of `sieva._ranks.exchange.run`.
    memory
        Bytes that what is read, sent and received may take besides the answers; 0: a quarter of what the rank
        has.

    Raises
    ------
    KeyboardInterrupt
        This rank was interrupted. The others have what it had read until then, and are told of the rest.
    """
    with Interrupts() as interrupts:
        engine = engine_of()
        found = _read_many(engine, requests, mode, memory or engine.memory // 4, interrupts)
    if interrupts.came:
        raise KeyboardInterrupt
    return found


def _read_many(
    engine: MpiEngine,
    requests: Sequence[tuple[Source, str, object]],
    mode: str,
    memory: int,
    interrupts: Interrupts,
) -> list[NDArray[Any] | BaseException]:
    """Do it."""
    global last  # noqa: PLW0603 - the last one is
    begin = time.perf_counter()
    comm = engine.comm
    mine, boxes = _described(requests)
    own = sum(values.nbytes for values in mine.answers if values is not None)
    told = comm.allgather((memory, own, list(boxes)))
    least = min(most for most, _, _ in told)
    piece = min(max(sum(n for _, n, _ in told) // (4 * comm.size), SMALLEST_PIECE), LARGEST_PIECE)
    # By the order in which ranks name them: the same on all.
    arrays = list(dict.fromkeys(wanted for _, _, names in told for wanted in names))
    dtypes = [one.sent for one in arrays]
    own_pieces = _cut(mine, boxes, arrays, min(piece, max(least // (8 * comm.size), 1 << 12)))
    pieces = comm.allgather(own_pieces)
    _check_plan(sum(map(len, pieces)), least)
    steps = _native.RankPlan(
        [(one.shape, one.is_chunked) for one in arrays],
        pieces,
        min(LARGEST_WAVE, max(least // (4 * (comm.size + 1)), 1)),
    )
    last = Did(asked=own, waves=steps.waves)
    places = [
        (box.start if box else [], values) for box, values in zip(mine.boxes, mine.answers, strict=True)
    ]
    opener = _Opener(arrays, mine.sources)
    reads = Reads(
        rank=comm.rank,
        plan=steps,
        dtypes=dtypes,
        opener=opener,
        interrupts=interrupts,
        answers=places,
        did=last,
    )
    last.pieces = reads.pieces
    last.planning = time.perf_counter() - begin
    is_text = np.array([dtype.hasobject for dtype in dtypes] or [False])
    exchange.run(mode, comm, [reads.wave(n, comm.size, ~is_text) for n in range(steps.waves)])
    if is_text.any():
        reads.texts(comm, comm.size, is_text)
    return _answered(mine, reads.own_units(), comm.allgather(reads.failed))


def _check_plan(told: int, memory: int) -> None:
    """Refuse a plan, which every rank has as a whole, of more memory than there is: on all ranks alike.

    Parameters
    ----------
    told
        Bytes of all ranks' pieces, of which a plan takes some five times as many.
    memory
        The least of the ranks' limits.
    """
    if PLAN_OF_TOLD * told > max(memory, LEAST_PLAN):
        raise errors.MemoryLimit(
            f"the plan of all ranks' requests takes about {PLAN_OF_TOLD * told} bytes, the limit is {memory}",
            "ask for less at once, or of larger stripes or chunks, or give more memory",
        )


def _described(requests: Sequence[tuple[Source, str, object]]) -> tuple[Mine, Boxes]:
    """Return this rank's requests, and the boxes of each array: number of the request, start, shape."""
    mine = Mine()
    boxes: Boxes = {}
    for number, request in enumerate(requests):
        mine.boxes.append(None)
        mine.answers.append(None)
        try:
            source, name, key = _checked(request)
            array = Array(source._native, source._native.resolve(name))
            box = as_box(key, array.shape, array.path)
            wanted = Wanted(
                _opened(source),
                source._native.state(),
                array.path,
                array.dtype.str,
                tuple(array.shape),
                array.chunks is not None,
                # Which integers are missing is known when they are read.
                array.dtype.kind in "biu",
            )
            mine.answers[number] = np.empty(box.shape, wanted.sent)
        except (errors.SievaError, TypeError, IndexError, MemoryError) as error:
            mine.wrong[number] = error
            continue
        mine.boxes[number] = box
        mine.sources[wanted.opened] = source
        boxes.setdefault(wanted, []).append((number, box.start, box.shape))
    return mine, boxes


def _cut(mine: Mine, boxes: Boxes, arrays: list[Wanted], most: int) -> bytes:
    """Cut the requests into pieces of at most so many bytes; what cannot be cut is its request's error."""
    found = []
    for number, wanted in enumerate(arrays):
        if wanted not in boxes:
            continue
        native = mine.sources[wanted.opened]._native
        how: Any = {"array": number, "width": wanted.sent.itemsize, "most": most}
        try:
            found.append(_native.rank_pieces(native, wanted.path, boxes[wanted], **how))
        except errors.SievaError as error:
            mine.wrong.update((request, error) for request, _, _ in boxes[wanted])
    return b"".join(found)


def _checked(request: object) -> tuple[Source, str, object]:
    from sieva._source import Source

    if isinstance(request, tuple) and len(request) == 3 and isinstance(request[0], Source):
        return request
    raise TypeError(f"a request is (source, name of an array, index), got {request!r}")


def _opened(source: Source) -> str:
    if source._opened is None:
        raise errors.Unsupported(
            f"{source.path!r} cannot be opened on other ranks", "open a file by its name"
        )
    return source._opened.to_json()


class _Opener:
    """The arrays that this rank reads, whoever asked: of sources that it has, or opens."""

    def __init__(self, arrays: list[Wanted], sources: dict[str, Source]) -> None:
        self._arrays = arrays
        self._sources = dict(sources)

    def read(self, array: int, start: list[int], shape: list[int]) -> NDArray[Any]:
        wanted, source = self._wanted(array)
        if wanted.may_miss:
            return _marked(wanted, *source._native.read_masked(wanted.path, start, shape))
        return source._native.read(wanted.path, start, shape, raw=False)

    def read_run(self, array: int, first: int, count: int) -> NDArray[Any] | None:
        wanted, source = self._wanted(array)
        if wanted.may_miss:
            found = source._native.read_run_masked(wanted.path, first, count)
            return None if found is None else _marked(wanted, *found)
        return source._native.read_run(wanted.path, first, count)

    def shape(self, array: int) -> tuple[int, ...]:
        return self._arrays[array].shape

    def _wanted(self, array: int) -> tuple[Wanted, Source]:
        wanted = self._arrays[array]
        source = self._sources.get(wanted.opened)
        if source is None:
            source = _work.this_worker()._source(Opened.from_json(wanted.opened))
            self._sources[wanted.opened] = source
        if source._native.state() != wanted.state:
            raise errors.StaleSource(
                f"{source.path!r} is not in the state in which it was asked for", "open it anew on all ranks"
            )
        return wanted, source


def _answered(
    mine: Mine, own: list[tuple[int, int]], told: list[dict[int, bytes]]
) -> list[NDArray[Any] | BaseException]:
    """Return the answers, with errors where a piece could not be read."""
    failed = {unit: (rank, data) for rank, units in enumerate(told) for unit, data in units.items()}
    for number, unit in own:
        if unit in failed and number not in mine.wrong:
            mine.wrong[number] = _raised(*failed[unit])
    answers: list[NDArray[Any] | BaseException] = []
    for number, (box, values) in enumerate(zip(mine.boxes, mine.answers, strict=True)):
        wrong = mine.wrong.get(number)
        answers.append(wrong if wrong is not None or box is None else box.cut(_settled(box.picked(values))))  # type: ignore[arg-type]
    return answers


def _marked(wanted: Wanted, values: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[Any]:
    marked = np.empty(values.shape, wanted.sent)
    marked["value"], marked["missing"] = values, missing
    return marked


def _settled(values: NDArray[Any]) -> NDArray[Any]:
    """Return what travelled as it is answered: integers of which one is missing are float64, NaN there."""
    if values.dtype.fields is None:
        return values
    missing = values["missing"]
    if not missing.any():
        return np.ascontiguousarray(values["value"]).reshape(values.shape)
    floats = values["value"].astype("f8")
    floats[missing] = np.nan
    return floats


def _raised(rank: int, data: bytes) -> BaseException:
    there = unpack_error(data)
    hint = getattr(there, "hint", None)
    message = f"rank {rank}: {there}"
    return type(there)(message, hint) if hint is not None else type(there)(message)
