"""The command line: ``sieva schema | query | explain | index | references | advise | catalog | share ...``.

Data and JSON go to stdout, everything else to stderr. The exit code is 0 (done), 1 (failed), 2 (wrong
usage) or 130 (Ctrl-C). What a command needs is loaded by the command, so that the others start fast.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from sieva import __version__, errors
from sieva._cli_options import given, options
from sieva._cli_types import MemoryType
from sieva._engine_cli import ask, end_ranks, engine_options, is_told_elsewhere
from sieva._memory import size_text
from sieva._output import (
    ARRAY_FORMATS,
    COLUMN_FORMATS,
    DEFLATED_FORMATS,
    FORMATS,
    STREAMS,
    SUFFIXES,
    format_of,
    write_file,
)
from sieva._printable import say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sieva._query import Query

LAYOUTS = ("grid", "points", "columns")
INTERRUPTED = 130
_WAYS = {"bitmap": "bitmap", "points": "single elements", "scan": "scan"}


open_options = options(
    "opening", "dims", "external", "allow", "join", "isolated", "storage_options", "striping"
)
store_option = options("opening", "store")
deflate_option = click.option(
    "--deflate",
    type=click.IntRange(0, 9),
    help=f"Of {' and '.join(DEFLATED_FORMATS)}: 0 is not compressed, 1 fast, 9 small.",
)


def run_options(function: Any) -> Any:  # noqa: ANN401 - any command
    """Give a command the options of running a query, and those of opening that matter to it alone."""
    function = options("opening", "valid_range", "store", "learn", "catalog")(function)
    return options("running", "access", "fetch", "memory", "spill", "threads", "cross", "functions")(function)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="sieva", message="%(prog)s %(version)s")
def cli() -> None:
    """Ask scientific files for the values that you need, in place: HDF5, netCDF, Zarr, FITS, ADIOS2."""


@cli.command()
@click.argument("source")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with all coordinate values.")
@open_options
def schema(source: str, as_json: bool, **how: Any) -> None:  # noqa: ANN401 - the options of opening
    """Show what SOURCE holds: storage, layout, and what is known of the values."""
    import sieva

    known = sieva.open(source, **given(how)).schema()
    click.echo(known.to_json() if as_json else str(known))


@cli.command()
@click.argument("sql", required=False)
@click.option(
    "-f",
    "--file",
    metavar="FILE",
    help="Answer the statements of FILE (- is stdin), with ; between them; what they share is read once.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write to a file; its suffix picks the format. With -f a directory.",
)
@click.option("--format", "kind", type=click.Choice(FORMATS), help="By default the suffix of -o, or a table.")
@click.option(
    "--layout", type=click.Choice(LAYOUTS), help=f"Of {', '.join(ARRAY_FORMATS)}; columns also of others."
)
@deflate_option
@click.option("--stats", is_flag=True, help="Tell on stderr what was read, and how long it took.")
@engine_options
@run_options
@open_options
def query(
    sql: str | None,
    file: str | None,
    output: str | None,
    kind: str | None,
    layout: str | None,
    deflate: int | None,
    stats: bool,
    engine: str | None,
    workers: int | None,
    batch_option: tuple[str, ...],
    time_left: float | None,
    scheduler: str | None,
    detach: bool,
    **how: Any,  # noqa: ANN401 - the options of running and opening
) -> None:
    """Answer a query: SELECT ... FROM 'file.nc' WHERE ..."""
    path = None if output in (None, "-") else Path(output or "")
    if sql is not None and file is not None:
        raise click.UsageError("a query and -f: give one of them")
    if sql is None and file is None:
        raise click.UsageError("give a query, or a file of them by -f")
    given_to_engine = {
        "workers": workers,
        "scheduler": scheduler,
        "batch_option": batch_option,
        "time_left": time_left,
        "detach": detach,
    }
    if file is not None:
        if engine is not None or any(value not in (None, (), False) for value in given_to_engine.values()):
            raise click.UsageError("-f is for queries that this process answers, without --engine")
        from sieva._run_cli import run

        written = {"layout": layout, "deflate": deflate}
        if kind is not None and path is not None:
            _format(path, kind, layout, deflate)
        if not run(file, path, kind, written, given(how), stats=stats, check=_stop.check):
            raise click.exceptions.Exit(1)
        return
    assert sql is not None  # noqa: S101 - one of both is given
    kind = _format(path, kind, layout, deflate)
    asked = ask(sql, engine, given_to_engine, given(how))
    if asked is None:
        return
    with _stderr_note(asked, path):
        if path is None:
            from sieva._output.rows import write

            write(asked, kind, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        else:
            write_file(asked, path, kind, layout, deflate)  # type: ignore[arg-type]
    asked.source.close()
    if stats:
        say(stats_text(asked.stats()), err=True)


@cli.command()
@click.argument("sql")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, which can be sent and asked elsewhere.")
@options("opening", "catalog")
@open_options
def plan(sql: str, as_json: bool, **how: Any) -> None:  # noqa: ANN401 - the options of opening
    """Show what is asked, as data: in one form for all wordings, with its id. Nothing is read or run."""
    import sieva

    asked = sieva.sql(sql, learn=False, **given(how))
    found = asked.plan()
    say(found.to_json().rstrip("\n") if as_json else f"{found.id}\n{found.sql()}")
    asked.source.close()


@cli.command()
@click.argument("sql")
@click.option("--analyze", is_flag=True, help="Run the query, and tell what happened.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--layout", "by_layout", is_flag=True, help="Show which servers and stripes it touches.")
@click.option("--plot", metavar="FILE.svg", help="Draw them: servers by file offset.")
@run_options
@open_options
def explain(
    sql: str,
    analyze: bool,
    as_json: bool,
    by_layout: bool,
    plot: str | None,
    **how: Any,  # noqa: ANN401 - the options of running and opening
) -> None:
    """Show how a query would be answered, without answering it."""
    import sieva

    if analyze and (by_layout or plot is not None):
        raise click.UsageError("--layout and --plot tell what is known before it is run: not with --analyze")
    asked = sieva.sql(sql, **given(how))
    if by_layout or plot is not None:
        from sieva._layout_plan import show

        show(asked, as_json=as_json, plot=plot)
    else:
        click.echo((asked.explain_json(analyze) if as_json else asked.explain(analyze)).rstrip("\n"))
    asked.source.close()


@cli.command()
@click.argument("source")
@click.option("--var", "arrays", multiple=True, metavar="NAME", help="An array; by default all of numbers.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(("zonemap", "bitmap", "sorted")),
    help="What to build; by default zonemap and bitmap. sorted needs --var.",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Number of workers; by default one for each core.")
@click.option(
    "--engine",
    type=click.Choice(("local", "dask", "mpi", "slurm", "pbs", "plain")),
    default="local",
    show_default=True,
    help="Who builds: local are threads of this process.",
)
@click.option(
    "--scheduler", metavar="ADDRESS", help="With --engine dask: by default a cluster of this machine."
)
@click.option(
    "--batch-option", multiple=True, metavar="NAME=VALUE", help="Of slurm, pbs and plain, as of query."
)
@click.option(
    "--time-left",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="With slurm, pbs and plain: how long they are followed; what is not done goes on.",
)
@click.option(
    "--detach",
    is_flag=True,
    help="With slurm, pbs and plain: do not wait; another task goes on, and finishes.",
)
@click.option(
    "--memory", type=MemoryType(), default="1GiB", show_default=True, help="Limit of a sort's memory."
)
@click.option(
    "--precision",
    type=click.IntRange(1, 17),
    default=2,
    show_default=True,
    help="Decimal digits of constants that bitmaps answer without the data.",
)
@click.option(
    "--region-size",
    type=MemoryType(),
    help="Bytes of a region of zone maps and bitmaps: 4MiB; by default as there is, else some 256KiB.",
)
@click.option(
    "--columns", metavar="A,B", help="Arrays that a sorted replica carries; by default all that fit."
)
@click.option(
    "--lock-timeout",
    type=click.FloatRange(0, 86400),
    default=60,
    show_default=True,
    help="Seconds to wait for a lock that another build holds.",
)
@click.option("--catalog", metavar="URL", help="The catalog that is told, and that has catalog:COLLECTION.")
@click.option("--status", is_flag=True, help="Show what there is.")
@click.option("--price", is_flag=True, help="Tell what is left to be built takes, and build nothing.")
@click.option("--json", "as_json", is_flag=True, help="With --status and --price: print JSON.")
@click.option("--verify", is_flag=True, help="Compare a sample with the data; exit with 1 if it differs.")
@click.option("--all", "everything", is_flag=True, help="With --verify: compare everything.")
@click.option("--drop", is_flag=True, help="Remove the index; with --kind sorted, replicas only.")
@store_option
@open_options
def index(source: str, **options: Any) -> None:  # noqa: ANN401 - as click has them
    """Build indexes of SOURCE beside it, or look after them. SOURCE itself is never changed.

    SOURCE may be catalog:COLLECTION: then each source of that collection is meant, one after the other.
    """
    from sieva._index_cli import run

    run(source, options)  # type: ignore[arg-type] # click checked them


@cli.command()
@click.argument("url")
@click.argument("sql", required=False)
@click.option("-o", "--output", metavar="FILE", help="File to write; its suffix picks the format.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(("netcdf", "hdf5", "parquet", "arrow", "csv")),
    help="By default the suffix of -o.",
)
@click.option(
    "--streams",
    type=click.IntRange(1, 64),
    default=4,
    show_default=True,
    help="Connections that carry data, where globus-url-copy is installed.",
)
@deflate_option
def get(
    url: str, sql: str | None, output: str | None, kind: str | None, streams: int, deflate: int | None
) -> None:
    """Fetch the result of SQL from a file on a GridFTP server (gsiftp://, ftp://), or the file itself.

    SQL is a SELECT without FROM, or a condition alone; it runs at the server.
    """
    from sieva._gridftp.get import run

    run(url, sql, output, kind, streams=streams, deflate=deflate)


@cli.command()
@click.argument("source")
@click.argument("output")
@click.option("--url", help="Where readers will find SOURCE; by default where it is.")
@open_options
def references(source: str, output: str, url: str | None, **how: Any) -> None:  # noqa: ANN401
    """Write where every chunk of SOURCE lies to OUTPUT: kerchunk's references, *.json or *.parq."""
    import sieva

    for note in sieva.open(source, **given(how)).to_references(output, url=url):
        say(note, err=True)


@cli.command()
@click.argument("source", default="", metavar="[SOURCE|PREFIX]")
@click.option("--budget", type=MemoryType(), help="Bytes that these indexes may take; by default any number.")
@click.option("--apply", is_flag=True, help="Build and remove what is advised.")
@click.option("--dry-run", is_flag=True, help="Change nothing, which is the default.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--pin", multiple=True, metavar="SOURCE:ARRAY=KIND", help="Always have this index.")
@click.option("--forbid", multiple=True, metavar="SOURCE:ARRAY=KIND", help="Never have this index.")
@click.option("--free", multiple=True, metavar="SOURCE:ARRAY=KIND", help="Take back --pin or --forbid.")
@click.option("--rules", is_flag=True, help="Show what is pinned and forbidden.")
@click.option("--catalog", metavar="URL", help="By default SIEVA_CATALOG, else your own.")
@click.option("--jobs", type=click.IntRange(min=1), help="Number of workers; by default one for each core.")
@click.option(
    "--memory", type=MemoryType(), default="1GiB", show_default=True, help="Limit of a sort's memory."
)
@store_option
def advise(source: str, **options: Any) -> None:  # noqa: ANN401 - as click has them
    """Tell which indexes would have saved what of the queries that were asked, and build them."""
    from sieva._advise_cli import run

    run(source, options)  # type: ignore[arg-type] # click checked them


@cli.command()
@click.argument("path")
@store_option
@open_options
def calibrate(path: str, **how: Any) -> None:  # noqa: ANN401 - the options of opening
    """Measure what reading the file PATH costs here, and keep it for choosing between ways to answer."""
    import sieva

    found = sieva.open(path, **given(how)).calibrate()
    say(repr(found))
    say(f"kept in {found.kept_in}", err=True)


@cli.command()
@click.option(
    "--dir", "directory", default="demo", show_default=True, metavar="DIR", help="Where the files are made."
)
def demo(directory: str) -> None:
    """Make two small files and answer four queries on them, beside a plain scan."""
    from sieva.demo import run

    run(Path(directory))


@cli.command()
def doctor() -> None:
    """Tell what this installation is and has."""
    from sieva._doctor import report

    say(report())


class _Later(click.Group):
    """Commands such as those of ``sieva catalog``, loaded when they are asked for: of ``_catalog_cli.py``."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - as click calls it
        """Return the names in their order."""
        return list(self._group().commands)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return the command of a name."""
        return self._group().get_command(ctx, name)

    def _group(self) -> click.Group:
        found: click.Group = getattr(import_module(f"sieva._{self.name}_cli"), str(self.name))
        return found


@cli.group(cls=_Later)
def catalog() -> None:
    """Know what files hold without opening them: register, tag, find."""


@cli.group(cls=_Later)
def share() -> None:
    """Share through a store what others asked for of your data: create, ask, produce, follow."""


@cli.group(cls=_Later, invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def jobs(context: click.Context, as_json: bool) -> None:
    """List what was given to a batch system; show, cancel, resume and remove it."""
    if context.invoked_subcommand is None:
        from sieva._jobs_cli import list_

        context.invoke(list_, as_json=as_json)
    elif as_json:
        raise click.UsageError("--json stands behind the command: sieva jobs show ID --json")


def _format(path: Path | None, kind: str | None, layout: str | None, deflate: int | None) -> str:
    """Return the format, or say what is wrong with what was asked for."""
    if kind is None:
        kind = "table" if path is None else format_of(path)
    if kind is None:
        assert path is not None  # noqa: S101 - stdout has a format
        suffixes = " ".join(SUFFIXES)
        raise click.UsageError(
            f"the suffix of {str(path)!r} names no format: expected one of {suffixes}, or --format"
        )
    if path is None and kind not in STREAMS:
        raise click.UsageError(f"the format {kind} cannot be written to stdout: name a file by -o")
    if path is None and kind == "arrow" and sys.stdout.isatty():
        raise click.UsageError("the format arrow is not for terminals: name a file by -o, or pipe it")
    if layout == "columns":
        if path is None or kind not in COLUMN_FORMATS:
            raise click.UsageError(f"--layout columns is for files of {', '.join(COLUMN_FORMATS)}")
    elif layout is not None and kind not in ARRAY_FORMATS:
        raise click.UsageError(f"--layout is for {', '.join(ARRAY_FORMATS)}, not for {kind}")
    if deflate is not None and kind not in DEFLATED_FORMATS:
        raise click.UsageError(f"--deflate is for {' and '.join(DEFLATED_FORMATS)}, not for {kind}")
    return kind


@contextmanager
def _stderr_note(asked: Query, path: Path | None) -> Iterator[None]:
    """Show progress while a file is written, where a person looks on."""
    asked._on_rows = lambda _: _stop.check()
    if path is None or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(f"{path.name}: reading")
        rows = 0

        def told(more: int) -> None:
            nonlocal rows
            _stop.check()
            rows += more
            progress.update(task, description=f"{path.name}: {rows:,} rows")

        asked._on_rows = told
        yield
    say(f"{path}: {rows:,} rows", err=True)


def stats_text(stats: dict[str, Any]) -> str:
    """Return what a query did, for people."""
    if "objects" in stats:
        return collection_text(stats)
    if "bytes_received" in stats:
        return f"received    {stats['bytes_received']} bytes ({size_text(stats['bytes_received'])})"
    seconds = stats["seconds"]
    scanned, skipped = stats["tiles_scanned"], stats["tiles_skipped"]
    ways = ", ".join(f"{stats['by_' + way]} by {name}" for way, name in _WAYS.items())
    lines = [
        f"hits        {stats['hits'] if stats['hits'] is not None else 'not counted'}",
        f"tiles       {scanned} scanned, {skipped} decided without reading",
        f"conditions  {ways}; {stats['by_replica']} rows by sorted replica",
        f"read        {stats['bytes_read']} bytes ({size_text(stats['bytes_read'])})",
        f"requests    {stats['requests']}",
        f"indexes     {stats['index_bytes_read']} bytes in {stats['index_requests']} requests",
        f"chunks      {stats['chunks_decoded']} decoded, {stats['library_reads']} reads by the HDF5 library",
        "seconds     " + ", ".join(f"{phase} {value:.3f}" for phase, value in seconds.items()),
    ]
    return "\n".join(lines)


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as of a job in the background
            signal.signal(number, _stop)
    given = list(sys.argv[1:] if args is None else args)
    try:
        # The words are kept: what is given to a batch system may be asked again.
        with cli.make_context("sieva", given, obj=tuple(given)) as context:
            cli.invoke(context)
            sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.UsageError as error:
        return _wrong_usage(error)
    except click.ClickException as error:
        return _failed(error.format_message(), None)
    except BrokenPipeError:
        _leave_pipe()
    except (KeyboardInterrupt, click.Abort):
        say("sieva: interrupted", err=True)
        return INTERRUPTED
    except Exception as error:
        if os.environ.get("SIEVA_DEBUG"):
            raise
        code = 1 if is_told_elsewhere(error) else _failed(*_told(error))
        end_ranks(error)
        return code
    return 0


class _Stop:
    """The signal that was asked to stop by, remembered: some library may have swallowed the exception."""

    number = 0

    def __call__(self, number: int, _frame: object) -> NoReturn:
        self.number = number
        self._raise()

    def check(self) -> None:
        """Raise again what was raised before."""
        if self.number:
            self._raise()

    def _raise(self) -> NoReturn:
        if self.number == signal.SIGINT:
            raise KeyboardInterrupt
        # A job scheduler's way to end a job must not leave partial files either.
        raise SystemExit(128 + self.number)


_stop = _Stop()


def _wrong_usage(error: click.UsageError) -> int:
    command = error.ctx.command_path if error.ctx is not None else "sieva"
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        say(error.format_message(), err=True)
        return 2
    _failed(error.format_message().rstrip("."), f"{command} --help")
    return 2


def _failed(message: str, hint: str | None) -> int:
    say(f"sieva: {message}", err=True)
    if hint:
        say(f"hint: {hint}", err=True)
    return 1


def _told(error: Exception) -> tuple[str, str | None]:
    if isinstance(error, errors.SievaError):
        return str(error), error.hint
    if isinstance(error, ImportError | ValueError | OSError):
        return str(error), None
    name = type(error).__name__
    return f"unexpected {name}: {error}", "SIEVA_DEBUG=1 shows where; please report it"


def _leave_pipe() -> None:
    """Who read our output has read enough: nothing to say, and nothing for Python to say at exit."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def collection_text(stats: dict[str, Any]) -> str:
    """Return what a query of a collection did, for people."""
    lines = [
        f"hits        {stats['hits'] if stats['hits'] is not None else 'not counted'}",
        f"objects     {stats['objects']} by the catalog, {stats['evaluated']} evaluated",
        f"            {stats['lacking']} lack an array",
        f"sources     {stats['sources']}, {stats['sources_opened']} opened",
        f"read        {stats['bytes_read']} bytes ({size_text(stats['bytes_read'])})",
        f"requests    {stats['requests']}",
        "seconds     " + ", ".join(f"{phase} {value:.3f}" for phase, value in stats["seconds"].items()),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
