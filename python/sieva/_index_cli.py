"""``sieva index``: build, show, verify and drop."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypedDict

import click

from sieva import _native, _open, errors
from sieva._engine_cli import engine_given, is_other_rank
from sieva._index import summary
from sieva._memory import size_text
from sieva._printable import say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sieva._catalog import Catalog
    from sieva._index_job import BuildPrice
    from sieva._source import Source
    from sieva.engines.batch.system import Needs

# What begins the name of a collection in the place of a source.
_COLLECTION = "catalog:"
_DEFAULT_KINDS = ("zonemap", "bitmap")
# What makes no sense beside --status, --verify or --drop.
_OF_BUILDING = (
    "jobs",
    "engine",
    "scheduler",
    "batch_option",
    "time_left",
    "detach",
    "memory",
    "precision",
    "region_size",
    "columns",
    "lock_timeout",
)


class Given(TypedDict):
    """The options of the command, by the names of its parameters."""

    arrays: Sequence[str]
    kinds: Sequence[str]
    jobs: int | None
    engine: str
    scheduler: str | None
    batch_option: Sequence[str]
    time_left: float | None
    detach: bool
    price: bool
    memory: int
    precision: int
    region_size: int | None
    columns: str | None
    lock_timeout: float
    catalog: str | None
    status: bool
    as_json: bool
    verify: bool
    everything: bool
    drop: bool
    store: str | None
    dims: Sequence[tuple[str, list[str]]]
    external: Sequence[str]
    join: str | None
    isolated: bool


def run(source: str, given: Given) -> None:
    """Do what the options of ``sieva index`` ask for."""
    _check_usage(click.get_current_context(), given)
    from sieva._catalog import Catalog

    told = None if given["catalog"] is None else Catalog(given["catalog"])
    name = source.removeprefix(_COLLECTION)
    if name == source:
        _run_one(source, given, told)
    else:
        _run_collection(name, given, told)


def _run_collection(name: str, given: Given, told: Catalog | None) -> None:
    """Do it for each source of a collection; one that fails does not stop the others."""
    from sieva._collection import catalog_place, sources_of

    sources = sources_of(name, given["catalog"] or catalog_place(None))
    failed = []
    for source in sources:
        try:
            _run_one(source, given, told, is_named=bool(given["arrays"]))
        except errors.Cancelled:
            raise
        except errors.SievaError as error:
            failed.append(source)
            say(f"{source}: {error.message}", err=True)
    if failed:
        raise errors.Unsupported(
            f"{len(failed)} of the {len(sources)} sources of the collection {name!r} could not be done",
            "what is wrong with each is told above; the others are done",
        )


def _run_one(source: str, given: Given, told: Catalog | None, *, is_named: bool = False) -> None:
    """Do it for one source; `is_named`: it is named before what is said of it."""
    opened = _opener(given["engine"])(
        source,
        catalog=told,
        dims=dict(given["dims"]),
        external=given["external"],
        store=given["store"],
        join=given["join"],
        isolated=given["isolated"],
        learn=False,
    )
    if given["status"]:
        found = opened.index_status()
        click.echo(found.to_json() if given["as_json"] else repr(found))
    elif given["price"]:
        _tell_price(opened, given)
    elif given["verify"]:
        _verify(opened, given["everything"])
    elif given["drop"]:
        dropped = opened.drop_index(*given["arrays"], kinds=given["kinds"] or None)
        say(f"{source}: {'removed' if dropped else 'there was nothing to remove'}", err=True)
        for note in opened.index_notes:
            say(f"note: {note}", err=True)
    else:
        if is_named:
            say(source, err=True)
        _build(opened, given)


def _opener(engine: str) -> Callable[..., Source]:
    """Return what opens a source: with MPI all ranks together."""
    if engine != "mpi":
        return _open.open
    import sieva.mpi

    return sieva.mpi.open


def _engine(given: Given) -> object:
    """Return the engine that builds; None is this process. A source of MPI has its own."""
    if given["engine"] in ("local", "mpi"):
        return None
    options = {
        "scheduler": given["scheduler"],
        "batch_option": given["batch_option"],
        "time_left": given["time_left"],
        "detach": given["detach"],
    }
    return engine_given(given["engine"], options)


def _check_usage(context: click.Context, given: Given) -> None:
    """Say what does not go together."""
    modes = [mode for mode in ("status", "verify", "drop", "price") if context.params[mode]]
    if len(modes) > 1:
        raise click.UsageError(f"--{modes[0]} and --{modes[1]} do not go together", context)
    for option, is_given, of in (
        ("json", given["as_json"], ("status", "price")),
        ("all", given["everything"], ("verify",)),
    ):
        if is_given and not set(of) & set(modes):
            raise click.UsageError(f"--{option} is for --{' and --'.join(of)}", context)
    if modes and modes != ["price"]:
        # --drop takes those of replicas.
        told = (
            []
            if modes == ["drop"]
            else [o for o, k in (("var", "arrays"), ("kind", "kinds")) if context.params[k]]
        )
        told += [name for name in _OF_BUILDING if _is_told(context, name)]
        if told:
            raise click.UsageError(f"--{told[0].replace('_', '-')} does not go with --{modes[0]}", context)
    elif given["engine"] in ("local", "dask", "mpi") and (told := _told_of_batch(given)):
        raise click.UsageError(f"--{told[0]} is for --engine slurm, pbs and plain", context)
    elif given["scheduler"] is not None and given["engine"] != "dask":
        raise click.UsageError("--scheduler is for --engine dask", context)
    elif "sorted" in given["kinds"] and not given["arrays"]:
        raise click.UsageError("--kind sorted needs --var: the array to sort by", context)
    elif given["columns"] is not None and "sorted" not in given["kinds"]:
        raise click.UsageError("--columns is for --kind sorted", context)


def _told_of_batch(given: Given) -> list[str]:
    """Return the options that were given of batch systems."""
    told = {
        "batch-option": given["batch_option"],
        "time-left": given["time_left"] is not None,
        "detach": given["detach"],
    }
    return [name for name, is_given in told.items() if is_given]


def _is_told(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def _asked(given: Given) -> dict[str, Any]:
    """Return what is to be built, as arguments of `Source.index_job`."""
    columns = given["columns"]
    return {
        "kinds": given["kinds"] or _DEFAULT_KINDS,
        "memory": given["memory"],
        "precision": given["precision"],
        "region_size": given["region_size"],
        "columns": None if columns is None else [c.strip() for c in columns.split(",") if c.strip()],
        "lock_timeout": given["lock_timeout"],
    }


def _tell_price(source: Source, given: Given) -> None:
    """Print what is left to be built takes, and what a batch system would be asked for."""
    price = source.index_job(*given["arrays"], **_asked(given)).price()
    if is_other_rank():
        return
    asked = _needs(price, given)
    if given["as_json"]:
        told = asdict(price) | ({"tasks": asked[0], "needs": asdict(asked[1])} if asked else {})
        click.echo(json.dumps(told, indent=2))
        return
    say(f"regions     {price.regions:,}, {price.rows:,} rows")
    say(f"read        {price.bytes_read} bytes ({size_text(price.bytes_read)})")
    if price.bytes_sorted:
        say(f"sorted      {price.bytes_sorted} bytes ({size_text(price.bytes_sorted)})")
    if asked:
        tasks, needs = asked
        minutes = f"{needs.seconds // 60} minutes" if needs.seconds % 60 == 0 else f"{needs.seconds} s"
        say(f"tasks       {tasks}, each {size_text(needs.memory)}, {needs.cpus} processors, {minutes}")


def _needs(price: BuildPrice, given: Given) -> tuple[int, Needs] | None:
    """Return how many tasks of a batch system a build would be, and what each may take."""
    if given["engine"] in ("local", "dask", "mpi"):
        return None
    from sieva.engines.batch.needs import needs_of_build, tasks_of_build
    from sieva.engines.batch.options import BatchOptions

    options = BatchOptions.of(given["batch_option"])
    tasks = tasks_of_build(price, options)
    return tasks, needs_of_build(price, tasks, options, given["memory"])


def _build(source: Source, given: Given) -> None:
    kinds = given["kinds"] or _DEFAULT_KINDS
    try:
        report = source.build_index(
            *given["arrays"],
            **_asked(given),
            jobs=given["jobs"],
            progress=True,
            engine=_engine(given),
        )
    except KeyboardInterrupt:
        shown = _native.redacted(source.path)
        say(f"{shown}: {_state(source)}; the same command goes on from there", err=True)
        raise
    if is_other_rank():
        return
    paths = []
    for name in given["arrays"]:
        meant = source._native.meant(name)
        if len(meant) > 1:
            say(f"{name}: {len(meant)} arrays of that name, in different groups", err=True)
        paths += [path for path in meant if path not in paths]
    say(summary(paths, report, source.index_status(), kinds), err=True)
    for path, why in report.unreadable:
        say(f"{path} is left out: {why}", err=True)
    for note in report.notes:
        say(f"note: {note}", err=True)


def _state(source: Source) -> str:
    """Return how far a build came that was stopped."""
    found = source.index_status()
    known, regions = (
        sum(getattr(array, what) for array in found.arrays) for what in ("with_zonemap", "regions")
    )
    kept = f"{known:,} of {regions:,} regions" if found.arrays and not found.stale else "no region"
    return f"what was done is kept, {kept} so far"


def _verify(source: Source, everything: bool) -> None:
    report = source.verify_index(everything, progress=True)
    say(str(report))
    if not report:
        click.get_current_context().exit(1)
