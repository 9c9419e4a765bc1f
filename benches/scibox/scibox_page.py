"""The page docs/reproduction/scibox.md: what was measured as tables and plots, between its marks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import marks
import scibox_page_gts
import scibox_page_images
import scibox_page_parts
import scibox_page_producers
import scibox_page_sizes
import scibox_page_traffic
from pdc_tables import Target, targets

Result = dict[str, Any]
# Of a figure: tables by mark, plots by file, and what was wanted.
Made = tuple[dict[str, str], dict[str, str], list[Target]]
FIGURES: dict[str, Callable[[Result], Made]] = {
    "fig6": scibox_page_traffic.page,
    "fig8": scibox_page_sizes.page_8,
    "fig9": scibox_page_producers.page_9,
    "fig10": scibox_page_producers.page_10,
    "fig11": scibox_page_sizes.page_11,
    "fig12": scibox_page_gts.page,
    "fig13": scibox_page_images.page,
    "fig14": scibox_page_parts.page_14,
    "fig15": scibox_page_parts.page_15,
}


def kept(results: Path, scale: str) -> dict[str, Result]:
    """Return what was measured of a scale, by figure."""
    files = {name: results / f"scibox-{scale}-{name}.json" for name in FIGURES}
    return {
        name: json.loads(file.read_text(encoding="utf-8")) for name, file in files.items() if file.exists()
    }


def about(found: Result) -> str:
    """Return what a figure was measured with; figures of one page may be of several runs."""
    head = ("date", "command", "commit", "scale", "took", "load", "stores", "machine")
    return "\n".join(f"- {name}: {found[name]}{' s' if name == 'took' else ''}" for name in head)


def made(found: dict[str, Result]) -> tuple[dict[str, str], dict[str, str]]:
    """Return tables by mark, and plots by file."""
    tables: dict[str, str] = {}
    plots: dict[str, str] = {}
    wanted: list[Target] = []
    for name, page in FIGURES.items():
        if name in found:
            more, drawn, goals = page(found[name])
            for file in drawn:
                # The figure stands before its table, so that a page has none that was not drawn.
                number = Path(file).stem.rpartition("-")[2]
                more[f"fig{number}"] = f"![Figure {number}]({file})\n\n{more[f'fig{number}']}"
            tables |= {f"{name}-run": about(found[name])} | more
            plots |= drawn
            wanted += goals
    return {"targets": targets(wanted)} | tables, plots


def fill(target: Path, found: dict[str, Result]) -> None:
    """Put tables between the marks of a page; write plots beside it.

    Raises
    ------
    SystemExit
        The page has no such marks.
    """
    marks.fill(target, *made(found))


def shown(found: dict[str, Result]) -> str:
    """Return all tables as text."""
    return "\n\n".join(f"{name}\n\n{table}" for name, table in made(found)[0].items())
