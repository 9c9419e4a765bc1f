"""Measuring side by side: A B A B, medians and ranges, on a warm page cache."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

Run = Callable[[], float]


@dataclass(frozen=True)
class Times:
    """Seconds of several runs of one thing."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        """Return the median and the range, in milliseconds."""
        low, high = min(self.seconds) * 1e3, max(self.seconds) * 1e3
        return f"{self.median * 1e3:.1f} ms ({low:.1f}..{high:.1f})"


def timed(work: Callable[[], object]) -> Run:
    """Return a function that runs ``work`` and returns how many seconds it took."""
    return lambda: seconds_of(work)


def seconds_of(work: Callable[[], object]) -> float:
    """Return how many seconds a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def interleave(things: Mapping[str, Run], runs: int, *, warm_up: bool = True) -> dict[str, Times]:
    """Run all things in turn, several times over; a first round to warm up is not counted."""
    for run in things.values() if warm_up else ():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in things}
    for _ in range(runs):
        for name, run in things.items():
            seconds[name].append(run())
    return {name: Times(tuple(values)) for name, values in seconds.items()}


def fastest(things: Mapping[str, Run], rounds: int = 2) -> str:
    """Return the name of the thing that is fastest at its best."""
    return min(things, key=lambda name: min(things[name]() for _ in range(rounds)))


def warm(path: Path) -> None:
    """Read a file, so that it is in the page cache."""
    buffer = bytearray(1 << 22)
    with path.open("rb", buffering=0) as f:
        while f.readinto(buffer):
            pass
