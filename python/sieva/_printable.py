"""Texts of files, names and servers as they are shown to people: nothing in them commands a terminal."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, TypeVar

from sieva import _native

if TYPE_CHECKING:
    from collections.abc import Callable

    T = TypeVar("T")


def printable(text: object, *, lines: bool = False) -> str:
    r"""Return a text with control characters and marks of direction escaped, such as ``\u{1b}``.

    Parameters
    ----------
    text
        Anything; its ``str`` is meant.
    lines
        Whether it is a text of many lines of ours: line feeds and tabs stay.
    """
    # A file name that is no UTF-8 has halves of surrogate pairs, which cannot be printed.
    whole = str(text).encode("utf-8", "backslashreplace").decode()
    return _native.printable(whole, lines)


def shown(method: Callable[[T], str]) -> Callable[[T], str]:
    """Make what a ``__repr__`` or ``__str__`` returns printable."""

    @wraps(method)
    def printed(self: T) -> str:
        return printable(method(self), lines=True)

    return printed


def say(text: object = "", *, err: bool = False) -> None:
    """Print a line for people: to the standard output, or to the standard error."""
    import click

    click.echo(printable(text, lines=True), err=err)
