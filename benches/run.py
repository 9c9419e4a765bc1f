"""Measures sieva beside other tools and writes a table, a JSON file and a Markdown page.

Usage: run.py [--quick] [--runs N] [--data DIRECTORY] [--results DIRECTORY] [--only NAME]... [--indexes]
              [--particles N] [--queries N] [--page FILE]

`--quick` runs everything on small files: it shows that the answers agree, and says nothing about speed.
"""

import argparse
import datetime as dt
import platform
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import builds
import fetching
import figures
import particles
import peer_runs
import top
from data import FULL, QUICK, ROOT, Size, prepare
from figure import Figure
from machine import machine
from report import fill, page, record, row

# The files that a group needs, and whether it is one of indexes.
NEEDS = {
    "contiguous": ("particles",),
    "deflated": ("particles", "deflated"),
    "scattered": ("particles",),
    "top": ("particles",),
    "ocean": ("ocean",),
    "memory": ("large", "large_deflated"),
    "start": (),
    "sds": ("particles",),
    "pdc": ("pdc",),
    "needles": ("particles",),
    "fetching": ("classic", "modb"),
    "builds": ("particles", "ocean"),
    "leaving": ("particles",),
    "peers": ("particles", "pdc"),
}
INDEXES = ("sds", "pdc", "needles", "fetching", "builds", "leaving", "peers")


def measure(arguments: argparse.Namespace) -> Iterator[Figure]:
    """Yield the figures that are asked for."""
    size = _size(arguments)
    groups = arguments.only or (INDEXES if arguments.indexes else tuple(NEEDS))
    files = prepare(arguments.data, size, {name for group in groups for name in NEEDS[group]})
    runs = arguments.runs
    measured = {
        "contiguous": lambda: figures.contiguous(files, runs),
        "deflated": lambda: figures.deflated(files, runs),
        "scattered": lambda: figures.scattered(files, runs),
        "top": lambda: top.top(files, runs),
        "ocean": lambda: figures.ocean(files, runs),
        "memory": lambda: figures.memory(files, size),
        "start": lambda: figures.start(runs),
        "sds": lambda: particles.sds_queries(files.particles, runs),
        "pdc": lambda: particles.pdc_queries(files.pdc, runs),
        "needles": lambda: particles.needles(files.particles, runs),
        "fetching": lambda: fetching.fetching([files.classic, files.modb], size.queries),
        "builds": lambda: builds.builds(files.particles, files.ocean, runs),
        "leaving": lambda: builds.leaving(files.particles, runs),
        "peers": lambda: peer_runs.peers(files.particles, files.pdc, runs),
    }
    for name in groups:
        for figure in measured[name]():
            figure.group = name
            yield figure


def _size(arguments: argparse.Namespace) -> Size:
    """Return how large the files are; other numbers of particles or queries have a directory of their own."""
    size = QUICK if arguments.quick else FULL
    if arguments.particles:
        size = replace(size, name=f"{size.name}-{arguments.particles}", particles=arguments.particles)
    return replace(size, queries=arguments.queries or size.queries)


def main() -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small files, no verdict")
    parser.add_argument("--runs", type=int, default=None, help="runs of each thing (default 7, quick 1)")
    parser.add_argument("--data", type=Path, default=ROOT / "target" / "bench-data")
    parser.add_argument("--results", type=Path, default=None, help="default benches/results; quick: none")
    parser.add_argument("--only", action="append", choices=NEEDS)
    parser.add_argument("--indexes", action="store_true", help="only what is measured of indexes")
    parser.add_argument("--particles", type=int, help="number of particles, instead of 100 million")
    parser.add_argument("--queries", type=int, help="number of random queries, instead of 2000")
    parser.add_argument(
        "--page", type=Path, help="page whose tables are filled, as docs/benchmarks/indexes.md"
    )
    arguments = parser.parse_args()
    arguments.runs = arguments.runs or (1 if arguments.quick else 7)
    measured = []
    for figure in measure(arguments):
        told = [figure.name, row(figure)[3]] if arguments.quick else row(figure)
        print("  ".join(text for text in told if text), flush=True)
        for name, times in figure.times.items():
            print(f"    {name}: {times}", flush=True)
        measured.append(figure)
    results = arguments.results or (None if arguments.quick else ROOT / "benches" / "results")
    if results:
        write(results, measured)
    if arguments.page:
        fill(arguments.page, measured)
    return 0


def write(results: Path, measured: list[Figure]) -> None:
    """Write the JSON file and the page of a run."""
    about = machine()
    now = dt.datetime.now(dt.UTC)
    results.mkdir(parents=True, exist_ok=True)
    stem = f"{now:%Y-%m-%d}-{platform.node() or 'machine'}"
    command = " ".join(["benches/run.py", *sys.argv[1:]])
    at = now.isoformat(timespec="seconds")
    (results / f"{stem}.json").write_text(record(measured, about, command, at), encoding="utf-8")
    (results / f"{stem}.md").write_text(page(measured, about, command), encoding="utf-8")
    print(f"wrote {results / stem}.json and .md")


if __name__ == "__main__":
    sys.exit(main())
