"""Measures sieva beside other tools and writes a table, a JSON file and a Markdown page.

Usage: run.py [--quick] [--runs N] [--data DIRECTORY] [--results DIRECTORY] [--only NAME]...

`--quick` runs everything on small files: it shows that the answers agree, and says nothing about speed.
"""

import argparse
import datetime as dt
import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import figures
from data import FULL, QUICK, ROOT, prepare
from figures import Figure

PACKAGES = ("sieva", "h5py", "numpy", "netCDF4", "xarray", "dask")
GROUPS = ("contiguous", "deflated", "scattered", "ocean", "memory", "start")


def machine() -> dict[str, object]:
    """Return what the figures depend on."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(pages / 2**30),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": versions,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = (
        [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        if info.exists()
        else []
    )
    return names[0] if names else platform.processor()


def measure(arguments: argparse.Namespace) -> Iterator[Figure]:
    """Yield the figures that are asked for."""
    size = QUICK if arguments.quick else FULL
    files = prepare(arguments.data, size)
    runs = arguments.runs
    measured = {
        "contiguous": lambda: figures.contiguous(files, runs),
        "deflated": lambda: figures.deflated(files, runs),
        "scattered": lambda: figures.scattered(files, runs),
        "ocean": lambda: figures.ocean(files, runs),
        "memory": lambda: figures.memory(files, size),
        "start": lambda: figures.start(runs),
    }
    for name in arguments.only or GROUPS:
        yield from measured[name]()


def row(figure: Figure) -> list[str]:
    """Return a figure as the cells of a table."""
    verdict = "met" if figure.is_met else "NOT met"
    return [figure.name, figure.target, f"{figure.measured:.3g} {figure.unit}", verdict, figure.limit]


def page(measured: list[Figure], about: dict[str, object], command: str) -> str:
    """Return the results as Markdown."""
    lines = ["| figure | target | measured | | limit |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join(row(figure))} |" for figure in measured]
    lines += ["", "| run | median (range) |", "|---|---|"]
    lines += [f"| {name} | {times} |" for figure in measured for name, times in figure.times.items()]
    notes = [f"- {figure.name}: {json.dumps(figure.notes)}" for figure in measured if figure.notes]
    return "\n".join([*lines, "", *notes, "", f"`{command}` on {json.dumps(about)}", ""])


def main() -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small files, no verdict")
    parser.add_argument("--runs", type=int, default=None, help="runs of each thing (default 7, quick 1)")
    parser.add_argument("--data", type=Path, default=ROOT / "target" / "bench-data")
    parser.add_argument("--results", type=Path, default=None, help="default benches/results; quick: none")
    parser.add_argument("--only", action="append", choices=GROUPS)
    arguments = parser.parse_args()
    arguments.runs = arguments.runs or (1 if arguments.quick else 7)
    measured = []
    for figure in measure(arguments):
        print("  ".join(row(figure)[: 3 if arguments.quick else 5]), flush=True)
        for name, times in figure.times.items():
            print(f"    {name}: {times}", flush=True)
        measured.append(figure)
    results = arguments.results or (None if arguments.quick else ROOT / "benches" / "results")
    if results:
        write(results, measured)
    return 0


def write(results: Path, measured: list[Figure]) -> None:
    """Write the JSON file and the page of a run."""
    about = machine()
    now = dt.datetime.now(dt.UTC)
    results.mkdir(parents=True, exist_ok=True)
    stem = f"{now:%Y-%m-%d}-{platform.node() or 'machine'}"
    command = " ".join(["benches/run.py", *sys.argv[1:]])
    record = {"at": now.isoformat(timespec="seconds"), "command": command, "machine": about}
    record["figures"] = [asdict(figure) for figure in measured]
    (results / f"{stem}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    (results / f"{stem}.md").write_text(page(measured, about, command), encoding="utf-8")
    print(f"wrote {results / stem}.json and .md")


if __name__ == "__main__":
    sys.exit(main())
