"""Tables and plots of figures 9 and 10: what producers put."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import plots
from pdc_tables import Target, table
from plots import Bar, Panel

Result = dict[str, Any]


def speed(cell: Result) -> float:
    """Return how many times sooner all is put."""
    return float(cell["stock"]["seconds"] / cell["ours"]["seconds"])


def less(cell: Result) -> float:
    """Return how many times fewer bytes are put."""
    return float(cell["stock"]["bytes"] / cell["ours"]["bytes"])


def page_9(found: Result) -> tuple[dict[str, str], dict[str, str], list[Target]]:
    """Return table, plot and targets of figure 9."""
    cells = found["cells"]
    last = max(cells, key=lambda c: c["producers"])
    goals = [
        Target(
            "figure 9: PUT, mean of the numbers of producers", "9.7x", 9.7, fmean(map(speed, cells)), "9.7x"
        ),
        Target(
            f"figure 9: bytes put by {last['producers']} producers, fewer",
            "56x",
            56,
            less(last),
            "56x",
            "at 16",
        ),
    ]
    return {"fig9": _table(cells, "producers")}, {"scibox-9.svg": _drawn(cells, "producers")}, goals


def page_10(found: Result) -> tuple[dict[str, str], dict[str, str], list[Target]]:
    """Return table, plot and targets of figure 10."""
    cells = found["cells"]
    name = "figure 10: PUT, mean of the numbers of requests"
    goals = [Target(name, "10.95x", 10.95, fmean(map(speed, cells)), "10.95x")]
    return {"fig10": _table(cells, "requests")}, {"scibox-10.svg": _drawn(cells, "requests")}, goals


def _table(cells: list[Result], of: str) -> str:
    rows = []
    for c in cells:
        mine, theirs = c["ours"], c["stock"]
        reckoned = "~" if theirs["done"] < c["producers"] * c["requests"] else ""
        rows.append(
            [
                f"{c[of]}",
                f"{reckoned}{theirs['seconds']:,.1f}",
                f"{mine['seconds']:,.1f}",
                f"{speed(c):.2f}x",
                f"{theirs['bytes'] / 1e6:,.0f}",
                f"{mine['bytes'] / 1e6:,.1f}",
                f"{less(c):.1f}x",
                f"{mine['objects']}",
            ]
        )
    head = [
        of,
        "stock, s",
        "sieva, s",
        "sooner",
        "stock, MB put",
        "sieva, MB put",
        "less",
        "objects of sieva",
    ]
    return table(head, rows)


def _drawn(cells: list[Result], of: str) -> str:
    groups = []
    for c in cells:
        both = [c["stock"]["seconds"], c["ours"]["seconds"]]
        groups.append((f"{c[of]}", [Bar((one,), (one, one)) for one in both]))
    return plots.figure([Panel(f"PUT by {of}: s", groups)], ("stock", "sieva"), "s", is_log=True)
