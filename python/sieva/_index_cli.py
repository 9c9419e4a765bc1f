"""``sieva index``: build, show, verify and drop."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from sieva import _source
from sieva._memory import size_text

if TYPE_CHECKING:
    from sieva._index import BuildReport


def run(
    source: str,
    *,
    arrays: Sequence[str],
    kinds: Sequence[str],
    jobs: int | None,
    engine: str,  # noqa: ARG001 - the caller has looked at it
    memory: int,
    precision: int,
    columns: str | None,
    status: bool,
    as_json: bool,
    verify: bool,
    everything: bool,
    drop: bool,
    store: str | None,
    dims: Sequence[tuple[str, list[str]]],
    external: Sequence[str],
) -> None:
    """Do what the options of ``sieva index`` ask for."""
    if status + verify + drop > 1:
        raise click.UsageError("--status, --verify and --drop are one or another")
    if as_json and not status:
        raise click.UsageError("--json goes with --status")
    if everything and not verify:
        raise click.UsageError("--all goes with --verify")
    opened = _source.open(source, store=store, dims=dict(dims), external=external, learn=False)
    if status:
        found = opened.index_status()
        click.echo(json.dumps(asdict(found), indent=2) if as_json else str(found))
    elif verify:
        _verify(opened, everything)
    elif drop:
        there = opened.drop_index(*arrays, kinds=kinds or None)
        click.echo(f"{source}: {'removed' if there else 'there was nothing to remove'}", err=True)
    else:
        started = time.perf_counter()
        report = opened.build_index(
            *arrays,
            kinds=kinds or ("zonemap", "bitmap"),
            jobs=jobs,
            memory=memory,
            precision=precision,
            columns=None if columns is None else [name.strip() for name in columns.split(",")],
            progress=True,
        )
        click.echo(f"{source}: {_built(report)} in {time.perf_counter() - started:.1f} s", err=True)


def _verify(opened: _source.Source, everything: bool) -> None:
    report = opened.verify_index(all=everything, progress=True)
    click.echo(f"{report.regions} regions and {report.rows} rows of replicas compared", err=True)
    for difference in report.differences:
        click.echo(difference)
    if not report:
        click.echo("sieva: the index is not that of the data", err=True)
        click.echo("hint: sieva index SOURCE --drop, then build it again", err=True)
        sys.exit(1)


def _built(report: BuildReport) -> str:
    """Return what was built, in words."""
    parts = []
    if report.regions_built:
        renewed = f" ({report.regions_renewed} unchanged)" if report.regions_renewed else ""
        parts.append(f"{report.regions_built} regions{renewed}, {size_text(report.bytes_read)} of data")
    if report.regions_kept:
        parts.append(f"{report.regions_kept} regions were there")
    if report.replicas_built:
        parts.append(f"{report.replicas_built} sorted replica{'s' if report.replicas_built > 1 else ''}")
    parts += [f"{path} left out ({why})" for path, why in report.unreadable]
    return "; ".join(parts) or "all was there"
