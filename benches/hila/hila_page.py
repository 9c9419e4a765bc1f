"""The page docs/reproduction/hila.md: what was measured as tables and plots, between its marks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

import hila_page_model
import marks
import plots
from pdc_tables import table
from plots import Bar, Panel
from ways import MODES

Result = dict[str, Any]
NAMES = {
    "independent": "independent",
    "collective": "two-phase collective",
    "nonblocking": "nonblocking collective",
}
# What the paper has of the same: in percent of the time without HiLa.
PAPER = {"independent": "up to 62 %", "collective": "25 to 65 %", "nonblocking": "47 % on average"}
# What is wanted: percent less, where calls overlap.
WANTED = {"independent": 62.0, "collective": 25.0, "nonblocking": 47.0}
# No cell may take more than this many percent longer than without.
WORST = 3.0


def told(one: Result) -> str:
    """Return a cell in words."""
    read, asked = sum(one["bytes"]) / one["distinct"], sum(one["requests"])
    took = f"{median(one['seconds']):.3f} s ({ends(one)})"
    return f"{took}, {asked:,.0f} requests, {read:.2f} x distinct bytes"


def ends(one: Result) -> str:
    """Return the range of a cell's seconds."""
    return f"{min(one['seconds']):.2f}..{max(one['seconds']):.2f}"


class Cells:
    """What was measured, by what it is of."""

    def __init__(self, found: Result) -> None:
        self.found = found
        self._of = {(c["stripe"], c["asked"]["calls"], c["overlaps"], c["way"]): c for c in found["cells"]}
        self._failed = {
            (f["stripe"], f["calls"], f["overlaps"], f["way"]): f["reason"] for f in found.get("failed", [])
        }
        self.calls = sorted({c["asked"]["calls"] for c in found["cells"]})

    def of(self, stripe: str, calls: int, overlaps: bool, way: str) -> Result:
        """Return a cell."""
        return self._of[stripe, calls, overlaps, way]

    def has(self, stripe: str, calls: int, overlaps: bool, way: str) -> bool:
        """Whether it was measured."""
        return (stripe, calls, overlaps, way) in self._of

    def failed(self, stripe: str, calls: int, overlaps: bool, way: str) -> str | None:
        """Return why a way failed, or None where it did not."""
        return self._failed.get((stripe, calls, overlaps, way))

    def gain(self, stripe: str, calls: int, overlaps: bool, mode: str) -> float:
        """Return by how many percent HiLa takes less."""
        before, after = (self.of(stripe, calls, overlaps, f"{who}-{mode}") for who in ("pnetcdf", "hila"))
        return 100 * (1 - median(after["seconds"]) / median(before["seconds"]))


def about(found: Result) -> str:
    """Return what was measured with."""
    head = ("date", "command", "ranks", "groups", "nodes", "servers", "file", "load", "machine")
    return "\n".join(f"- {name}: {found[name]}" for name in head if name in found)


def rows_of(cells: Cells, stripe: str, calls: Iterable[int], whos: Iterable[str]) -> str:
    """Return a table of cells."""
    rows = []
    for n in calls:
        for overlaps in (False, True):
            for way in (f"{who}-{mode}" for who in whos for mode in MODES):
                if (reason := cells.failed(stripe, n, overlaps, way)) is not None:
                    rows.append([f"{n}", "yes" if overlaps else "no", way, f"failed: {reason}", "", "", ""])
                    continue
                if not cells.has(stripe, n, overlaps, way):
                    continue
                one = cells.of(stripe, n, overlaps, way)
                mb = [sum(one["bytes"]) / 1e6, one["distinct"] / 1e6]
                rows.append(
                    [
                        f"{n}",
                        "yes" if overlaps else "no",
                        way,
                        f"{1e3 * median(one['seconds']):,.0f} ({ends(one)} s)",
                        f"{sum(one['requests']):,.0f}",
                        f"{mb[0]:,.1f}",
                        f"{mb[1]:,.1f}",
                    ]
                )
    head = [
        "calls",
        "overlap",
        "way",
        "ms",
        "requests at the OSDs",
        "MB that they read",
        "MB that are asked for, once",
    ]
    return table(head, rows)


def gains(cells: Cells, stripe: str, calls: Iterable[int]) -> str:
    """Return by how much HiLa takes less."""
    rows = []
    for mode in MODES:
        for overlaps in (True, False):
            cut = [f"{cells.gain(stripe, n, overlaps, mode):+.0f} %" for n in calls]
            rows.append([NAMES[mode], "yes" if overlaps else "no", *cut, PAPER[mode] if overlaps else ""])
    return table(["less time than", "overlap", *(f"{n} calls" for n in calls), "paper"], rows)


def rows_of_values(found: Result) -> str:
    """Return the table of value queries: one by one, together, and what the OSDs read."""
    rows = []
    for stripe in ("large", "small"):
        cells = found.get(f"values {stripe}", [])
        for alone, at_once in zip(cells[::2], cells[1::2], strict=True):
            took = [median(one["seconds"]) for one in (alone, at_once)]
            rows.append(
                [
                    stripe,
                    f"{alone['queries']}",
                    "all records" if alone["overlaps"] else "half of the next one's",
                    *(f"{1e3 * median(one['seconds']):,.0f} ({ends(one)} s)" for one in (alone, at_once)),
                    f"{100 * (1 - took[1] / took[0]):+.0f} %",
                    *(f"{one['bytes'] / 1e6:,.1f}" for one in (alone, at_once)),
                    *(f"{one['requests']:,.0f}" for one in (alone, at_once)),
                ]
            )
    head = ["stripes", "queries", "records in common", "one by one, ms", "together, ms", "less"]
    head += ["MB read, one by one", "together", "requests, one by one", "together"]
    return table(head, rows)


def goals(cells: Cells) -> str:
    """Return the targets."""
    rows = []
    for mode in MODES:
        cut = [cells.gain("large", n, True, mode) for n in cells.calls]
        # As the paper says it: up to, from, on average.
        kind, got = {
            "independent": ("best", max(cut)),
            "collective": ("least", min(cut)),
            "nonblocking": ("mean", sum(cut) / len(cut)),
        }[mode]
        name = f"less time than {NAMES[mode]}, overlapping calls: {kind}"
        rows.append([name, f"{WANTED[mode]:.0f} %", got, PAPER[mode]])
    last = cells.calls[-1]
    for overlaps in (True, False):
        low = min(cells.gain("small", last, overlaps, mode) for mode in MODES)
        what = "overlapping" if overlaps else "apart"
        rows.append([f"small stripes, calls {what}: least gain", "3 %", low, "3 to 18 %"])
    all_cells = [("large", n, o, m) for n in cells.calls for o in (True, False) for m in MODES]
    all_cells += [("small", last, o, m) for o in (True, False) for m in MODES]
    worst = min(cells.gain(*one) for one in all_cells)
    rows.append(["never slower than without it: the worst cell", f"-{WORST:.0f} %", worst, ""])
    both = [found for stripe in ("large", "small") for found in cells.found.get(f"values {stripe}", [])]
    less = [
        100 * (1 - median(b["seconds"]) / median(a["seconds"]))
        for a, b in zip(both[::2], both[1::2], strict=True)
    ]
    if less:
        rows.append(
            ["less time than value queries one by one: mean", "20 %", sum(less) / len(less), "20 to 55 %"]
        )
    most = max(sum(c["bytes"]) / c["distinct"] for c in cells.found["cells"] if c["way"].startswith("hila"))
    text = table(
        ["target", "wanted", "measured", "", "paper"],
        [
            [
                name,
                wanted,
                f"{got:+.0f} %",
                "met" if got >= float(wanted.rstrip(" %")) else "**not met**",
                paper,
            ]
            for name, wanted, got, paper in rows
        ],
    )
    shares = [
        100 * c["planning"] / median(c["seconds"])
        for c in cells.found["cells"]
        if c.get("planning") is not None
    ]
    if shares:
        text += f"\n\nPlanning takes {min(shares):.1f} to {max(shares):.1f} % of HiLa's time."
    once = f"Of what is asked for, once, the OSDs read {most:.3f} times for HiLa at most, opening included."
    return f"{text}\n\n{once}"


def draw(cells: Cells) -> dict[str, str]:
    """Return the figures by the names of their files."""
    three = [
        Panel(
            f"{NAMES[mode]}: s by calls",
            [
                (f"{n}", [_bar(cells.of("large", n, o, f"pnetcdf-{mode}")) for o in (False, True)])
                for n in cells.calls
            ],
        )
        for mode in MODES
    ]
    five = [
        Panel(
            f"{NAMES[mode]}, overlapping: s by calls",
            [
                (f"{n}", [_bar(cells.of("large", n, True, f"{who}-{mode}")) for who in ("pnetcdf", "hila")])
                for n in cells.calls
            ],
        )
        for mode in MODES
    ]
    last = cells.calls[-1]
    six = [
        Panel(
            f"{last} calls, {'overlapping' if o else 'apart'}: s",
            [
                (mode[:4], [_bar(cells.of("small", last, o, f"{who}-{mode}")) for who in ("pnetcdf", "hila")])
                for mode in MODES
            ],
        )
        for o in (False, True)
    ]
    return {
        "hila-3.svg": plots.figure(three, ("calls apart", "calls overlap"), "s"),
        "hila-5.svg": plots.figure(five, ("PnetCDF", "with HiLa"), "s"),
        "hila-6.svg": plots.figure(six, ("PnetCDF", "with HiLa"), "s"),
    }


def _bar(one: Result) -> Bar:
    return Bar((median(one["seconds"]),), (min(one["seconds"]), max(one["seconds"])))


def made(found: Result) -> tuple[dict[str, str], dict[str, str]]:
    """Return tables by mark, and plots by file."""
    cells = Cells(found)
    last = cells.calls[-1:]
    tables = {
        "run": about(found),
        "targets": goals(cells),
        "fig3": rows_of(cells, "large", cells.calls, ["pnetcdf"]),
        "fig5": f"{gains(cells, 'large', cells.calls)}\n\n{rows_of(cells, 'large', cells.calls, ['hila'])}",
        "fig6": f"{gains(cells, 'small', last)}\n\n{rows_of(cells, 'small', last, ['pnetcdf', 'hila'])}",
        "fig8": rows_of_values(found),
        "mpiio": rows_of(cells, "large", last, ["mpiio", "ompio", "romio"]),
    }
    modelled, plots_of_model = hila_page_model.made(found)
    return tables | modelled, draw(cells) | plots_of_model


def fill(target: Path, found: Result) -> None:
    """Put tables between the marks of a page; write plots beside it.

    Raises
    ------
    SystemExit
        The page has no such marks.
    """
    marks.fill(target, *made(found))


def shown(found: Result) -> str:
    """Return all tables as text."""
    return "\n\n".join(f"{name}\n\n{body}" for name, body in made(found)[0].items())
