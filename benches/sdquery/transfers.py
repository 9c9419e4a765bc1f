"""Figures 7, 8 and 10 of SDQuery: results of queries over networks, the whole file, and more streams."""

import statistics
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import netCDF4
import numpy as np
import sieva
from beside import warm
from cells import FILE, Cell, Run, fill
from draw import NAMES, Drawn
from gridftp import Plugin, Server, checksum, encoded, serving
from network import Line, Network
from oceans import Ocean

HERE = Path(__file__).resolve().parent
# Less than this many times the part that is measured is transferred whole.
WHOLE = 1.25
STREAMS, PROBED = (1, 2, 3, 4, 5), (1, 2, 3, 4)
# Classes of figure 10: the paper has four.
STREAMED = (1, 2, 3, 4)
# What a stream had before systems tuned their windows by themselves, and the class that shows it.
WINDOW, WINDOWED = 128 << 10, 3
NON_OVERLAPPING = "non-overlapping"


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    Attributes
    ----------
    relay, own
        Of `Network`.
    target
        The directory at the client.
    plugin
        The plug-in. Without one, the answers are made beforehand and sent by the File DSI: that
        shows that everything runs, and no figure of it is one of the plug-in.
    budget, least
        Seconds for each cell, and its least number of runs.
    parts
        Seconds of a line's rate after which a transfer is cut and the rest reckoned, by the line's name; 0
        for none. The rate of a line that is many times slower than disk and processor is the transfer's.
    streams
        Streams of both, the File DSI and the plug-in.
    """

    relay: Path
    own: float
    target: Path
    plugin: Plugin | None
    budget: float
    least: int
    parts: dict[str, float]
    streams: int

    def part(self, line: Line) -> int:
        """Return the bytes after which transfers of a line are cut; 0 for none."""
        return int(line.rate / 8 * self.parts.get(line.name, 0))


@dataclass
class Asked:
    """A data set with its queries, and what is known of their results from whole transfers.

    Attributes
    ----------
    processing
        Seconds that opening and evaluating a query takes at the server; by its number.
    lengths
        After how many bytes transfers may be cut.
    prefixes
        Checksums of the first bytes of what is known to be right, by its name and their number.
    is_right
        The queries whose whole result was compared with numpy's.
    """

    ocean: Ocean
    queries: list[Drawn]
    lengths: tuple[int, ...]
    processing: dict[int, float] = field(default_factory=dict)
    prefixes: dict[tuple[str, int], int] = field(default_factory=dict)
    is_right: set[str] = field(default_factory=set)

    def of_class(self, number: int) -> list[Drawn]:
        """Return the queries of a class."""
        return [query for query in self.queries if query.number == number]

    def prefix(self, name: str, path: Path, length: int) -> int:
        """Return the checksum of a file's first bytes, taken once."""
        if (name, length) not in self.prefixes:
            self.prefixes[name, length] = checksum(path, length)
        return self.prefixes[name, length]

    def size(self, query: Drawn) -> int:
        """Return the bytes of the values that a query selects; the head of a result is some hundred more."""
        return 4 * query.hits * len(query.arrays)


def compare(received: Path, query: Drawn) -> None:
    """Refuse a result whose values are not those that numpy selects."""
    with netCDF4.Dataset(received) as f:
        f.set_auto_mask(False)
        for name, expected in query.checksums.items():
            values = np.ascontiguousarray(f[name][:], np.float32)
            values[np.isnan(values)] = np.nan
            if len(values) != query.hits or zlib.crc32(values) != expected:
                raise SystemExit(
                    f"{len(values)} values of {name}, numpy has {query.hits} or others: {query.sql}"
                )


def evaluate(asked: Asked, runs: int = 2) -> None:
    """Time what comes before a transfer: opening, parsing, and the positions that satisfy the condition."""
    warm(asked.ocean.path)
    for number, query in enumerate(asked.queries):
        condition = query.sql.split(" WHERE ", 1)[1]
        seconds = []
        for _ in range(runs):
            start = time.perf_counter()
            made = sieva.open(asked.ocean.path).query(condition, select=list(query.arrays))
            hits = len(made.selection())
            seconds.append(time.perf_counter() - start)
            if hits != query.hits:
                raise SystemExit(f"{hits} hits, numpy has {query.hits}: {query.sql}")
        asked.processing[number] = statistics.median(seconds)


@dataclass
class Transfers:
    """Transfers of one data set over one network, of its file and of results."""

    plan: Plan
    asked: Asked
    line: Line
    files: Server
    results: Server

    def file(self, _: int = 0) -> Run:
        """Transfer the file by the File DSI."""
        path = self.asked.ocean.path
        size = path.stat().st_size
        seconds, measured = self._copy(self.files, encoded(path), size, self.plan.streams)
        if checksum(self.files.received, measured) != self.asked.prefix(str(path), path, measured):
            raise SystemExit(f"{path} did not arrive as it is")
        return Run(0, size, seconds, measured)

    def query(self, queries: list[Drawn], streams: int, number: int) -> Run:
        """Transfer the result of one of some queries."""
        return self.result(number, queries[number], streams)

    def result(self, number: int, query: Drawn, streams: int, options: tuple[str, ...] = ()) -> Run:
        """Transfer the result of a query by the plug-in and compare it with numpy's."""
        path = encoded(self.asked.ocean.path, query.sql)
        if not self.plan.plugin:
            path = encoded(self.stand_in(query))
        size = self.asked.size(query)
        seconds, measured = self._copy(self.results, path, size, streams, options)
        self._check(query, measured)
        return Run(number, max(size, measured), seconds, measured)

    def _copy(
        self, server: Server, path: str, size: int, streams: int, options: tuple[str, ...] = ()
    ) -> tuple[float, int]:
        """Return the seconds, those of the rest reckoned, and the bytes that were transferred."""
        part = self.plan.part(self.line)
        if not part or size <= WHOLE * part:
            seconds, _ = server.copy(path, streams, options=options)
            return seconds, server.received.stat().st_size
        seconds, rate = server.copy(path, streams, length=part, options=options)
        return seconds + (size - part) / rate, part

    def _check(self, query: Drawn, measured: int) -> None:
        """Compare a whole result with numpy's, once; all others with the first bytes of that."""
        received = self.results.received
        if measured >= self.asked.size(query) and query.sql not in self.asked.is_right:
            compare(received, query)
            self.asked.is_right.add(query.sql)
            for length in {measured, *self.asked.lengths}:
                self.asked.prefix(query.sql, received, min(length, measured))
        known = self.asked.prefixes.get((query.sql, measured))
        if checksum(received, measured) != known:
            raise SystemExit(f"the first {measured} bytes that arrived are not those of before: {query.sql}")

    def stand_in(self, query: Drawn) -> Path:
        """Return a file with the answer of a query, made beforehand, for want of the plug-in."""
        path = self.plan.target / f"{self.asked.ocean.name}-{self.asked.queries.index(query)}.nc"
        if not path.exists():
            _retrieve(self.asked.ocean.path, query, path)
        return path

    def retrieved_first(self, number: int, query: Drawn) -> Run:
        """Retrieve a result at the server, then transfer it by the File DSI."""
        path = self.plan.target / "retrieved.nc"
        start = time.perf_counter()
        _retrieve(self.asked.ocean.path, query, path)
        before = time.perf_counter() - start
        size = path.stat().st_size
        seconds, measured = self._copy(self.files, encoded(path), size, 1)
        path.unlink()
        return Run(number, size, before + seconds, measured)


def _retrieve(source: Path, query: Drawn, target: Path) -> None:
    words = [sys.executable, str(HERE / "retrieve.py"), str(source), query.sql, str(target)]
    subprocess.run(words, check=True)
    target.chmod(0o644)


def against_file(plan: Plan, network: Network, asked: Asked) -> Iterator[Cell]:
    """Yield the File DSI and the six classes on a network, that of a figure's panel."""
    # One server at a time has the port.
    ocean, line = asked.ocean, network.line
    cell = Cell(ocean.name, line.name, FILE)
    with serving(network, plan.target, None) as server:
        fill([cell], [Transfers(plan, asked, line, server, server).file], 1, plan.budget, plan.least)
    yield cell
    with serving(network, plan.target, plan.plugin) as server:
        made = Transfers(plan, asked, line, server, server)
        for number, name in enumerate(NAMES):
            cell = Cell(ocean.name, line.name, name)
            queries = asked.of_class(number)
            if plan.part(line):
                # What is cut can be compared only with what was received whole, on a faster line.
                queries = [query for query in queries if query.sql in asked.is_right]
            for at, query in enumerate(queries):
                cell.processing[at] = asked.processing[asked.queries.index(query)]
            way = partial(made.query, queries, plan.streams)
            fill([cell], [way], len(queries), plan.budget, plan.least)
            yield cell


def with_streams(plan: Plan, network: Network, asked: Asked, rounds: int) -> Iterator[Cell]:
    """Yield figure 10: retrieved before it is sent, then 1 to 5 streams, as tuned and with small windows."""
    ocean, line = asked.ocean, network.line
    chosen = {number: asked.of_class(number)[0] for number in STREAMED}
    with serving(network, plan.target, None) as server:
        made = Transfers(plan, asked, line, server, server)
        for number, query in chosen.items():
            cell = Cell(ocean.name, NON_OVERLAPPING, NAMES[number])
            cell.runs = [made.retrieved_first(0, query) for _ in range(rounds)]
            yield cell
    with serving(network, plan.target, plan.plugin) as server:
        made = Transfers(plan, asked, line, server, server)
        for number, query in chosen.items():
            for streams in STREAMS:
                cell = Cell(ocean.name, _streams(streams), NAMES[number])
                cell.runs = [made.result(0, query, streams) for _ in range(rounds)]
                yield cell
        options = ("-tcp-bs", str(WINDOW))
        for streams in STREAMS:
            cell = Cell(ocean.name, f"{_streams(streams)}, {WINDOW >> 10} KiB windows", NAMES[WINDOWED])
            cell.runs = [made.result(0, chosen[WINDOWED], streams, options) for _ in range(rounds)]
            yield cell


def _streams(number: int) -> str:
    return f"{number} stream{'s' * (number > 1)}"


def mode(streams: int) -> str:
    """Return the name of a mode of so many streams."""
    return f"-p {streams}" if streams > 1 else "1 stream"


def probe(plan: Plan, network: Network, path: Path, seconds: float) -> dict[str, float]:
    """Return the rate of the File DSI, in Mb/s, in each mode that it might be best in."""
    modes: dict[str, tuple[int, tuple[str, ...]]] = {mode(streams): (streams, ()) for streams in PROBED}
    modes["-p 2 -fast"] = (2, ("-fast",))
    modes["-p 2 -fast -tcp-bs 4 MiB"] = (2, ("-fast", "-tcp-bs", str(4 << 20)))
    modes["-p 2 -fast -bs 1 MiB"] = (2, ("-fast", "-bs", str(1 << 20)))
    length = min(path.stat().st_size, int(network.line.rate / 8 * seconds))
    with serving(network, plan.target, None) as server:
        return {
            name: round(
                length * 8e-6 / server.copy(encoded(path), streams, length=length, options=options)[0], 1
            )
            for name, (streams, options) in modes.items()
        }
