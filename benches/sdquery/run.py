"""Repeats section 5 of SDQuery (SC13): results of queries by GridFTP against whole files, on three networks.

Usage: run.py [--quick] [--only deflated|building] [--plugin DIRECTORY] [--engine DIRECTORY]
              [--data DIRECTORY] [--results DIRECTORY] [--page FILE] [--seed N]

Needs root, for network namespaces, and the GridFTP server and client. Nothing outside of the namespaces is
changed, and they are removed at the end. `--quick` runs everything on small files: it shows that it works and
that the answers are right, and says nothing about speed. `--only` measures and writes one part of the page:
what is sent of a deflated file, or how long indexes take to build.
"""

import argparse
import datetime as dt
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import deflated
import gridftp
import network
import page
import subsetting
import transfers
from beside import machine
from cells import Cell
from draw import drawn_once
from gridftp import Plugin
from network import LINES, UNLIMITED, Line, Measured, Network
from oceans import FULL, QUICK, Ocean, Size, prepare
from transfers import Asked, Plan

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reproduction" / "sdquery.md"
# Where `make gridftp` puts the plug-in, and its engine.
PLUGIN, ENGINE = ROOT / "target" / "gridftp", ROOT / "target" / "release"
# The line of figure 10.
STREAMED = LINES[1]


@dataclass(frozen=True)
class Effort:
    """How much is measured.

    Attributes
    ----------
    queries
        Drawn in each class (the paper: 2000 in all).
    budget
        Seconds for each class on each network.
    parts
        Seconds of a line's rate after which a transfer is cut, for those with results.
    streamed
        The same for figure 10.
    rounds
        Runs of each way of figure 10.
    fetched, evaluated
        Seconds for each class and way of figures 9 and 11.
    least
        Runs of each class on each network, at least.
    bulk
        Seconds of the bulk transfer that shows what a network carries.
    """

    size: Size
    queries: int
    budget: float
    parts: dict[str, float]
    streamed: float
    rounds: int
    fetched: float
    evaluated: float
    least: int
    bulk: float


THOROUGH = Effort(FULL, 5, 8, {"200 Mb/s": 4, "20 Mb/s": 5}, 1.5, 2, 3, 2, 2, 3)
BRIEF = Effort(QUICK, 2, 0.1, {"200 Mb/s": 0.4, "20 Mb/s": 0.8}, 0.2, 1, 0, 0, 1, 1)


@dataclass
class Found:
    """What a run has found so far: cells of figures, and what the networks were like."""

    cells: dict[str, list[Cell]] = field(default_factory=dict)
    networks: dict[str, dict[str, object]] = field(default_factory=dict)
    modes: dict[str, dict[str, float]] = field(default_factory=dict)

    def add(self, figure: str, cells: Iterator[Cell]) -> None:
        """Take cells as they come, and show them."""
        for cell in cells:
            self.cells.setdefault(figure, []).append(cell)
            print(f"{figure}  {cell.ocean}  {cell.line}  {cell.name}: {page.times(cell)} s", flush=True)


def measure(plan: Plan, effort: Effort, oceans: list[Asked], found: Found) -> None:
    """Measure all figures."""
    for asked in oceans:
        found.add("11-build", subsetting.building(asked.ocean))
        transfers.evaluate(asked)
        found.add("11", subsetting.evaluating(asked.ocean, asked.queries, effort.evaluated))
        found.add("9", subsetting.fetching(asked.ocean, asked.queries, plan.target, effort.fetched))
    with _joined(UNLIMITED, plan, found, effort.bulk) as told:
        # What the machine itself takes; the relay adds the rest.
        plan = replace(plan, own=told[1].rtt_least / 1e3)
    for line in LINES:
        with _joined(line, plan, found, effort.bulk) as (joined, _):
            rates = transfers.probe(plan, joined, oceans[0].ocean.path, min(2.0, effort.budget))
            found.modes[line.name] = rates
            # As many streams as are best for the File DSI, for both.
            streams = max(transfers.PROBED, key=lambda n: rates[transfers.mode(n)])
            here = replace(plan, streams=streams)
            for asked in oceans:
                figure = page.FIGURES[asked.ocean.name]
                found.add(figure, transfers.against_file(here, joined, asked))
            if line is STREAMED:
                cut = replace(plan, parts={line.name: effort.streamed})
                found.add("10", transfers.with_streams(cut, joined, oceans[-1], effort.rounds))


def measure_deflated(plan: Plan, effort: Effort, modb: Ocean, seed: int, found: Found) -> None:
    """Measure what is sent of a deflated file."""
    ocean = deflated.prepare_deflated(modb)
    queries = deflated.draw_chosen(ocean, seed)
    for line in LINES:
        if line.name in deflated.RUNS:
            with _joined(line, plan, found, effort.bulk) as (joined, _):
                found.add("deflated", deflated.rows(plan, joined, ocean, queries))


@contextmanager
def _joined(line: Line, plan: Plan, found: Found, seconds: float) -> Iterator[tuple[Network, Measured]]:
    """Make a network, and keep what it was like before, and what was lost until the end."""
    with Network(line, plan.relay, plan.own) as joined:
        measured = joined.verify(seconds)
        told = found.networks[line.name] = measured.asdict()
        print(f"{line.name}: {told}", flush=True)
        yield joined, measured
        told["dropped_at_queue"], told["retransmitted"] = joined.dropped(), joined.retransmitted()
    told["dropped_by_relay"] = sum(way["dropped"] for way in joined.lost.values())


def write(found: Found, about: dict[str, object], results: Path, target: Path) -> None:
    """Write the JSON file, the plots, and the tables of the page."""
    stem = f"{dt.datetime.now(dt.UTC):%Y-%m-%d}-{platform.node() or 'machine'}-sdquery"
    told = {**about, "networks": found.networks, "modes_mb_per_s": found.modes}
    (results / f"{stem}.json").write_text(page.record(found.cells, told), encoding="utf-8")
    drawings = {
        "7": page.draw_transfers(found.cells["7"], "POP"),
        "8": page.draw_transfers(found.cells["8"], "MODB"),
        "9": page.draw_ways(found.cells["9"], is_log=True),
        "10": page.draw_ways([cell for cell in found.cells["10"] if "windows" not in cell.line]),
        "11": page.draw_ways(found.cells["11"]),
    }
    drawn = {figure: f"![figure {figure}](sdquery-{figure}.svg)\n\n" for figure in drawings}
    for figure, text in drawings.items():
        (target.parent / f"sdquery-{figure}.svg").write_text(text, encoding="utf-8")
    of = {name: [c for c in found.cells["9"] if c.ocean == name] for name in page.FIGURES}
    evaluated = {name: [c for c in found.cells["11"] if c.ocean == name] for name in page.FIGURES}
    lines = [f"- {key}: {value}" for key, value in about.items()]
    page.fill(
        target,
        {
            "run": "\n".join(lines),
            "networks": page.networks(found.networks),
            "modes": page.modes(found.modes),
            "figure-7": drawn["7"] + page.transfers(found.cells["7"], "POP"),
            "figure-8": drawn["8"] + page.transfers(found.cells["8"], "MODB"),
            "figure-9-pop": drawn["9"] + page.fetching(of["POP"]),
            "figure-9-modb": page.fetching(of["MODB"]),
            "figure-10": drawn["10"] + page.streams_table(found.cells["10"]),
            "figure-11-pop": drawn["11"] + page.by_class(evaluated["POP"], "share"),
            "figure-11-modb": page.by_class(evaluated["MODB"], "share"),
            "building": _building(found),
            "deflated": page.deflated(found.cells.get("deflated", [])),
        },
    )
    print(f"wrote {results / stem}.json, {target} and its plots")


def _building(found: Found) -> str:
    cells = found.cells["11-build"]
    return "\n\n".join(page.by_class([c for c in cells if c.ocean == name], name) for name in page.FIGURES)


def _only(what: str, plan: Plan, effort: Effort, arguments: argparse.Namespace) -> None:
    """Measure one part, and write it."""
    oceans, found, before = prepare(arguments.data, effort.size), Found(), os.getloadavg()
    if what == "building":
        for ocean in oceans:
            found.add("11-build", subsetting.building(ocean))
        text = _building(found)
    else:
        measure_deflated(plan, effort, oceans[1], arguments.seed, found)
        text = page.deflated(found.cells["deflated"])
    loads = [" ".join(f"{load:.2f}" for load in loads) for loads in (before, os.getloadavg())]
    text += (
        f"\n\n{dt.datetime.now(dt.UTC):%Y-%m-%d}; load of the machine before {loads[0]}, after {loads[1]}."
    )
    print(text)
    if arguments.page:
        page.fill(arguments.page, {what: text})


def _about(
    arguments: argparse.Namespace, plugin: Plugin | None, oceans: list[Asked], seconds: float
) -> dict[str, object]:
    """Return what a reader needs to judge the run, or to repeat it."""
    command = ["dpkg-query", "-W", "-f", "${Package} ${Version}, ", *gridftp.PROGRAMS.values()]
    packages = subprocess.run(command, check=False, capture_output=True, text=True).stdout.rstrip(", ")
    return {
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "command": " ".join(["benches/sdquery/run.py", *sys.argv[1:]]),
        "seed": arguments.seed,
        "queries": sum(len(asked.queries) for asked in oceans),
        "files": {asked.ocean.name: asked.ocean.path.stat().st_size for asked in oceans},
        "index_bytes": {asked.ocean.name: subsetting.index_bytes(asked.ocean) for asked in oceans},
        "answers": "the plug-in" if plugin else "stand-ins, made beforehand, sent by the File DSI",
        "packages": packages or "not from Debian packages",
        "minutes": round(seconds / 60, 1),
        "machine": machine(),
    }


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small files, no verdict")
    parser.add_argument("--only", choices=("deflated", "building"), help="one part, which is put on the page")
    parser.add_argument("--plugin", type=Path, default=PLUGIN, help=f"directory of {gridftp.MODULE}")
    parser.add_argument("--engine", type=Path, default=ENGINE, help="directory of libsieva_c.so")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "sdq-data")
    parser.add_argument("--results", type=Path, help="default benches/results; quick: none")
    parser.add_argument("--page", type=Path, help="default docs/reproduction/sdquery.md; quick: none")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if not arguments.quick:
        arguments.results = arguments.results or ROOT / "benches" / "results"
        arguments.page = arguments.page or PAGE
    if arguments.results:
        arguments.results.mkdir(parents=True, exist_ok=True)
    return arguments


def _plugin(arguments: argparse.Namespace) -> Plugin | None:
    """Return the plug-in; without it, only the quick run goes on."""
    plugin = Plugin(arguments.plugin, arguments.engine)
    faults = "\n".join(plugin.missing())
    if not faults:
        return plugin
    if not arguments.quick:
        raise SystemExit(faults)
    print(f"{faults}\nanswers are made beforehand and sent by the File DSI", file=sys.stderr)
    return None


def main() -> int:
    """Measure, print and write."""
    arguments = _parse()
    # Also when it is told to end, what was made is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if faults := [*network.missing(), *gridftp.missing()]:
        raise SystemExit("\n".join(faults))
    plugin = _plugin(arguments)
    effort = BRIEF if arguments.quick else THOROUGH
    started = time.monotonic()
    lengths = _lengths(effort)
    oceans = []
    if not arguments.only:
        oceans = [
            Asked(ocean, drawn_once(ocean, effort.queries, arguments.seed), lengths)
            for ocean in prepare(arguments.data, effort.size)
        ]
    shared = Path("/dev/shm")  # noqa: S108 -- a file system in memory: disks are not what is measured
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None, prefix="sdquery-") as name:
        # The server reads as nobody.
        target = Path(name)
        target.chmod(0o755)
        relay = network.build_relay(target)
        plan = Plan(relay, 0.0, target, plugin, effort.budget, effort.least, effort.parts, 2)
        found = Found()
        if arguments.only:
            _only(arguments.only, plan, effort, arguments)
            return 0
        try:
            measure(plan, effort, oceans, found)
            if plugin:
                measure_deflated(plan, effort, oceans[1].ocean, arguments.seed, found)
        except BaseException:
            if arguments.results:
                partial = arguments.results / "sdquery-partial.json"
                partial.write_text(page.record(found.cells, {}), encoding="utf-8")
                print(f"what was measured before is in {partial}", file=sys.stderr)
            raise
    about = _about(arguments, plugin, oceans, time.monotonic() - started)
    if arguments.results and arguments.page:
        write(found, about, arguments.results, arguments.page)
    print(f"{about['minutes']} minutes")
    return 0


def _lengths(effort: Effort) -> tuple[int, ...]:
    """Return after how many bytes transfers may be cut."""
    rates = {line.name: line.rate for line in LINES}
    seconds = [*effort.parts.items(), (STREAMED.name, effort.streamed)]
    return tuple(int(rates[name] / 8 * span) for name, span in seconds)


if __name__ == "__main__":
    sys.exit(main())
