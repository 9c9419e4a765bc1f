"""Is the choice of an access path steady on a busy machine? Q1 of SDS by choice, beside each forced way.

Usage: regret.py [--runs N] [--asks N] [--load N] [--waves] [--particles N] [--data DIRECTORY]
                 [--results DIRECTORY]

A run asks the same question by every way in turn, some times over, while other processes sort and copy as
fast as they can; the median of each way counts. Auto is right where it takes at most 1.2 times the best
forced way of its run. Auto is asked twice, under two names: where these differ as much, no choice can be told
from chance. The choice itself is told apart from that: what the way that auto took costs, by its median over
all runs, against the best way.
"""

import argparse
import datetime as dt
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import ours
from data import FULL, ROOT, prepare
from figure import Figure, bounded
from machine import machine
from queries import AXES, Query, sds
from report import page, record, row
from timing import Times, seconds_of, warm

FORCED = ("sorted", "bitmap", "zonemap", "scan")
AUTO = ("auto", "auto again")
NEAR = 1.2
# Forced ways that take so many times the fastest are asked so many times less often.
FAR = 4
FEWER = 5
# Runs beside other load, and then as many without it, where it comes in waves.
WAVE = 10
BUSY = """
import numpy as np
values = np.random.default_rng(0).random(1 << 21)
while True:
    np.sort(values)
    values.copy()
"""


@contextmanager
def load(processes: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Keep so many processes busy."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(processes)]
    try:
        yield busy
    finally:
        for process in busy:
            process.kill()
            process.wait()


def way_of(stats: dict[str, int]) -> str:
    """Return which way a query went."""
    ways = {"by_replica": "sorted", "by_bitmap": "bitmap", "tiles_taken": "zonemap"}
    found = [way for name, way in ways.items() if stats[name]]
    return found[0] if found else "zonemap" if stats["tiles_skipped"] else "scan"


def ask(path: Path, query: Query, name: str, taken: list[str]) -> None:
    """Ask by a way, and note which one that was."""
    made = ours.ask(path, query, name.split(maxsplit=1)[0])
    ours.columns(made, query)
    taken.append(way_of(made.stats()))


def one_run(
    path: Path, query: Query, asks: dict[str, int], number: int, taken: dict[str, list[str]]
) -> dict[str, float]:
    """Return the median seconds of each way in one run; no way is always the first."""
    names = tuple(asks)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(max(asks.values())):
        first = (number + turn) % len(names)
        for name in names[first:] + names[:first]:
            if turn >= asks[name]:
                continue
            seconds[name].append(seconds_of(partial(ask, path, query, name, taken[name])))
    return {name: float(np.median(spent)) for name, spent in seconds.items()}


def measure(path: Path, query: Query, arguments: argparse.Namespace) -> list[Figure]:
    """Run it all and return what came of it."""
    runs: list[dict[str, float]] = []
    taken: dict[str, list[str]] = {name: [] for name in (*FORCED, *AUTO)}
    before = one_run(path, query, dict.fromkeys(taken, 3), 0, {name: [] for name in taken})
    fastest = min(before.values())
    # Ways that are far from the best need not be known as well.
    few = max(1, arguments.asks // FEWER)
    asks = {name: few if before[name] > FAR * fastest else arguments.asks for name in taken}
    with load(arguments.load) as busy:
        for number in range(arguments.runs):
            if arguments.waves and number % WAVE == 0:
                is_quiet = number // WAVE % 2 == 1
                for process in busy:
                    process.send_signal(signal.SIGSTOP if is_quiet else signal.SIGCONT)
            runs.append(one_run(path, query, asks, number, taken))
    return figures(query, runs, taken)


def figures(query: Query, runs: list[dict[str, float]], taken: dict[str, list[str]]) -> list[Figure]:
    """Return how often the choice was near the best forced way, the ratios, and the ways taken."""
    best = np.array([min(run[way] for way in FORCED) for run in runs])
    ratios = {name: np.array([run[name] for run in runs]) / best for name in AUTO}
    first, second = (np.array([run[name] for run in runs]) for name in AUTO)
    apart = float(np.mean(np.maximum(first / second, second / first) > NEAR))
    medians = {way: float(np.median([run[way] for run in runs])) for way in FORCED}
    right = [medians[way] <= NEAR * min(medians.values()) for name in AUTO for way in taken[name]]
    chosen = bounded(
        f"{query.name}: auto took a way within {NEAR} times the best",
        ">= 95",
        100 * float(np.mean(right)),
        "%",
    )
    share = bounded(
        f"{query.name}: runs where auto takes at most {NEAR} times the best forced way",
        ">= 95",
        100 * float(np.mean(ratios["auto"] <= NEAR)),
        "%",
    )
    share.times = {name: Times(tuple(run[name] for run in runs)) for name in (*FORCED, *AUTO)}
    share.notes = {
        "runs": len(runs),
        f"auto asked twice, more than {NEAR} times apart, %": 100 * apart,
        "the same of auto again, %": 100 * float(np.mean(ratios["auto again"] <= NEAR)),
        "ways taken by auto": {
            way: sum(taken[name].count(way) for name in AUTO) for way in FORCED if way in taken["auto"]
        },
    }
    named = {"median": np.median, "worst": np.max}
    others = [
        bounded(f"{query.name}: auto against the best forced way, {name}", "", float(of(ratios["auto"])), "x")
        for name, of in named.items()
    ]
    return [chosen, share, *others]


def write(results: Path, measured: list[Figure]) -> None:
    """Write the JSON file and the page."""
    now, about = dt.datetime.now(dt.UTC), machine()
    results.mkdir(parents=True, exist_ok=True)
    stem = f"{now:%Y-%m-%d}-{platform.node() or 'machine'}-regret"
    command = " ".join(["benches/regret.py", *sys.argv[1:]])
    at = now.isoformat(timespec="seconds")
    (results / f"{stem}.json").write_text(record(measured, about, command, at), encoding="utf-8")
    (results / f"{stem}.md").write_text(page(measured, about, command), encoding="utf-8")
    print(f"wrote {results / stem}.json and .md")


def main() -> None:
    """Make the file and its indexes, check the answers, measure, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--asks", type=int, default=15, help="times that a way is asked in a run")
    parser.add_argument("--load", type=int, default=2, help="processes that are busy meanwhile")
    parser.add_argument("--waves", action="store_true", help=f"the load stops for every other {WAVE} runs")
    parser.add_argument("--particles", type=int, help="number of particles, instead of 100 million")
    parser.add_argument("--data", type=Path, default=ROOT / "target" / "bench-data")
    parser.add_argument("--results", type=Path, default=ROOT / "benches" / "results")
    arguments = parser.parse_args()
    size = FULL
    if arguments.particles:
        size = replace(size, name=f"{size.name}-{arguments.particles}", particles=arguments.particles)
    files = prepare(arguments.data, size, {"particles"})
    path = ours.indexed(files.particles, ("Energy", *AXES))
    warm(path)
    query = sds()[0]
    ours.check(path, query)
    measured = measure(path, query, arguments)
    for figure in measured:
        print("  ".join(text for text in row(figure) if text))
        for name, times in figure.times.items():
            print(f"    {name}: {times}")
        for name, note in figure.notes.items():
            print(f"    {name}: {note}")
    write(arguments.results, measured)


if __name__ == "__main__":
    main()
