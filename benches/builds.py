"""What indexes cost: bytes, seconds, memory, cores, and what a scan pays to leave statistics behind."""

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import ours
import sieva
from figure import Figure, bounded
from timing import Times, interleave, timed, warm

ALL = ("Energy", "x", "y", "z", "Ux", "Uy", "Uz")
FIELDS = ("TEMP", "SALT")
LIMIT = "<= 3"

# In a process of its own: the peak is of the build alone. Not getrusage, which counts what the parent held.
_BUILD = """
import json, sys, time
import sieva
path, array, kinds, jobs = sys.argv[1], sys.argv[2], sys.argv[3].split(","), int(sys.argv[4])
source = sieva.open(path)
start = time.perf_counter()
source.build_index(array, kinds=kinds, jobs=jobs)
seconds = time.perf_counter() - start
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"seconds": seconds, "peak": int(peak.split()[1]) / 1024}))
"""


@dataclass(frozen=True)
class Built:
    """One build."""

    seconds: Times
    peak: float
    stored: int
    raw: int

    @property
    def share(self) -> float:
        """The indexes in % of the array's values as they are in memory."""
        return 100 * self.stored / self.raw

    @property
    def rate(self) -> float:
        """Bytes of the array per second, in MB/s."""
        return self.raw / self.seconds.median / 1e6


def _build(path: Path, array: str, kinds: str, jobs: int, runs: int) -> Built:
    """Build anew, several times over."""
    info = sieva.open(path)[array]
    seconds, peak = [], 0.0
    for _ in range(runs):
        ours.drop(path)
        command = [sys.executable, "-c", _BUILD, str(path), array, kinds, str(jobs)]
        told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        seconds.append(told["seconds"])
        peak = max(peak, told["peak"])
    raw = math.prod(info.shape) * info.dtype.itemsize
    stored = ours.store_bytes(path)
    ours.drop(path)
    return Built(Times(tuple(seconds)), peak, stored, raw)


def builds(particles: Path, ocean: Path, runs: int) -> Iterator[Figure]:
    """Measure sizes of all arrays, and rate, memory and cores on the energies."""
    if not ours.has_indexes():
        print("this build of sieva makes no indexes: left out", file=sys.stderr)
        return
    rounds = min(runs, 3)
    for path, arrays in ((ours.linked(particles, "built"), ALL), (ours.linked(ocean, "built"), FIELDS)):
        warm(path)
        for array in arrays:
            yield from _sizes(path, array)
    path = ours.linked(particles, "built")
    yield from _rates(path, rounds)
    built = _build(path, "Energy", "sorted", 2, 1)
    name = "replica of all seven arrays sorted by Energy"
    # In shares of the seven arrays that it carries.
    figure = bounded(f"size of the {name}", "", built.share / len(ALL), "% of the data", paper="100 %")
    figure.notes = {"bytes": built.stored}
    yield figure
    figure = bounded(f"peak memory of building the {name}", "< 512", built.peak, "MiB")
    figure.times = {"2 jobs": built.seconds}
    figure.notes = {"MB/s of the data that it carries": round(built.rate * len(ALL), 1)}
    yield figure


def _sizes(path: Path, array: str) -> Iterator[Figure]:
    where = f"{array} of {path.name}"
    zones = _build(path, array, "zonemap", 2, 1)
    figure = bounded(f"size of zone maps and histograms, {where}", "<= 0.5", zones.share, "% of the data")
    figure.notes = {"bytes": zones.stored, "MB/s": round(zones.rate, 1)}
    yield figure
    bitmap = _build(path, array, "bitmap", 2, 1)
    is_promised = array == "Energy"
    figure = bounded(
        f"size of the bitmap, {where}", "<= 15" if is_promised else "", bitmap.share, "% of the data"
    )
    figure.paper = "14 % (SDS), 15 % to 17 % (PDC)" if is_promised else ""
    figure.notes = {"bytes": bitmap.stored, "MB/s": round(bitmap.rate, 1)}
    yield figure


def _rates(path: Path, runs: int) -> Iterator[Figure]:
    two = _build(path, "Energy", "zonemap,bitmap", 2, runs)
    one = _build(path, "Energy", "zonemap,bitmap", 1, runs)
    name = "bitmap and statistics of Energy"
    figure = bounded(f"build rate, {name}, 2 jobs", ">= 200", two.rate, "MB/s of raw float32")
    figure.times = {"2 jobs": two.seconds, "1 job": one.seconds}
    yield figure
    scaling = one.seconds.median / two.seconds.median
    yield bounded(f"2 jobs against 1, {name}", ">= 1.7", scaling, "x")
    yield bounded(f"peak memory of building, {name}", "< 512", max(one.peak, two.peak), "MiB")


def leaving(particles: Path, runs: int) -> Iterator[Figure]:
    """Measure a scan that leaves statistics behind against one that does not; each starts without any."""
    path = ours.linked(particles, "left")
    warm(path)

    def scan(switch: str) -> float:
        ours.drop(path)
        with ours.statistics(switch):
            return timed(lambda: sieva.open(path).query("Energy > 1.7", access="scan").count())()

    times = interleave({switch: partial(scan, switch) for switch in ("off", "on")}, 3 * runs)
    with ours.statistics("on"):
        ours.drop(path)
        sieva.open(path).query("Energy > 1.7", access="scan").count()
    cost = 100 * (times["on"].median / times["off"].median - 1)
    figure = bounded("cost of leaving statistics behind, count Energy > 1.7", LIMIT, cost, "% of the scan")
    figure.times = {f"statistics {switch}": spent for switch, spent in times.items()}
    figure.notes = {"bytes left": ours.store_bytes(path)}
    if not figure.notes["bytes left"]:
        figure.is_met, figure.limit = None, "this build leaves none"
    ours.drop(path)
    yield figure
