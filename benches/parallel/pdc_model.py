"""How long a query takes on so many workers: what all of them do, what one does, and levels of merging.

    seconds(n) = fixed + part * parts(n) + level * levels(n) + (work + repeated * parts(n)) / n

``work`` and ``repeated`` are measured by running the tasks of a query one after the other, without an engine;
the other three by queries that have nothing to evaluate, cut into more and more parts. How a query that works
scales is not looked at, so that what is measured of it can differ from the model.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

import numpy as np
from sieva.engines import _effort
from sieva.engines.dask import FAN_IN, PARTS


def levels(parts: int) -> int:
    """Return how many times workers merge partial results, one level after the other, until one is left.

    Few are merged by the client.
    """
    found = 0
    while parts > (1 if found else FAN_IN):
        parts = -(-parts // FAN_IN)
        found += 1
    return found


@dataclass(frozen=True)
class Overhead:
    """What an engine takes, in seconds.

    Attributes
    ----------
    fixed
        For any query.
    part
        For each part: it is submitted, and told of, one after the other.
    level
        For each level of merging.
    """

    fixed: float
    part: float
    level: float

    def of(self, parts: int) -> float:
        """Return the seconds for so many parts."""
        return self.fixed + self.part * parts + self.level * levels(parts)


@dataclass(frozen=True)
class Work:
    """What evaluating takes, in seconds of one worker.

    Attributes
    ----------
    work
        Of all rows, into however many parts they are cut.
    repeated
        What each part does anew.
    """

    work: float
    repeated: float

    def of(self, parts: int) -> float:
        """Return the seconds of all parts together."""
        return self.work + self.repeated * parts


def overhead(measured: Sequence[tuple[int, float]]) -> Overhead:
    """Return the overhead that explains pairs of parts and seconds best."""
    names = [field.name for field in fields(Overhead)]
    return Overhead(**_fitted(names, [(1.0, float(n), float(levels(n))) for n, _ in measured], measured))


def work(measured: Sequence[tuple[int, float]]) -> Work:
    """Return the work that explains pairs of parts and seconds best."""
    names = [field.name for field in fields(Work)]
    return Work(**_fitted(names, [(1.0, float(n)) for n, _ in measured], measured))


def _fitted(
    names: list[str], rows: list[tuple[float, ...]], measured: Sequence[tuple[int, float]]
) -> dict[str, float]:
    """Return terms of a sum by least squares of relative errors; none is below 0."""
    seconds = np.array([spent for _, spent in measured])
    matrix = np.array(rows) / seconds[:, None]
    kept = list(range(len(names)))
    while True:
        found, *_ = np.linalg.lstsq(matrix[:, kept], np.ones(len(seconds)), rcond=None)
        if found.min() >= 0 or len(kept) == 1:
            terms = dict.fromkeys(names, 0.0)
            return terms | {names[i]: max(0.0, float(term)) for i, term in zip(kept, found, strict=True)}
        # The most negative term explains nothing: the others are fitted without it.
        del kept[int(found.argmin())]


@dataclass(frozen=True)
class Model:
    """A query on so many workers."""

    overhead: Overhead
    work: Work

    def parts(self, workers: int) -> int:
        """Return into how many parts the query is cut, were its price what it takes."""
        return _effort.parts(self.work.of(1), workers, PARTS)

    def seconds(self, workers: int) -> float:
        """Return how long the query takes."""
        parts = self.parts(workers)
        return self.overhead.of(parts) + self.work.of(parts) / workers

    def best(self, most: int = 512) -> int:
        """Return the number of workers, a power of two, on which it is fastest."""
        return min((1 << i for i in range(most.bit_length())), key=self.seconds)

    def of_more(self, factor: float) -> "Model":
        """Return the model of so much more data."""
        return Model(self.overhead, Work(self.work.work * factor, self.work.repeated))

    def terms(self) -> dict[str, float]:
        """Return all terms by name."""
        return {**asdict(self.overhead), **asdict(self.work)}
