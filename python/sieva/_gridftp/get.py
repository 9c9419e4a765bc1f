"""``sieva get``: a file of a server, or the result of a query of it, into a file here."""

from __future__ import annotations

import time
from pathlib import Path

import click

from sieva import _native, errors
from sieva._gridftp.address import Address, asked
from sieva._gridftp.transfer import download
from sieva._memory import size_text
from sieva._output import COLUMN_FORMATS, SUFFIXES, check_deflate, format_of
from sieva._output.atomic import replacing
from sieva._printable import say
from sieva._progress import progress_to


def run(
    url: str, sql: str | None, output: str | None, kind: str | None, *, streams: int, deflate: int | None
) -> None:
    """Bring what is asked for; tell how much it was, and how fast it came."""
    address = Address.parse(url)
    path = Path(output) if output is not None else Path(address.name)
    if output is None and sql is not None:
        raise click.UsageError("name the file for the result: -o out.nc")
    if sql is None and (kind is not None or deflate is not None):
        option = "--deflate" if kind is None else "--format"
        raise click.UsageError(f"{option} is of the result of a query: without one the file comes as it is")
    question = ""
    if sql is not None:
        kind = _format(path, kind)
        check_deflate(kind, deflate)
        question = asked(_statement(sql), kind, deflate or 0)
    started = time.monotonic()
    with replacing(path) as aside, progress_to(True, path.name) as told:
        download(
            address, question, aside, streams=streams, told=None if told is None else lambda n: told(n, 0)
        )
    size, seconds = path.stat().st_size, time.monotonic() - started
    say(f"{path}: {size_text(size)} in {seconds:.1f} s ({size_text(int(size / seconds))}/s)", err=True)


def _statement(sql: str) -> str:
    """Return a SELECT without its FROM; a condition alone is one of the query language, too."""
    return _native.without_from(sql) if sql.lstrip().lower().startswith("select") else sql


def _format(path: Path, kind: str | None) -> str:
    kind = kind or format_of(path)
    if kind not in COLUMN_FORMATS:
        given = kind or (repr(path.suffix) if path.suffix else f"{path.name!r}, which has no suffix")
        suffixes = [suffix for suffix, name in SUFFIXES.items() if name in COLUMN_FORMATS]
        raise errors.Unsupported(
            f"servers send {', '.join(COLUMN_FORMATS)}, not {given}",
            f"name a file {' '.join(suffixes)}, or say --format; sieva query writes the others",
        )
    return kind
