"""What an engine asks a batch system for: ``--batch-option NAME=VALUE``, keywords in Python."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sieva import errors
from sieva._memory import memory_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_MOST_TASKS = 1000


@dataclass(frozen=True)
class BatchOptions:
    """What a batch system is asked for.

    Attributes
    ----------
    tasks
        Tasks of an array; None: as many as the price of the query is worth.
    cpus
        Processors of a task, which are its threads.
    memory
        Bytes of a task; None: what the query may take, and what a process takes.
    time
        Seconds of a task; None: by the price of the query.
    partition, account
        In the system's words; None: its default.
    directives
        More lines for the system, without its mark: ``"--qos=long"``.
    setup
        Lines of shell before the task, such as ``"module load python"``.
    directory
        Where directories of jobs are made, on a file system that all nodes have; None: SIEVA_JOBS, else
        ``sieva/jobs`` among the data of the user.
    attempts
        How often in a row tasks that ended without a result may be submitted without any progress.

    Examples
    --------
    >>> BatchOptions.of(["partition=short", "memory=2GiB", "time=00:30:00"]).time
    1800
    """

    tasks: int | None = None
    cpus: int = 1
    memory: int | None = None
    time: int | None = None
    partition: str | None = None
    account: str | None = None
    directives: tuple[str, ...] = ()
    setup: str = ""
    directory: Path | None = None
    attempts: int = 3

    @classmethod
    def of(cls, texts: Iterable[str]) -> BatchOptions:
        """Return the options that are written as ``name=value``; ``directive`` may be repeated.

        Raises
        ------
        InvalidValue
            There is no such option, or the value is none of it.
        """
        given: dict[str, Any] = {}
        for text in texts:
            name, found, value = text.partition("=")
            if name == "directive" and found:
                given["directives"] = (*given.get("directives", ()), value)
                continue
            if name not in _KINDS or not found:
                what = f"{name!r} is no batch option" if found else f"{text!r} is not of the form NAME=VALUE"
                raise errors.InvalidValue(what, f"the names are {', '.join([*_KINDS, 'directive'])}")
            given[name] = value
        return cls.given(**given)

    @classmethod
    def given(cls, **options: Any) -> BatchOptions:  # noqa: ANN401 - checked here
        """Return the options, with sizes, times and paths as text or numbers.

        Raises
        ------
        InvalidValue
            There is no such option, or the value is none of it.
        """
        names = [field.name for field in fields(cls)]
        for name in options:
            if name not in names:
                raise errors.InvalidValue(
                    f"{name!r} is no option of a batch system", f"there are: {', '.join(names)}"
                )
        return cls(**{name: _value(name, value) for name, value in options.items() if value is not None})

    def root(self) -> Path:
        """Return the directory that directories of jobs are made in."""
        return self.directory or jobs_directory()


def jobs_directory() -> Path:
    """Return where the jobs of this user are known: SIEVA_JOBS, else among the user's data."""
    if told := os.environ.get("SIEVA_JOBS"):
        return Path(told).absolute()
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "sieva" / "jobs"


def seconds_of(text: str | float) -> int:
    """Return a time in seconds: of a number of them, or of ``days-hours:minutes:seconds`` or the end of it.

    >>> seconds_of("1-02:00:00"), seconds_of("10:00"), seconds_of(90)
    (93600, 600, 90)
    """
    if not isinstance(text, str):
        return int(text)
    days, dash, clock = text.rpartition("-")
    words = clock.split(":")
    if len(words) > 3 or not all(word.isdecimal() for word in (*words, days or "0")):
        raise ValueError(f"{text!r} is no time: expected seconds, or days-hours:minutes:seconds")
    parts = [int(word) for word in words]
    if dash:
        parts += [0] * (3 - len(parts))
    seconds = 0
    for part in parts:
        seconds = seconds * 60 + part
    return seconds + 86400 * int(days or 0)


def _counted(most: int) -> Callable[[Any], int]:
    def count(value: Any) -> int:  # noqa: ANN401 - checked here
        if not 1 <= int(value) <= most:
            raise ValueError(f"expected 1 to {most}")
        return int(value)

    return count


def _line(value: Any) -> str:  # noqa: ANN401 - checked here
    """Return a text that stays in its line of the script."""
    text = str(value)
    if not text or any(c in text for c in "\n\r\0"):
        raise ValueError("expected one line of text")
    return text


def _time(value: Any) -> int:  # noqa: ANN401 - checked here
    seconds = seconds_of(value)
    if seconds < 60:
        raise ValueError("expected at least a minute")
    return seconds


def _lines(value: Any) -> tuple[str, ...]:  # noqa: ANN401 - checked here
    return tuple(_line(one) for one in ([value] if isinstance(value, str) else value))


_KINDS: dict[str, Callable[[Any], Any]] = {
    "tasks": _counted(_MOST_TASKS),
    "cpus": _counted(4096),
    "memory": memory_bytes,
    "time": _time,
    "partition": _line,
    "account": _line,
    "setup": str,
    "directory": lambda value: Path(value).absolute(),
    "attempts": _counted(100),
}
# How values are written, for who wrote another.
_FORMS = {
    "tasks": "N, a number from 1 to 1000",
    "cpus": "N, a number of processors",
    "memory": "SIZE, such as 2GiB or 512MiB",
    "time": "TIME, such as 00:30:00 or 1-12:00:00, of a minute at least",
    "directives": "LINE: directive=--qos=long",
    "directory": "DIR, which all nodes have",
    "attempts": "N, a number from 1 to 100",
}


def _value(name: str, value: Any) -> Any:  # noqa: ANN401 - any option
    try:
        return {**_KINDS, "directives": _lines}[name](value)
    except (TypeError, ValueError) as error:
        hint = f"write it as --batch-option {name}={_FORMS.get(name, 'TEXT')}"
        raise errors.InvalidValue(f"batch option {name}={value}: {error}", hint) from error
