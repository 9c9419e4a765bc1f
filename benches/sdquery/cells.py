"""What is measured of one class, or of the File DSI, on one network: runs, and how they are summed up."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

FILE = "File DSI"


@dataclass(frozen=True)
class Run:
    """One transfer.

    Attributes
    ----------
    query
        Which of the class; 0 for the file.
    size
        Bytes of the whole result or file.
    seconds
        Of the client's process, from start to end.
    measured
        Bytes that were transferred. Where they are fewer than the size, the rest was reckoned at the rate at
        which the last three quarters of them arrived.
    """

    query: int
    size: int
    seconds: float
    measured: int


@dataclass
class Cell:
    """All runs of one class of queries, or of the whole file, on one network.

    Attributes
    ----------
    processing
        Seconds of opening and evaluating each query at the server, without transfer; by query.
    """

    ocean: str
    line: str
    name: str
    runs: list[Run] = field(default_factory=list)
    processing: dict[int, float] = field(default_factory=dict)

    @property
    def by_query(self) -> dict[int, list[float]]:
        """The seconds of each query."""
        found: dict[int, list[float]] = {}
        for run in self.runs:
            found.setdefault(run.query, []).append(run.seconds)
        return found

    @property
    def seconds(self) -> float:
        """The mean over the queries of the median of each."""
        return statistics.fmean(statistics.median(seconds) for seconds in self.by_query.values())

    @property
    def range(self) -> tuple[float, float]:
        """The least and the most seconds of any run."""
        seconds = [run.seconds for run in self.runs]
        return min(seconds), max(seconds)

    @property
    def spread(self) -> float:
        """The largest distance of two runs of one query, as a share of their median."""
        return max(
            (max(seconds) - min(seconds)) / statistics.median(seconds) for seconds in self.by_query.values()
        )

    @property
    def size(self) -> float:
        """The mean size over the queries."""
        return statistics.fmean({run.query: run.size for run in self.runs}.values())

    @property
    def evaluation(self) -> float:
        """The mean seconds of query processing of the queries that were run."""
        spent = [self.processing[query] for query in self.by_query if query in self.processing]
        return statistics.fmean(spent) if spent else 0.0


def fill(
    cells: Sequence[Cell],
    ways: Sequence[Callable[[int], Run]],
    queries: int,
    budget: float,
    least: int = 1,
) -> None:
    """Run queries by all ways in turn, until the time is used up or each was run three times.

    Parameters
    ----------
    cells
        What takes the runs, one for each way.
    ways
        Each runs a query by its number.
    queries
        How many there are.
    budget
        Seconds of runs, in each cell, after which no other is started.
    least
        Runs that are made in any case.
    """
    spent = 0.0
    for number, query in enumerate(_order(queries)):
        if spent >= budget * len(cells) and number >= least:
            return
        for cell, way in zip(cells, ways, strict=True):
            done = way(query)
            cell.runs.append(done)
            # What was not transferred took no time.
            spent += done.seconds * done.measured / done.size


def _order(queries: int) -> list[int]:
    """Return each query three times: two by two at first, so that where few are run, some are run again."""
    pairs = [range(first, min(first + 2, queries)) for first in range(0, queries, 2)]
    return [*(query for pair in pairs for _ in range(2) for query in pair), *range(queries)]
