"""How long a batch takes on so many servers: a queue at each, and what a request costs.

A process asks for one request after the other, of which `depth` are under way (the kernel reads ahead). A
request waits
until its server has done those before it (first come, first served), and takes

    overhead + bytes / bandwidth + seek where it does not begin where the server's last one ended

there; then its bytes pass through the process, `copy` seconds each. Where servers and processes share
`cores` (one
machine stands in for all), each of the two has to have a core while it works. Bytes that are exchanged take
`send`
seconds each, shared by the cores, or by the nodes; beside reading where the way overlaps the two, else after.

What it leaves out: caches of servers, the network between, and locks.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from streams import Request, Stream


@dataclass(frozen=True)
class Costs:
    """Seconds, and how much runs at once.

    Attributes
    ----------
    overhead, per_byte, seek
        Of a request at its server; seek where it begins elsewhere than the last one ended.
    asking, copy
        Of a request, and of each of its bytes, at the process that asked.
    send
        Of each byte that is exchanged.
    cores
        Cores that servers and processes share; None: each has its own.
    nodes
        Nodes whose processes exchange at once, where cores are not shared.
    depth
        Requests of a process that are under way.
    """

    overhead: float
    per_byte: float
    seek: float = 0.0
    asking: float = 0.0
    copy: float = 0.0
    send: float = 0.0
    cores: int | None = None
    nodes: int = 1
    depth: int = 2

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


class _Servers:
    """Servers that do one request after the other, and the cores that they run on."""

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self.free: dict[int, float] = {}
        self.ended: dict[int, int] = {}
        self.cores = [0.0] * (costs.cores or 0)

    def run(self, at: float, seconds: float) -> float:
        """Return when work that may begin at a time has been done by a core."""
        if not self.cores:
            return at + seconds
        begin = max(at, heapq.heappop(self.cores))
        heapq.heappush(self.cores, begin + seconds)
        return begin + seconds

    def serve(self, at: float, request: Request) -> float:
        """Return when the process has the bytes of a request that it makes at a time."""
        server, first, n = request
        costs = self.costs
        seconds = costs.overhead + n * costs.per_byte
        if self.ended.get(server) != first:
            seconds += costs.seek
        self.ended[server] = first + n
        done = self.run(max(at, self.free.get(server, 0.0)), seconds)
        self.free[server] = done
        return self.run(done, costs.asking + n * costs.copy)


def seconds(stream: Stream, costs: Costs) -> float:
    """Return how long a batch takes."""
    servers = _Servers(costs)
    ends = (
        _collective(stream, servers)
        if stream.is_collective
        else _each(stream, servers, [0.0] * len(stream.phases))
    )
    exchange = stream.exchanged * costs.send / (costs.cores or costs.nodes)
    read = max(ends, default=0.0)
    if not stream.overlaps:
        return read + exchange
    # With shared cores nothing is hidden; else the longer of the two is what it takes.
    return read + exchange if costs.cores else max(read, exchange)


def _collective(stream: Stream, servers: _Servers) -> list[float]:
    """Run phase after phase; processes of a group begin each together."""
    ends = [0.0] * len(stream.phases)
    for number in range(max(len(phases) for phases in stream.phases)):
        begins = {
            g: max(e for e, h in zip(ends, stream.group_of, strict=True) if h == g)
            for g in set(stream.group_of)
        }
        part = [phases[number : number + 1] for phases in stream.phases]
        ends = _each(replace(stream, phases=part), servers, [begins[g] for g in stream.group_of])
    return ends


def _each(stream: Stream, servers: _Servers, begins: Sequence[float]) -> list[float]:
    """Run the requests of all processes, in the order of time; return when each process has all."""
    depth = servers.costs.depth
    own = [[request for phase in phases for request in phase] for phases in stream.phases]
    ends = list(begins)
    # When a process makes its next request: as one of those under way is done.
    waiting = [(begin, rank) for rank, begin in enumerate(begins) for _ in range(depth) if own[rank]]
    heapq.heapify(waiting)
    place = [0] * len(own)
    while waiting:
        at, rank = heapq.heappop(waiting)
        if place[rank] == len(own[rank]):
            continue
        done = servers.serve(at, own[rank][place[rank]])
        place[rank] += 1
        ends[rank] = max(ends[rank], done)
        heapq.heappush(waiting, (done, rank))
    return ends


@dataclass(frozen=True)
class Measured:
    """A cell that was measured: what was asked of servers, and the seconds that it took.

    Attributes
    ----------
    requests, bytes, exchanged
        At all servers, and between processes.
    servers
        Seconds of processor time of all servers.
    elapsed
        Seconds from the beginning to the end.
    """

    requests: float
    bytes: float
    exchanged: float
    servers: float
    elapsed: float


def fitted(cells: Sequence[Measured], cores: int) -> Costs:
    """Return the costs that fit cells best, by least squares, none negative.

    Of servers by their processor time; the rest by what cores had to do in the time that passed, of which the
    servers' part is taken away.
    """
    asked = np.array([[c.requests, c.bytes] for c in cells], float)
    overhead, per_byte = _least(asked, np.array([c.servers for c in cells]))
    more = np.array([[c.requests, c.bytes, c.exchanged] for c in cells], float)
    rest = np.array([cores * c.elapsed - c.servers for c in cells])
    asking, copy, send = _least(more, np.maximum(rest, 0))
    return Costs(overhead, per_byte, 0.0, asking, copy, send, cores)


def _least(terms: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> list[float]:
    """Return the factors of terms, none negative, whose relative errors are least in squares."""
    weight = 1 / np.maximum(wanted, 1e-9)
    scaled, ones = terms * weight[:, None], np.ones(len(wanted))
    names = list(range(terms.shape[1]))
    best: tuple[float, list[float]] = (np.inf, [0.0] * len(names))
    # All sets of terms: what is negative in one is left out in another.
    for chosen in range(1, 1 << len(names)):
        of = [i for i in names if chosen >> i & 1]
        found, *_ = np.linalg.lstsq(scaled[:, of], ones, rcond=None)
        error = float(((scaled[:, of] @ found - ones) ** 2).sum())
        if (found >= 0).all() and error < best[0]:
            factors = [0.0] * len(names)
            for i, value in zip(of, found, strict=True):
                factors[i] = float(value)
            best = (error, factors)
    return best[1]
