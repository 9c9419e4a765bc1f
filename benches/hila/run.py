#!/usr/bin/env python3
"""Figures 3, 5, 6 and 8 of HiLa again: on CephFS with 4 OSDs, and on a model of 40 servers fitted to them.

Each cell is a batch of calls by one way, so many times, by ranks of this machine on mounts of their own;
the first run
is not counted. What the OSDs were asked for is counted by them. Every value is compared with its formula.
Results go
to a JSON file; ``--page`` fills the tables of docs/reproduction/hila.md, and draws its figures.
"""

import argparse
import datetime as dt
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "sdquery"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "parallel"))

import batches
import cephfs
import hila_page
import values
from machine import machine
from ways import MODES, Refused, Runner, Way

ROOT = Path(__file__).resolve().parents[2]
CALLS = (10, 20, 30, 40, 50)
WAYS = [Way(who, mode) for who in ("pnetcdf", "hila") for mode in MODES]
# Told beside, of the largest batch: the same by MPI-IO itself, of Open MPI (OMPIO) and of MPICH (ROMIO).
BESIDE = [Way(who, mode) for who in ("ompio", "romio") for mode in MODES]
FILE = "data.nc"
Result = dict[str, Any]


def main() -> None:
    """Measure, and write what was found."""
    args = parsed()
    if args.draw:
        hila_page.fill(args.page, json.loads(args.draw.read_text(encoding="utf-8")))
        return
    if (reason := cephfs.missing()) is not None:
        raise SystemExit(reason)
    program, data = prepared(args.work)
    found: Result = {
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "command": " ".join(["benches/hila/run.py", *sys.argv[1:]]),
        "machine": machine(),
        "load": [f"{load:.1f}" for load in os.getloadavg()],
        "ranks": args.ranks,
        "nodes": args.nodes,
        "groups": args.groups,
        "servers": args.osds,
        "file": data.stat().st_size,
        "cells": [],
        "failed": [],
    }
    # Whoever ends this ends the daemons, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with (
        tempfile.TemporaryDirectory(prefix="hila-", dir=args.scratch, ignore_cleanup_errors=True) as scratch,
        cephfs.running(Path(scratch) / "ceph", osds=args.osds, nodes=args.nodes) as cluster,
    ):
        runner = Runner(cluster.directory, args.nodes, args.ranks, program)
        for stripe, size in batches.STRIPES.items():
            found[f"placed {stripe}"] = put(cluster, data, stripe, size)
            for calls in args.calls if stripe == "large" else args.calls[-1:]:
                for overlaps in (False, True):
                    asked = batches.batch(calls, overlaps, args.groups)
                    for way in WAYS + (BESIDE if calls == args.calls[-1] else []):
                        try:
                            one = cell(cluster, runner, way, asked, stripe=stripe, runs=args.runs, data=data)
                        except Refused as why:
                            of = {"stripe": stripe, "calls": calls, "overlaps": overlaps, "way": str(way)}
                            found["failed"].append({**of, "reason": str(why)})
                            print(stripe, calls, overlaps, way, f"failed: {why}", flush=True)
                            continue
                        found["cells"].append({"stripe": stripe, **one})
                        print(stripe, calls, overlaps, way, hila_page.told(one), flush=True)
            found[f"values {stripe}"] = of_values(cluster, args.work, Path(scratch), stripe, args.runs)
    args.results.mkdir(parents=True, exist_ok=True)
    name = args.results / f"{found['date'][:10]}-hila.json"
    name.write_text(json.dumps(found) + "\n", encoding="utf-8")
    print(hila_page.shown(found))
    if args.page:
        hila_page.fill(args.page, found)


def parsed() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--groups", type=int, default=2, help="groups of ranks that call at the same time")
    parser.add_argument("--nodes", type=int, default=4, help="mounts, each with its own ranks")
    parser.add_argument("--osds", type=int, default=4)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--calls", type=int, nargs="+", default=list(CALLS))
    parser.add_argument("--work", type=Path, default=ROOT / "target" / "hila")
    parser.add_argument("--scratch", type=Path, help="where daemons keep their files")
    parser.add_argument("--results", type=Path, default=ROOT / "benches" / "results")
    parser.add_argument("--page", type=Path)
    parser.add_argument(
        "--draw", type=Path, help="fill the page from this file of results, and measure nothing"
    )
    return parser.parse_args()


def prepared(work: Path) -> tuple[Path, Path]:
    """Compile pnetcdf.c, and write the files on a plain disk."""
    work.mkdir(parents=True, exist_ok=True)
    program, data = work / "pnetcdf", work / FILE
    mpicc = shutil.which("mpicc.openmpi") or "mpicc"
    source = Path(__file__).with_name("pnetcdf.c")
    subprocess.run([mpicc, "-O2", "-std=c99", "-o", str(program), str(source), "-lpnetcdf"], check=True)
    for path, write in ((data, batches.write), (work / values.FILE, values.write)):
        if not path.exists():
            partial = path.with_suffix(".part")
            write(partial)
            partial.rename(path)
    return program, data


def of_values(cluster: cephfs.Ceph, work: Path, scratch: Path, stripe: str, runs: int) -> list[Result]:
    """Return what value queries took on a file of stripes of this size."""
    target = cluster.mounts[0] / stripe / values.FILE
    shutil.copyfile(work / values.FILE, target)
    store = scratch / f"zone-maps-{stripe}"
    return values.measured(cluster, target, work / values.FILE, store=store, runs=runs)


def put(cluster: cephfs.Ceph, data: Path, stripe: str, size: int) -> list[int]:
    """Copy the file to a directory of a stripe size; return how many stripes each OSD has."""
    cluster.folder(stripe, size, cluster.osds)
    target = cluster.mounts[0] / stripe / FILE
    target.touch()
    objects = -(-data.stat().st_size // size)
    # Few objects are dealt out in turn; of hundreds the hash gives each about as many.
    if stripe == "large":
        cluster.spread(target, objects)
    shutil.copyfile(data, target)
    holders = cluster.holders(target) if stripe == "large" else []
    return [holders.count(osd) for osd in range(cluster.osds)]


def cell(
    cluster: cephfs.Ceph,
    runner: Runner,
    way: Way,
    asked: batches.Asked,
    *,
    stripe: str,
    runs: int,
    data: Path,
) -> Result:
    """Return what one way took for a batch: seconds of each run, and what each OSD read and spent in one."""
    more: Result = {}
    if way.who in ("ompio", "romio"):
        more["offset"] = data.stat().st_size - batches.SHAPE[0] * 4 * batches.inner()
    before, spent = cluster.traffic(), cluster.cpu()
    done = runner.run(way, asked, f"{stripe}/{FILE}", runs + 1, **more)
    after, now = cluster.traffic(), cluster.cpu()
    counted = {
        name: [(b - a) / (runs + 1) for a, b in zip(before[name], after[name], strict=True)] for name in after
    }
    return {
        **done,
        "way": str(way),
        "asked": asked.to_dict(),
        "overlaps": asked.overlaps,
        "wanted": asked.bytes_asked(),
        "distinct": asked.bytes_distinct(),
        "seconds": done["seconds"][1:],
        **counted,
        "cpu": {name: (now[name] - spent[name]) / (runs + 1) for name in now},
    }


if __name__ == "__main__":
    main()
