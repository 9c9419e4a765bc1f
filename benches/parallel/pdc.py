#!/usr/bin/env python3
"""Sections V and VI of PDC-Query (IPDPS 2020) again, on workers and ranks of this machine.

Each figure by itself, ``--only fig3 fig5``; all of them without. Answers are compared with numpy's before
anything is told. Results go to a JSON file; ``--page`` fills tables and plots of the figures that were
measured into docs/reproduction/pdc.md, and leaves the others as they are.
"""

import argparse
import datetime as dt
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "sdquery"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "objects"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import conventional
import data
import pdc_objects
import pdc_order
import pdc_page
import pdc_scaling
import pdc_series
from machine import machine
from pdc_cluster import Cluster, Result, settled
from queries import Query, pdc_multi, pdc_single

ROOT = Path(__file__).resolve().parents[2]


class Run:
    """What all figures are measured with.

    Parameters
    ----------
    args
        The command's.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self._start = time.monotonic()
        size = data.Size(f"parallel-{args.particles}", args.particles, 1, 1, 1, 1, 1, 1, 1)
        self.folder = args.data / size.name
        self._size = size
        self._path: Path | None = None
        self._is_indexed = False

    @property
    def path(self) -> Path:
        """The particles, made where they are missing, with the replica that all stores have."""
        if self._path is None:
            self._path = data.prepare(self.args.data, self._size, {"pdc"}).pdc
            settled([self._path])
            took = pdc_series.sorted_store(self._path, self.stores / "base")
            self.say(f"sorted by Energy in {took:.1f} s")
        return self._path

    @property
    def stores(self) -> Path:
        """The directory of all stores."""
        return self.folder / "pdc-stores"

    @property
    def multi(self) -> Path:
        """The store of the replica, and of zone maps and bitmaps of all arrays that queries name."""
        store = self.stores / "all arrays"
        if not self._is_indexed:
            path = self.path
            size = pdc_series.SIZES[0]
            built = pdc_series.indexed(path, self.stores / "base", store, size, pdc_order.ARRAYS)
            self._is_indexed = True
            self.say(f"indexed four arrays in {built['seconds']:.1f} s")
        return store

    def some(self, queries: list[Query]) -> list[Query]:
        """Return the queries; in a quick run the first, one in the middle, and the last."""
        return queries[:: len(queries) // 2] if self.args.quick else queries

    def say(self, what: str) -> None:
        """Tell how far the run is."""
        print(f"{time.monotonic() - self._start:6.0f} s  {what}", file=sys.stderr, flush=True)

    @property
    def options(self) -> Result:
        """How often what is measured."""
        args = self.args
        often = {"runs": args.runs, "cold_runs": args.cold_runs, "budget": args.budget}
        return {"sizes": args.sizes, **often, "say": self.say}


def figure_3(run: Run) -> Result:
    """Measure queries of one object by regions of several sizes."""
    columns = conventional.read(run.path, ("Energy",))
    with Cluster(2) as cluster:
        return pdc_series.measure(
            cluster, run.path, run.some(pdc_single()), columns, run.stores, options=run.options
        )


def figure_4(run: Run) -> Result:
    """Measure queries of four objects, and the order of their conditions."""
    columns = conventional.read(run.path, pdc_order.ARRAYS)
    queries = run.some(pdc_multi())
    options = {**run.options, "ways": (*pdc_series.WAYS, pdc_series.H5PY)}
    with Cluster(2) as cluster:
        rows = pdc_series.by_ways(cluster, run.path, run.multi, queries, columns, options=options)
    order = pdc_order.measure(run.path, run.multi, queries, columns, runs=run.args.runs)
    return {"rows": rows, "order": order, "particles": run.args.particles}


def figure_5(run: Run) -> Result:
    """Measure small objects by metadata and data, in a catalog of millions."""
    args = run.args
    more = {"objects": args.catalog_objects, "fill": args.fill, "mpirun": args.mpirun}
    return pdc_objects.measure(args.data / "objects", args.files, options={**run.options, **more})


def figure_6(run: Run) -> Result:
    """Measure one query on one and two workers, and what a model of more is made of."""
    columns = conventional.read(run.path, pdc_order.ARRAYS)
    return pdc_scaling.measure(run.path, run.multi, pdc_multi(), columns, options=run.options)


FIGURES: dict[str, Callable[[Run], Result]] = {
    "fig3": figure_3,
    "fig4": figure_4,
    "fig5": figure_5,
    "fig6": figure_6,
}


def main() -> None:
    """Measure, and write what was found."""
    args = parsed()
    run = Run(args)
    found: Result = {
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "command": " ".join(["benches/parallel/pdc.py", *sys.argv[1:]]),
        "machine": machine(),
        "load": [round(load, 1) for load in os.getloadavg()],
        "particles": args.particles,
    }
    for name in args.only or FIGURES:
        run.say(f"{name}: {FIGURES[name].__doc__}")
        found[name] = FIGURES[name](run)
        # What was measured is kept, whatever happens to the figures after it.
        write(args, found)
    run.say("done")
    print(pdc_page.shown(found))


def write(args: argparse.Namespace, found: dict[str, Any]) -> None:
    """Write what was measured so far as JSON, and into the page where one is given."""
    args.results.mkdir(parents=True, exist_ok=True)
    some = "-".join(["", *args.only]) if args.only else ""
    name = f"{found['date'][:10]}-{args.particles}-pdc{some}.json"
    (args.results / name).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if args.page:
        pdc_page.fill(args.page, found)


def parsed() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(FIGURES), help="some of the figures")
    parser.add_argument("--particles", type=int, default=100_000_000)
    parser.add_argument("--runs", type=int, default=5, help="of each thing, on a warm page cache")
    parser.add_argument("--cold-runs", type=int, default=5, help="with the files dropped from it")
    parser.add_argument(
        "--budget", type=float, default=6.0, help="seconds for a series, then it is run twice"
    )
    parser.add_argument("--sizes", type=float, nargs="+", default=list(pdc_series.SIZES), help="MiB")
    parser.add_argument("--files", type=int, default=250, help="of 100 small objects each")
    parser.add_argument("--catalog-objects", type=int, default=5_000_000, help="besides those of the files")
    parser.add_argument("--fill", type=Path, default=ROOT / "target" / "release" / "examples" / "fill")
    parser.add_argument("--mpirun")
    parser.add_argument("--quick", action="store_true", help="little of all: shows that everything runs")
    parser.add_argument("--data", type=Path, default=ROOT / "target" / "bench-data")
    parser.add_argument("--results", type=Path, default=ROOT / "benches" / "results")
    parser.add_argument("--page", type=Path)
    args = parser.parse_args()
    if args.quick:
        args.particles, args.runs, args.cold_runs, args.sizes = 100_000, 1, 1, [0.25, 1]
        args.files, args.catalog_objects = 3, 0
    return args


if __name__ == "__main__":
    main()
