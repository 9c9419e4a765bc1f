"""Options of the command line, made of the engine's table of options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sieva import _native
from sieva._cli_types import DimsType, FunctionType, MemoryType, SpillType, StorageOptionType, TextType

if TYPE_CHECKING:
    from collections.abc import Callable

    Decorator = Callable[[Any], Any]

_ROWS: dict[tuple[str, str], _native.OptionRow] = {
    (row["stage"], row["name"]): row for row in _native.options()
}


def _settings(row: _native.OptionRow) -> dict[str, Any]:
    """Return what click has to know of an option of this kind."""
    size = SpillType() if row["zero"] else MemoryType()
    kinds: dict[str, dict[str, Any]] = {
        "flag": {"is_flag": True},
        "word": {"type": click.Choice(row["words"]), "show_default": row["default"]},
        "bytes": {"type": size, "show_default": row["default"]},
        "number": {"type": click.IntRange(min=1), "show_default": row["default"]},
        "dimensions by array": {"type": DimsType(), "multiple": True},
        "code by name": {"type": FunctionType(), "multiple": True},
        "options by name": {"type": StorageOptionType(), "multiple": True},
        "places": {"metavar": "PLACE", "multiple": True},
        "text": {"type": TextType(), "metavar": "NAME", "show_default": row["default"]},
        "directory": {"metavar": "DIR", "show_default": row["default"]},
        "striping": {"type": TextType(), "metavar": "KEY=VALUE,...", "show_default": row["default"]},
        "catalog": {"type": TextType(), "metavar": "URL", "show_default": row["default"]},
    }
    return kinds[row["kind"]]


def options(stage: str, *names: str) -> Decorator:
    """Return what gives a command these options: of ``"opening"`` or ``"running"``."""

    def decorate(function: Any) -> Any:  # noqa: ANN401 - any command
        for name in reversed(names):
            row = _ROWS[stage, name]
            (flag,) = row["command_line"]
            # What is on unless it is switched off has the parameter of the switch.
            argument = f"no_{name}" if flag.startswith("--no-") else name
            text = f"Off: {row['means']}" if argument != name else row["means"]
            function = click.option(flag, argument, help=text, **_settings(row))(function)
        return function

    return decorate


def given(how: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given as Python has them."""
    found: dict[str, Any] = {}
    for name, value in how.items():
        if value is None or value is False or value == ():
            continue
        if name.startswith("no_"):
            found[name.removeprefix("no_")] = False
        elif name in {"dims", "functions", "storage_options"}:
            found[name] = dict(value)
        else:
            found[name] = value
    return found
