"""Progress of long work, for people at a terminal or for a function that is told of it."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from rich.progress import ProgressColumn

    Told: TypeAlias = Callable[[int, int], None]


@contextmanager
def progress_to(progress: bool | Told, title: str, *, is_bytes: bool = True) -> Iterator[Told | None]:
    """Give the function that is to be called with what is done and what there is in all, if any.

    Parameters
    ----------
    progress
        True shows a bar on stderr, if that is a terminal; a function is called itself, from any thread.
    title
        Stands before the bar.
    is_bytes
        Whether numbers are of bytes: the bar tells the rate, too.
    """
    if callable(progress):
        yield progress
        return
    if not progress or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    from sieva._printable import printable

    bar = Progress(*_columns(is_bytes), console=Console(stderr=True), transient=True)
    task = bar.add_task(escape(printable(title)), total=None)
    known = 0

    def told(done: int, total: int) -> None:
        nonlocal known
        if total != known:
            # Another part of the work begins, with a rate of its own.
            known = total
            bar.reset(task, total=total)
            # Shown from here on: where there is nothing to do there is no bar.
            bar.start()
        bar.update(task, completed=done)

    try:
        yield told
    finally:
        bar.stop()


def _columns(is_bytes: bool) -> list[ProgressColumn]:
    from rich import progress

    columns: list[ProgressColumn] = [progress.TextColumn("{task.description}"), progress.BarColumn()]
    if is_bytes:
        return [
            *columns,
            progress.DownloadColumn(binary_units=True),
            progress.TransferSpeedColumn(),
            progress.TimeRemainingColumn(),
        ]
    return [*columns, progress.MofNCompleteColumn(), progress.TimeElapsedColumn()]
