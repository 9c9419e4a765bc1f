"""The options of opening and of running, as Python has them.

The engine has one table of them (`_native.options`), by which it reads what is given here. The types below
are for type checkers, and a test compares them with the table.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from sieva import _native

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sieva._catalog import Catalog

F = TypeVar("F", bound="Callable[..., Any]")
Access = Literal["auto", "scan", "zonemap", "bitmap", "sorted"]
Fetch = Literal["auto", "direct", "block"]


class RunningTask(TypedDict, total=False):
    """How a task is run."""

    access: str
    fetch: str
    memory: int | str | None
    spill: int | str | None
    threads: int | None
    functions: Mapping[str, str | bytes | os.PathLike[str]] | None


class Running(RunningTask, total=False):
    """How a query is run."""

    cross: bool


class OpeningCollection(TypedDict, total=False):
    """How a collection is opened."""

    external: Sequence[str | os.PathLike[str]]
    valid_range: bool
    store: str | os.PathLike[str] | None
    isolated: bool
    catalog: str | os.PathLike[str] | None
    allow: Sequence[str | os.PathLike[str]] | None


class _OpeningFile(TypedDict, total=False):
    dims: Mapping[str, Sequence[str]] | None
    external: Sequence[str | os.PathLike[str]]
    valid_range: bool
    store: str | os.PathLike[str] | None
    learn: bool
    join: str | None
    isolated: bool
    storage_options: Mapping[str, Any] | None
    catalog: Catalog | str | os.PathLike[str] | bool | None
    allow: Sequence[str | os.PathLike[str]] | None
    manifest: bytes | None
    striping: str | None


class Opening(_OpeningFile, total=False):
    """How a file is opened."""

    memory: int | str | None


class OpeningForeign(TypedDict, total=False):
    """How a file is opened that Python code reads."""

    dims: Mapping[str, Sequence[str]] | None
    valid_range: bool
    store: str | os.PathLike[str] | None
    learn: bool
    memory: int | str | None


class Asking(Running, _OpeningFile, total=False):
    """How a file is opened, and the query of it is run: `memory` is of the query."""


@cache
def names(call: str) -> frozenset[str]:
    """Return the names of the options that a call of the table takes."""
    return frozenset(row["name"] for row in _native.options() if call in row["calls"])


def some(call: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the options that a call takes."""
    return {name: value for name, value in options.items() if name in names(call)}


def portable(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with the code of functions as text, as other processes get it."""
    given = options.get("functions")
    if not isinstance(given, Mapping):
        return {**options}
    return {**options, "functions": {name: _text(code) for name, code in given.items()}}


def _text(code: object) -> object:
    """Return code as text; what is no code as it is, for the engine to tell."""
    if isinstance(code, os.PathLike):
        try:
            code = Path(code).read_bytes()
        except OSError:
            return code
    if isinstance(code, bytes) and not code.startswith(b"\0asm"):
        try:
            return code.decode()
        except UnicodeDecodeError:
            return code
    return f"wasm:{code.hex()}" if isinstance(code, bytes) else code


def _default(row: _native.OptionRow) -> object:
    """Return what an argument shows as its default."""
    if row["kind"] == "flag":
        return row["default"] == "true"
    return row["default"] if row["kind"] == "word" else None


def takes(*calls: str) -> Callable[[F], F]:
    """Show the options of these calls as the arguments that they are, where a function has ``**options``.

    `help`, notebooks and `inspect.signature` see them; type checkers see the types above.
    """

    def decorate(function: F) -> F:
        shown = inspect.signature(function)
        given = [p for p in shown.parameters.values() if p.kind is not p.VAR_KEYWORD]
        arguments: dict[str, inspect.Parameter] = {}
        for call in calls:
            for row in _native.options():
                if call in row["calls"]:
                    one = inspect.Parameter(
                        row["name"], inspect.Parameter.KEYWORD_ONLY, default=_default(row)
                    )
                    arguments.setdefault(row["name"], one)
        function.__signature__ = shown.replace(  # type: ignore[attr-defined]
            parameters=[*given, *arguments.values()]
        )
        return function

    return decorate
