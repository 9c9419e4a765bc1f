"""Ten variables, requests for parts of them in the eight types of Table I, and numpy's answers.

What the paper leaves open is drawn here, and decides by how much traffic shrinks:

- A variable is a matrix of ``COLUMNS`` columns whose values are log-normal. Their sigma differs from variable
  to variable, from 1 to 4 in equal steps, so that 31 % to 2 % of the values (13 % on average) are at least
  the mean, which DR6 asks for.
- The ranges of DR4, and the shares of the values that the thresholds of DR5 and DR7 enclose, are log-uniform
  between 0.01 % and 10 % (1.4 % on average), anywhere in the variable. The paper's own measurement of DR4
  asks for 1 KB to 128 MB of 1.5 GB.
- DR8 is a histogram of 64 bins or the mean of each row, as likely.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa

VARIABLES = 10
COLUMNS = 64
SIGMAS = tuple(1 + 3 * number / (VARIABLES - 1) for number in range(VARIABLES))
LEAST_SHARE, MOST_SHARE = 1e-4, 0.1
BINS = 64
# The exponent of Zipf's law, by which the popular requests are drawn.
ZIPF = 1.0
Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Asked:
    """A request: of type 1 to 8, of one variable, or two for DR7.

    Attributes
    ----------
    low, high
        The first position and the one behind the last of DR4, thresholds of DR5 and DR7.
    function
        Of DR8: ``histogram`` or ``rows``.
    """

    kind: int
    variable: int
    other: int = 0
    low: float = 0.0
    high: float = 0.0
    function: str = ""

    @property
    def format(self) -> str:
        """In which it is asked for: a value as JSON, many as Arrow."""
        return "json" if self.kind <= 3 else "arrow"

    @property
    def sql(self) -> str:
        """The request as it is asked."""
        v, low, high = f"v{self.variable}", self.low, self.high
        if self.kind <= 3:
            return f"SELECT {('max', 'min', 'avg')[self.kind - 1]}({v}) AS value"
        if self.kind == 8:
            histogram = f"SELECT histogram({v}, {BINS}, 0, {high!r})"
            return histogram if self.function == "histogram" else f"SELECT avg({v}) AS mean GROUP BY idx(y)"
        return {
            4: f"SELECT {v} WHERE idx(y) >= {int(low)} AND idx(y) < {int(high)}",
            5: f"SELECT {v} WHERE {v} > {low!r} AND {v} < {high!r}",
            6: f"SELECT {v} WHERE {v} >= (SELECT avg({v}))",
            7: f"SELECT v{self.other} WHERE {v} > {low!r} AND {v} < {high!r}",
        }[self.kind]

    def answer(self, columns: Columns) -> np.ndarray:
        """Return numpy's answer."""
        values = columns[f"v{self.variable}"]
        if self.kind <= 3:
            return np.array([(values.max, values.min, lambda: _mean(values))[self.kind - 1]()])
        if self.kind == 4:
            return values[int(self.low) : int(self.high)].ravel()
        if self.kind == 6:
            return values[values >= _mean(values)]
        if self.kind == 8:
            is_histogram = self.function == "histogram"
            return np.histogram(values, BINS, (0, self.high))[0] if is_histogram else values.mean(axis=1)
        of = columns[f"v{self.other}"] if self.kind == 7 else values
        return of[(values > self.low) & (values < self.high)]

    def is_answered_by(self, path: Path, expected: np.ndarray) -> bool:
        """Whether a consumer's file holds this answer: to the bit, but for sums, whose order is free."""
        if self.format == "json":
            found = np.array(json.loads(path.read_text(encoding="utf-8"))["rows"][0], float)
        else:
            with pa.memory_map(str(path)) as file:
                found = values_of(pa.ipc.open_file(file).read_all().column(0).combine_chunks())
        if self.kind == 3 or self.function == "rows":
            return found.shape == expected.shape and bool(np.allclose(found, expected, rtol=1e-12, atol=0))
        return bool(np.array_equal(found, expected))


def _mean(values: np.ndarray) -> float:
    return math.fsum(values.ravel()) / values.size


def values_of(column: pa.Array) -> np.ndarray:
    """Return the values of a column, or the counts of its histograms."""
    if pa.types.is_struct(column.type):
        column = column.field("counts")
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        column = column.flatten()
    return column.to_numpy(zero_copy_only=False)


def write(path: Path, megabytes: float, seed: int, count: int = VARIABLES) -> None:
    """Write a file of variables of so many megabytes (10^6 bytes) each, where there is none."""
    if path.exists():
        return
    rng = np.random.default_rng(seed)
    rows = max(4, round(megabytes * 1e6 / 8 / COLUMNS))
    partial = path.with_suffix(".part")
    with h5py.File(partial, "w") as file:
        for name in ("y", "x"):
            length = rows if name == "y" else COLUMNS
            file.create_dataset(name, data=np.arange(length, dtype="i4")).make_scale(name)
        for number, sigma in enumerate(SIGMAS[:count]):
            data = file.create_dataset(f"v{number}", data=rng.lognormal(0, sigma, (rows, COLUMNS)))
            for axis, name in enumerate(("y", "x")):
                data.dims[axis].attach_scale(file[name])
    partial.rename(path)


def read(path: Path, count: int = VARIABLES) -> Columns:
    """Return all variables."""
    with h5py.File(path) as file:
        return {f"v{number}": file[f"v{number}"][:] for number in range(count)}


class Generator:
    """Draws requests of one data set.

    Parameters
    ----------
    columns
        Its variables.
    seed
        Of what is drawn.
    """

    def __init__(self, columns: Columns, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._rows = len(columns["v0"])
        self._sorted = {name: np.sort(values, axis=None) for name, values in columns.items()}

    def uniform(self, count: int) -> list[Asked]:
        """Draw requests, types and variables as likely as one another."""
        return [self._one() for _ in range(count)]

    def zipfian(self, count: int) -> list[Asked]:
        """Draw requests from as many different ones, the k-th most popular with a weight of 1 / k."""
        pool = self.uniform(count)
        weights = 1 / np.arange(1, count + 1) ** ZIPF
        return [pool[at] for at in self._rng.choice(count, count, p=weights / weights.sum())]

    def _one(self) -> Asked:
        kind, variable = int(self._rng.integers(1, 9)), int(self._rng.integers(VARIABLES))
        match kind:
            case 4:
                length = max(1, round(self._share() * self._rows))
                first = int(self._rng.integers(0, self._rows - length + 1))
                return Asked(4, variable, low=first, high=first + length)
            case 5 | 7:
                low, high = self.thresholds(variable)
                other = int(self._rng.integers(VARIABLES - 1)) if kind == 7 else 0
                # DR7 selects another variable than it asks about.
                return Asked(kind, variable, other + (kind == 7 and other >= variable), low, high)
            case 8:
                function = ("histogram", "rows")[int(self._rng.integers(2))]
                most = float(self._sorted[f"v{variable}"][-1]) if function == "histogram" else 0.0
                return Asked(8, variable, high=most, function=function)
            case _:
                return Asked(kind, variable)

    def _share(self) -> float:
        return math.exp(self._rng.uniform(math.log(LEAST_SHARE), math.log(MOST_SHARE)))

    def thresholds(self, variable: int) -> tuple[float, float]:
        """Draw two values of a variable that enclose some share of it."""
        ordered = self._sorted[f"v{variable}"]
        count = max(1, round(self._share() * ordered.size))
        first = int(self._rng.integers(0, ordered.size - count))
        return float(ordered[first]), float(ordered[first + count])
