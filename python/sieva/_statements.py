"""Statements of a file: SELECTs with ``;`` between them."""

from __future__ import annotations

from typing import NamedTuple

from sieva import errors


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
    at = line = first = 0
    while at < len(text):
        end = _end(text, at, line)
        part = text[at:end]
        if part == ";":
            _add(found, piece, first)
            piece = []
        elif part.startswith("--"):
            piece.append(" ")
        else:
            if not "".join(piece).strip() and part.strip():
                piece, first = [], line
            piece.append(part)
        line += part.count("\n")
        at = end
    _add(found, piece, first)
    return found


def _end(text: str, at: int, line: int) -> int:
    """Return where what begins at `at` ends: a quoted text, a comment, or a character."""
    if text.startswith("--", at):
        end = text.find("\n", at)
        return len(text) if end < 0 else end
    if text[at] not in "'\"":
        return at + 1
    end = text.find(text[at], at + 1)
    if end < 0:
        raise errors.SyntaxError_(f"line {line + 1}: a text in {text[at]} has no end", "close the quote")
    # A quote that is written twice begins another one at once, which comes to the same.
    return end + 1


def _add(found: list[Statement], piece: list[str], first: int) -> None:
    text = "".join(piece).strip()
    if text:
        found.append(Statement(first + 1, text))
