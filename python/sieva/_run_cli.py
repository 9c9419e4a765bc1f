"""``sieva query -f``: the statements of a file, evaluated together, their results in order."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from sieva import _native, errors
from sieva._memory import size_text
from sieva._output import STREAMS, SUFFIXES, write_file
from sieva._output.asked import Asked
from sieva._printable import say
from sieva._run import asked_text, run_in
from sieva._statements import Statement, split

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sieva._query import Query
    from sieva._run import Ran
    from sieva._source import Source

# Formats of which several may follow one another on stdout.
_TEXTS = tuple(kind for kind in STREAMS if kind != "arrow")


def run(
    file: str,
    directory: Path | None,
    kind: str | None,
    written: dict[str, Any],
    how: dict[str, Any],
    *,
    stats: bool,
    check: Callable[[], None],
) -> bool:
    """Answer the statements of a file; returns whether all of them were.

    Parameters
    ----------
    file
        Its name; ``-`` is stdin.
    directory
        Where the results go, a file for each; None: to stdout, one after another.
    kind
        Their format; None: csv files, or tables on stdout.
    written
        Layout and deflate of files.
    how
        Options of running and opening.
    stats
        Whether to tell what was read.
    check
        Called between batches: raises where the command was told to stop.
    """
    kind = kind or ("table" if directory is None else "csv")
    if directory is None and kind not in _TEXTS:
        formats = ", ".join(_TEXTS)
        raise click.UsageError(
            f"results of several statements go to stdout as {formats}: name a directory by -o"
        )
    statements = split(_read(file))
    if not statements:
        raise errors.SyntaxError_(f"'{file}' has no statement", "write SELECT ... FROM 'file.nc' WHERE ...;")
    failed: list[errors.SievaError | None] = [None] * len(statements)
    queries, ran = _evaluated(statements, how, failed)
    if directory is not None:
        # Before the first is written: what one of them reads, no other may write.
        asked = Asked([query for query in queries if query is not None], [] if file == "-" else [file])
        for number in range(len(queries)):
            asked.check(directory / _name(number, len(queries), kind))
    for number, query in enumerate(queries):
        if query is not None and failed[number] is None:
            query._on_rows = lambda _: check()
            try:
                _write(query, (number, len(statements)), directory, kind, written)
            except errors.SievaError as error:
                failed[number] = error
        wrong = failed[number]
        if wrong is not None:
            _tell(number, statements[number], wrong)
    if stats:
        say(_stats_text(ran, [query for query in queries if query is not None]), err=True)
    for source in {id(q.source): q.source for q in queries if q is not None}.values():
        source.close()
    return not any(failed)


def _read(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    with open(file, encoding="utf-8") as text:  # noqa: PTH123 - as the user wrote it
        return text.read()


def _evaluated(
    statements: list[Statement], how: dict[str, Any], failed: list[errors.SievaError | None]
) -> tuple[list[Query | None], Ran]:
    """Return the queries of statements, evaluated; None for one that cannot be made."""
    session = _native.Session.shared()
    sources: dict[str, Source] = {}
    queries: list[Query | None] = []
    for number, statement in enumerate(statements):
        try:
            queries.append(asked_text(session, statement.text, how, sources))  # type: ignore[arg-type]
        except errors.SievaError as error:
            failed[number] = error
            queries.append(None)
    made = [number for number, query in enumerate(queries) if query is not None]
    running: Any = {"memory": how["memory"]} if "memory" in how else {}
    ran = run_in(session, [q for q in queries if q is not None], running, how.get("threads"))
    for number, wrong in zip(made, ran.errors, strict=True):
        failed[number] = wrong
    return queries, ran


def _write(
    query: Query,
    place: tuple[int, int],
    directory: Path | None,
    kind: str,
    written: dict[str, Any],
) -> None:
    number, of = place
    if directory is None:
        from sieva._output.rows import write

        if number > 0 and kind == "table":
            sys.stdout.buffer.write(b"\n")
        write(query, kind, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    directory.mkdir(parents=True, exist_ok=True)
    name = _name(number, of, kind)
    write_file(query, directory / name, kind, written.get("layout"), written.get("deflate"))


def _name(number: int, of: int, kind: str) -> str:
    """Return the name of a result's file."""
    suffix = next(suffix for suffix, of_suffix in SUFFIXES.items() if of_suffix == kind)
    return f"{number + 1:0{len(str(of))}}{suffix}"


def _tell(number: int, statement: Statement, error: errors.SievaError) -> None:
    say(f"sieva: statement {number + 1} (line {statement.line}): {error}", err=True)
    if error.hint:
        say(f"hint: {error.hint}", err=True)


def _stats_text(ran: Ran, queries: list[Query]) -> str:
    """Return what was done for all statements, for people."""
    did = ran.stats
    firsts = {id(query.source): query for query in reversed(queries)}
    total = [query.stats() for query in firsts.values()]
    read, chunks = sum(s["bytes_read"] for s in total), sum(s["chunks_decoded"] for s in total)
    spared = did["asked_bytes"] - did["read_bytes"]
    return "\n".join(
        [
            f"statements  {did['together']} evaluated together in {did['scans']} scans, {did['alone']} alone",
            f"tiles       {did['tiles']}",
            f"shared      {did['asked_bytes']} bytes wanted, {size_text(max(spared, 0))} not read again",
            f"read        {read} bytes ({size_text(read)})",
            f"requests    {sum(s['requests'] for s in total)}",
            f"chunks      {chunks} decoded",
        ]
    )
