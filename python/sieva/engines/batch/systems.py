"""The batch systems that there are, each a line."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from sieva import errors

if TYPE_CHECKING:
    from sieva.engines.batch.engine import BatchEngine
    from sieva.engines.batch.system import Batch

SYSTEMS = {
    "slurm": "sieva.engines.batch.slurm:Slurm",
    "pbs": "sieva.engines.batch.pbs:Pbs",
    "plain": "sieva.engines.batch.plain:Plain",
}


def system_of(name: str) -> Batch:
    """Return the batch system of a name.

    Raises
    ------
    InvalidValue
        There is none of that name.
    """
    if name not in SYSTEMS:
        raise errors.InvalidValue(f"there is no batch system {name!r}", f"there are {', '.join(SYSTEMS)}")
    module, _, attribute = SYSTEMS[name].partition(":")
    found: Batch = getattr(importlib.import_module(module), attribute)()
    return found


def slurm(**options: object) -> BatchEngine:
    """Return the engine of Slurm."""
    return _engine("slurm", options)


def pbs(**options: object) -> BatchEngine:
    """Return the engine of PBS."""
    return _engine("pbs", options)


def plain(**options: object) -> BatchEngine:
    """Return the engine of detached processes of this machine."""
    return _engine("plain", options)


def _engine(name: str, options: dict[str, object]) -> BatchEngine:
    from sieva.engines.batch.engine import BatchEngine

    return BatchEngine(name, **options)  # type: ignore[arg-type] # checked there
