"""What is asked of a mutant, and what it took: one process does it for one mutant after the other.

It is forked from `mutants`, which watches it, and says what it does in two ways: a line for each mutant,
and, in memory that both see, what is asked just now.
"""

import collections
import contextlib
import json
import mmap
import os
import resource
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import sieva

MEMORY = 64 << 20
MOST_ARRAYS = 16
NOW_LENGTH = 256


class Now:
    """What is asked just now, in memory that is shared with processes that are forked."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, NOW_LENGTH)

    def say(self, what: str) -> None:
        """Note it."""
        self._memory[:] = what.encode()[:NOW_LENGTH].ljust(NOW_LENGTH, b"\0")

    def said(self) -> str:
        """Return what was noted last."""
        return self._memory[:].rstrip(b"\0").decode(errors="replace")


def ask_each(mutants: Iterable[tuple[int, Path]], isolated: bool, lines: int, now: Now) -> None:
    """Ask mutants, and write what comes of each to a pipe."""
    first = None
    for number, path in mutants:
        now.say("opening")
        Path("/proc/self/clear_refs").write_text("5")
        own, workers = most_held()
        first = first or own
        started = processor_time()
        outcome, errors = ask(path, isolated, now)
        # Of the processor: a machine that is busy with other things makes nothing slow.
        seconds = processor_time() - started
        after, workers_after = most_held()
        # Counted from the process's beginning: what a mutant left behind counts, and pages of the program.
        # Of workers all that they hold counts, and only the most of all of them is known.
        worker = workers_after if workers_after > workers else 0
        end = {"end": number, "outcome": outcome, "errors": errors, "seconds": seconds}
        end |= {"before": own, "peak": max(after - first, worker), "workers": workers_after}
        os.write(lines, json.dumps(end).encode() + b"\n")


def processor_time() -> float:
    """Return the seconds that this process and the workers that it started have computed."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def most_held() -> tuple[int, int]:
    """Return the most bytes that this process held since that was reset, and that a worker of it ever did."""
    status = Path("/proc/self/status").read_text()
    own = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return own << 10, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10


def ask(path: Path, isolated: bool, now: Now) -> tuple[str, list[str]]:
    """Ask a file everything; return the class of the error, or that it opened, and those of later ones."""
    try:
        source = sieva.open(path, learn=False, isolated=isolated)
    except sieva.SievaError as e:
        return type(e).__name__, []
    errors: collections.Counter[str] = collections.Counter()
    with source:
        now.say("schema")
        str(source.schema())
        for name in list(source)[:MOST_ARRAYS]:
            for question in (count, box):
                now.say(f"{question.__name__} of {name}")
                with noted(errors):
                    question(source, name)
    return ("opened, in part" if errors else "opened"), sorted(errors)


@contextlib.contextmanager
def noted(errors: collections.Counter[str]) -> Iterator[None]:
    """Count an error of ours; any other ends the process, and is a finding."""
    try:
        yield
    except sieva.SievaError as e:
        errors[type(e).__name__] += 1


def count(source: Any, name: str) -> None:
    """Count with a condition on one array."""
    text = source[name].dtype.kind in "OTU"
    quoted = '"' + name.replace('"', '""') + '"'
    source.query(f"{quoted} = 'a'" if text else f"{quoted} > 0", memory=MEMORY, threads=1).count()


def box(source: Any, name: str) -> None:
    """Read a small box."""
    array = source[name]
    array[tuple(slice(0, min(3, n)) for n in array.shape)]
