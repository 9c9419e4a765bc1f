"""What a run leaves: a JSON file, a Markdown page of all figures, and the tables of the page on indexes."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

from figure import Figure

HEAD = ["| figure | target | paper | measured | | limit |", "|---|---|---|---|---|---|"]


def row(figure: Figure) -> list[str]:
    """Return a figure as the cells of a table."""
    measured = f"{figure.measured:.3g} {figure.unit}"
    return [figure.name, figure.target, figure.paper, measured, figure.verdict, figure.limit]


def page(measured: list[Figure], about: dict[str, object], command: str) -> str:
    """Return the results as Markdown."""
    lines = HEAD + [f"| {' | '.join(row(figure))} |" for figure in measured]
    lines += ["", "| figure | run | median (range) |", "|---|---|---|"]
    lines += [
        f"| {figure.name} | {name} | {times} |" for figure in measured for name, times in figure.times.items()
    ]
    notes = [f"- {figure.name}: {json.dumps(figure.notes)}" for figure in measured if figure.notes]
    return "\n".join([*lines, "", *notes, "", f"`{command}` on {json.dumps(about)}", ""])


def record(measured: list[Figure], about: dict[str, object], command: str, at: str) -> str:
    """Return the results as JSON."""
    figures = [asdict(figure) for figure in measured]
    return json.dumps({"at": at, "command": command, "machine": about, "figures": figures}, indent=1) + "\n"


def table(figures: Iterable[Figure]) -> str:
    """Return the figures of a group with their times, for a reader."""
    lines = ["| question | measured | target | | paper | times |", "|---|---|---|---|---|---|"]
    for figure in figures:
        told = figure.told or tuple(figure.times)
        times = "; ".join(f"{name}: {figure.times[name]}" for name in told)
        name, target, paper, measured, verdict, limit = row(figure)
        said = "; ".join(text for text in (times, limit) if text)
        lines.append(f"| {' | '.join((name, measured, target, verdict, paper, said))} |")
    return "\n".join(lines)


def _between(text: str) -> Callable[[re.Match[str]], str]:
    return lambda found: f"{found[1]}\n{text}\n\n{found[2]}"


def fill(target: Path, measured: list[Figure]) -> None:
    """Put tables between the marks of a page, ``<!-- group -->`` and ``<!-- /group -->``; others stay."""
    text = target.read_text(encoding="utf-8")
    for group in dict.fromkeys(figure.group for figure in measured):
        new = table(figure for figure in measured if figure.group == group)
        marks = re.compile(rf"(<!-- {group} -->\n).*?(<!-- /{group} -->)", re.DOTALL)
        # A function, as in a replacement's text backslashes would be escapes.
        text = marks.sub(_between(new), text)
    target.write_text(text, encoding="utf-8")
