"""``sieva advise``: show what use suggests, do it, and keep rules."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypedDict

import click

from sieva import _native
from sieva._advise import Advice, Done, advise
from sieva._memory import size_text
from sieva._printable import say

if TYPE_CHECKING:
    from collections.abc import Sequence


class Given(TypedDict):
    """The options of the command, by the names of its parameters."""

    budget: int | None
    apply: bool
    dry_run: bool
    as_json: bool
    pin: Sequence[str]
    forbid: Sequence[str]
    free: Sequence[str]
    rules: bool
    catalog: str | None
    store: str | None
    jobs: int | None
    memory: int


def run(source: str, given: Given) -> None:
    """Do what the options of ``sieva advise`` ask for."""
    context = click.get_current_context()
    changes = [(r, True) for r in given["pin"]] + [(r, False) for r in given["forbid"]]
    changes_or_frees = [*changes, *((r, None) for r in given["free"])]
    if given["apply"] and given["dry_run"]:
        raise click.UsageError("--apply and --dry-run do not go together", context)
    if changes_or_frees and (given["apply"] or given["rules"] or source):
        raise click.UsageError("--pin, --forbid and --free stand alone: they name their source", context)
    if changes_or_frees:
        for rule, pinned in changes_or_frees:
            _change(rule, pinned, given)
    elif given["rules"]:
        _rules(source, given)
    else:
        _advise(source, given)


def _change(rule: str, pinned: bool | None, given: Given) -> None:
    location, path, kind, _ = _native.advise_rule(
        rule, pinned, catalog=given["catalog"], store=given["store"]
    )
    what = {True: "pinned", False: "forbidden", None: "free"}[pinned]
    say(f"{location}:{path}={kind}: {what}", err=True)


def _rules(source: str, given: Given) -> None:
    found = _native.advise_rules(source, catalog=given["catalog"])
    if given["as_json"]:
        names = ("source", "array", "kind", "pinned")
        click.echo(json.dumps([dict(zip(names, rule, strict=True)) for rule in found]))
        return
    for location, path, kind, pinned in found:
        say(f"{'pinned' if pinned else 'forbidden':9}  {location}:{path}={kind}")


def _advise(source: str, given: Given) -> None:
    found = advise(
        source, budget=given["budget"], catalog=given["catalog"], store=given["store"], jobs=given["jobs"]
    )
    if not given["apply"]:
        click.echo(found.to_json() if given["as_json"] else repr(found))
        if found and not given["as_json"]:
            say("nothing was changed; --apply does it", err=True)
        return
    done = found.apply(memory=given["memory"], told=_step)
    if given["as_json"]:
        click.echo(json.dumps(_report(found, done)))
    else:
        for one in done:
            say(_told(one))
        if not done:
            say("nothing to build or remove", err=True)
    if any(one.what == "failed" for one in done):
        click.get_current_context().exit(1)


def _report(found: Advice, done: Sequence[Done]) -> dict[str, Any]:
    return {"advice": json.loads(found.to_json()), "done": [asdict(one) for one in done]}


def _step(source: str, array: str, kind: str, verdict: str) -> None:
    say(f"{verdict:5}  {source}:{array}={kind}", err=True)


def _told(one: Done) -> str:
    text = f"{one.what}: {one.source}:{one.array}={one.kind}, {size_text(one.bytes)}"
    if one.what == "built":
        text += f" in {one.seconds:.1f} s"
    return text if one.error is None else f"{text}: {one.error}"
