#!/usr/bin/env python3
"""Section IV of SDS (CLUSTER 2014) again, on ranks of this machine: building, querying, fetching.

Answers are compared with numpy's, by count and by a checksum of the values in order. All times are medians of
whole calls, by `rank.py`. Results go to a JSON file; ``--page`` fills the tables of the page
docs/reproduction/sds.md.
"""

import argparse
import datetime as dt
import json
import shutil
import statistics
import sys
import zlib
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import conventional
import data
import numpy as np
import sds_cases
import sieva
from machine import machine
from queries import Query, sds
from ranks import Ranks, Result, shown

# The tables of the page, in their order.
MARKS = ("run", "build", "queries", "balance", "choice", "little")
ROOT = Path(__file__).resolve().parents[2]
# Figure 6 and Table II: what is built.
BUILDS = {"bitmap": {}, "sorted": {"columns": ["x", "y", "z"]}}
# Section IV.B: against a full scan on as many cores.
TARGETS = {"SDS Q1": 55.0, "SDS Q2": 22.0, "SDS Q3": 62.0}
WAYS = [("h5py", ""), ("sieva", "auto"), ("sieva", "bitmap"), ("sieva", "sorted"), ("unbalanced", "bitmap")]


def main() -> None:
    """Measure, and write what was found."""
    args = parsed()
    ranks = Ranks(args.mpirun)
    size = data.Size(f"parallel-{args.particles}", args.particles, 1, 1, 1, 1, 1, 1, 1)
    path = data.prepare(args.data, size, {"particles"}).particles
    store = args.data / size.name / "stores"
    shutil.rmtree(store, ignore_errors=True)
    found: Result = {
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "command": " ".join(["benches/parallel/sds.py", *sys.argv[1:]]),
        "mpi": ranks.version,
        "machine": machine(),
        "particles": args.particles,
    }
    found["build"] = builds(ranks, path, store, args)
    found["queries"] = queries(ranks, path, store, args)

    def ask(n: int, query: Query, own: Path, how: Result) -> Result:
        return ranks.run(n, {**asked(query, path, own, runs=args.runs), **how})

    found |= sds_cases.measure(ask, path, store / "both")
    args.results.mkdir(parents=True, exist_ok=True)
    name = f"{found['date'][:10]}-{args.particles}-sds-parallel.json"
    (args.results / name).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    tables = "\n\n".join(page(found))
    print(tables)
    if args.page:
        fill(args.page, found)


def parsed() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--particles", type=int, default=100_000_000)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--build-ranks", type=int, nargs="+", default=[1, 2, 4, 7])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--mpirun", default=shutil.which("mpirun.openmpi") or "mpirun")
    parser.add_argument("--data", type=Path, default=ROOT / "target" / "bench-data")
    parser.add_argument("--results", type=Path, default=ROOT / "benches" / "results")
    parser.add_argument("--page", type=Path)
    return parser.parse_args()


def builds(ranks: Ranks, path: Path, store: Path, args: argparse.Namespace) -> list[Result]:
    """Measure figure 6 and table II; what is built last stays for the queries."""
    rows = []
    for kind, more in BUILDS.items():
        for n in args.build_ranks:
            own = store / f"{kind}-{n}"
            job = {"do": "build", "file": str(path), "store": str(own), "kind": kind, "runs": args.runs}
            done = ranks.run(n, {**job, "array": f"{data.GROUP}/Energy", **prefixed(more)})
            rows.append({"what": kind, "ranks": n, **done})
            if n != args.build_ranks[-1]:
                shutil.rmtree(own)
    for n in args.build_ranks:
        own = store / "shared"
        shutil.rmtree(own, ignore_errors=True)
        own.mkdir(parents=True)
        job = {"do": "shared", "file": str(path), "store": str(own), "kind": "bitmap", "runs": args.runs}
        done = ranks.run(n, {**job, "array": f"{data.GROUP}/Energy", "pieces": 64})
        rows.append({"what": "bitmap, one shared file", "ranks": n, **done})
        shutil.rmtree(own)
    return rows


def prefixed(more: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the columns by their paths."""
    return {name: [f"{data.GROUP}/{array}" for array in arrays] for name, arrays in more.items()}


def queries(ranks: Ranks, path: Path, store: Path, args: argparse.Namespace) -> list[Result]:
    """Measure figures 7, 9, 11 (fetching x, y, z), 8, 10, 12 (selecting alone) and 13 (balance)."""
    last = args.build_ranks[-1]
    both = store / "both"
    shutil.copytree(store / f"bitmap-{last}", both)
    bring_together(ranks, path, both, args)
    rows = []
    for query in sds():
        want = conventional.values(path, query)
        hits = len(want["x"])
        digest = {name: zlib.crc32(values.tobytes()) for name, values in want.items()}
        for n in args.ranks:
            for way, access in WAYS:
                job = asked(query, path, both, runs=args.runs)
                done = ranks.run(n, {**job, "way": way, "access": access})
                if sum(done["hits"]) != hits or done["digest"] != digest:
                    raise SystemExit(
                        f"{query.name} on {n} ranks by {way}, {access}: another answer than numpy's"
                    )
                rows.append({"query": query.name, "ranks": n, "way": way, "access": access, **done})
            job = asked(query, path, both, runs=args.runs)
            done = ranks.run(n, {**job, "way": "sieva", "access": "auto", "fetch": []})
            if done["digest"] != {"": zlib.crc32(np.full(n, hits).tobytes())}:
                raise SystemExit(f"{query.name} on {n} ranks: another number of hits than numpy's, {hits}")
            rows.append({"query": query.name, "ranks": n, "way": "select", "access": "auto", **done})
    return rows


def bring_together(ranks: Ranks, path: Path, store: Path, args: argparse.Namespace) -> None:
    """Build what the queries choose from in one store."""
    job = {"do": "build", "file": str(path), "store": str(store), "runs": 1, "array": f"{data.GROUP}/Energy"}
    ranks.run(args.ranks[-1], {**job, "kind": "sorted", **prefixed(BUILDS["sorted"])})
    # Building anew begins with dropping: bitmaps come after the replica, by themselves.
    with sieva.open(path, store=store) as source:
        source.build_index(f"{data.GROUP}/Energy")
        for axis in "xyz":
            source.build_index(f"{data.GROUP}/{axis}")


def asked(query: Query, path: Path, store: Path, runs: int) -> dict[str, Any]:
    """Return a query as the ranks take it."""
    return {
        "do": "ask",
        "file": str(path),
        "store": str(store),
        "text": query.text,
        "terms": query.exact,
        "fetch": list(query.fetch),
        "runs": runs,
    }


def page(found: Result) -> list[str]:
    """Return the tables."""
    one = {r["what"]: statistics.median(r["seconds"]) for r in found["build"] if r["ranks"] == 1}
    lines = [
        "| built | ranks | ms | of 1 rank | bytes | most memory of a rank |",
        "|---|---|---|---|---|---|",
    ]
    for row in found["build"]:
        gain = one[row["what"]] / statistics.median(row["seconds"])
        peak = f"{row['peak'] / 2**20:.0f} MiB" if "peak" in row else "-"
        cells = (row["what"], row["ranks"], shown(row["seconds"]), f"{gain:.2f}x", f"{row['bytes']:,}", peak)
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    tables = ["\n".join(lines)]
    lines = [
        "| query | ranks | way | ms | of h5py on as many ranks | most hits of a rank / mean |",
        "|---|---|---|---|---|---|",
    ]
    rivals = {
        (r["query"], r["ranks"]): statistics.median(r["seconds"])
        for r in found["queries"]
        if r["way"] == "h5py"
    }
    for row in found["queries"]:
        gain = rivals[row["query"], row["ranks"]] / statistics.median(row["seconds"])
        way = row["way"] if row["way"] in ("h5py", "select") else f"{row['way']}, {row['access']}"
        mean = sum(row["hits"]) / len(row["hits"])
        balance = "-" if row["way"] == "select" else f"{max(row['hits']) / mean:.3f}"
        cells = (row["query"], row["ranks"], way, shown(row["seconds"]), f"{gain:.1f}x", balance)
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return [*tables, "\n".join(lines), *sds_cases.tables(found)]


def fill(target: Path, found: Result) -> None:
    """Put the run and the tables between the marks of a page."""
    text = target.read_text(encoding="utf-8")
    head = [f"- {name}: {found[name]}" for name in ("date", "command", "mpi", "particles", "machine")]
    for mark, body in zip(MARKS, ["\n".join(head), *page(found)], strict=True):
        before, _, rest = text.partition(f"<!-- {mark} -->")
        _, _, after = rest.partition(f"<!-- /{mark} -->")
        text = f"{before}<!-- {mark} -->\n\n{body}\n\n<!-- /{mark} -->{after}"
    target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
