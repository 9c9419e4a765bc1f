"""What one rank reads, packs and unpacks in each wave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sieva.engines._frames import pack_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from sieva import _native
    from sieva._ranks.interrupt import Interrupts
    from sieva._ranks.together import Did

    Bytes = NDArray[np.uint8]
    Ints = NDArray[np.int64]
    Box = tuple[list[int], list[int]]

# Columns of a piece as the plan tells them.
ARRAY, REQUEST, ASKER, READER, WAVE, UNIT, BYTES = range(7)


class Opener(Protocol):
    """What reads of the array of a number."""

    def read(self, array: int, start: list[int], shape: list[int]) -> NDArray[Any]:
        """Return the decoded values of a box."""

    def read_run(self, array: int, first: int, count: int) -> NDArray[Any] | None:
        """Return so many elements in C order, decoded; None where they do not lie so."""

    def shape(self, array: int) -> tuple[int, ...]:
        """Return the lengths of the array."""


class Reads:
    """The work of a rank by a plan.

    Parameters
    ----------
    rank
        Its number.
    plan, dtypes
        What is done: pieces, in the order in which they are read; and the type of each array.
    opener
        What reads.
    interrupts
        What may end the reading.
    answers
        For each request of this rank where its box starts, and the array that its values go to.
    did
        What is counted.
    """

    def __init__(
        self,
        *,
        rank: int,
        plan: _native.RankPlan,
        dtypes: list[np.dtype[Any]],
        opener: Opener,
        interrupts: Interrupts,
        answers: list[Any],
        did: Did,
    ) -> None:
        self._rank, self._plan, self._dtypes, self._opener = rank, plan, dtypes, opener
        self._answers, self._did, self._interrupts = answers, did, interrupts
        self._pieces = np.frombuffer(plan.pieces(), np.int64).reshape(-1, 7)
        self.failed: dict[int, bytes] = {}
        """Units that this rank could not read, and why."""

    def own_units(self) -> list[tuple[int, int]]:
        """Return request and unit of each piece that this rank asked for."""
        mine = self._pieces[self._pieces[:, ASKER] == self._rank]
        return [(int(request), int(unit)) for request, unit in mine[:, [REQUEST, UNIT]].tolist()]

    def wave(self, number: int, size: int, of: NDArray[np.bool_]) -> OneWave:
        """Return a wave of the arrays that `of` names, of all ranks."""
        pieces = self._pieces
        inside = (pieces[:, WAVE] == number) & of[pieces[:, ARRAY]]
        is_read, is_asked = pieces[:, READER] == self._rank, pieces[:, ASKER] == self._rank
        reads, takes = np.flatnonzero(inside & is_read), np.flatnonzero(inside & is_asked & ~is_read)
        others = pieces[inside & is_read & ~is_asked]
        sends = np.bincount(others[:, ASKER], others[:, BYTES], size)
        receives = np.bincount(pieces[takes, READER], pieces[takes, BYTES], size)
        self._did.sent += int(sends.sum())
        return OneWave(self, reads, takes, [int(n) for n in sends], [int(n) for n in receives])

    def texts(self, comm: Any, size: int, of: NDArray[np.bool_]) -> None:  # noqa: ANN401
        """Read and exchange the arrays that `of` names: texts, which are no bytes of a known number."""
        pieces = self._pieces
        going: list[list[tuple[int, NDArray[Any]]]] = [[] for _ in range(size)]
        mine = np.flatnonzero(of[pieces[:, ARRAY]] & (pieces[:, READER] == self._rank))
        for item, values in self.values(mine):
            if values is not None:
                going[pieces[item, ASKER]].append((item, values))
        for item, values in (one for part in comm.alltoall(going) for one in part):
            self.put(item, values)

    def values(self, items: Ints) -> Iterator[tuple[int, NDArray[Any] | None]]:
        """Read units; yield the number of each piece and its values, None where they could not be had."""
        unit = self._pieces[items, UNIT]
        for part in np.split(items, np.flatnonzero(np.diff(unit)) + 1) if len(items) else []:
            yield from self._unit(part)

    def _unit(self, items: Ints) -> Iterator[tuple[int, NDArray[Any] | None]]:
        """Read what pieces of a unit have in common once."""
        array, unit = self._pieces[items[0], [ARRAY, UNIT]].tolist()
        run, values = self._plan.run(unit), None
        try:
            with self._interrupts.reading():
                if run is not None:
                    values = self._opener.read_run(array, *run)
                boxes = self._plan.reads(unit) if values is None else []
                read = [(start, self._opener.read(array, start, shape)) for start, shape in boxes]
        except Exception as error:  # whoever needs it is told
            self.failed[unit] = pack_error(error)
            read, values = [], None
        if run is not None and values is not None:
            self._did.boxes += 1
            self._did.read += values.nbytes
            for item in items.tolist():
                yield item, within_run(*self._plan.piece(item), self._opener.shape(array), values, run[0])
            return
        self._did.boxes += len(read)
        self._did.read += sum(values.nbytes for _, values in read)
        for item in items.tolist():
            yield item, composed(*self._plan.piece(item), read, self._dtypes[array]) if read else None

    def put(self, item: int, values: NDArray[Any]) -> None:
        """Put the values of a piece where they belong in the request's answer."""
        corner, answer = self._answers[self._pieces[item, REQUEST]]
        start, shape = self._plan.piece(item)
        answer[_within(start, shape, corner)] = values

    def shaped(self, item: int, data: Bytes) -> NDArray[Any]:
        """Return bytes as the values of a piece."""
        values: NDArray[Any] = data.view(self._dtypes[self._pieces[item, ARRAY]])
        return values.reshape(self._plan.piece(item)[1])

    def of(self, items: Ints) -> tuple[Ints, Ints, Ints]:
        """Return who asked for pieces, who reads them, and how many bytes they are."""
        asker, reader, size = self._pieces[items][:, [ASKER, READER, BYTES]].T
        return asker, reader, size

    @property
    def pieces(self) -> int:
        """How many pieces there are, of all ranks."""
        return len(self._pieces)

    @property
    def rank(self) -> int:
        """The number of this rank."""
        return self._rank


class OneWave:
    """A wave: pieces that this rank reads, for itself and others, and pieces that it gets."""

    def __init__(self, reads: Reads, items: Ints, takes: Ints, sends: list[int], receives: list[int]) -> None:
        self._reads, self._items, self._takes = reads, items, takes
        self.sends, self.receives = sends, receives

    def read(self, out: Bytes) -> None:
        """Read; what is this rank's own goes to its place at once."""
        asker, _, size = self._reads.of(self._items)
        places = _places(np.where(asker == self._reads.rank, 0, size), asker, self.sends)
        of = dict(zip(self._items.tolist(), range(len(self._items)), strict=True))
        for item, values in self._reads.values(self._items):
            at, n = places[of[item]], size[of[item]]
            is_own = asker[of[item]] == self._reads.rank
            if values is None:
                # Nobody looks at it: whoever asked is told. But it is no more of this rank's memory. What is
                # this rank's own has no place in `out`.
                out[at : at + (0 if is_own else n)] = 0
            elif is_own:
                self._reads.put(item, values)
            else:
                self._reads.shaped(item, out[at : at + n])[...] = values

    def take(self, found: Bytes) -> None:
        """Put what came to its places."""
        _, reader, size = self._reads.of(self._takes)
        places = _places(size, reader, self.receives)
        for item, at, n in zip(self._takes.tolist(), places.tolist(), size.tolist(), strict=True):
            self._reads.put(item, self._reads.shaped(item, found[at : at + n]))


def _places(size: Ints, rank: Ints, counts: list[int]) -> Ints:
    """Return where the bytes of each piece begin, in a buffer by ranks and there in the order of the plan."""
    first = np.cumsum([0, *counts[:-1]])
    order = np.argsort(rank, kind="stable")
    sorted_sizes, sorted_ranks = size[order], rank[order]
    before = np.cumsum(sorted_sizes) - sorted_sizes
    is_new = np.ones(len(order), bool)
    is_new[1:] = sorted_ranks[1:] != sorted_ranks[:-1]
    begins = before[is_new][np.cumsum(is_new) - 1] if len(order) else before
    places = np.empty(len(order), np.int64)
    places[order] = before - begins + first[sorted_ranks]
    return places


def _within(start: list[int], shape: list[int], corner: list[int]) -> tuple[Any, ...]:
    """Return the index of a box in an array that begins at a corner; of no dimensions, that of its value."""
    return (*(slice(a - c, a - c + n) for a, n, c in zip(start, shape, corner, strict=True)), ...)


def within_run(
    start: list[int], shape: list[int], whole: tuple[int, ...], values: NDArray[Any], first: int
) -> NDArray[Any]:
    """Return a box of an array of shape `whole`; a view of `values`, its elements from `first` on."""
    strides = [values.itemsize] * len(whole)
    for d in reversed(range(len(whole) - 1)):
        strides[d] = strides[d + 1] * whole[d + 1]
    offset = sum(a * n for a, n in zip(start, strides, strict=True)) - first * values.itemsize
    return np.ndarray(shape, values.dtype, values, offset, strides)


def composed(
    start: list[int], shape: list[int], read: list[tuple[list[int], NDArray[Any]]], dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Return the values of a box, which lies in boxes that were read."""
    if len(read) == 1:
        corner, values = read[0]
        return values[_within(start, shape, corner)]  # type: ignore[no-any-return]
    values = np.empty(shape, dtype)
    for corner, part in read:
        low = [max(a, c) for a, c in zip(start, corner, strict=True)]
        high = [min(a + n, c + m) for a, n, c, m in zip(start, shape, corner, part.shape, strict=True)]
        common = [b - a for a, b in zip(low, high, strict=True)]
        if all(n > 0 for n in common):
            values[_within(low, common, start)] = part[_within(low, common, corner)]
    return values
