"""What a task may take, by the price of the query: composed once, and raised where it did not do."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from sieva.engines.batch.system import Needs

if TYPE_CHECKING:
    from sieva._index_job import BuildPrice
    from sieva._price import Price
    from sieva.engines.batch.options import BatchOptions

# An interpreter with the engine, and the 64 MiB that a query may hold beyond its limit and a quarter of it.
PROCESS = 320 << 20
# So many pieces has the work of a task: each that is done is kept when the task is stopped.
PIECES = 4
# What queries and builds may take, at least.
_LEAST = 64 << 20
# What a query may take by default.
_QUERY = 1 << 30
# Of each task: to start, and to find a file system cold that was warm when its cost was learnt.
_START = 300
_SAFETY = 4
# A task that takes less than this is not worth waiting in a queue for.
_WORTHWHILE = 60
_MOST = 32
_FEWEST = 4
# Bytes a second of one core, from a slow or shared file system: of zone maps and bitmaps, and of a sort,
# which reads its arrays twice, and writes them twice.
_BUILT = 50e6
_SORTED = 20e6
# Of work without a price: what is not done by then is submitted again.
_UNKNOWN = 3600
_SOME = 8


def most_tasks(options: BatchOptions) -> int:
    """Return for how many tasks a query is cut.

    Not by its price, which is learnt: the same question has to be the same work, to find its job.
    """
    return options.tasks or _MOST


def tasks_of(price: Price | None, options: BatchOptions) -> int:
    """Return how many tasks a query is worth: each a minute of work at least."""
    if options.tasks is not None:
        return options.tasks
    if price is None:
        return _SOME
    return int(min(_MOST, max(_FEWEST, _alone(price) / options.cpus // _WORTHWHILE)))


def needs_of(price: Price | None, tasks: int, options: BatchOptions, memory: int | None = None) -> Needs:
    """Return what each of so many tasks may take.

    Parameters
    ----------
    price
        Of the query, estimated for this host with all of its cores. None: not known.
    tasks
        Among which it is shared out.
    options
        What was said comes first.
    memory
        Bytes that the query may take in each task.

    Returns
    -------
    Needs
        Its seconds are five minutes, and four times the share of the task at the expected price; an hour
        where that is not known.
    """
    seconds = _UNKNOWN if price is None else _START + _SAFETY * _alone(price) / (tasks * options.cpus)
    return Needs(
        memory=options.memory or (memory or _QUERY) * 5 // 4 + PROCESS,
        seconds=options.time or _minutes(seconds),
        cpus=options.cpus,
    )


def tasks_of_build(price: BuildPrice, options: BatchOptions) -> int:
    """Return how many tasks a build is worth: each a minute of work at least."""
    if options.tasks is not None:
        return options.tasks
    return int(min(_MOST, max(_FEWEST, _alone_of_build(price) / options.cpus // _WORTHWHILE)))


def needs_of_build(price: BuildPrice, tasks: int, options: BatchOptions, memory: int) -> Needs:
    """Return what each of so many tasks may take that build indexes.

    Parameters
    ----------
    price
        Of what is left to be built.
    tasks, options
        As of `needs_of`.
    memory
        Bytes that a sort may take.
    """
    seconds = _START + _SAFETY * _alone_of_build(price) / (tasks * options.cpus)
    building = max(price.memory * options.cpus, memory if price.bytes_sorted else 0, _LEAST)
    return Needs(
        memory=options.memory or building * 5 // 4 + PROCESS,
        seconds=options.time or _minutes(seconds),
        cpus=options.cpus,
    )


def _alone_of_build(price: BuildPrice) -> float:
    """Return the seconds that one core would take, at most."""
    return price.bytes_read / _BUILT + price.bytes_sorted / _SORTED


def for_queries(needs: Needs) -> int:
    """Return the bytes that queries may take of the memory of a task."""
    return max(_LEAST, (needs.memory - PROCESS) * 4 // 5)


def raised(needs: Needs, *, time: bool, memory: bool) -> Needs:
    """Return twice of what did not do."""
    return replace(
        needs,
        seconds=needs.seconds * (2 if time else 1),
        memory=needs.memory * (2 if memory else 1),
    )


def _alone(price: Price) -> float:
    """Return the seconds that one core would take."""
    return price.seconds.expected * len(os.sched_getaffinity(0))


def _minutes(seconds: float) -> int:
    return int(-(-seconds // 60)) * 60
