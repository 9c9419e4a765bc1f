"""``sieva share``: groups that share what they asked for through a store."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sieva import errors
from sieva._cli_types import MemoryType
from sieva._memory import size_text
from sieva._printable import say
from sieva._share_cli_types import Duration, command, given_key, group_of, place_argument
from sieva._share_planned import consumers_of
from sieva._share_published_cli import fetch, link, publish, show_published, unpublish

if TYPE_CHECKING:
    from collections.abc import Callable

    from sieva.share import Followed, Group, PlannedStep, Produced

# Seconds between passes, and at most between those of which the last one failed.
_INTERVAL = 5.0
_LONGEST_PAUSE = 60.0
# Arrays of a producer that are listed.
_SHOWN = 20


def _as(who: str) -> Callable[[Any], Any]:
    return click.option("--as", "name", metavar="NAME", help=f"Which {who}; by default {_DEFAULTS[who]}.")


_DEFAULTS = {
    "user": "the user of this process",
    "producer": "the only one, or the one that is called as this machine",
}


def _json_option(function: Any) -> Any:  # noqa: ANN401 - any command
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def _limits(function: Any) -> Any:  # noqa: ANN401 - any command
    """Add the limits of evaluating."""
    for option in (
        click.option("--ask-time", type=Duration(), metavar="TIME", help="What one ask of a file may take."),
        click.option("--ask-memory", type=MemoryType(), help="Of the memory, what one ask may take."),
        click.option("--memory", type=MemoryType(), help="Limit of evaluating."),
    ):
        function = option(function)
    return function


@click.group()
def share() -> None:
    """Share through a store what others asked for of your data.

    A group lies in a directory or a place of an object store. Members ask by SQL; the producer makes what is
    asked for where the data lie, once for all who asked alike; followers keep folders current.
    """


for _command in (publish, unpublish, fetch, link):
    share.add_command(_command)


@share.command()
@place_argument
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click.option("--as", "name", metavar="NAME", help="Name of the producer; by default that of this machine.")
@click.option("--expires", type=Duration(), metavar="TIME", help="Delete what nobody took after 12h, 7d ...")
@click.option(
    "--strict-code", is_flag=True, help="Code that fails is an error, not the data that it was asked of."
)
@click.option("--encrypt", is_flag=True, help="Encrypt what is put, by the key of --key, which is made.")
def create(  # noqa: PLR0917 - a command has as many parameters as options
    place: str,
    sources: tuple[str, ...],
    name: str | None,
    expires: float | None,
    strict_code: bool,
    encrypt: bool,
) -> None:
    """Make a group, and say which files, directories and patterns are shared."""
    from sieva import share as sharing

    sharing.create(
        place,
        *sources,
        producer=name,
        expires=expires,
        strict_code=strict_code,
        key=given_key(),
        encrypt=encrypt,
    )
    said = f"shares {', '.join(sources)}" if sources else "has no producer yet"
    say(f"the group at {place} {said}", err=True)
    if sources:
        say(f"answer what is asked: {command('produce', place, as_=name)}", err=True)


@share.command()
@place_argument
@_as("user")
def join(place: str, name: str | None) -> None:
    """Become a member; who asks for something does, too."""
    group_of(place).join(name)


@share.command()
@place_argument
@_as("user")
def leave(place: str, name: str | None) -> None:
    """End a membership, and withdraw all that was asked."""
    group_of(place).leave(name)


@share.command()
@place_argument
@click.argument("ask_name", metavar="NAME", required=False)
@click.argument("sql", required=False)
@click.option(
    "--reader", metavar="FILE", help="Ask for what a reader.xml, or .toml, asks for, in place of NAME SQL."
)
@click.option(
    "--format", "kind", default="netcdf", show_default=True, metavar="FORMAT", help="Of the results."
)
@click.option("--new", "only_new", is_flag=True, help="Only of files that the producer does not have yet.")
@click.option("--code", metavar="FILE", help="Hand the result to code: a file of C, or a .wasm.")
@_as("user")
def ask(  # noqa: PLR0917 - a command has as many parameters as options
    place: str,
    ask_name: str | None,
    sql: str | None,
    reader: str | None,
    kind: str,
    only_new: bool,
    code: str | None,
    name: str | None,
) -> None:
    """Ask by SQL for something of every file of the group, in place of what was asked by that NAME."""
    if reader is None and ask_name is not None and sql is not None:
        path = None if code is None else Path(code)
        asks = [group_of(place).ask(ask_name, sql, format=kind, only_new=only_new, user=name, code=path)]
    elif reader is not None and ask_name is None and code is None:
        asks = group_of(place).ask_document(reader, format=kind, only_new=only_new, user=name)
    else:
        raise click.UsageError("expected NAME and SQL, or --reader FILE")
    for one in asks:
        say(f"{one.name}: {one.sql}", err=True)
    named = asks[0].name if len(asks) == 1 else "NAME"
    say(f"keep a folder current: {command('follow', place, named, '-o DIR', as_=name)}", err=True)


@share.command()
@place_argument
@click.argument("ask_name", metavar="NAME")
@_as("user")
def withdraw(place: str, ask_name: str, name: str | None) -> None:
    """Ask for NAME no longer."""
    group_of(place).withdraw(ask_name, user=name)


@share.command(name="list")
@place_argument
@_json_option
@click.option("--xml", "as_xml", is_flag=True, help="Print a writer.xml of each producer.")
def list_(place: str, as_json: bool, as_xml: bool) -> None:
    """List what producers have: their files, and the arrays of the newest."""
    group = group_of(place)
    if as_xml:
        for name in group.producers():
            say(group.document(name))
        return
    status = group.status()
    for producer in status["producers"]:
        producer["schema"] = _schema_of(group, producer["name"])
    if as_json:
        click.echo(json.dumps(status["producers"]))
        return
    if not status["producers"]:
        say("no producer yet")
    show_published(group.published())
    for producer in status["producers"]:
        steps = producer["steps"]
        total = size_text(sum(step["size"] for step in steps))
        say(f"{producer['name']}: {_count(len(steps), 'file')}, {total}; {', '.join(producer['sources'])}")
        arrays = (producer["schema"] or {}).get("logical", {}).get("arrays", [])
        for array in arrays[:_SHOWN]:
            say(f"    {_array_text(array)}")
        if len(arrays) > _SHOWN:
            say(f"    and {len(arrays) - _SHOWN} more: --json has all")
        if producer["schema"] is None and not steps:
            say("    its files and arrays are known after the first pass: sieva share produce")


def _schema_of(group: Group, producer: str) -> dict[str, Any] | None:
    """Return what a producer has; what is wrong with it is told, and does not hide the others."""
    try:
        return group.schema(producer)
    except errors.SievaError as error:
        say(f"sieva: {error}", err=True)
        return None


def _array_text(array: dict[str, Any]) -> str:
    dims = zip(array.get("dimensions", []), array.get("shape", []), strict=False)
    shape = ", ".join(f"{dim} {length}" for dim, length in dims)
    units = array.get("attributes", {}).get("units")
    return f"{array.get('path')}  {array.get('dtype')} ({shape})" + (f"  {units}" if units else "")


@share.command()
@place_argument
@_json_option
def status(place: str, as_json: bool) -> None:
    """Tell what is asked, what was answered, and what waits to be taken."""
    group = group_of(place)
    found = group.status()
    if as_json:
        click.echo(json.dumps(found))
        return
    objects, size = found["objects"]
    say(f"{_count(objects, 'object')}, {size_text(size)}, {_count(len(found['producers']), 'producer')}")
    for one in found["asks"]:
        asked, waiting = one["ask"], one["waiting"]
        failed = sum(entry["failure"] is not None for entry in waiting)
        counts = f"{one['answered']} answered, {len(waiting)} to be taken"
        say(f"{one['user']}/{asked['name']}: {counts}" + (f", {failed} of them errors" if failed else ""))
        say(f"    {asked['sql']}")
    for user in found["silent"]:
        say(f"{user}: asks for nothing")
    show_published(group.published())
    for text in found["wrong"]:
        say(f"sieva: {text}", err=True)


@share.command()
@place_argument
@click.option("--settle", type=Duration(), default=2.0, help="As of `produce`.", metavar="TIME")
@_limits
@click.option("--result-size", type=MemoryType(), help="The largest result that is put.")
@_as("producer")
def plan(place: str, name: str | None, **options: Any) -> None:  # noqa: ANN401 - as of `Group.plan`
    """Tell what the next pass would make, for whom, and what that takes. No data are read."""
    planned = group_of(place).plan(name, **options)
    if not planned:
        say("nothing is to be made")
    for step in planned:
        _show_planned(step)
    for one in consumers_of(planned):
        read, stored, sent = (size_text(int(n)) for n in (one.bytes_read, one.bytes_stored, one.bytes_sent))
        say(
            f"{one.user}: {_count(one.results, 'result')}, about {read} read in {one.seconds:.2g} s, "
            f"{stored} stored, {sent} sent"
        )


def _show_planned(step: PlannedStep) -> None:
    say(f"{step.step} ({size_text(step.size)})")
    for result in step.results:
        price = result.price
        rows = (
            "any number of rows" if price.rows.high is None else f"at most {_count(price.rows.high, 'row')}"
        )
        most = price.bytes_read.high
        read = "reading without a bound" if most is None else f"reading at most {size_text(most)}"
        say(f"    {result.sql}")
        say(f"        scan {result.stage + 1}; {rows}, {read} by itself")
        for kind, consumers in result.given:
            say(f"        {kind} for {', '.join(f'{user}/{ask}' for user, ask in consumers)}")
        if not result.given:
            say("        for others to compare with")
    for user, ask_name, error in step.refused:
        hint = f" ({error.hint})" if error.hint else ""
        say(f"    {user}/{ask_name} cannot be asked: {error}{hint}")


@share.command()
@place_argument
@click.option(
    "--once", is_flag=True, help="One pass, for cron; files that are being written are waited for once."
)
@click.option("--interval", type=Duration(), default=_INTERVAL, metavar="TIME", help="Between passes: 5s.")
@click.option(
    "--settle",
    type=Duration(),
    default=2.0,
    metavar="TIME",
    help="A file is complete when it was left alone for 2s.",
)
@_limits
@click.option("--result-size", type=MemoryType(), help="The largest result that is put.")
@click.option(
    "--objects",
    type=click.Choice(["files", "partial", "whole"]),
    default="files",
    show_default=True,
    help="Each result a plain file, or several in one object of which consumers read parts, or the whole.",
)
@click.option(
    "--object-size", type=MemoryType(), help="Of shared objects; by default what is best by `calibrate`."
)
@click.option(
    "--prices",
    type=(float, float, float),
    metavar="STORAGE IN OUT",
    help="For each gigabyte, for the size of shared objects; by default 0.095 0 0.012.",
)
@click.option("--threads", type=click.IntRange(min=1), help="By default one for each core.")
@click.option("--spool", metavar="DIR", help="Where results are kept until they are put.")
@_as("producer")
def produce(
    place: str,
    once: bool,
    interval: float,
    name: str | None,
    **options: Any,  # noqa: ANN401 - as of `Group.produce`
) -> None:
    """Make what is asked for and put it into the group, again and again."""
    group = group_of(place)

    def run() -> Produced:
        return group.produce(name, progress=True, **options)

    if once:
        done = run()
        _show_produced(done)
        if done.waiting:
            time.sleep(options["settle"])
            done = run()
            _show_produced(done)
        if done.waiting:
            say(
                f"{_count(done.waiting, 'file')} still written: the next pass takes what is complete",
                err=True,
            )
        raise SystemExit(1 if done.troubles else 0)
    _repeat(run, _show_produced, interval)


@share.command()
@place_argument
@click.argument("ask_name", metavar="NAME")
@click.option("-o", "--output", required=True, metavar="DIR", help="The folder, which is for this ask alone.")
@click.option("--once", is_flag=True, help="One pass, for cron.")
@click.option("--interval", type=Duration(), default=_INTERVAL, metavar="TIME", help="Between passes: 5s.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["bp", "zarr"]),
    help="Make such a directory of each file, asked for as netcdf or hdf5; by default files as they come.",
)
@_as("user")
def follow(  # noqa: PLR0917 - a command has as many parameters as options
    place: str,
    ask_name: str,
    output: str,
    once: bool,
    interval: float,
    kind: str | None,
    name: str | None,
) -> None:
    """Keep a folder current with the answers to NAME: a file for each file of the producers."""
    group = group_of(place)

    def run() -> Followed:
        return group.follow(ask_name, output, format=kind, user=name, progress=True)

    if once:
        done = run()
        _show_followed(done)
        raise SystemExit(1 if done.troubles or done.failures else 0)
    _repeat(run, _show_followed, interval)


@share.command()
@place_argument
@click.option(
    "--size", "sizes", multiple=True, type=MemoryType(), help="Of objects; may be given several times."
)
@click.option(
    "--threads", multiple=True, type=click.IntRange(min=1), help="Moved at once; may be given several times."
)
@_json_option
def calibrate(place: str, sizes: tuple[int, ...], threads: tuple[int, ...], as_json: bool) -> None:
    """Measure what a store moves, and keep it: shared objects of groups there are sized by it."""
    from sieva import share as sharing

    found = sharing.calibrate(place, sizes=sizes or None, threads=threads or None)
    if as_json:
        click.echo(json.dumps({"place": found.place, "put": found.put, "get": found.get}))
        return
    say("objects of   at once   put/s        get/s")
    for (size, count, put), (_, _, get) in zip(found.put, found.get, strict=True):
        say(f"{size_text(size):<12} {count:<9} {size_text(int(put)):<12} {size_text(int(get))}")


# What may be otherwise the next time.
_PASSING = (errors.IoError, errors.PermissionDenied, errors.CorruptFile, errors.StaleSource)


def _repeat(run: Callable[[], Any], show: Callable[[Any], None], interval: float) -> None:
    """Pass after pass; what fails is told and tried again, later and later."""
    pause, passed = interval, False
    while True:
        try:
            show(run())
            pause, passed = interval, True
        except (*_PASSING, errors.FileNotFound) as error:
            # A name that leads nowhere from the first is a wrong one.
            if isinstance(error, errors.FileNotFound) and not passed:
                raise
            pause = min(max(2 * pause, 1.0), max(interval, _LONGEST_PAUSE))
            say(f"sieva: {error}; tried again in {pause:.0f} s", err=True)
            if error.hint:
                say(f"hint: {error.hint}", err=True)
        time.sleep(pause)


def _show_produced(done: Produced) -> None:
    if done.answers or done.deleted:
        failed = f", {done.failed} of them errors" if done.failed else ""
        say(
            f"{_count(done.steps, 'file')}: {_count(done.answers, 'answer')}{failed}, "
            f"{_count(done.objects, 'object')} put ({size_text(done.bytes)}), {done.deleted} deleted",
            err=True,
        )
    if done.deferred:
        say(
            f"{_count(done.deferred, 'ask')} left to the next pass: others of the same members took long",
            err=True,
        )
    for step, error in done.troubles:
        _show_trouble(error, f"{step}: ")


def _show_followed(done: Followed) -> None:
    for path in done.files:
        say(str(path))
    for step, code, message in done.failures:
        say(f"sieva: {step}: {message} [{code}]", err=True)
    for error in done.troubles:
        _show_trouble(error)


def _show_trouble(error: errors.SievaError, where: str = "") -> None:
    say(f"sieva: {where}{error}", err=True)
    if error.hint:
        say(f"hint: {error.hint}", err=True)


def _count(n: float, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
