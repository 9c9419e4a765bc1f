"""Tables and plots of figures 14, 15 and 16: what requests of Swift and passes of a producer are made of."""

from __future__ import annotations

from statistics import median
from typing import Any

import plots
import scibox_functions
import scibox_parts
from pdc_tables import Target, table
from plots import Bar, Panel
from scibox_page_traffic import KINDS

Result = dict[str, Any]
# User code may take so many times as long as the same function natively.
NATIVE = 2.0


def page_14(found: Result) -> tuple[dict[str, str], dict[str, str], list[Target]]:
    """Return table and plot of figure 14; the paper promises nothing there."""
    rows, panels = [], []
    for method in ("GET", "PUT"):
        cells = [c for c in found["cells"] if c["method"] == method]
        for c in cells:
            parts = [1e3 * c["parts"][part] for part in scibox_parts.PARTS]
            rate = c["size"] / 1e6 / median(c["seconds"])
            rows.append([method, f"{c['size'] / 1e6:g}", *(f"{one:.1f}" for one in parts), f"{rate:.0f}"])
        panels.append(Panel(f"{method}: s by MB", [(f"{c['size'] / 1e6:g}", [_stacked(c)]) for c in cells]))
    head = ["", "MB", *(f"{part}, ms" for part in scibox_parts.PARTS), "MB/s"]
    return {"fig14": table(head, rows)}, {"scibox-14.svg": plots.figure(panels, scibox_parts.PARTS, "s")}, []


def page_15(found: Result) -> tuple[dict[str, str], dict[str, str], list[Target]]:
    """Return tables and plots of figures 15 and 16."""
    by_size = [c for c in found["cells"] if c["kind"] != 4 or abs(100 * c["asked"] / c["variable"] - 1) < 0.1]
    sizes = list(dict.fromkeys(c["variable"] for c in by_size))
    rows = []
    for kind, name in KINDS.items():
        of = {c["variable"]: c for c in by_size if c["kind"] == int(kind)}
        rows.append(
            [name, *(f"{1e3 * median(of[size]['seconds']):.1f}" if size in of else "" for size in sizes)]
        )
    text = table(["ms by MB of a variable", *(f"{size / 1e6:.3g}" for size in sizes)], rows)
    last = [c for c in found["cells"] if c["variable"] == sizes[-1]]
    ranges = sorted((c for c in last if c["kind"] == 4), key=lambda c: c["asked"])
    cells = [[f"{c['asked'] / 1e3:,.1f}", f"{1e3 * median(c['seconds']):.1f}"] for c in ranges]
    text += f"\n\nDR4 of {sizes[-1] / 1e6:.3g} MB:\n\n{table(['KB asked for', 'ms'], cells)}"
    panel = [
        (KINDS[str(kind)].split()[0], [_stacked(c)])
        for kind in range(1, 9)
        for c in by_size
        if c["kind"] == kind and c["variable"] == sizes[-1]
    ]
    shares = [
        [KINDS[str(c["kind"])], *(f"{1e3 * c['parts'][part]:.1f}" for part in scibox_functions.PARTS)]
        for c in sorted(last, key=lambda c: (c["kind"], c["asked"]))
    ]
    drawn = plots.figure([Panel(f"{sizes[-1] / 1e6:.3g} MB: s", panel)], scibox_functions.PARTS, "s")
    [own] = [c for c in last if c["kind"] == 8]
    ratio = own["parts"]["processing"] / own["native"]
    name = "figure 16: DR8 (mean of rows) takes, of what numpy takes: percent"
    goals = [Target(name, f"{100 * NATIVE:.0f}", -100 * NATIVE, -100 * ratio, "as native")]
    head = ["function", *(f"{part}, ms" for part in scibox_functions.PARTS)]
    return (
        {"fig15": text, "fig16": table(head, shares)},
        {"scibox-15.svg": _lines(by_size, sizes), "scibox-16.svg": drawn},
        goals,
    )


def _stacked(cell: Result) -> Bar:
    return Bar(tuple(cell["parts"].values()), (min(cell["seconds"]), max(cell["seconds"])))


def _lines(cells: list[Result], sizes: list[int]) -> str:
    groups = []
    for size in sizes:
        of = sorted((c for c in cells if c["variable"] == size and c["kind"] <= 4), key=lambda c: c["kind"])
        groups.append(
            (
                f"{size / 1e6:.3g} MB",
                [Bar((median(c["seconds"]),), (min(c["seconds"]), max(c["seconds"]))) for c in of],
            )
        )
    return plots.figure([Panel("a pass: s", groups)], ("DR1", "DR2", "DR3", "DR4"), "s", is_log=True)
