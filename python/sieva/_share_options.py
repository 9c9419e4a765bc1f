"""How a pass of a producer is made, as the engine takes it."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from sieva._memory import memory_bytes


def pass_options(
    *,
    settle: float,
    memory: int | str | None,
    threads: int | None = None,
    spool: str | os.PathLike[str] | None = None,
    ask_memory: int | str | None = None,
    ask_time: float | None = None,
    result_size: int | str | None = None,
    objects: str = "files",
    object_size: int | str | None = None,
    prices: tuple[float, float, float] | None = None,
) -> dict[str, Any]:
    """Return the options of `sieva.share.Group.produce` for the engine."""

    def size(given: int | str | None) -> int | None:
        return None if given is None else memory_bytes(given)

    return {
        "settle": settle,
        "memory": size(memory),
        "threads": threads,
        "spool": os.fspath(spool or tempfile.gettempdir()),
        "ask_memory": size(ask_memory),
        "ask_time": ask_time,
        "result_size": size(result_size),
        "objects": objects,
        "object_size": size(object_size),
        "prices": prices,
    }
