"""The page docs/reproduction/pdc.md: what was measured as tables and plots, between its marks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import marks
import pdc_page_objects
import pdc_page_order
import pdc_page_scaling
import pdc_page_series

Result = dict[str, Any]
# Tables by the mark that they are put at, and plots by the name of the file, of each figure.
Made = tuple[dict[str, str], dict[str, str]]
FIGURES: dict[str, Callable[[Result], Made]] = {
    "fig3": pdc_page_series.page,
    "fig4": pdc_page_order.page,
    "fig5": pdc_page_objects.page,
    "fig6": pdc_page_scaling.page,
}


def about(found: Result) -> str:
    """Return what a figure was measured with; figures of one page may be of several runs."""
    head = ("date", "command", "particles", "load", "machine")
    return "\n".join(f"- {name}: {found[name]}" for name in head if name in found)


def made(found: Result) -> Made:
    """Return the tables and the plots of the figures that were measured."""
    tables: dict[str, str] = {}
    plots: dict[str, str] = {}
    for name, page in FIGURES.items():
        if name in found:
            more, drawn = page(found[name])
            tables |= {f"{name}-run": about(found)} | more
            plots |= drawn
    return tables, plots


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
    tables, _ = made(found)
    return "\n\n".join(f"{name}\n\n{table}" for name, table in tables.items())
