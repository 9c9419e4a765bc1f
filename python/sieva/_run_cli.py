"""``sieva query -f``: the statements of a file, evaluated together, their results in order."""

from __future__ import annotations

import json
import os
import stat
import sys
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from sieva import _native, errors
from sieva._local import is_directory
from sieva._memory import size_text
from sieva._output import STREAMS, SUFFIXES, format_of, write_file
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

# Bytes of a file of statements.
_MOST = 64 << 20
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
    _check_usage(directory, kind)
    statements = read_statements(file)
    failed: list[errors.SievaError | None] = [None] * len(statements)
    queries, ran = _evaluated(statements, how, failed)
    _check_places(queries, directory, kind, file)
    for number, (statement, query) in enumerate(zip(statements, queries, strict=True)):
        if query is not None and failed[number] is None:
            query._on_rows = lambda _: check()
            try:
                if directory is None:
                    _show(query, number, statement, kind)
                else:
                    _write(query, (number, len(statements)), directory, kind, written)
            except errors.SievaError as error:
                failed[number] = error
        wrong = failed[number]
        if wrong is not None:
            _tell(number, statement, wrong, None if directory is not None else kind)
    if stats:
        say(_stats_text(ran, [query for query in queries if query is not None]), err=True)
    for source in {id(q.source): q.source for q in queries if q is not None}.values():
        source.close()
    return not any(failed)


def _check_usage(directory: Path | None, kind: str) -> None:
    if directory is None and kind not in _TEXTS:
        formats = ", ".join(_TEXTS)
        raise click.UsageError(
            f"results of several statements go to stdout as {formats}: name a directory by -o"
        )
    if directory is not None and format_of(directory) is not None and not is_directory(directory):
        raise click.UsageError(
            f"-o with -f names a directory, and {str(directory)!r} reads as a file: --format says which kind"
        )


def read_statements(file: str) -> list[Statement]:
    """Return the statements of a file, or of stdin.

    Raises
    ------
    FileNotFound, PermissionDenied, IoError
        It cannot be opened.
    InvalidValue
        It is no regular file, longer than 64 MiB, or no text in UTF-8.
    SyntaxError_
        It has no statement.
    """
    data = sys.stdin.buffer.read(_MOST + 1) if file == "-" else _bytes_of(file)
    if len(data) > _MOST:
        raise errors.InvalidValue(f"{file!r} is longer than 64 MiB, which statements may be", "split it")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _no_text(file) from error
    if "\0" in text:
        raise _no_text(file)
    statements = split(text)
    if not statements:
        raise errors.SyntaxError_(f"{file!r} has no statement", "write SELECT ... FROM 'file.nc' WHERE ...;")
    return statements


def _bytes_of(file: str) -> bytes:
    try:
        # A pipe would be waited for, and a device may have no end.
        opened = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with open(opened, "rb") as found:  # noqa: PTH123 - of a descriptor
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                raise errors.InvalidValue(f"cannot read {file!r}: it is no regular file", "-f - reads stdin")
            return found.read(_MOST + 1)
    except IsADirectoryError as error:
        raise errors.InvalidValue(f"cannot read {file!r}: it is a directory", "name a file") from error
    except (OSError, ValueError) as error:
        if isinstance(error, errors.SievaError):
            raise
        kinds: dict[type[Exception], str] = {
            FileNotFoundError: "file-not-found",
            PermissionError: "permission-denied",
        }
        why = getattr(error, "strerror", None) or error
        raise errors.make(kinds.get(type(error), "io-error"), f"cannot open {file!r}: {why}") from error


def _no_text(file: str) -> errors.SievaError:
    return errors.InvalidValue(f"{file!r} is no text in UTF-8", "save it as UTF-8: UTF-16 is not read")


def _check_places(queries: list[Query | None], directory: Path | None, kind: str, file: str) -> None:
    """Raise before the first result is written: what one statement reads, no other may write."""
    if directory is None:
        return
    asked = Asked([query for query in queries if query is not None], [] if file == "-" else [file])
    for number in range(len(queries)):
        asked.check(directory / _name(number, len(queries), kind))


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


def _show(query: Query, number: int, statement: Statement, kind: str) -> None:
    """Write a result to stdout, with the statement that it is of where the format has a place for it."""
    from sieva._output.rows import write

    out: Any = sys.stdout.buffer
    if kind == "table":
        _head(number, statement)
    stream: Any = _Numbered(out, number, statement.line) if kind == "json" else out
    write(query, kind, stream)
    out.flush()


def _head(number: int, statement: Statement) -> None:
    if number > 0:
        say()
    say(f"-- statement {number + 1} (line {statement.line})")
    sys.stdout.flush()


def _show_failed(number: int, statement: Statement, kind: str, error: errors.SievaError) -> None:
    """Say on stdout that a statement has no result, so that results can be told apart by counting."""
    if kind == "table":
        _head(number, statement)
        say("failed")
    elif kind == "json":
        told = {"kind": error.kind, "message": error.message, "hint": error.hint}
        click.echo(json.dumps({"statement": number + 1, "line": statement.line, "error": told}))
    sys.stdout.flush()


class _Numbered:
    """A stream of a JSON object, which gets the number of its statement, and the line, as first keys."""

    def __init__(self, out: BinaryIO, number: int, line: int) -> None:
        self._out = out
        self._keys = f'{{"statement": {number + 1}, "line": {line}, '.encode()

    def write(self, data: bytes) -> int:
        """Write what comes, its first byte being the brace that opens the object."""
        if self._keys and len(data):
            self._out.write(self._keys + bytes(data[1:]))
            self._keys = b""
        else:
            self._out.write(data)
        return len(data)

    def seekable(self) -> bool:
        """Return that there is no way back."""
        return False

    def isatty(self) -> bool:
        """Return that it is no terminal: JSON is whole."""
        return False

    def flush(self) -> None:
        """Have it written."""
        self._out.flush()


def _write(
    query: Query,
    place: tuple[int, int],
    directory: Path,
    kind: str,
    written: dict[str, Any],
) -> None:
    number, of = place
    directory.mkdir(parents=True, exist_ok=True)
    name = _name(number, of, kind)
    write_file(query, directory / name, kind, written.get("layout"), written.get("deflate"))


def _name(number: int, of: int, kind: str) -> str:
    """Return the name of a result's file."""
    suffix = next(suffix for suffix, of_suffix in SUFFIXES.items() if of_suffix == kind)
    return f"{number + 1:0{len(str(of))}}{suffix}"


def _tell(number: int, statement: Statement, error: errors.SievaError, kind: str | None) -> None:
    """Say what a statement failed with, in its place on stdout, too, where results go there as `kind`."""
    if kind is not None:
        _show_failed(number, statement, kind, error)
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
