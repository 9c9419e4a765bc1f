"""Which servers and stripes a query touches, as the command line shows it: text, JSON, a picture."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sieva import errors
from sieva._printable import printable, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sieva._query import Query

TOUCHED, GREY, LINE, FILE = "#4477aa", "#555555", "#dddddd", "#f4f4f4"
WIDTH, LEFT, RIGHT, TOP, ROW, BOTTOM = 760, 120, 24, 34, 20, 40
# Of a file on more servers the first ones are drawn, the rest is told. What is closer is drawn as one range.
MOST_ROWS = 60
LEAST = 0.6


def show(query: Query, *, as_json: bool, plot: str | None) -> None:
    """Print which servers and stripes a query touches, and draw them to a file.

    Parameters
    ----------
    query
        It is neither run nor are values read for it.
    as_json
        Whether JSON is printed.
    plot
        The file to draw to, which appears when it is complete; None: nothing is drawn.

    Raises
    ------
    Unsupported
        The query is of a collection, whose objects lie in many files.
    InvalidValue
        The file is no ``*.svg``, or one that is asked.
    """
    from sieva._query import Query

    if not isinstance(query, Query):
        raise errors.Unsupported(
            "a collection lies in many files, each in its own way", "ask for one of its files: FROM 'file.nc'"
        )
    if plot is None:
        say((query.explain_layout_json() if as_json else query.explain_layout()).rstrip("\n"))
        return
    from sieva._output import output_path
    from sieva._output.asked import check_output
    from sieva._output.atomic import replacing

    target = output_path(plot)
    if target.suffix.lower() != ".svg":
        raise errors.InvalidValue(f"--plot {plot!r}: the picture is SVG", "name a file *.svg")
    check_output(target, query)
    plan = query.explain_layout_json()
    # First, so that a plan that is shown is one that was drawn.
    with replacing(target) as path:
        path.write_text(drawn(json.loads(plan)), encoding="utf-8")
    say(plan if as_json else query.explain_layout().rstrip("\n"))


def drawn(plan: dict[str, Any]) -> str:
    """Return a picture of what `Query.explain_layout_json` tells: for each file, a row for each server.

    Parameters
    ----------
    plan
        As JSON gives it.

    Returns
    -------
    str
        An SVG document. Along a row is the file, from its first byte to its last; what is read of the server
        is filled.
    """
    parts: list[str] = []
    top = 0.0
    for file in plan["files"]:
        parts.append(f'<g transform="translate(0 {top:g})">{"".join(_file(file))}</g>')
        top += TOP + ROW * max(1, min(len(file["servers"]), MOST_ROWS)) + BOTTOM
    if not plan["files"]:
        parts.append(_text(LEFT, 20, "no bytes of a file are read", "start"))
        top = 30
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top:g}" font-family="sans-serif">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{top:g}" fill="white"/>', *parts, "</svg>", ""])


def _file(file: dict[str, Any]) -> Iterator[str]:
    length = max(1, file["length"])
    scale = (WIDTH - LEFT - RIGHT) / length
    servers = file["servers"]
    before, after = (
        {key: sum(s[when][key] for s in servers) for key in ("requests", "bytes")}
        for when in ("before", "after")
    )
    yield _text(LEFT, 14, f"{Path(file['file']).name}: {file['layout']}", "start", size=11)
    told = f"{before['requests']} requests of {_size(before['bytes'])} box by box, "
    told += f"{after['requests']} of {_size(after['bytes'])} put together"
    yield _text(LEFT, 27, told, "start")
    shown = servers[:MOST_ROWS]
    for row, server in enumerate(shown):
        y = TOP + ROW * row
        yield _text(LEFT - 6, y + 13, server["name"], "end")
        yield f'<rect x="{LEFT}" y="{y + 3}" width="{length * scale:.1f}" height="{ROW - 6}" fill="{FILE}"/>'
    bottom = TOP + ROW * max(1, len(shown))
    yield f'<path d="M{LEFT} {bottom}H{WIDTH - RIGHT}" stroke="{GREY}"/>'
    for tick in _ticks(length):
        x = LEFT + tick * scale
        yield f'<path d="M{x:.1f} {TOP}V{bottom + 3}" stroke="{LINE}"/>'
        yield _text(x, bottom + 13, _size(tick), "middle")
    for row, server in enumerate(shown):
        yield from _filled(server, scale, TOP + ROW * row + 3)
    if len(servers) > MOST_ROWS:
        yield _text(LEFT, bottom + 26, f"and {len(servers) - MOST_ROWS} servers more", "start")
    elif not servers:
        yield _text(LEFT, TOP + 13, "nothing of it is read", "start")


def _filled(server: dict[str, Any], scale: float, y: float) -> Iterator[str]:
    """Return rectangles of what is read, those that cannot be seen apart as one."""
    last: list[float] | None = None
    for stripe in server["stripes"]:
        for start, end in stripe["requests"]:
            left, right = LEFT + start * scale, LEFT + end * scale
            if last is not None and left - last[1] < LEAST:
                last[1] = max(last[1], right)
                continue
            if last is not None:
                yield _bar(last, y)
            last = [left, right]
    if last is not None:
        yield _bar(last, y)


def _bar(ends: list[float], y: float) -> str:
    left, right = ends
    size = f'width="{max(LEAST, right - left):.2f}" height="{ROW - 6}"'
    return f'<rect x="{left:.2f}" y="{y:g}" {size} fill="{TOUCHED}"/>'


def _ticks(length: int) -> list[int]:
    """Return some four round offsets up to a length."""
    step = 1
    while length / step > 5:
        step *= 2
    return list(range(0, length + 1, step))


def _size(n: int) -> str:
    for unit, name in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if n >= unit:
            return f"{n / unit:.4g} {name}"
    return f"{n} B"


def _text(x: float, y: float, text: str, anchor: str, *, size: int = 9) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{GREY}"'
    # XML has no control characters, however they are written, and no halves of surrogate pairs.
    return f"<text {place}>{escape(printable(text))}</text>"
