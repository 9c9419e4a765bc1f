"""What each way asks of the servers: for each process, phases of requests, one behind the other.

A request is server, first byte, bytes. Processes wait for one another (`Stream.barriers`) between phases
where the way
is collective. Sizes are those that were counted on CephFS: a request of FUSE is at most 128 KiB
(`LARGEST`), and a run
of less is one request, of whole pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

LARGEST = 128 << 10
PAGE = 4096
Request = tuple[int, int, int]


@dataclass(frozen=True)
class Shape:
    """Where things lie: the array, the file's stripes, and who asks.

    Attributes
    ----------
    shape
        time, level, lat, lon of float32; one record behind the other.
    records
        Of a call.
    stripe, servers
        Bytes of a stripe, and how many servers these are dealt out to in turn.
    processes, groups
        Who reads; see `batches.Asked`.
    readers
        Processes that read for others: aggregators of a collective call, by group; HiLa's for all.
    largest
        Bytes of a request at most.
    """

    shape: tuple[int, int, int, int]
    records: int
    stripe: int
    servers: int
    processes: int
    groups: int
    readers: int
    largest: int = LARGEST

    @property
    def record(self) -> int:
        """Bytes of a record."""
        return 4 * self.shape[1] * self.shape[2] * self.shape[3]

    def start(self, call: int, step: int) -> int:
        """Return the first record of a call."""
        return (call * step) % (self.shape[0] - self.records + 1)

    def pieces(self, low: int, high: int, largest: int | None = None) -> Iterator[Request]:
        """Yield the requests for a range of bytes: none over a stripe's border, none too large."""
        most = largest or self.largest
        while low < high:
            end = min(high, (low // self.stripe + 1) * self.stripe, low + most)
            yield low // self.stripe % self.servers, low, end - low
            low = end


@dataclass
class Stream:
    """What is asked in one batch.

    Attributes
    ----------
    phases
        Of each process, lists of requests.
    barriers
        For each phase the processes that begin it together: numbers of groups; None where nobody waits.
    exchanged
        Bytes that go from who reads to who asked, and that are copied.
    overlaps
        Whether bytes go while others are read.
    """

    phases: list[list[list[Request]]]
    group_of: list[int] = field(default_factory=list)
    is_collective: bool = False
    exchanged: int = 0
    overlaps: bool = False

    def requests(self) -> int:
        """Return how many requests there are."""
        return sum(len(phase) for phases in self.phases for phase in phases)

    def bytes(self) -> int:
        """Return how many bytes are read."""
        return sum(n for phases in self.phases for phase in phases for _, _, n in phase)


def independent(of: Shape, calls: int, step: int) -> Stream:
    """Each process reads its part of each call of its group: a run of rows of each level of each record."""
    each = of.processes // of.groups
    row = 4 * of.shape[3]
    phases: list[list[list[Request]]] = []
    for rank in range(of.processes):
        group, place = rank // each, rank % each
        low, high = of.shape[2] * place // each, of.shape[2] * (place + 1) // each
        own: list[Request] = []
        for call in range(group, calls, of.groups):
            first = of.start(call, step) * of.record
            for level in range(of.records * of.shape[1]):
                at = first + level * of.shape[2] * row
                # The kernel reads whole pages.
                own += of.pieces((at + low * row) // PAGE * PAGE, -(-(at + high * row) // PAGE) * PAGE)
        phases.append([own])
    return Stream(phases)


def collective(of: Shape, calls: int, step: int) -> Stream:
    """Each call by itself: its bytes are divided among aggregators of its group, and sent to who asked."""
    each = of.processes // of.groups
    phases: list[list[list[Request]]] = [[] for _ in range(of.processes)]
    for call in range(calls):
        group = call % of.groups
        first = of.start(call, step) * of.record
        parts = _divided(of, [(first, first + of.records * of.record)], of.readers)
        for place in range(each):
            phases[group * each + place].append(parts[place] if place < len(parts) else [])
    sent = calls * of.records * of.record
    return Stream(phases, [rank // each for rank in range(of.processes)], is_collective=True, exchanged=sent)


def nonblocking(of: Shape, calls: int, step: int) -> Stream:
    """All calls as one: the union of their bytes is divided among aggregators."""
    return _together(of, calls, step, overlaps=False)


def hila(of: Shape, calls: int, step: int, *, overlaps: bool = True) -> Stream:
    """Read the union of all calls: each server's pieces by one reader, in the order in which they lie."""
    return _together(of, calls, step, overlaps=overlaps, by_server=True)


def _together(of: Shape, calls: int, step: int, *, overlaps: bool, by_server: bool = False) -> Stream:
    ranges = _union([of.start(call, step) for call in range(calls)], of.records)
    whole = [(a * of.record, b * of.record) for a, b in ranges]
    readers = of.readers * (1 if by_server else of.groups)
    if by_server:
        parts: list[list[Request]] = [[] for _ in range(readers)]
        for low, high in whole:
            for server, at, n in of.pieces(low, high):
                parts[server % readers].append((server, at, n))
    else:
        parts = _divided(of, whole, readers)
    # Readers are spread over processes.
    phases: list[list[list[Request]]] = [[[]] for _ in range(of.processes)]
    for i, part in enumerate(parts):
        phases[i * of.processes // len(parts)][0].extend(part)
    sent = calls * of.records * of.record
    group = [0] * of.processes
    return Stream(phases, group, is_collective=True, exchanged=sent, overlaps=overlaps)


def _union(starts: list[int], length: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start in sorted(starts):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], start + length))
        else:
            found.append((start, start + length))
    return found


def _divided(of: Shape, ranges: list[tuple[int, int]], readers: int) -> list[list[Request]]:
    """Return ranges of bytes as file domains of equal size, one for each reader."""
    total = sum(high - low for low, high in ranges)
    parts: list[list[Request]] = [[] for _ in range(readers)]
    done = 0
    for low, high in ranges:
        at = low
        while at < high:
            reader = min(readers - 1, done * readers // total)
            room = -(-total * (reader + 1) // readers) - done if reader < readers - 1 else high - at
            end = min(high, at + max(1, room))
            parts[reader] += of.pieces(at, end)
            done += end - at
            at = end
    return parts


WAYS = {"independent": independent, "collective": collective, "nonblocking": nonblocking, "hila": hila}
