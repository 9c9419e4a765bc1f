"""SDQuery's ways of fetching: 2000 random queries on oceans, by direct reads, blocks, and sieva's choice."""

import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import ours
import sieva
from figure import Figure, bounded
from queries import exact_bound
from timing import seconds_of, warm

# The choice is measured a second time: how far two measures of the same thing are apart.
AGAIN = "auto again"
WAYS = ("direct", "block", "auto", AGAIN)
# Shares of the values that are not missing (SC13, section 5.1).
CLASSES = ((0.0005, 0.01), (0.01, 0.10), (0.10, 0.25), (0.25, 0.50), (0.50, 0.75), (0.75, 1.0))
PAPER = "at most 1 % to 2 % slower than the better"
SAMPLE = 1 << 16
REPEATS = 3
COMPARE = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}


@dataclass
class Field:
    """A four-dimensional array and its coordinates, in memory, as numpy's side of the comparison."""

    path: Path
    array: str
    values: np.ndarray
    axes: dict[str, np.ndarray]

    @property
    def present(self) -> int:
        """How many values are not missing."""
        return int(np.count_nonzero(~np.isnan(self.values)))


@dataclass
class Drawn:
    """A random query: its text, class and answer.

    Attributes
    ----------
    seconds, best
        The median and the least time of each way: totals are of medians, and single queries, of few
        milliseconds, are compared by what disturbs them least.
    chosen
        The way that sieva says it took, where it says so.
    """

    text: str
    selectivity: int
    hits: int
    checksum: int
    seconds: dict[str, float] = field(default_factory=dict)
    best: dict[str, float] = field(default_factory=dict)
    chosen: str = ""

    @property
    def is_right(self) -> bool:
        """Whether the choice is the faster way, or takes at most 10 % longer than it."""
        faster = min(("direct", "block"), key=lambda way: self.best[way])
        return self.chosen == faster or self.best["auto"] <= 1.10 * self.best[faster]


def classic(path: Path) -> Field:
    """Load the POP-like file in netCDF-3: curvilinear latitudes and longitudes."""
    with netCDF4.Dataset(path) as f:
        f.set_auto_mask(False)
        temp = f["TEMP"][:]
        temp[temp == f["TEMP"].getncattr("_FillValue")] = np.nan
        axes = {name: f[name][:][None, None] for name in ("TLAT", "TLONG")}
        axes["z_t"] = f["z_t"][:][None, :, None, None]
    return Field(path, "TEMP", temp, axes)


def modb(path: Path) -> Field:
    """Load the MODB-like HDF5 file: chunked and deflated, rectilinear."""
    with h5py.File(path) as f:
        salinity = f["salinity"][:]
        salinity[salinity == f["salinity"].attrs["missing_value"]] = np.nan
        shapes = {"layer": (1, -1, 1, 1), "row": (1, 1, -1, 1), "column": (1, 1, 1, -1)}
        axes = {name: f[name][:].reshape(shape) for name, shape in shapes.items()}
    return Field(path, "salinity", salinity, axes)


def _window(rng: np.random.Generator, values: np.ndarray, share: float) -> tuple[float, float]:
    """Return two quantiles that hold a share of the values between them."""
    low = rng.uniform(0, 1 - share)
    first, last = np.quantile(values, (low, low + share))
    return float(first), float(last)


def _within(values: np.ndarray, name: str, low: str, high: str) -> tuple[np.ndarray, str]:
    """Return where values lie between two literals, both included, and the condition as text."""
    bounds = []
    for relation, literal in ((">=", low), ("<=", high)):
        if values.dtype == np.float32:
            operator, exact = exact_bound(relation, literal)
            bounds.append(COMPARE[operator](values, np.float32(exact)))
        else:
            bounds.append(COMPARE[relation](values, float(literal)))
    return np.logical_and(*bounds), f"{name} >= {low} AND {name} <= {high}"


def _draw(rng: np.random.Generator, data: Field, selectivity: int, present: int) -> Drawn | None:
    """Draw a box and a range of values; None where their share is not of the class."""
    low, high = CLASSES[selectivity]
    share = rng.uniform(low, high)
    # The box takes some of the reduction and the range of values the rest.
    side = share ** (rng.uniform(0, 1) / len(data.axes))
    box = np.ones((1, 1, 1, 1), bool)
    texts = []
    for name, values in data.axes.items():
        first, last = _window(rng, values.ravel()[:: max(1, values.size // SAMPLE)], side)
        part, text = _within(values, name, f"{first:.2f}", f"{last:.2f}")
        box = np.logical_and(box, part)
        texts.append(text)
    inside = data.values[np.broadcast_to(box, data.values.shape)]
    inside = inside[~np.isnan(inside)]
    if inside.size == 0:
        return None
    wanted = min(1.0, share * present / inside.size)
    first, last = _window(rng, inside[:: max(1, inside.size // SAMPLE)], wanted)
    chosen, text = _within(inside, data.array, f"{first:.3f}", f"{last:.3f}")
    hits = inside[chosen]
    if not low <= hits.size / present < high:
        return None
    return Drawn(" AND ".join([*texts, text]), selectivity, hits.size, zlib.crc32(hits.tobytes()))


def draw(data: Field, count: int, seed: int) -> list[Drawn]:
    """Draw queries, as many of each class."""
    rng = np.random.default_rng(seed)
    present = data.present
    drawn: list[Drawn] = []
    attempts = 0
    while len(drawn) < count:
        query = _draw(rng, data, len(drawn) % len(CLASSES), present)
        drawn += [query] if query else []
        attempts += 1
        if attempts > 50 * count:
            raise SystemExit(f"{data.path.name}: no queries of class {len(drawn) % len(CLASSES)}")
    return drawn


def _fetch(source: Any, data: Field, query: Drawn, way: str) -> float:  # noqa: ANN401 -- option `fetch` is not in every build
    """Evaluate the condition, then time the fetch alone (as section 5.2 does), and compare the values."""
    asked = source.query(query.text, select=[data.array], fetch=way.split(maxsplit=1)[0])
    hits = len(asked.selection())
    values: list[np.ndarray] = []
    seconds = seconds_of(lambda: values.append(asked.read(data.array)))
    checksum = zlib.crc32(np.ascontiguousarray(values[0]).tobytes())
    if hits != query.hits or checksum != query.checksum:
        raise SystemExit(
            f"{data.path.name}, {way}: {hits} hits, numpy {query.hits}, or other values: {query.text}"
        )
    if way == "auto":
        query.chosen = str(asked.stats().get("fetch", ""))
    return seconds


def measure(data: Field, queries: list[Drawn]) -> None:
    """Time every way for every query in turn; the median of some repeats counts."""
    source = sieva.open(data.path)
    for number, query in enumerate(queries):
        if number % 200 == 0:
            print(f"    {data.path.name}: query {number} of {len(queries)}", file=sys.stderr)
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        for turn in range(REPEATS):
            # No way is always the first to touch the pages.
            for way in WAYS[turn:] + WAYS[:turn]:
                seconds[way].append(_fetch(source, data, query, way))
        query.seconds = {way: float(np.median(spent)) for way, spent in seconds.items()}
        query.best = {way: min(spent) for way, spent in seconds.items()}


def summary(data: Field, queries: list[Drawn]) -> Iterator[Figure]:
    """Yield the total of each class against the better pure way, and how often the choice is right."""
    for number, (low, high) in enumerate(CLASSES):
        of_class = [query.seconds for query in queries if query.selectivity == number]
        total = {way: sum(seconds[way] for seconds in of_class) for way in WAYS}
        better = min(total["direct"], total["block"])
        span = f"{100 * low if number else 0:g} % to {100 * high:g} %"
        name = f"{data.path.name}, {span} selected: auto against the better way, total fetch time"
        figure = bounded(name, "<= 1.02", total["auto"] / better, "of it", paper=PAPER)
        figure.notes = {f"{way}, s": round(seconds, 4) for way, seconds in total.items()}
        figure.notes["queries"] = len(of_class)
        yield figure
    name = f"{data.path.name}: single queries where auto is right or within 10 %"
    share = 100 * float(np.mean([query.is_right for query in queries]))
    paper = "most; wrong from 62 % to 70 % (POP), 42 % to 50 % (MODB)"
    figure = bounded(name, ">= 95", share, "%", paper=paper)
    apart = [abs(query.best["auto"] / query.best[AGAIN] - 1) > 0.10 for query in queries]
    figure.notes = {"of the same choice measured twice, more than 10 % apart, %": 100 * float(np.mean(apart))}
    figure.limit = "the spread of single measures"
    yield figure


def fetching(paths: list[Path], count: int) -> Iterator[Figure]:
    """Measure both files."""
    if not ours.has_fetch():
        print("the way of fetching cannot be forced in this build: left out", file=sys.stderr)
        return
    for path, load in zip(paths, (classic, modb), strict=True):
        if not path.exists():
            print(f"{path.name}: its generator is not beside the checkout: left out", file=sys.stderr)
            continue
        data = load(path)
        # Others beforehand, which the model learns from (the paper: 400 for 2000).
        learn = draw(data, max(6, count // 5), seed=1)
        asked = draw(data, count, seed=2)
        warm(path)
        measure(data, learn)
        measure(data, asked)
        yield from summary(data, asked)
