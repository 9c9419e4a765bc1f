"""Table and plot of figure 12: consumers of a restart file at three sites."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import plots
from pdc_tables import Target, table
from plots import Bar, Panel

Result = dict[str, Any]
# Those that are elsewhere.
REMOTE = ("WSU", "OSU")


def latency(found: Result, cell: Result) -> tuple[float, float]:
    """Return the mean seconds of a site's consumers: raw data with analysis; a pass with its results."""
    return fmean(cell["stock"]), found["produce"] + fmean(cell["ours"])


def page(found: Result) -> tuple[dict[str, str], dict[str, str], list[Target]]:
    """Return table, plot and targets."""
    sooner, rows, groups = {}, [], []
    for cell in found["cells"]:
        theirs, mine = latency(found, cell)
        sooner[cell["site"]] = theirs / mine
        groups.append((cell["site"], [Bar((one,), (one, one)) for one in (theirs, mine)]))
        ends = [f"{min(of):.2f}..{max(of):.2f}" for of in (cell["stock"], cell["ours"])]
        rows.append(
            [
                cell["site"],
                f"{cell['rate'] / 1e6:g}",
                f"{theirs:.2f} ({ends[0]})",
                f"{cell['analysis']:.2f}",
                f"{fmean(cell['ours']):.2f} ({ends[1]})",
                f"{mine:.2f}",
                f"{theirs / mine:.2f}x",
            ]
        )
    head = ["site", "MB/s of a consumer", "raw data, s", "of it analysis", "results, s", "with the pass"]
    sizes = found["sizes"]
    told = (
        f"Of {found['file'] / 1e6:,.1f} MB, {sizes['zion']:,} bytes of zion and {sizes['phi']:,} bytes of phi"
    )
    told += f" go to each consumer; the pass takes {found['produce']:.2f} s."
    goals = [
        Target("figure 12: bytes of zion", "6 KB", -8192, -sizes["zion"], "6 KB"),
        Target("figure 12: bytes of phi", "96 KB", -100_000, -sizes["phi"], "96 KB"),
        Target(
            "figure 12: remote consumers, mean", "4.08x", 4.08, fmean(sooner[one] for one in REMOTE), "4.08x"
        ),
    ]
    drawn = plots.figure(
        [Panel("seconds after the data are there", groups)], ("raw data", "sieva"), "s", is_log=True
    )
    return {"fig12": f"{table([*head, 'sooner'], rows)}\n\n{told}"}, {"scibox-12.svg": drawn}, goals
