"""Tables and plots of figures 6 and 7: traffic and service time by size of variables."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import plots
from pdc_tables import Target, table
from plots import Bar, Panel

Result = dict[str, Any]
KINDS = {
    "1": "DR1 max",
    "2": "DR2 min",
    "3": "DR3 mean",
    "4": "DR4 range",
    "5": "DR5 select",
    "6": "DR6 from the mean on",
    "7": "DR7 by another",
    "8": "DR8 histogram, rows",
}


def moved(cell: Result) -> int:
    """Return the bytes that were moved: all bodies by the store's log, or data alone where it has none."""
    logged = cell["ours"]["logged"]
    return sum(one["all"] for one in logged.values()) if logged else cell["ours"]["up"] + cell["ours"]["down"]


def traffic(cell: Result) -> float:
    """Return how many times less is moved, of data and of all that it takes to ask for them."""
    return (cell["stock"]["up"] + cell["stock"]["down"]) / moved(cell)


def seconds(cell: Result) -> tuple[float, float]:
    """Return the seconds of the stock system and of ours for all requests, asking included."""
    mine = cell["ours"]
    return cell["stock"]["put"] + cell["stock"]["get"], mine["ask"] + mine["produce"] + mine["follow"]


def speed(cell: Result) -> float:
    """Return how many times sooner all requests are answered."""
    theirs, mine = seconds(cell)
    return theirs / mine


def of_kind(cell: Result, kind: str) -> float:
    """Return how many times less data are moved for the requests of a type."""
    of = cell["kinds"][kind]
    return float(of["stock"] / (of["up"] + of["down"]))


def page(found: Result) -> tuple[dict[str, str], dict[str, str], list[Target]]:
    """Return the tables, the plots and the targets."""
    cells = found["cells"]
    first = [c for c in cells if c["store"] == cells[0]["store"]]
    uniform = [c for c in first if c["law"] == "uniform"]
    factors = [traffic(c) for c in uniform]
    served = [speed(c) for c in uniform]
    ranges = [of_kind(c, "4") for c in uniform if "4" in c["kinds"]]
    goals = [
        Target("figure 6: traffic, mean of the sizes", "65x", 65, fmean(factors), "65x"),
        Target("figure 6: traffic, best", "70x", 70, max(factors), "70x"),
        Target("figure 7: service time, mean of the sizes", "8.5x", 8.5, fmean(served), "8.5x"),
    ]
    if ranges:
        goals.insert(2, Target("figure 6: traffic of DR4, mean", "43x", 43, fmean(ranges), "43x"))
    return (
        {"fig6": _traffic_table(cells), "fig6-kinds": _kinds_table(first), "fig7": _time_table(cells)},
        {
            "scibox-6.svg": _drawn(first, "less traffic", traffic),
            "scibox-7.svg": _drawn_times(first),
        },
        goals,
    )


def _name(cell: Result) -> list[str]:
    return [cell["store"], f"{cell['variable'] / 1e6:.3g}", cell["law"]]


def _traffic_table(cells: list[Result]) -> str:
    rows = []
    for c in cells:
        mine, theirs = c["ours"], c["stock"]
        up_down = [f"{theirs['up'] / 1e6:,.1f}", f"{mine['up'] / 1e6:,.2f}", f"{mine['down'] / 1e6:,.2f}"]
        rest = moved(c) - mine["up"] - mine["down"]
        rows.append([*_name(c), f"{c['distinct']}", *up_down, f"{rest / 1e6:,.2f}", f"{traffic(c):.1f}x"])
    head = ["store", "MB of a variable", "requests", "different", "stock, MB each way", "up, MB", "down, MB"]
    return table([*head, "records and the like, MB", "less"], rows)


def _kinds_table(cells: list[Result]) -> str:
    rows = [
        [*_name(c)[1:], *(f"{of_kind(c, k):,.0f}x" if k in c["kinds"] else "" for k in KINDS)] for c in cells
    ]
    return table(["MB of a variable", "requests", *KINDS.values()], rows)


def _time_table(cells: list[Result]) -> str:
    rows = []
    for c in cells:
        mine, theirs, n = c["ours"], c["stock"], c["requests"]
        reckoned = "~" if theirs["done"] < n else ""
        total = seconds(c)
        rows.append(
            [
                *_name(c),
                *(f"{reckoned}{theirs[key]:.3g}" for key in ("put", "get")),
                *(f"{mine[key]:.3g}" for key in ("ask", "produce", "follow")),
                *(f"{1e3 * one / n:.3g}" for one in total),
                f"{speed(c):.2f}x",
                f"{total[0] / (mine['produce'] + mine['follow']):.2f}x",
            ]
        )
    head = ["store", "MB of a variable", "requests", "stock: put, s", "get", "sieva: ask, s", "produce"]
    head += ["follow", "stock, ms a request", "sieva", "sooner", "once it is asked"]
    return table(head, rows)


def _drawn(cells: list[Result], title: str, of: Any) -> str:  # noqa: ANN401 - a function of a cell
    groups = []
    for size in dict.fromkeys(c["variable"] for c in cells):
        bars = [Bar((of(c),), (of(c), of(c))) for c in cells if c["variable"] == size]
        groups.append((f"{size / 1e6:.3g} MB", bars))
    return plots.figure([Panel(title, groups)], ("uniform", "zipfian"), "factor")


def _drawn_times(cells: list[Result]) -> str:
    panels = []
    for law in ("uniform", "zipfian"):
        groups = []
        for c in (c for c in cells if c["law"] == law):
            per = [1e3 * one / c["requests"] for one in seconds(c)]
            groups.append((f"{c['variable'] / 1e6:.3g} MB", [Bar((one,), (one, one)) for one in per]))
        panels.append(Panel(f"{law}: ms a request", groups))
    return plots.figure(panels, ("stock", "sieva"), "ms", is_log=True)
