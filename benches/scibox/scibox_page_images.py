"""Table and plot of figure 13: spectra of images, by the producers that transform and the consumers."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import plots
from pdc_tables import Target, table
from plots import Bar, Panel

Result = dict[str, Any]


def sooner(cell: Result) -> float:
    """Return how much sooner consumers have all spectra than stock consumers, after the images are there."""
    return cell["stock"]["seconds"] / (cell["ours"]["produce"] + cell["ours"]["follow"])


def page(found: Result) -> tuple[dict[str, str], dict[str, str], list[Target]]:
    """Return table, plot and targets."""
    cells = found["cells"]
    rows, panels = [], {}
    for cell in cells:
        mine, theirs = cell["ours"], cell["stock"]
        times = theirs["seconds"], mine["produce"] + mine["follow"]
        rows.append(
            [
                str(cell["producers"]),
                str(cell["consumers"]),
                f"{times[0]:.2f}",
                f"{mine['produce']:.2f}",
                f"{mine['follow']:.2f}",
                f"{theirs['bytes'] / 1e6:,.1f}",
                f"{mine['bytes'] / 1e6:,.1f}",
                f"{sooner(cell):.2f}x",
            ]
        )
        bars = [Bar((one,), (one, one)) for one in times]
        panels.setdefault(cell["consumers"], []).append((str(cell["producers"]), bars))
    head = ["producers", "consumers", "stock, s", "pass, s", "spectra, s", "stock, MB", "MB", "sooner"]
    drawn = plots.figure(
        [Panel(f"seconds of {number} consumers, by producers", groups) for number, groups in panels.items()],
        ("images", "sieva"),
        "s",
        is_log=True,
    )
    goal = Target("figure 13: latency, mean", "1.56x", 1.56, fmean(map(sooner, cells)), "1.56x")
    told = f"{cells[0]['images']} images of two frames of 512 x 512; the paper has 10,000."
    return {"fig13": f"{table(head, rows)}\n\n{told}"}, {"scibox-13.svg": drawn}, [goal]
