"""What one rank reads, packs and unpacks in each wave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sieva._ranks.pieces import REQUEST, columns
from sieva._ranks.union import disjoint
from sieva.engines._frames import pack_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from sieva._ranks.pieces import Table
    from sieva._ranks.plan import Plan
    from sieva._ranks.together import Did

    Bytes = NDArray[np.uint8]
    Ints = NDArray[np.int64]


class Opener(Protocol):
    """What reads a box of the array of a number."""

    def read(self, array: int, start: list[int], shape: list[int]) -> NDArray[Any]:
        """Return decoded values."""


class Reads:
    """The work of a rank by a plan.

    Parameters
    ----------
    rank
        Its number.
    plan, tables, askers, dtypes, is_row
        What is done: pieces, who asked for each, the type of each array, and whether its units are rows of
        elements rather than boxes.
    opener
        What reads.
    answers
        For each request of this rank where its box starts, and the array that its values go to.
    did
        What is counted.
    """

    def __init__(
        self,
        *,
        rank: int,
        plan: Plan,
        tables: list[Table],
        askers: list[Ints],
        dtypes: list[np.dtype[Any]],
        is_row: list[bool],
        opener: Opener,
        answers: list[Any],
        did: Did,
    ) -> None:
        self._rank, self._plan, self._dtypes, self._opener = rank, plan, dtypes, opener
        self._answers, self._did, self._is_row = answers, did, is_row
        self._boxes = [columns(table) for table in tables]
        self._request = [table[:, REQUEST] for table in tables]
        n = len(plan.row)
        self._asker, self._bytes = np.empty(n, np.int64), np.empty(n, np.int64)
        for array, (_, shape) in enumerate(self._boxes):
            of = plan.array == array
            self._asker[of] = askers[array][plan.row[of]]
            self._bytes[of] = shape[plan.row[of]].prod(axis=1) * dtypes[array].itemsize
        self.failed: dict[int, bytes] = {}
        """Units that this rank could not read, and why."""

    def own_units(self) -> list[tuple[int, int]]:
        """Return request and unit of each piece that this rank asked for."""
        mine = np.flatnonzero(self._asker == self._rank)
        return [
            (int(self._request[self._plan.array[i]][self._plan.row[i]]), int(self._plan.unit[i]))
            for i in mine.tolist()
        ]

    def wave(self, number: int, size: int, of: NDArray[np.bool_]) -> OneWave:
        """Return a wave of the arrays that `of` names, of all ranks."""
        plan = self._plan
        inside = (plan.wave == number) & of[plan.array] if len(plan.row) else np.zeros(0, bool)
        reads = np.flatnonzero(inside & (plan.reader == self._rank))
        takes = np.flatnonzero(inside & (self._asker == self._rank) & (plan.reader != self._rank))
        others = reads[self._asker[reads] != self._rank]
        sends = np.bincount(self._asker[others], self._bytes[others], size)
        receives = np.bincount(plan.reader[takes], self._bytes[takes], size)
        self._did.sent += int(sends.sum())
        return OneWave(self, reads, takes, [int(n) for n in sends], [int(n) for n in receives])

    def texts(self, comm: Any, size: int, of: NDArray[np.bool_]) -> None:  # noqa: ANN401
        """Read and exchange the arrays that `of` names: texts, which are no bytes of a known number."""
        wave = of[self._plan.array] if len(self._plan.row) else np.zeros(0, bool)
        going: list[list[tuple[int, NDArray[Any]]]] = [[] for _ in range(size)]
        for item, values in self.values(np.flatnonzero(wave & (self._plan.reader == self._rank))):
            if values is not None:
                going[self._asker[item]].append((item, values))
        for item, values in (one for part in comm.alltoall(going) for one in part):
            self.put(item, values)

    def values(self, items: Ints) -> Iterator[tuple[int, NDArray[Any] | None]]:
        """Read units; yield the number of each piece and its values, None where they could not be had."""
        unit = self._plan.unit[items]
        for part in np.split(items, np.flatnonzero(np.diff(unit)) + 1) if len(items) else []:
            yield from self._unit(part)

    def _unit(self, items: Ints) -> Iterator[tuple[int, NDArray[Any] | None]]:
        """Read what pieces of a unit have in common once."""
        array = int(self._plan.array[items[0]])
        start, shape = (corner[self._plan.row[items]] for corner in self._boxes[array])
        try:
            at, n = disjoint(start, shape, is_row=self._is_row[array])
            read = [(a, self._opener.read(array, a.tolist(), b.tolist())) for a, b in zip(at, n, strict=True)]
        except Exception as error:  # whoever needs it is told
            self.failed[int(self._plan.unit[items[0]])] = pack_error(error)
            read = []
        self._did.boxes += len(read)
        self._did.read += sum(values.nbytes for _, values in read)
        for item, low, lengths in zip(items.tolist(), start, shape, strict=True):
            yield item, composed(low, lengths, read, self._dtypes[array]) if read else None

    def put(self, item: int, values: NDArray[Any]) -> None:
        """Put the values of a piece where they belong in the request's answer."""
        array, row = int(self._plan.array[item]), int(self._plan.row[item])
        corner, answer = self._answers[int(self._request[array][row])]
        start, shape = (corners[row].tolist() for corners in self._boxes[array])
        answer[_within(start, shape, corner)] = values

    def shaped(self, item: int, data: Bytes) -> NDArray[Any]:
        """Return bytes as the values of a piece."""
        array = int(self._plan.array[item])
        return data.view(self._dtypes[array]).reshape(self._boxes[array][1][self._plan.row[item]].tolist())

    def of(self, items: Ints) -> tuple[Ints, Ints, Ints]:
        """Return who asked for pieces, who reads them, and how many bytes they are."""
        return self._asker[items], self._plan.reader[items], self._bytes[items]

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
            if values is None:
                # Nobody looks at it: whoever asked is told. But it is no more of this rank's memory.
                out[at : at + n] = 0
            elif asker[of[item]] == self._reads.rank:
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


def composed(
    start: Ints, shape: Ints, read: list[tuple[Ints, NDArray[Any]]], dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Return the values of a box, which lies in boxes that were read."""
    stop = start + shape
    if len(read) == 1:
        corner, values = read[0]
        return values[_within(start.tolist(), shape.tolist(), corner.tolist())]  # type: ignore[no-any-return]
    values = np.empty(shape.tolist(), dtype)
    for corner, part in read:
        low = np.maximum(start, corner)
        high = np.minimum(stop, corner + np.array(part.shape, np.int64))
        if (low < high).all():
            common = (high - low).tolist()
            values[_within(low.tolist(), common, start.tolist())] = part[
                _within(low.tolist(), common, corner.tolist())
            ]
    return values
