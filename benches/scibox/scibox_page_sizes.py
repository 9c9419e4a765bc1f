"""Tables and plots of figures 8 and 11: sizes of objects, and what consumers wait."""

from __future__ import annotations

from statistics import fmean, median
from typing import Any

import plots
from pdc_tables import Target, table
from plots import Bar, Panel
from scibox_sizes import over_best

Result = dict[str, Any]


def page_8(found: Result) -> tuple[dict[str, str], dict[str, str], list[Target]]:
    """Return table, plot and target of figure 8."""
    rows, groups = [], []
    for cell in found["cells"]:
        mark = " (chosen)" if cell["size"] == found["chosen"] else ""
        took, rate = median(cell["seconds"]), found["model"][str(cell["size"])]
        rows.append(
            [
                f"{cell['size'] / 1e6:g}{mark}",
                f"{took:.2f} ({min(cell['seconds']):.2f}..{max(cell['seconds']):.2f})",
                f"{rate / 1e6:.0f}",
                f"{cell['fetched']:.2f}x",
                f"{1e3 * cell['cost']:.2f}",
            ]
        )
        groups.append((rows[-1][0], [Bar((took,), (min(cell["seconds"]), max(cell["seconds"])))]))
    head = [
        "MB of an object",
        "upload, s",
        "MB/s that the model knows",
        "fetched of what is wanted",
        "$ / 1000",
    ]
    over = over_best(found["cells"], found["chosen"])
    name = "figure 8: with the chosen size, of the best one's time: percent"
    goals = [Target(name, "110", -110, -100 * over, "automatic")]
    drawn = plots.figure([Panel("upload by MB of an object: s", groups)], ("eight producers",), "s")
    return {"fig8": table(head, rows)}, {"scibox-8.svg": drawn}, goals


def page_11(found: Result) -> tuple[dict[str, str], dict[str, str], list[Target]]:
    """Return table, plot and targets of figure 11."""
    rows, groups, gains = [], [], []
    for cell in found["cells"]:
        mine, theirs = cell["ours"], cell["stock"]
        reckoned = "~" if theirs["done"] < cell["consumers"] * cell["requests"] else ""
        both = [1e3 * theirs["latency"], 1e3 * mine["latency"]]
        gains.append(both[0] / both[1])
        rows.append(
            [
                f"{cell['consumers']}",
                f"{reckoned}{both[0]:.1f}",
                f"{both[1]:.1f}",
                f"{gains[-1]:.2f}x",
                f"{theirs['bytes'] / 1e6:,.0f}",
                f"{mine['bytes'] / 1e6:,.1f}",
            ]
        )
        groups.append((f"{cell['consumers']}", [Bar((one,), (one, one)) for one in both]))
    head = ["consumers", "stock, ms a request", "sieva", "less", "stock, MB fetched", "sieva, MB"]
    goals = [
        Target("figure 11: latency, mean of the numbers of consumers", "2.99x", 2.99, fmean(gains), "2.99x"),
        Target("figure 11: latency, best", "3.73x", 3.73, max(gains), "3.73x"),
    ]
    drawn = plots.figure([Panel("ms a request by consumers", groups)], ("stock", "sieva"), "ms", is_log=True)
    return {"fig11": table(head, rows)}, {"scibox-11.svg": drawn}, goals
