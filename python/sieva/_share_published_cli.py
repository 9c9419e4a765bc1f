"""``sieva share publish, unpublish, fetch, link``: whole files and results, also for those without sieva."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sieva import errors
from sieva._memory import size_text
from sieva._printable import say
from sieva._share_cli_types import Duration, command, group_of, has_key, place_argument

if TYPE_CHECKING:
    from sieva.share import Published

_user = click.option("--user", metavar="NAME", help="Which user; by default the user of this process.")


@click.command()
@place_argument
@click.argument("file", metavar="FILE")
@click.argument("sql", required=False)
@click.option("--as", "name", metavar="NAME", help="Its name; by default that of the file.")
@click.option("--format", "kind", metavar="FORMAT", help="Of a result; by default as NAME ends.")
@click.option("--keep", type=Duration(), metavar="TIME", help="Delete it after 12h, 7d ...")
@click.option("--no-zone-maps", is_flag=True, help="Put no zone maps beside it.")
@_user
def publish(  # noqa: PLR0917 - a command has as many parameters as options
    place: str,
    file: str,
    sql: str | None,
    name: str | None,
    kind: str | None,
    keep: float | None,
    no_zone_maps: bool,
    user: str | None,
) -> None:
    """Put FILE as it is, or what SQL gives of it, under a name: also for those who have no sieva."""
    import sieva
    from sieva._output import format_of

    if sql is None and kind is not None:
        raise click.UsageError("--format is that of a result: a file is put as it is")
    if sql is not None and not name:
        raise click.UsageError("a result has a name: --as warm.nc")
    if sql is not None and name and kind is None and format_of(Path(name)) is None:
        raise errors.InvalidValue(f"{name!r} ends as no format does", "say one: --format netcdf")
    group = group_of(place)
    what = file if sql is None else sieva.open(file).sql(sql)
    done = group.publish(what, name, format=kind, keep=keep, zone_maps=not no_zone_maps, user=user)
    say(done.location)
    say(f"take it back: {command('unpublish', place, shlex.quote(done.name), user=user)}", err=True)
    named = shlex.quote(f"{done.user}/{done.name}")
    if has_key():
        say(f"get it elsewhere: {command('fetch', place, named)}", err=True)
    else:
        say(f"a link for those without a key: {command('link', place, named)}", err=True)


@click.command()
@place_argument
@click.argument("name")
@_user
def unpublish(place: str, name: str, user: str | None) -> None:
    """Delete what was published as NAME."""
    group_of(place).unpublish(name, user=user)


@click.command()
@place_argument
@click.argument("name")
@click.option("-o", "--output", metavar="FILE", help="By default as NAME ends, in this directory.")
def fetch(place: str, name: str, output: str | None) -> None:
    """Get what was published as NAME or USER/NAME, or the result USER/ASK/FILE, and check it.

    What was stopped is gone on with.
    """
    say(str(group_of(place).fetch(name, output, progress=True)))


@click.command()
@place_argument
@click.argument("name")
@click.option(
    "--expires", type=Duration(), default="1h", show_default=True, metavar="TIME", help="How long it is good."
)
def link(place: str, name: str, expires: float) -> None:
    """Print an address by which who has no key can read NAME, USER/NAME or the result USER/ASK/FILE."""
    found = group_of(place).link(name, expires=expires)
    say(found.url)
    if not found.expires:
        say("that of a directory does not expire: it is for who may read the directory", err=True)


def show_published(found: list[Published]) -> None:
    """Print what is published, a line each."""
    for one in found:
        until = "" if one.until is None else f", until {one.until:%Y-%m-%d %H:%M} UTC"
        state = "" if one.complete else ", not complete"
        rows = "" if one.rows is None else f", {one.rows} rows of {one.sql}"
        maps = ", with zone maps" if one.zone_maps else ""
        say(f"published {one.user}/{one.name}: {size_text(one.size)}{rows}{maps}{until}{state}")
