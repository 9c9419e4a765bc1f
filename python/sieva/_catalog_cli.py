"""``sieva catalog``: register, show, tag and find."""

from __future__ import annotations

import json
import math
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from sieva import errors
from sieva._index import percent
from sieva._local import is_directory
from sieva._memory import size_text
from sieva._printable import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sieva._catalog import Catalog, ObjectInfo, SourceInfo

_SHOWN = 20


def _json_option(function: Any) -> Any:  # noqa: ANN401 - any command
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def _catalog_option(function: Any) -> Any:  # noqa: ANN401 - any command
    option = click.option(
        "--catalog",
        "url",
        metavar="URL",
        help="Path, or postgresql://...; by default SIEVA_CATALOG, else one in the user's data directory.",
    )
    return option(function)


@click.group()
def catalog() -> None:
    """Know what files hold without opening them: register, tag, find."""


@catalog.command()
@click.argument("names", nargs=-1, required=True, metavar="DIR|FILE|GLOB|URL...")
@click.option(
    "--collection", "collections", multiple=True, metavar="NAME", help="Put them into this collection."
)
@click.option("--jobs", type=click.IntRange(min=1), help="Number of threads; by default one for each core.")
@click.option("--stats", is_flag=True, help="Build zone maps, and record the range of each array.")
@click.option("--prune", is_flag=True, help="Forget known sources under DIR whose files are gone.")
@click.option("--isolated", is_flag=True, help="Parse files in a process of its own, with limits.")
@click.option("--store", metavar="DIR", help="Directory for zone maps; by default beside the file.")
@_json_option
@_catalog_option
def add(  # noqa: PLR0917 - a command has as many parameters as options
    names: tuple[str, ...],
    collections: tuple[str, ...],
    jobs: int | None,
    stats: bool,
    prune: bool,
    isolated: bool,
    store: str | None,
    as_json: bool,
    url: str | None,
) -> None:
    """Register files, and directories with all that is under them."""
    if prune and (others := [name for name in names if not is_directory(name)]):
        raise click.UsageError(f"--prune looks under directories: {others[0]!r} is none")
    with _open(url) as known:
        try:
            report = known.add(
                *names,
                collection=collections,
                jobs=jobs,
                statistics=stats,
                store=store,
                isolated=isolated,
                progress=True,
            )
        except KeyboardInterrupt:
            say("what was registered is kept; the same command goes on from there", err=True)
            raise
        gone = [location for name in names for location in known.prune(name)] if prune else []
    if as_json:
        _print_json({**asdict(report), "pruned": gone})
        return
    _tell_problems("damaged", report.damaged)
    _tell_problems("unreadable", report.unreadable)
    say(f"{report}" + (f", {len(gone):,} forgotten" if prune else ""), err=True)


@catalog.command(name="list")
@click.argument("prefix", default="")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many.")
@_json_option
@_catalog_option
def list_(prefix: str, limit: int | None, as_json: bool, url: str | None) -> None:
    """List the known sources whose location begins with PREFIX."""
    from itertools import islice

    with _open(url, read_only=True) as known:
        found = islice(known.list(prefix), limit)
        if as_json:
            _print_json_list(asdict(info) for info in found)
            return
        _table(
            ("source", "format", "size", "objects", "registered", "collections"),
            (
                (
                    i.location,
                    _state(i),
                    size_text(i.size),
                    f"{i.objects:,}",
                    _date(i),
                    ", ".join(i.collections),
                )
                for i in found
            ),
            right=(2, 3),
        )


@catalog.command()
@click.argument("source")
@_json_option
@_catalog_option
def show(source: str, as_json: bool, url: str | None) -> None:
    """Show all that is known of SOURCE: objects, attributes, tags, ranges."""
    with _open(url, read_only=True) as known:
        info, objects = known.show(source)
    if as_json:
        _print_json({**asdict(info), "objects": [asdict(one) for one in objects]})
        return
    say(f"{info.location}\n{_state(info)}, {size_text(info.size)}, registered {_date(info)}")
    if info.collections:
        say(f"in {', '.join(info.collections)}")
    for one in objects:
        say(_described(one))


@catalog.command()
@click.argument("target", metavar="SOURCE[:PATH]")
@click.argument("tags", nargs=-1, required=True, metavar="KEY=VALUE...")
@_catalog_option
def tag(target: str, tags: tuple[str, ...], url: str | None) -> None:
    """Set tags: 1 is an integer, 1.5 a float, true and false are bools, all else is text, as is '"1"'."""
    values = dict(_tag(text) for text in tags)
    with _open(url) as known:
        source, path = _target(known, target)
        changed = known.tag(source, path, values)
    say(f"{target}: {changed} changed", err=True)


@catalog.command()
@click.argument("target", metavar="SOURCE[:PATH]")
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@_catalog_option
def untag(target: str, keys: tuple[str, ...], url: str | None) -> None:
    """Remove tags."""
    with _open(url) as known:
        source, path = _target(known, target)
        removed = known.untag(source, path, *keys)
    say(f"{target}: {removed} removed", err=True)


@catalog.command()
@click.argument("condition", default="")
@click.option("--kind", type=click.Choice(("array", "group", "any")), default="array", show_default=True)
@click.option("--name", metavar="NAME", help="Only objects of this path, or this last part of a path.")
@click.option("--collection", metavar="NAME", help="Only objects in sources of this collection.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many.")
@click.option("--count", is_flag=True, help="Print how many there are.")
@_json_option
@_catalog_option
def find(  # noqa: PLR0917 - a command has as many parameters as options
    condition: str,
    kind: str,
    name: str | None,
    collection: str | None,
    limit: int | None,
    count: bool,
    as_json: bool,
    url: str | None,
) -> None:
    """Find objects by attributes and tags: sieva catalog find "RADEG = 153.17 AND DECDEG = 23.06"."""
    which: dict[str, Any] = {
        "kind": None if kind == "any" else kind,
        "name": name,
        "collection": collection,
    }
    with _open(url, read_only=True) as known:
        if count:
            say(known.count(condition, **which))
            return
        found = known._find_pages(condition, limit, **which)
        if as_json:
            _print_json_list(asdict(one) for one in found)
            return
        _table(("source", "path", "kind"), ((one.source, one.path, one.kind) for one in found))


@catalog.command()
@click.argument("source", metavar="SOURCE|PREFIX/")
@_catalog_option
def remove(source: str, url: str | None) -> None:
    """Forget a source, or all under a prefix that ends with /, with their tags. Files are not touched."""
    with _open(url) as known:
        removed = known.remove(source)
    if not removed:
        raise errors.FileNotFound(
            f"nothing known is {source!r}", "see sieva catalog list; a prefix ends with /"
        )
    say(f"{source}: {removed:,} forgotten", err=True)


@catalog.command()
@click.argument("name", required=False)
@click.option("--add", "sources", multiple=True, metavar="SOURCE|PREFIX/", help="Put known sources into it.")
@click.option("--description", metavar="TEXT", help="What it is, for people.")
@click.option("--remove", "is_removed", is_flag=True, help="Remove the collection; its sources stay.")
@_json_option
@_catalog_option
def collection(  # noqa: PLR0917 - a command has as many parameters as options
    name: str | None,
    sources: tuple[str, ...],
    description: str | None,
    is_removed: bool,
    as_json: bool,
    url: str | None,
) -> None:
    """List collections, or make, fill and remove the one of NAME."""
    writes = bool(sources) or description is not None or is_removed
    if writes and name is None:
        raise click.UsageError("name the collection: sieva catalog collection NAME --add SOURCE")
    if is_removed and (sources or description is not None):
        raise click.UsageError("--remove goes with no other option")
    with _open(url, read_only=not writes) as known:
        if is_removed:
            if not known.remove_collection(str(name)):
                raise _no_collection(known, str(name))
            say(f"{name}: removed; its sources stay", err=True)
            return
        if writes:
            added = known.collect(str(name), *sources, description=description)
            say(f"{name}: {added:,} added", err=True)
            return
        found = [c for c in known.collections() if name in (None, c.name)]
        if name is not None and not found:
            raise _no_collection(known, name)
    if as_json:
        _print_json([asdict(one) for one in found])
        return
    _table(
        ("collection", "sources", "prefixes", "description"),
        ((c.name, f"{c.sources:,}", ", ".join(c.prefixes), c.description) for c in found),
        right=(1,),
    )


@catalog.command(context_settings={"ignore_unknown_options": True})
@click.argument("array")
@click.argument("low")
@click.argument("high")
@click.option("--collection", "of", metavar="NAME", help="Only sources of this collection.")
@_json_option
@_catalog_option
def where(  # noqa: PLR0917 - a command has as many parameters as options
    array: str, low: str, high: str, of: str | None, as_json: bool, url: str | None
) -> None:
    """List the files whose ARRAY could hold a value from LOW to HIGH ('-' is open), without opening them."""
    bounds = [_bound(text) for text in (low, high)]
    with _open(url, read_only=True) as known:
        found = known.could_contain(array, *bounds, collection=of)
    if as_json:
        _print_json(found)
    else:
        for location in found:
            say(location)


@catalog.command()
@click.argument("filter_", metavar="[FILTER]", default="")
@click.option("--verify", is_flag=True, help="Look at the files, and tell the catalog what is there now.")
@_json_option
@_catalog_option
def augmentations(filter_: str, verify: bool, as_json: bool, url: str | None) -> None:
    """List the indexes that the catalog was told of; FILTER: the beginning of a location."""
    with _open(url, read_only=not verify) as known:
        found = known.augmentations(filter_, verify=verify)
    if as_json:
        _print_json([asdict(one) for one in found])
        return
    _table(
        ("source", "array", "kind", "bytes", "% of data", "state"),
        (
            (
                one.source,
                one.array,
                one.kind,
                size_text(one.bytes),
                percent(one.bytes, one.data_bytes),
                one.state,
            )
            for one in found
        ),
        right=(3, 4),
    )
    _tell_problems("not looked at", sorted({(one.source, one.unseen) for one in found if one.unseen}))


def _open(url: str | None, *, read_only: bool = False) -> Catalog:
    from sieva._catalog import Catalog

    try:
        return Catalog(url, read_only=read_only)
    except errors.FileNotFound as error:
        if not read_only:
            raise
        raise errors.FileNotFound(error.message, "make one: sieva catalog add DIR") from None


def _target(known: Catalog, text: str) -> tuple[str, str]:
    """Return source and path of SOURCE[:PATH]; either may hold colons."""
    places = [i for i, c in enumerate(text) if c == ":" and text[i : i + 3] != "://"]
    for source, path in [(text, ""), *((text[:i], text[i + 1 :]) for i in places)]:
        if known._knows(source):
            return source, path
    raise errors.FileNotFound(f"{text!r} is not in the catalog", "register it: sieva catalog add SOURCE")


def _tag(text: str) -> tuple[str, Any]:
    key, found, value = text.partition("=")
    if not found or not key:
        raise click.UsageError(f"{text!r} is not of the form KEY=VALUE")
    return key, _value(value)


def _value(text: str) -> int | float | bool | str:
    """Return the value of a tag as it is written."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        # Python's own numbers have more forms: 1_000 is text here.
        if "_" not in text and text.strip() == text:
            try:
                return kind(text)
            except ValueError:
                continue
    return text


def _bound(text: str) -> int | float | None:
    value = None if text == "-" else _value(text)
    if isinstance(value, bool | str):
        raise click.UsageError(f"{text!r} is no number; '-' stands for no bound")
    return value


def _no_collection(known: Catalog, name: str) -> errors.UnknownAttribute:
    names = ", ".join(c.name for c in known.collections())
    return errors.UnknownAttribute(
        f"the catalog has no collection {name!r}", f"there are: {names}" if names else "there are none"
    )


def _tell_problems(what: str, problems: Sequence[tuple[str, str]]) -> None:
    for name, why in problems[:_SHOWN]:
        say(f"{what}: {name}: {why}", err=True)
    if len(problems) > _SHOWN:
        say(f"{what}: and {len(problems) - _SHOWN:,} more", err=True)


def _print_json(value: object) -> None:
    # NaN and infinities have no place in JSON.
    click.echo(json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, indent=2))


def _print_json_list(values: Iterable[object]) -> None:
    """Print a list as it comes: it may be longer than memory holds."""
    begun = False
    for value in values:
        text = json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)
        click.echo((",\n " if begun else "[\n ") + text, nl=False)
        begun = True
    click.echo("\n]" if begun else "[]")


def _plain(value: Any) -> Any:  # noqa: ANN401 - any value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _state(info: SourceInfo) -> str:
    return f"damaged: {info.error}" if info.error is not None else info.format


def _date(info: SourceInfo) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(info.registered))


def _described(one: ObjectInfo) -> str:
    shape = f" {one.dtype} ({', '.join(map(str, one.shape))})" if one.kind == "array" else ""
    lines = [f"\n{one.path or '/'}{shape}"]
    if one.statistics is not None:
        known = one.statistics
        lines.append(
            f"    from {known['min']} to {known['max']}, {known['missing']:,} of {known['count']:,} missing"
        )
    lines += [f"    {key} = {_quoted(value)}" for key, value in one.attributes.items()]
    lines += [f"    {key} = {_quoted(value)}  (tag)" for key, value in one.tags.items()]
    return "\n".join(lines)


def _quoted(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> None:
    """Print rows: aligned for people, separated by tabs for programs."""
    if not sys.stdout.isatty():
        for row in rows:
            say("\t".join(row))
        return
    block: list[Sequence[str]] = [head]
    for row in rows:
        block.append(row)
        if len(block) == _PAGE:
            _print_block(block, right)
            block = []
    _print_block(block, right)


_PAGE = 1000


def _print_block(rows: list[Sequence[str]], right: Sequence[int]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            _pad(i in right)(cell, width) for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        say("  ".join(cells).rstrip())


def _pad(is_right: bool) -> Callable[[str, int], str]:
    return str.rjust if is_right else str.ljust
