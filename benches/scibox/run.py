#!/usr/bin/env python3
"""Section VII of Scibox again: figures 6 to 16 on a Swift, an S3 and a directory of this machine.

Each figure is measured beside the stock system, which moves whole variables through the store, in the same
run, and kept as a JSON file of its own; a run that was stopped goes on with the figures that are missing of
the same commit. ``--only fig6`` measures some of them anew. ``--page`` fills docs/reproduction/scibox.md from
all files of the scale.
"""

import argparse
import datetime as dt
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "sdquery"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "parallel"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import scibox_consumers
import scibox_functions
import scibox_gts
import scibox_images
import scibox_links
import scibox_page
import scibox_parts
import scibox_producers
import scibox_sizes
import scibox_store
import scibox_traffic
from machine import machine
from scibox_scales import SCALES, Scale
from scibox_store import STORES

ROOT = Path(__file__).resolve().parents[2]
Result = dict[str, Any]


class Unable(Exception):  # noqa: N818 - it is no error of anybody
    """A figure cannot be measured on this machine."""


class Run:
    """What all figures are measured with.

    Parameters
    ----------
    args
        The command's.
    scratch
        A directory for what comes and goes.
    """

    def __init__(self, args: argparse.Namespace, scratch: Path) -> None:
        self.scale: Scale = SCALES[args.scale]
        self.data: Path = args.data
        self.scratch = scratch
        self.stores: list[str] = args.stores
        self.seed: int = args.seed
        self._start = time.monotonic()
        self.data.mkdir(parents=True, exist_ok=True)

    def say(self, what: str) -> None:
        """Tell how far the run is."""
        print(f"{time.monotonic() - self._start:6.0f} s  {what}", file=sys.stderr, flush=True)


def figure_6(run: Run) -> Result:
    """Measure traffic and service time by the size of variables; figures 6 and 7."""
    cells = []
    options = {"requests": run.scale.requests, "seed": run.seed, "budget": run.scale.budget}
    for name in run.stores:
        # All sizes on the first store; the smallest on the others shows that they hold and move the same.
        sizes = run.scale.variables if name == run.stores[0] else run.scale.variables[:1]
        with scibox_store.running(name, run.scratch) as store:
            for megabytes in sizes:
                more = scibox_traffic.measure(store, run.data, run.scratch, megabytes, options=options)
                cells += more
                run.say(scibox_traffic.told(more))
    return {"cells": cells}


def figure_8(run: Run) -> Result:
    """Measure uploads by the size of objects, and the size that a model chooses."""
    options = {"merged": run.scale.merged, "runs": run.scale.runs, "seed": run.seed}
    with scibox_store.running(run.stores[0], run.scratch) as store:
        return scibox_sizes.measure(store, run.scratch, run.scale.parts, options=options)


def figure_9(run: Run) -> Result:
    """Measure what 1 to 16 producers take to put what is asked of them."""
    return _producers(run, [(number, run.scale.requests) for number in run.scale.producers])


def figure_10(run: Run) -> Result:
    """Measure what 4 producers take to put it for more and more requests."""
    return _producers(run, [(4, requests) for requests in run.scale.asked])


def _producers(run: Run, cells: list[tuple[int, int]]) -> Result:
    found = []
    with scibox_store.running(run.stores[0], run.scratch) as store:
        for producers, requests in cells:
            options = {"megabytes": run.scale.produced, "requests": requests, "seed": run.seed}
            options |= {"budget": run.scale.budget, "checked": run.scale.checked}
            found.append(scibox_producers.measure(store, run.data, run.scratch, producers, options=options))
            run.say(scibox_producers.told(found[-1]))
    return {"cells": found}


def figure_11(run: Run) -> Result:
    """Measure how long consumers wait, by their number."""
    found = []
    options = {"megabytes": run.scale.produced, "requests": run.scale.wanted, "seed": run.seed}
    options["budget"] = run.scale.budget / 2
    with scibox_store.running(run.stores[0], run.scratch) as store:
        for consumers in run.scale.consumers:
            found.append(scibox_consumers.measure(store, run.data, run.scratch, consumers, options=options))
            run.say(scibox_consumers.told(found[-1]))
    return {"cells": found}


def figure_12(run: Run) -> Result:
    """Measure how soon consumers at three sites have what they want of a restart file."""
    if faults := scibox_links.missing():
        raise Unable("; ".join(faults))
    with (
        scibox_links.linked(run.scale.each) as links,
        scibox_store.running("swift", run.scratch, scibox_links.STORE_ADDRESS) as store,
    ):
        size = {"megabytes": run.scale.restart, "seed": run.seed}
        return scibox_gts.measure(store, links, run.data, run.scratch, **size)


def figure_13(run: Run) -> Result:
    """Measure how soon consumers have the spectra of images, by code at the source."""
    options = {"images": run.scale.images, "seed": run.seed}
    cells = []
    with scibox_store.running(run.stores[0], run.scratch) as store:
        for transforming in run.scale.transforming:
            cells += scibox_images.measure(
                store, run.data, run.scratch, transforming, run.scale.looking, options=options
            )
            run.say(scibox_images.told(cells[-len(run.scale.looking) :]))
    return {"cells": cells}


def figure_14(run: Run) -> Result:
    """Measure what a PUT and a GET of Swift are made of."""
    with scibox_store.running("swift", run.scratch) as store:
        return {"cells": scibox_parts.measure(store, run.scratch, run.scale.objects, run.scale.runs)}


def figure_15(run: Run) -> Result:
    """Measure what each DR-function takes, and what of it is what; figures 15 and 16."""
    options = {"seed": run.seed, "runs": run.scale.runs}
    with scibox_store.running("swift", run.scratch) as store:
        return {
            "cells": scibox_functions.measure(
                store, run.data, run.scratch, run.scale.reduced, options=options
            )
        }


FIGURES: dict[str, Callable[[Run], Result]] = {
    "fig6": figure_6,
    "fig8": figure_8,
    "fig9": figure_9,
    "fig10": figure_10,
    "fig11": figure_11,
    "fig12": figure_12,
    "fig13": figure_13,
    "fig14": figure_14,
    "fig15": figure_15,
}


def main() -> None:
    """Measure what is missing, and write what was found."""
    args = parsed()
    # Whoever ends this ends the stores, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if not args.draw:
        os.environ["XDG_STATE_HOME"] = str(args.data / "state")
        args.data.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix="scibox-", dir=args.scratch, ignore_cleanup_errors=True
        ) as scratch:
            run = Run(args, Path(scratch))
            for name in args.only or FIGURES:
                measure(run, name, args)
    found = scibox_page.kept(args.results, args.scale)
    print(scibox_page.shown(found))
    if args.page:
        scibox_page.fill(args.page, found)


def measure(run: Run, name: str, args: argparse.Namespace) -> None:
    """Measure a figure, if it was not measured with this commit; ``--only`` measures it in any case."""
    path: Path = args.results / f"scibox-{args.scale}-{name}.json"
    commit = _commit()
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if not args.only and commit and before.get("commit") == commit:
        run.say(f"{name}: was measured with this commit")
        return
    run.say(f"{name}: {FIGURES[name].__doc__}")
    start = time.monotonic()
    try:
        measured = FIGURES[name](run)
    except Unable as why:
        run.say(f"{name}: left out: {why}")
        return
    found: Result = {
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "command": " ".join(["benches/scibox/run.py", *sys.argv[1:]]),
        "commit": commit,
        "scale": args.scale,
        "machine": machine(),
        "stores": scibox_store.versions(),
        "load": [round(load, 1) for load in os.getloadavg()],
        "seed": args.seed,
        "took": round(time.monotonic() - start),
        **measured,
    }
    args.results.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    partial.write_text(json.dumps(found) + "\n", encoding="utf-8")
    partial.replace(path)


def _commit() -> str:
    """Return the commit that is checked out; nothing outside of a checkout."""
    told = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return told.stdout.strip()


def parsed() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(FIGURES), help="some of the figures, anew")
    parser.add_argument("--scale", choices=list(SCALES), default="medium")
    parser.add_argument("--stores", nargs="+", choices=STORES, default=list(STORES))
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument(
        "--data", type=Path, default=ROOT / "target" / "scibox", help="of variables, which are made once"
    )
    parser.add_argument("--scratch", type=Path, help="where stores keep their files; needs user attributes")
    parser.add_argument("--results", type=Path, default=ROOT / "benches" / "results")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--draw", action="store_true", help="write the page from what was kept, no more")
    return parser.parse_args()


if __name__ == "__main__":
    main()
