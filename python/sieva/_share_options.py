"""How a pass of a producer is made, as the engine takes it."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from sieva import errors
from sieva._memory import memory_bytes
from sieva._open import WORKER


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
        # A damaged BP file may stop the process that reads it, and with it the answers of all.
        "bp_worker": WORKER,
        "spool": os.fspath(spool or tempfile.gettempdir()),
        "ask_memory": size(ask_memory),
        "ask_time": ask_time,
        "result_size": size(result_size),
        "objects": objects,
        "object_size": size(object_size),
        "prices": prices,
    }


def key_path(key: str | os.PathLike[str] | None, *, encrypt: bool = False) -> str | None:
    """Return the path of the key of a group; where one is to be made, the environment may name it."""
    path = None if key is None else os.fspath(key)
    if not encrypt or path is not None:
        return path
    named = os.environ.get("SIEVA_SHARE_KEY")
    if not named:
        raise errors.InvalidValue("a group that is encrypted by no key", "name its file: --key FILE")
    # The text of a key is one already, and nothing is to be made.
    return None if named.strip("\"' \t\r\n").startswith("sieva-share-key-") else named
