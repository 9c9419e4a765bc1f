"""Engines: who runs the parts of a query. Processes of this machine, Dask, MPI, a batch system.

A query is cut into `Work`, which is data; an engine runs it somewhere and gives back the results, which are
bytes. Engines know nothing of queries, and queries nothing of engines: a new one is a file here, and a line
in `NAMES`. Nothing of this is loaded before somebody says ``engine=``.
"""

from __future__ import annotations

import atexit
import importlib
import threading
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from sieva import errors
from sieva.engines._work import Work, execute
from sieva.engines.local import LocalEngine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["NAMES", "Engine", "LocalEngine", "Work", "engine_of", "execute"]


@runtime_checkable
class Engine(Protocol):
    """Who runs work.

    An engine may have more, which is used where it is there:

    ``reduce(work) -> list of bytes``
        Runs work of the kind ``"query"`` and merges the partial results where they are, if they are many:
        few come back.
    ``is_here``
        True where the process that asks does all of the work: collections are asked without cutting it.
    ``parts_of_each``
        The most parts for each worker; by default `_driver.PARTS`.
    ``at_once``
        How many parts run at once, where handing one out takes milliseconds: short work is cut into fewer
        then (`_effort.parts`).
    ``priced(price, memory)``
        Is told what the query that comes next is expected to take, and the bytes that it may.
    ``reads_here``
        The most rows whose values are better read by who asks than by workers.
    ``keeps_regions``
        True where it is better to fetch values where their region was looked at than to share out evenly.

    Attributes
    ----------
    name : str
        What it is called on the command line.
    """

    name: str

    def workers(self) -> int:
        """Return how many run at once."""

    def run(self, work: Sequence[Work]) -> Iterator[tuple[int, bytes]]:
        """Yield the number of each work and its result, as they end, each once.

        Raises
        ------
        SievaError
            What a work raised, once the others were stopped.
        """

    def close(self) -> None:
        """Stop the workers that it started."""


# What an engine is called, and the function that makes it, which takes options by name.
NAMES = {
    "local": "sieva.engines.local:LocalEngine",
    "dask": "sieva.engines.dask:make",
    "mpi": "sieva.engines.mpi:MpiEngine",
    "slurm": "sieva.engines.batch.systems:slurm",
    "pbs": "sieva.engines.batch.systems:pbs",
    "plain": "sieva.engines.batch.systems:plain",
}
# The package of an object that stands for an engine, and the function that makes the engine of it.
OBJECTS = {
    "distributed": "sieva.engines.dask:make",
    "mpi4py": "sieva.engines.mpi:MpiEngine",
}

_lock = threading.Lock()
_made: dict[Any, Engine] = {}


def engine_of(given: object, **options: Any) -> Engine:  # noqa: ANN401 - those of the engine
    """Return the engine that is meant.

    Parameters
    ----------
    given
        A name of `NAMES`, an object that stands for one, such as a `distributed.Client`, or an `Engine`.
    **options
        Of the engine that a name means. An engine is made once for the same name and options, and closed at
        the end of the process.

    Raises
    ------
    InvalidValue
        There is none of that name.
    TypeError
        The object stands for no engine.
    """
    if isinstance(given, str):
        key: Any = (given, tuple(sorted(options.items())))
        make = _maker(NAMES, given)
        return _once(key, lambda: make(**options))
    if isinstance(given, Engine):
        return given
    package = type(given).__module__.partition(".")[0]
    if package not in OBJECTS:
        raise TypeError(f"engine= is one of {_names()}, or an engine, got {given!r} ({type(given).__name__})")
    make = _maker(OBJECTS, package)
    # What holds the object holds its place in memory; communicators have no hash.
    return _once((package, id(given)), lambda: make(given))


def _names() -> str:
    return ", ".join(repr(name) for name in NAMES)


def _maker(table: dict[str, str], name: str) -> Any:  # noqa: ANN401 - a class, or a function
    if name not in table:
        raise errors.InvalidValue(f"there is no engine {name!r}", f"there are {_names()}")
    module, _, attribute = table[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def _once(key: Any, make: Any) -> Engine:  # noqa: ANN401 - a name or an object, a function
    with _lock:
        if key not in _made:
            _made[key] = make()
        return _made[key]


@atexit.register
def _close_all() -> None:
    with _lock:
        for engine in _made.values():
            engine.close()
        _made.clear()
