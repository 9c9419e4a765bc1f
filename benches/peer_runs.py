"""The peers: each in an environment and a process of its own, on data that it loads itself."""

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import conventional
import ours
import sieva
from data import GROUP, ROOT
from figure import Figure, bounded, same
from particles import ARRAYS
from peers.protocol import digest
from queries import Query, pdc_multi, pdc_single, sds
from timing import Times, interleave, timed, warm

HERE = Path(__file__).resolve().parent
VENV = ROOT / "target" / "peers-venv"
PEERS = {
    "DuckDB on Parquet": "duckdb_parquet.py",
    "PyTables": "pytables_csi.py",
    "TileDB": "tiledb_conditions.py",
    "xarray-sql": "xarray_sql_scan.py",
}
ASKED = ("count", "fetch")
# The peers' connections are open and warm when they are asked.
OPEN, WHOLE = "sieva, file open", "sieva, opening included"


def python() -> Path:
    """Return the interpreter of the peers' environment, made once for each list of versions."""
    wanted = HERE / "peers.txt"
    stamp = VENV / ".ready"
    interpreter = VENV / "bin" / "python"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted.read_text(encoding="utf-8"):
        print("installing the peers ...", file=sys.stderr)
        venv.create(VENV, clear=True, with_pip=True)
        # Wheels only: nothing of these is compiled here.
        install = [
            str(interpreter),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--only-binary",
            ":all:",
            "-r",
            str(wanted),
        ]
        subprocess.run(install, check=True)
        shutil.copy(wanted, stamp)
    return interpreter


def run_peer(script: str, source: Path, queries: list[Query], runs: int) -> list[dict[str, Any]]:
    """Let a peer load the source and answer; return a record for each of its variants."""
    store = source.parent / "peers" / script.removesuffix(".py")
    shutil.rmtree(store, ignore_errors=True)
    job = {
        "source": str(source),
        "group": GROUP,
        "store": str(store),
        "runs": runs,
        "threads": os.cpu_count() or 1,
        "queries": [query.job() for query in queries],
    }
    command = [str(python()), "-W", "ignore", str(HERE / "peers" / script)]
    done = subprocess.run(command, input=json.dumps(job), check=True, stdout=subprocess.PIPE, text=True)
    shutil.rmtree(store, ignore_errors=True)
    answers = json.loads(done.stdout)
    return [variant | {"versions": answers["versions"]} for variant in answers["variants"]]


def _digests(path: Path, queries: list[Query]) -> dict[str, str]:
    return {query.name: digest(conventional.values(path, query), query.fetch) for query in queries}


def _run(source: sieva.Source | Path, query: Query, asked: str) -> object:
    """Ask of an open file, as the peers are asked, or open it first."""
    opened = sieva.open(source) if isinstance(source, Path) else source
    made = opened.query(query.text, select=list(query.fetch))
    return made.count() if asked == "count" else ours.columns(made, query)


def _ours(path: Path, queries: list[Query], runs: int) -> dict[tuple[str, str], dict[str, Times]]:
    """Measure the same questions here: of a file that is open, and with the opening."""
    source = sieva.open(path)
    times: dict[tuple[str, str], dict[str, Times]] = {}
    for query in queries:
        for asked in ASKED:
            things = {
                OPEN: timed(partial(_run, source, query, asked)),
                WHOLE: timed(partial(_run, path, query, asked)),
            }
            times[query.name, asked] = interleave(things, runs)
    return times


def peers(sds_file: Path, pdc_file: Path, runs: int) -> Iterator[Figure]:
    """Measure all peers on the queries of SDS and of PDC."""
    jobs = ((sds_file, sds()), (pdc_file, [*pdc_single(), *pdc_multi()]))
    for source, queries in jobs:
        warm(source)
        wanted = _digests(source, queries)
        records = {}
        for peer, script in PEERS.items():
            print(f"  {peer} on {source.name}", file=sys.stderr)
            for variant in run_peer(script, source, queries, runs):
                records[f"{peer}, {variant['variant']}"] = variant
        path = ours.indexed(source, ARRAYS)
        warm(path)
        for query in queries:
            answers = {name: record["queries"][query.name]["digest"] for name, record in records.items()}
            mine = digest(ours.values(path, query, "auto"), query.fetch)
            same({"numpy": wanted[query.name], "sieva": mine, **answers})
            counts = {name: record["queries"][query.name]["hits"] for name, record in records.items()}
            same({"sieva": ours.ask(path, query, "auto").count(), **counts})
        yield from _loads(source, records)
        mine_times = _ours(path, queries, runs)
        for query in queries:
            for asked in ASKED:
                yield _against(query, asked, mine_times[query.name, asked], records)


def _loads(source: Path, records: dict[str, dict[str, Any]]) -> Iterator[Figure]:
    for name, record in records.items():
        load = record["load"]
        seconds = load["seconds"] + load.get("index_seconds", 0)
        figure = bounded(f"{name}: load and index {source.name}", "", seconds, "s")
        figure.notes = load | {"versions": record["versions"]}
        yield figure


def _best(times: dict[str, Times], peer: str) -> str:
    """Return the variant of a peer that was fastest."""
    variants = (name for name in times if name.startswith(f"{peer}, "))
    return min(variants, key=lambda name: times[name].median)


def _against(query: Query, asked: str, mine: dict[str, Times], records: dict[str, dict[str, Any]]) -> Figure:
    """Return our time against the fastest peer's; the variants of each peer are all told."""
    times = {name: Times(tuple(record["queries"][query.name][asked])) for name, record in records.items()}
    best = min(times, key=lambda name: times[name].median)
    ratio = {name: times[best].median / spent.median for name, spent in mine.items()}
    figure = bounded(f"{query.name}, {asked}, against the fastest peer", "> 1", ratio[OPEN], "x")
    figure.limit = f"fastest: {best}"
    figure.times = {**mine, **times}
    figure.told = (*mine, *(_best(times, peer) for peer in PEERS))
    hits = next(iter(records.values()))["queries"][query.name]["hits"]
    whole = f"{ratio[WHOLE]:.3g}"
    figure.notes = {"condition": query.text, "hits": hits, "ratio, opening included": whole}
    return figure
