"""Tables and plot of the model: fitted to some cells, compared with the others, and asked of 40 servers."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import Any

import plots
import streams
from batches import RECORDS, SHAPE, STRIPES, Asked
from hila_model import Costs, Measured, fitted, seconds
from pdc_tables import table
from plots import Bar, Panel
from ways import MODES

Result = dict[str, Any]
# Fitted to batches of these calls; the others are what it is checked against.
FITTED = (10, 30, 50)
# The paper's: 40 servers, 50 processes for a call on nodes of 12 cores, DDR InfiniBand; all bytes four
# times ours.
PAPER_SERVERS, PAPER_PROCESSES, PAPER_NODES = 40, 50, 5
PAPER_SHAPE = (SHAPE[0], SHAPE[1], SHAPE[2] * 2, SHAPE[3] * 2)
PAPER_STRIPES = {"large": 100_000_000, "small": 10_000_000}
# A server of its time: a disk that seeks in 8 ms and reads 100 MB/s. A node sends 1.5 GB/s.
SEEK, DISK, LINK = 8e-3, 100e6, 1.5e9
# Readers of a collective call and of HiLa: one of each node; of HiLa, one for each server.
CALLS = (10, 30, 50)


def made(found: Result) -> tuple[dict[str, str], dict[str, str]]:
    """Return tables by mark, and the plot."""
    costs = fit(found)
    tables = {"model-fit": told(found, costs), "model-check": check(found, costs)}
    own, disks = forty(costs)
    tables["model-40"] = "\n\n".join([about(own), predicted(own), about(disks), predicted(disks)])
    return tables, {"hila-40.svg": draw(own, disks)}


def shape_of(found: Result, stripe: str) -> streams.Shape:
    """Return where things lie in what was measured."""
    return streams.Shape(
        SHAPE, RECORDS, STRIPES[stripe], found["servers"], found["ranks"], found["groups"], readers=2
    )


def stream_of(one: Result, of: streams.Shape) -> streams.Stream:
    """Return what a way asks for, by the model."""
    who, _, mode = one["way"].partition("-")
    asked = Asked(**one["asked"])
    if who == "hila":
        many = replace(of, readers=of.processes)
        return streams.hila(many, asked.calls, asked.step, overlaps=mode != "collective")
    return streams.WAYS[mode](of, asked.calls, asked.step)


def _cells(found: Result) -> list[Result]:
    return [one for one in found["cells"] if one["way"].startswith(("pnetcdf", "hila"))]


def fit(found: Result) -> Costs:
    """Return the costs that fit the batches of `FITTED` calls."""
    measured = []
    for one in _cells(found):
        if one["asked"]["calls"] in FITTED and one["stripe"] == "large":
            sent = stream_of(one, shape_of(found, one["stripe"])).exchanged
            measured.append(
                Measured(
                    sum(one["requests"]),
                    sum(one["bytes"]),
                    sent,
                    one["cpu"]["servers"],
                    median(one["seconds"]),
                )
            )
    return fitted(measured, found["machine"]["cores"])


def told(found: Result, costs: Costs) -> str:
    """Return the table of the costs."""
    us = [costs.overhead, costs.asking]
    per_gb = [costs.per_byte, costs.copy, costs.send]
    row = [f"{1e6 * s:.1f}" for s in us] + [f"{1e9 * s:.2f}" for s in per_gb]
    head = [
        "server, us of a request",
        "asking, us of a request",
        "server, s of a GB",
        "asking, s of a GB",
        "sending, s of a GB",
    ]
    return table([*head, "cores"], [[*row, f"{found['machine']['cores']}"]])


def check(found: Result, costs: Costs) -> str:
    """Return how far the model is from what was measured, and what it says of requests."""
    rows, off = [], {True: [], False: []}
    for one in _cells(found):
        stream = stream_of(one, shape_of(found, one["stripe"]))
        by = seconds(stream, costs)
        measured = median(one["seconds"])
        is_fitted = one["asked"]["calls"] in FITTED and one["stripe"] == "large"
        off[is_fitted].append(abs(by / measured - 1))
        if one["asked"]["calls"] in (20, 50):
            rows.append(
                [
                    one["stripe"],
                    f"{one['asked']['calls']}",
                    "yes" if one["overlaps"] else "no",
                    one["way"],
                    f"{1e3 * measured:,.0f}",
                    f"{1e3 * by:,.0f}",
                    f"{100 * (by / measured - 1):+.0f} %",
                    f"{sum(one['requests']):,.0f}",
                    f"{stream.requests():,}",
                    "yes" if is_fitted else "no",
                ]
            )
    words = [
        f"{name} cells: off by {100 * median(errors):.0f} % in the median, {100 * max(errors):.0f} % at most."
        for name, errors in (("Fitted", off[True]), ("Other", off[False]))
        if errors
    ]
    head = [
        "stripes",
        "calls",
        "overlap",
        "way",
        "ms",
        "model, ms",
        "off by",
        "requests",
        "model",
        "fitted to",
    ]
    return f"{' '.join(words)}\n\n{table(head, rows)}"


Forty = dict[tuple[str, int, bool, str], float]


def forty(costs: Costs) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return seconds of the paper's batches on 40 servers as ours, and on 40 disks of its time."""
    apart = replace(costs, cores=None, nodes=PAPER_NODES, send=max(costs.send, 1 / LINK))
    disks = replace(apart, per_byte=1 / DISK, seek=SEEK)
    names = ("40 servers, each as one of ours", "40 servers of disks: 8 ms a seek, 100 MB/s")
    return tuple(
        {"name": name, "costs": one, "seconds": _all(one)}
        for name, one in zip(names, (apart, disks), strict=True)
    )  # type: ignore[return-value]


def _all(costs: Costs) -> Forty:
    found: Forty = {}
    for stripe, size in PAPER_STRIPES.items():
        of = streams.Shape(
            PAPER_SHAPE, RECORDS, size, PAPER_SERVERS, PAPER_PROCESSES, 2, PAPER_NODES, largest=1 << 20
        )
        for calls in CALLS if stripe == "large" else CALLS[-1:]:
            for overlaps in (True, False):
                step = RECORDS // 2 if overlaps else RECORDS
                key = (stripe, calls, overlaps)
                for mode in MODES:
                    found[*key, mode] = seconds(streams.WAYS[mode](of, calls, step), costs)
                many = replace(of, readers=PAPER_SERVERS)
                found[*key, "hila"] = seconds(streams.hila(many, calls, step), costs)
    return found


def about(one: dict[str, Any]) -> str:
    """Return which servers these are."""
    return f"**{one['name']}**"


def predicted(one: dict[str, Any]) -> str:
    """Return the model's seconds, and what HiLa saves."""
    rows = []
    spent: Forty = one["seconds"]
    for stripe, calls, overlaps in dict.fromkeys(key[:3] for key in spent):
        ours = spent[stripe, calls, overlaps, "hila"]
        cells = []
        for mode in MODES:
            theirs = spent[stripe, calls, overlaps, mode]
            cells += [f"{theirs:.2f}", f"{100 * (1 - ours / theirs):+.0f} %"]
        rows.append([stripe, f"{calls}", "yes" if overlaps else "no", *cells, f"{ours:.2f}"])
    head = [
        "stripes",
        "calls",
        "overlap",
        "independent, s",
        "HiLa",
        "collective, s",
        "HiLa",
        "nonblocking, s",
        "HiLa",
        "HiLa, s",
    ]
    return table(head, rows)


def draw(own: dict[str, Any], disks: dict[str, Any]) -> str:
    """Return the figure: overlapping calls on large stripes, by ways."""
    panels = []
    for one in (own, disks):
        spent = one["seconds"]
        groups = []
        for calls in CALLS:
            heights = [spent["large", calls, True, way] for way in (*MODES, "hila")]
            groups.append((f"{calls}", [Bar((s,), (s, s)) for s in heights]))
        panels.append(Panel(f"{one['name'].partition(':')[0]}: s by calls", groups))
    return plots.figure(panels, (*MODES, "HiLa"), "s", is_log=True)
