"""Engines on the command line: their options, and how a command is run by ranks of MPI."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from sieva._query import Query

# The names of `sieva.engines.NAMES`, which are not loaded for a line of help.
ENGINES = ("local", "dask", "mpi", "slurm", "pbs", "plain")
_BATCH = ("slurm", "pbs", "plain")
# Which options an engine has.
_TAKEN = {
    "local": {"workers"},
    "dask": {"workers", "scheduler"},
    **{name: {"batch_option", "time_left", "detach"} for name in _BATCH},
}


def engine_options(function: Any) -> Any:  # noqa: ANN401 - any command
    """Give a command the options that say who runs its work."""
    for option in (
        click.option(
            "--detach",
            is_flag=True,
            help="With slurm, pbs and plain: do not wait; another task goes on, and finishes.",
        ),
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
            "--scheduler", metavar="ADDRESS", help="With --engine dask: by default a cluster of this machine."
        ),
        click.option(
            "--workers",
            type=click.IntRange(min=1),
            help="With --engine local, or dask without --scheduler: processes; by default one a core.",
        ),
        click.option(
            "--engine", type=click.Choice(ENGINES), help="Who runs the work; by default this process."
        ),
    ):
        function = option(function)
    return function


def engine_given(engine: str | None, options: dict[str, Any]) -> object:
    """Return the engine that was named on the command line; None where there was none."""
    options = {name: value for name, value in options.items() if value not in (None, (), False)}
    for name in options.keys() - _TAKEN.get(engine or "", set()):
        flag = f"--{name.replace('_', '-')}"
        raise click.UsageError(f"{flag} is not of --engine {engine}" if engine else f"{flag} is of --engine")
    if engine is None:
        return None
    from sieva.engines import engine_of

    if engine not in _BATCH:
        return engine_of(engine, **options)
    from sieva.engines.batch.engine import from_command

    words = options.pop("batch_option", ())
    return from_command(engine, words, options.get("time_left"), "detach" in options)


def ask(sql: str, engine: str | None, options: dict[str, Any], how: dict[str, Any]) -> Query | None:
    """Return the query of a SELECT, run by an engine; None where another rank of MPI has the answer.

    Parameters
    ----------
    sql
        With its FROM.
    engine
        The name that was given.
    options
        Those of the engine.
    how
        Options of running and opening.
    """
    import sieva

    runner = engine_given(engine, options)
    if engine != "mpi":
        return sieva.sql(sql, engine=runner, **how)
    import sieva.mpi
    from sieva.engines.mpi import MpiEngine

    assert isinstance(runner, MpiEngine)  # noqa: S101 - that is what the name means
    return runner.on_root(sieva.mpi.sql(sql, **how))


def is_other_rank() -> bool:
    """Return whether another rank of MPI tells what was done."""
    if "sieva.engines.mpi" not in sys.modules:
        return False
    from mpi4py import MPI

    return bool(MPI.COMM_WORLD.rank > 0)


def is_told_elsewhere(error: BaseException) -> bool:
    """Return whether rank 0 tells of an error; ends all ranks where this one alone has it."""
    if not is_other_rank():
        return False
    from sieva.engines.mpi import is_agreed

    return is_agreed(error)


def end_ranks(error: BaseException) -> None:
    """End all ranks of MPI after an error of this one: the others would wait for it for ever."""
    if "sieva.engines.mpi" not in sys.modules:
        return
    from mpi4py import MPI

    from sieva.engines.mpi import is_agreed

    if not is_agreed(error) and MPI.COMM_WORLD.size > 1:
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)
