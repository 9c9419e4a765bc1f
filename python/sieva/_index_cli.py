"""``sieva index``: build, show, verify and drop."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import click

from sieva import _native, _open, errors
from sieva._engine_cli import engine_given, is_other_rank
from sieva._index import summary
from sieva._printable import say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sieva._catalog import Catalog
    from sieva._source import Source

# What begins the name of a collection in the place of a source.
_COLLECTION = "catalog:"
_DEFAULT_KINDS = ("zonemap", "bitmap")
# What makes no sense beside --status, --verify or --drop.
_OF_BUILDING = (
    "jobs",
    "engine",
    "scheduler",
    "batch_option",
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
    return engine_given(given["engine"], {name: given[name] for name in ("scheduler", "batch_option")})


def _check_usage(context: click.Context, given: Given) -> None:
    """Say what does not go together."""
    modes = [mode for mode in ("status", "verify", "drop") if context.params[mode]]
    if len(modes) > 1:
        raise click.UsageError(f"--{modes[0]} and --{modes[1]} do not go together", context)
    for option, is_given, mode in (
        ("json", given["as_json"], "status"),
        ("all", given["everything"], "verify"),
    ):
        if is_given and mode not in modes:
            raise click.UsageError(f"--{option} is for --{mode}", context)
    if modes:
        # --drop takes those of replicas.
        told = (
            []
            if modes == ["drop"]
            else [o for o, k in (("var", "arrays"), ("kind", "kinds")) if context.params[k]]
        )
        told += [name for name in _OF_BUILDING if _is_told(context, name)]
        if told:
            raise click.UsageError(f"--{told[0].replace('_', '-')} does not go with --{modes[0]}", context)
    elif given["batch_option"] and given["engine"] in ("local", "dask", "mpi"):
        raise click.UsageError("--batch-option is for --engine slurm, pbs and plain", context)
    elif given["scheduler"] is not None and given["engine"] != "dask":
        raise click.UsageError("--scheduler is for --engine dask", context)
    elif "sorted" in given["kinds"] and not given["arrays"]:
        raise click.UsageError("--kind sorted needs --var: the array to sort by", context)
    elif given["columns"] is not None and "sorted" not in given["kinds"]:
        raise click.UsageError("--columns is for --kind sorted", context)


def _is_told(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def _build(source: Source, given: Given) -> None:
    kinds, columns = given["kinds"] or _DEFAULT_KINDS, given["columns"]
    try:
        report = source.build_index(
            *given["arrays"],
            kinds=kinds,
            jobs=given["jobs"],
            memory=given["memory"],
            precision=given["precision"],
            region_size=given["region_size"],
            columns=None if columns is None else [c.strip() for c in columns.split(",") if c.strip()],
            lock_timeout=given["lock_timeout"],
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
