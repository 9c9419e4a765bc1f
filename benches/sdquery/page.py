"""The tables, plots and JSON of a run."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import plots
from cells import FILE, Cell
from draw import CLASSES, NAMES
from network import LINES, Line
from plots import Bar, Panel
from transfers import NON_OVERLAPPING

# SC13, section 5.1, the smallest class; those of MODB are of figure 8.
TARGETS = {"POP": (9.41, 29.07, 81.32), "MODB": (7.91, 31.15, 74.34)}
# In no class slower than the File DSI by more than 5 %.
NO_SLOWER = 1 / 1.05
# In SC13 the hybrid is within 1..2 % of the better of the two that it chooses from.
HYBRID, CHOSEN_FROM, HYBRID_OVER = "hybrid", ("direct, segments", "memory filter"), 1.02
FIGURES = {"POP": "7", "MODB": "8"}


def speed_up(cells: Sequence[Cell], cell: Cell) -> float:
    """Return how many times faster a class is than the File DSI on the same network."""
    file = next(c for c in cells if c.name == FILE and (c.ocean, c.line) == (cell.ocean, cell.line))
    return file.seconds / cell.seconds


def target(cell: Cell, line: Line) -> float:
    """Return the speed-up that a class is to have."""
    return TARGETS[cell.ocean][LINES.index(line)] if cell.name == NAMES[0] else NO_SLOWER


def times(cell: Cell) -> str:
    """Return mean and range of a cell's seconds, marked where some were reckoned."""
    low, high = cell.range
    mark = "~" if any(run.measured < run.size for run in cell.runs) else ""
    return f"{mark}{cell.seconds:.3g} ({low:.3g}..{high:.3g})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def transfers(cells: Sequence[Cell], ocean: str) -> str:
    """Return the table of figure 7 or 8."""
    rows = []
    for line in LINES:
        of_line = [cell for cell in cells if (cell.ocean, cell.line) == (ocean, line.name)]
        for cell in of_line:
            counts = ["" if cell.name == FILE else str(len(cell.by_query)), str(len(cell.runs))]
            row = [line.name, cell.name, f"{cell.size / 1e6:.0f}", *counts, times(cell)]
            if cell.name == FILE:
                rows.append([*row, f"{100 * cell.spread:.1f} %", "", "", "", ""])
                continue
            ratio, wanted = speed_up(of_line, cell), target(cell, line)
            verdict = "met" if ratio >= wanted else "NOT met"
            row += [f"{100 * cell.spread:.1f} %", f"{cell.evaluation:.3g}", f"{ratio:.2f}"]
            rows.append([*row, f"{wanted:.2f}", verdict])
    head = [
        "network",
        "class",
        "MB",
        "queries",
        "runs",
        "s (range)",
        "spread of one query",
        "of it processing, s",
    ]
    return table([*head, "speed-up", "target", ""], rows)


def deflated(cells: Sequence[Cell]) -> str:
    """Return the table of a deflated file: what is sent of it, and how much faster than the file that is."""
    rows = []
    for cell in cells:
        ratio = speed_up(cells, cell)
        row = [cell.line, cell.name, f"{cell.size / 1e6:.0f}", str(len(cell.runs)), times(cell)]
        verdict = "" if cell.name == FILE else "met" if ratio >= NO_SLOWER else "NOT met"
        rows.append([*row, "" if cell.name == FILE else f"{ratio:.2f}", verdict])
    return table(["network", "share, way", "MB", "runs", "s (range)", "speed-up", ""], rows)


def by_class(cells: Sequence[Cell], of_what: str) -> str:
    """Return a table with a row for each class: queries and runs that are behind it, and each way."""
    ways = list(dict.fromkeys(cell.line for cell in cells))
    names = list(dict.fromkeys(cell.name for cell in cells))
    found = {(cell.line, cell.name): times(cell) for cell in cells}
    rows = [[name, *_behind(cells, name), *(found.get((way, name), "") for way in ways)] for name in names]
    return table([of_what, "queries", "runs of each way", *ways], rows)


def _behind(cells: Sequence[Cell], name: str) -> list[str]:
    """Return how many queries of a class were run, and how often; the fewest where ways differ."""
    of_class = [cell for cell in cells if cell.name == name]
    return [str(min(len(cell.by_query) for cell in of_class)), str(min(len(cell.runs) for cell in of_class))]


def fetching(cells: Sequence[Cell]) -> str:
    """Return figure 9: seconds by each way, and what the hybrid takes more than the best of the others."""
    text = by_class(cells, "share").splitlines()
    ends = ["| hybrid over the best, % | target |  |", "|---|---|---|"]
    for name in dict.fromkeys(cell.name for cell in cells):
        seconds = {cell.line: cell.seconds for cell in cells if cell.name == name}
        over = 100 * (seconds[HYBRID] / min(seconds[way] for way in CHOSEN_FROM) - 1)
        verdict = "met" if over <= 100 * (HYBRID_OVER - 1) else "NOT met"
        ends.append(f"| {over:+.1f} | {100 * (HYBRID_OVER - 1):.0f} | {verdict} |")
    return "\n".join(line + end[1:] for line, end in zip(text, ends, strict=True))


def streams_table(cells: Sequence[Cell]) -> str:
    """Return figure 10: seconds, and how many times faster than the slowest way a class is."""
    rows = []
    for name in dict.fromkeys(cell.name for cell in cells):
        of_class = [cell for cell in cells if cell.name == name]
        first = next(cell for cell in of_class if cell.line == NON_OVERLAPPING)
        rows += [[name, cell.line, times(cell), f"{first.seconds / cell.seconds:.2f}"] for cell in of_class]
    return table(["class", "way", "s (range)", f"against {NON_OVERLAPPING}"], rows)


def networks(measured: dict[str, dict[str, object]]) -> str:
    """Return the table of what the networks were like."""
    head = ["network", "round trip wanted, ms", "least", "mean", "most", "lost pings", "one TCP stream, Mb/s"]
    keys = [
        *("rtt_wanted", "rtt_least", "rtt_mean", "rtt_most", "ping_lost", "goodput"),
        *("dropped_at_queue", "retransmitted", "dropped_by_relay"),
    ]
    rows = [[name, *(f"{one.get(key, '')}" for key in keys)] for name, one in measured.items()]
    return table([*head, "dropped at the queue", "sent again", "dropped by the relay"], rows)


def modes(rates: dict[str, dict[str, float]]) -> str:
    """Return the table of the File DSI's modes."""
    names = list(next(iter(rates.values())))
    return table(
        ["network", *names], [[line, *(f"{of[name]}" for name in names)] for line, of in rates.items()]
    )


def draw_transfers(cells: Sequence[Cell], ocean: str) -> str:
    """Return figure 7 or 8 as SVG: a panel for each network."""
    panels = []
    for line in LINES:
        groups = [
            (cell.name.replace(" %", ""), [_stacked(cell)])
            for cell in cells
            if (cell.ocean, cell.line) == (ocean, line.name)
        ]
        # The file is the rightmost bar, as in the paper.
        panels.append(Panel(f"{ocean}, {line.name}, {line.rtt * 1e3:g} ms", groups[1:] + groups[:1]))
    legend = ["query processing", "fetching and transfer; of the file for File DSI"]
    return plots.figure(panels, legend, "seconds")


def _stacked(cell: Cell) -> Bar:
    processing = min(cell.evaluation, cell.seconds)
    return Bar((processing, cell.seconds - processing), cell.range)


def draw_ways(cells: Sequence[Cell], *, is_log: bool = False) -> str:
    """Return a panel for each data set, with a bar for each way in each class."""
    ways = list(dict.fromkeys(cell.line for cell in cells))
    panels = []
    for ocean in dict.fromkeys(cell.ocean for cell in cells):
        groups = []
        for name in dict.fromkeys(cell.name for cell in cells if cell.ocean == ocean):
            bars = [Bar((c.seconds,), c.range) for c in cells if (c.ocean, c.name) == (ocean, name)]
            groups.append((name.replace(" %", ""), bars))
        panels.append(Panel(ocean, groups))
    return plots.figure(panels, ways, "seconds", is_log=is_log)


def fill(path: Path, parts: dict[str, str]) -> None:
    """Put texts between the marks of a page, ``<!-- name -->`` and ``<!-- /name -->``; others stay."""
    text = path.read_text(encoding="utf-8")
    for name, part in parts.items():
        marks = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        if not marks.search(text):
            raise SystemExit(f"{path}: no marks for {name}")
        text = marks.sub(_between(part), text)
    path.write_text(text, encoding="utf-8")


def _between(text: str) -> Callable[[re.Match[str]], str]:
    return lambda found: f"{found[1]}\n{text}\n\n{found[2]}"


def record(measured: dict[str, list[Cell]], about: dict[str, object]) -> str:
    """Return a run as JSON: each figure's cells with all runs, and what is told of the run."""
    figures = {
        name: [{**asdict(cell), "seconds": cell.seconds, "spread": cell.spread} for cell in cells]
        for name, cells in measured.items()
    }
    classes = dict(zip(NAMES, CLASSES, strict=True))
    return json.dumps({**about, "classes": classes, "figures": figures}, indent=1) + "\n"
