"""Tables and plot of figure 4 of PDC: queries of four objects, and the order of their conditions."""

from statistics import median
from typing import Any

import plots
from pdc_order import PLANNED, gain
from pdc_series import H5PY
from pdc_tables import Target, ratio, table, targets
from plots import Bar, Panel
from ranks import shown

Result = dict[str, Any]
STATES = ("warm", "cold")
EVALUATED = ("by_scan", "by_points", "by_bitmap")
OVER = 1.10


def page(found: Result) -> tuple[dict[str, str], dict[str, str]]:
    """Return tables by mark, and plots by file."""
    tables = {
        "fig4-queries": "\n\n".join(queries(found, state) for state in STATES),
        "fig4-plot": "![Milliseconds of each query of four objects, by ways](pdc-4.svg)",
        "fig4-order": order(found["order"]),
        "fig4-targets": goals(found),
    }
    return tables, {"pdc-4.svg": draw(found)}


def of(found: Result, way: str, state: str) -> list[Result]:
    """Return the queries by a way, in order."""
    return [row for row in found["rows"] if (row["way"], row["state"]) == (way, state)]


def ways_of(found: Result) -> list[str]:
    """Return the ways of sieva, in the order of the table."""
    return [way for way in dict.fromkeys(row["way"] for row in found["rows"]) if way != H5PY]


def queries(found: Result, state: str) -> str:
    """Return the table of queries by all ways: the condition, then with the values."""
    rows = []
    ways = ways_of(found)
    for number, scan in enumerate(of(found, H5PY, state)):
        share = f"{100 * scan['hits'] / found['particles']:.4f}"
        cells = [scan["query"].removeprefix("PDC "), f"{scan['hits']:,}", share, shown(scan["select"])]
        for way in ways:
            mine = of(found, way, state)[number]
            cells.append(f"{shown(mine['select'])}, {ratio(scan['select'], mine['select']):.1f}x")
        cells += [f"{1e3 * median(of(found, way, state)[number]['read']):.1f}" for way in (H5PY, *ways)]
        rows.append(cells)
    head = ["query", "hits", "% of all", "h5py, reading shared, ms", *(f"{way}, ms" for way in ways)]
    head += [f"get data, {way}, ms" for way in (H5PY, *ways)]
    return f"With {state} pages:\n\n" + table(head, rows)


def order(rows: list[Result]) -> str:
    """Return the table of the orders of conditions."""
    cells = []
    for row in rows:
        first = next(
            r for r in rows if (r["query"], r["way"], r["order"]) == (row["query"], row["way"], PLANNED)
        )
        cells.append(
            [
                row["query"].removeprefix("PDC "),
                row["way"],
                row["order"],
                ", ".join(row["arrays"]),
                shown(row["seconds"]),
                f"{ratio(row['seconds'], first['seconds']):.2f}",
                f"{row['bytes_read']:,}",
                f"{row['by_scan']}",
                f"{row['by_bitmap']}",
            ]
        )
    head = ["query", "way", "order", "arrays in that order", "ms, one thread", "of the planner's order"]
    return table([*head, "bytes read", "conditions by scan", "by bitmap"], cells)


def goals(found: Result) -> str:
    """Return the targets: the planner's order reads no more than another one, but for a tenth."""
    rows = []
    for way in ("zonemap", "bitmap"):
        names = dict.fromkeys(row["query"] for row in found["order"])
        for what, counters in (("bytes read", ("bytes_read",)), ("conditions evaluated", EVALUATED)):
            worst = min(gain(found["order"], name, way, counters) for name in names)
            note = f"the planner's up to {100 * (1 / worst - 1):.0f} % more"
            name = f"{way}: {what} by the best order, of the planner's"
            rows.append(Target(name, f"{1 / OVER:.2f}x", 1 / OVER, worst, note=note))
    return targets(rows)


def draw(found: Result) -> str:
    """Return figure 4: a panel for each state."""
    ways = [H5PY, *ways_of(found)]
    panels = []
    for state in STATES:
        groups = []
        for number, row in enumerate(of(found, H5PY, state)):
            runs = [[1e3 * s for s in of(found, way, state)[number]["select"]] for way in ways]
            bars = [Bar((median(run),), (min(run), max(run))) for run in runs]
            groups.append((row["query"].split()[2], bars))
        panels.append(Panel(f"queries of four objects, {state}: ms", groups))
    return plots.figure(panels, ("h5py, reading shared", *ways[1:]), "ms", is_log=True)
