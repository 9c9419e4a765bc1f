"""Tables and plot of figure 6 of PDC: one query on one and two workers, and the model of more."""

from statistics import median
from typing import Any

import plots
from pdc_model import Model
from pdc_scaling import WAYS, WORKERS, model
from pdc_tables import Target, ratio, table, targets
from plots import Bar, Panel
from ranks import shown

Result = dict[str, Any]
NUMBERS = tuple(1 << i for i in range(10))
# What two workers are to gain, and how far the model may be from what was measured.
WANTED, WITHIN = 1.7, 0.10
# The paper's particles.
PAPER = 125e9


def page(found: Result) -> tuple[dict[str, str], dict[str, str]]:
    """Return tables by mark, and plots by file."""
    models = {way: model(found, way) for way in WAYS}
    about = (
        f"`{found['query']}` has {found['hits']:,} hits, "
        f"{100 * found['hits'] / found['particles']:.4f} % of {found['particles']:,} particles."
    )
    tables = {
        "fig6-about": about,
        "fig6-measured": measured(found, models),
        "fig6-terms": terms(found, models),
        "fig6-model": more(found, models),
        "fig6-plot": "![Milliseconds by the number of workers, measured and by the model](pdc-6.svg)",
        "fig6-targets": goals(found, models),
    }
    return tables, {"pdc-6.svg": draw(found, models)}


def of(found: Result, way: str, workers: int) -> list[float]:
    """Return the seconds of a way on so many workers."""
    [row] = [row for row in found["rows"] if (row["way"], row["workers"]) == (way, workers)]
    seconds: list[float] = row["seconds"]
    return seconds


def off(found: Result, way: str, workers: int, by: Model) -> float:
    """Return by what part of the measured time the model is above it."""
    return by.seconds(workers) / median(of(found, way, workers)) - 1


def measured(found: Result, models: dict[str, Model]) -> str:
    """Return the table of what was measured, and what the model says of it."""
    rows = []
    for way, by in models.items():
        for n in WORKERS:
            gain = ratio(of(found, way, WORKERS[0]), of(found, way, n))
            cells = [way, f"{n}", shown(of(found, way, n)), f"{gain:.2f}x", f"{1e3 * by.seconds(n):.1f}"]
            rows.append([*cells, f"{100 * off(found, way, n, by):+.0f} %"])
    return table(["way", "workers", "ms", "of one worker", "model, ms", "off by"], rows)


def terms(found: Result, models: dict[str, Model]) -> str:
    """Return the tables of what the model is made of."""
    engine = models[WAYS[0]].overhead
    empty = []
    for row in found["empty"]:
        by_model = f"{1e3 * engine.of(row['parts']):.1f}"
        empty.append([f"{row['parts']}", shown(row["seconds"]), shown(row["own"]), by_model])
    alone = [[row["way"], f"{row['parts']}", shown(row["seconds"])] for row in found["parts"]]
    names = list(models[WAYS[0]].terms())
    fitted = [[way, *(f"{1e3 * by.terms()[name]:.2f}" for name in names)] for way, by in models.items()]
    head = ["parts", "query without work, ms", "its parts by themselves, ms", "model of the engine, ms"]
    return "\n\n".join(
        [
            table(head, empty),
            table(["way", "parts", "all parts, one after the other, ms"], alone),
            table(["terms of the model, ms", *names], fitted),
        ]
    )


def more(found: Result, models: dict[str, Model]) -> str:
    """Return the table of more workers, for these particles and for as many as the paper's."""
    rows = []
    for way, by in models.items():
        for name, one in (("these", by), ("125 billion", grown(found, by))):
            spent = [f"{1e3 * one.seconds(n):,.0f}" for n in NUMBERS]
            rows.append([way, name, *spent, f"{one.best()}"])
    return table(["model, ms", "particles", *(f"{n}" for n in NUMBERS), "fewest ms on"], rows)


def grown(found: Result, by: Model) -> Model:
    """Return the model of as many particles as the paper's."""
    return by.of_more(PAPER / found["particles"])


def goals(found: Result, models: dict[str, Model]) -> str:
    """Return the targets."""
    rows = []
    for way, by in models.items():
        gain = ratio(of(found, way, 1), of(found, way, 2))
        rows.append(Target(f"{way}: two workers against one", f"{WANTED:g}x", WANTED, gain))
        worst = max(abs(off(found, way, n, by)) for n in WORKERS)
        # As a gain that is to be large: how near the model is.
        rows.append(
            Target(
                f"{way}: model within 10 % on 1 and 2 workers",
                f"{1 - WITHIN:.2f}x",
                1 - WITHIN,
                1 - worst,
                note=f"off by {100 * worst:.0f} % at most",
            )
        )
    return targets(rows)


def draw(found: Result, models: dict[str, Model]) -> str:
    """Return figure 6: panels of each way with these particles and with the paper's."""
    panels = []
    for way, by in models.items():
        groups = []
        for n in NUMBERS:
            bars = [_bar([by.seconds(n)])]
            if n in WORKERS:
                bars.append(_bar(of(found, way, n)))
            groups.append((f"{n}", bars))
        panels.append(Panel(f"{way}: ms by workers", groups))
    for way, by in models.items():
        groups = [(f"{n}", [_bar([grown(found, by).seconds(n)])]) for n in NUMBERS]
        panels.append(Panel(f"{way}, 125 billion particles: ms by workers", groups))
    return plots.figure(panels, ("model", "measured"), "ms", is_log=True)


def _bar(seconds: list[float]) -> Bar:
    ms = [1e3 * spent for spent in seconds]
    return Bar((median(ms),), (min(ms), max(ms)))
