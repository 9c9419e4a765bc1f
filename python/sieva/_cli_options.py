"""Options of the command line, made of the engine's table of options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sieva import _native
from sieva._cli_types import DimsType, MemoryType, SpillType, StorageOptionType

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
        "options by name": {"type": StorageOptionType(), "multiple": True},
        "places": {"metavar": "PLACE", "multiple": True},
        "text": {"metavar": "NAME", "show_default": row["default"]},
        "directory": {"metavar": "DIR", "show_default": row["default"]},
        "catalog": {"metavar": "URL", "show_default": row["default"]},
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


# The names of `sieva.engines.NAMES`, which are not loaded for a line of help.
ENGINES = ("local", "slurm", "pbs", "plain")
_BATCH = ("slurm", "pbs", "plain")


def engine_options(function: Any) -> Any:  # noqa: ANN401 - any command
    """Give a command the options that say who runs its work."""
    for option in (
        click.option(
            "--time-left",
            type=click.FloatRange(min=0),
            metavar="SECONDS",
            help="With slurm, pbs and plain: how long they are followed; what is not done goes on.",
        ),
        click.option(
            "--batch-option",
            multiple=True,
            metavar="NAME=VALUE",
            help="Of slurm, pbs and plain: partition, account, time, memory, cpus, tasks, setup ...",
        ),
        click.option(
            "--workers",
            type=click.IntRange(min=1),
            help="With --engine local: processes; by default one a core.",
        ),
        click.option(
            "--engine", type=click.Choice(ENGINES), help="Who runs the work; by default this process."
        ),
    ):
        function = option(function)
    return function


def engine_given(engine: str | None, **options: Any) -> object:  # noqa: ANN401 - those of the engine
    """Return the engine that was named on the command line; None where there was none."""
    options = {name: value for name, value in options.items() if value not in (None, ())}
    taken = {"local": {"workers"}, **{name: {"batch_option", "time_left"} for name in _BATCH}}
    for name in options.keys() - taken.get(engine or "", set()):
        flag = f"--{name.replace('_', '-')}"
        raise click.UsageError(f"{flag} is not of --engine {engine}" if engine else f"{flag} is of --engine")
    if engine is None:
        return None
    from sieva.engines import engine_of

    if engine not in _BATCH:
        return engine_of(engine, **options)
    from sieva.engines.batch.engine import from_command

    return from_command(engine, options.get("batch_option", ()), options.get("time_left"))


def given(how: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given as Python has them."""
    found: dict[str, Any] = {}
    for name, value in how.items():
        if value is None or value is False or value == ():
            continue
        if name.startswith("no_"):
            found[name.removeprefix("no_")] = False
        elif name in {"dims", "storage_options"}:
            found[name] = dict(value)
        else:
            found[name] = value
    return found
