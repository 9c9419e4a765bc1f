"""Statements of a file: SELECTs with ``;`` between them."""

from __future__ import annotations

import re
from typing import NamedTuple

from sieva import errors

# A quoted text, a comment, an end, a quote that has none, and what is none of them. A quote that is written
# twice within a text ends it and begins another one at once, which comes to the same.
_TOKEN = re.compile(r"""'[^']*'|"[^"]*"|--[^\n]*|[;'"]|[^;'"-]+|-""")


class Statement(NamedTuple):
    """A statement, and the line that it begins in."""

    line: int
    text: str


def split(text: str) -> list[Statement]:
    r"""Return the statements of a text.

    They end with ``;`` outside of quotes; ``--`` outside of quotes begins a comment, which ends with its
    line. Within quotes the quote itself is written twice.

    Raises
    ------
    SyntaxError_
        A quote has no end.

    Examples
    --------
    >>> split("SELECT a FROM 'x;y.nc'; -- one\n\nSELECT b FROM 'x.nc'")
    [Statement(line=1, text="SELECT a FROM 'x;y.nc'"), Statement(line=3, text="SELECT b FROM 'x.nc'")]
    """
    found: list[Statement] = []
    piece: list[str] = []
    line = first = 0
    has_begun = False
    for token in _TOKEN.finditer(text):
        part = token[0]
        if part in {"'", '"'}:
            raise errors.SyntaxError_(f"line {line + 1}: a text in {part} has no end", "close the quote")
        if part == ";":
            _add(found, piece, first)
            piece, has_begun = [], False
        elif part.startswith("--"):
            piece.append(" ")
        else:
            if not has_begun and part.strip():
                has_begun = True
                first = line + part[: len(part) - len(part.lstrip())].count("\n")
            piece.append(part)
        line += part.count("\n")
    _add(found, piece, first)
    return found


def _add(found: list[Statement], piece: list[str], first: int) -> None:
    text = "".join(piece).strip()
    if text:
        found.append(Statement(first + 1, text))
