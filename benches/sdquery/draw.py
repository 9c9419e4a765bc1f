"""Random queries in SDQuery's six classes, and what numpy answers.

A class is the share of all points of an array, land included, that a query returns: as every array of the
file is selected, this is the share of the file's values too. Drawn is on a sample of the points; the share
that decides is counted on all of them. What is drawn is kept beside the data, as counting takes long.
"""

import json
import sys
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

import numpy as np
from beside import exact_bound
from oceans import Ocean

# Shares of SC13, section 5.1; the smallest leaves out queries that return next to nothing.
CLASSES = ((0.0005, 0.01), (0.01, 0.10), (0.10, 0.25), (0.25, 0.50), (0.50, 0.75), (0.75, 1.0))
NAMES = ("< 1 %", "1..10 %", "10..25 %", "25..50 %", "50..75 %", "> 75 %")
SAMPLE = 300_000
COMPARE = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}
Bounds = tuple[str, str]


@dataclass
class Drawn:
    """A random query and its answer.

    Attributes
    ----------
    box
        The two ends of each coordinate, as literals, both included.
    value
        The ends of the first array's values; empty for a query of coordinates alone.
    is_land_kept
        Whether missing values satisfy the condition as well.
    hits
        Points that satisfy it.
    checksums
        CRC-32 of the selected values of each array, in the order of the file; NaN where missing.
    """

    number: int
    arrays: tuple[str, ...]
    box: dict[str, Bounds]
    value: Bounds | tuple[()]
    is_land_kept: bool
    hits: int = 0
    checksums: dict[str, int] = field(default_factory=dict)

    @property
    def sql(self) -> str:
        """The query as it is asked."""
        terms = [f"{name} >= {low} AND {name} <= {high}" for name, (low, high) in self.box.items()]
        if self.value:
            name, (low, high) = self.arrays[0], self.value
            term = f"{name} >= {low} AND {name} <= {high}"
            terms.append(f"({term} OR {name} IS NULL)" if self.is_land_kept else term)
        return f"SELECT {', '.join(self.arrays)} WHERE {' AND '.join(terms)}"

    def mask(self, axes: dict[str, np.ndarray], values: np.ndarray) -> np.ndarray:
        """Return which points satisfy the condition; coordinates and values broadcast to one shape."""
        mask = np.ones((1,) * values.ndim, bool)
        for name, bounds in self.box.items():
            mask = mask & within(axes[name], bounds)
        if not self.value:
            return np.broadcast_to(mask, values.shape)
        inside = within(values, self.value)
        return mask & (inside | np.isnan(values) if self.is_land_kept else inside)


def within(values: np.ndarray, bounds: Bounds) -> np.ndarray:
    """Return where values lie between two literals, both included, as real numbers."""
    found = []
    for relation, literal in zip((">=", "<="), bounds, strict=True):
        # The literal's own float32 may lie beside it.
        exact = exact_bound(relation, literal) if values.dtype == np.float32 else (relation, float(literal))
        found.append(COMPARE[exact[0]](values, values.dtype.type(exact[1])))
    return np.logical_and(*found)


@dataclass
class Sample:
    """Points that were picked at random: coordinates, and values of the first array."""

    axes: dict[str, np.ndarray]
    values: np.ndarray

    @classmethod
    def of(cls, ocean: Ocean, rng: np.random.Generator) -> "Sample":
        """Pick as many points of each time."""
        space = ocean.shape[1:]
        each = -(-SAMPLE // ocean.shape[0])
        wide = {name: np.broadcast_to(axis, space) for name, axis in ocean.axes.items()}
        axes: dict[str, list[np.ndarray]] = {name: [] for name in wide}
        values = []
        for step in ocean.steps():
            at = np.unravel_index(rng.integers(0, int(np.prod(space)), each), space)
            values.append(step[ocean.arrays[0]][at])
            for name, axis in wide.items():
                axes[name].append(axis[at])
        joined = {name: np.concatenate(parts) for name, parts in axes.items()}
        return cls(joined, np.concatenate(values))


def window(rng: np.random.Generator, values: np.ndarray, share: float, digits: int) -> Bounds:
    """Return two quantiles, as literals, that hold a share of the values between them."""
    low = rng.uniform(0, 1 - share)
    first, last = np.quantile(values, (low, low + share))
    return f"{first:.{digits}f}", f"{last:.{digits}f}"


def candidate(rng: np.random.Generator, sample: Sample, number: int, arrays: tuple[str, ...]) -> Drawn | None:
    """Draw a query of a class; None where the box that was drawn cannot give its share.

    Parameters
    ----------
    rng
        What is drawn from.
    sample
        Points of the ocean.
    number
        Which class.
    arrays
        What is selected; the first has the condition.
    """
    low, high = CLASSES[number]
    share = rng.uniform(low, high)
    # The box takes some of the reduction and the range of values the rest.
    side = share ** (rng.uniform(0, 1) / len(sample.axes))
    box = {name: window(rng, values, side, 2) for name, values in sample.axes.items()}
    query = Drawn(number, arrays, box, (), is_land_kept=False)
    inside = sample.values[query.mask(sample.axes, sample.values)]
    present = inside[~np.isnan(inside)]
    wanted = share * sample.values.size
    if wanted > present.size:
        # The sea has too few points: land is taken too, by half of such queries without asking for values.
        if rng.random() < 0.5:
            return query if low <= inside.size / sample.values.size < high else None
        query.is_land_kept = True
        wanted -= inside.size - present.size
    if not 0 < wanted <= present.size:
        return None
    query.value = window(rng, present, wanted / present.size, 3)
    return query


def answer(ocean: Ocean, queries: Iterable[Drawn]) -> None:
    """Count the hits of queries and take the checksums of their values, in one pass over the file."""
    asked = list(queries)
    for query in asked:
        query.hits, query.checksums = 0, dict.fromkeys(ocean.arrays, 0)
    for step in ocean.steps():
        for query in asked:
            mask = query.mask(ocean.axes, step[ocean.arrays[0]])
            for name in ocean.arrays:
                found = step[name][mask]
                query.checksums[name] = zlib.crc32(found, query.checksums[name])
            query.hits += len(found)


def draw(ocean: Ocean, count: int, seed: int) -> list[Drawn]:
    """Draw queries, as many of each class, and answer them with numpy.

    Returns
    -------
    list of Drawn
        By class, ``count`` of each.
    """
    rng = np.random.default_rng(seed)
    sample = Sample.of(ocean, rng)
    drawn: list[list[Drawn]] = [[] for _ in CLASSES]
    for _ in range(20):
        tried: list[Drawn] = []
        for number, found in enumerate(drawn):
            tried += _several(rng, sample, number, ocean.arrays, count - len(found))
        answer(ocean, tried)
        for query in tried:
            low, high = CLASSES[query.number]
            if low <= query.hits / ocean.rows < high:
                drawn[query.number].append(query)
        if all(len(found) == count for found in drawn):
            return [query for found in drawn for query in found]
    raise SystemExit(f"{ocean.name}: no {count} queries of each class in 20 attempts")


def _several(
    rng: np.random.Generator, sample: Sample, number: int, arrays: tuple[str, ...], count: int
) -> list[Drawn]:
    found: list[Drawn] = []
    for _ in range(1000 * count):
        if len(found) == count:
            break
        if query := candidate(rng, sample, number, arrays):
            found.append(query)
    return found


def drawn_once(ocean: Ocean, count: int, seed: int) -> list[Drawn]:
    """Return the queries of a seed: those that are kept beside the file, or new ones."""
    kept = ocean.path.with_name(f"{ocean.path.stem}-queries-{count}-{seed}.json")
    if not kept.exists():
        print(f"drawing {count} queries of each class on {ocean.path.name} ...", file=sys.stderr)
        text = json.dumps([asdict(query) for query in draw(ocean, count, seed)], indent=1)
        partial = kept.with_name(f"partial_{kept.name}")
        partial.write_text(text, encoding="utf-8")
        partial.replace(kept)
    return [_read(told) for told in json.loads(kept.read_text(encoding="utf-8"))]


def _read(told: dict[str, object]) -> Drawn:
    query = Drawn(**told)  # type: ignore[arg-type] # as asdict wrote it
    query.arrays, query.value = tuple(query.arrays), tuple(query.value)  # type: ignore[assignment]
    query.box = {name: tuple(bounds) for name, bounds in query.box.items()}  # type: ignore[misc]
    return query
