"""Queries asked from a coroutine: the work is done by threads, and ends when the coroutine is cancelled."""

from __future__ import annotations

import os
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Callable
    from concurrent.futures import ThreadPoolExecutor

    import pyarrow as pa

    from sieva._query import Query

    T = TypeVar("T")

# Questions that are asked at once; each has the threads of its query besides.
_AT_ONCE = max(4, os.cpu_count() or 1)
_lock = threading.Lock()
_pools: dict[int, ThreadPoolExecutor] = {}


def _pool() -> ThreadPoolExecutor:
    """Return the threads that wait for answers; a forked process has its own."""
    from concurrent.futures import ThreadPoolExecutor

    with _lock:
        if os.getpid() not in _pools:
            _pools.clear()
            _pools[os.getpid()] = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="sieva-await")
        return _pools[os.getpid()]


async def ask(query: Query, question: Callable[[Query], T]) -> T:
    """Await the answer to a question; cancelling the coroutine stops the work, and no other of the query."""
    return await _wait(mine := query._again(), partial(question, mine))


async def _wait(mine: Query, work: Callable[[], T]) -> T:
    # Here and not above: `import sieva` takes half as long without it.
    import asyncio

    answer = asyncio.get_running_loop().run_in_executor(_pool(), work)
    try:
        return await asyncio.shield(answer)
    except asyncio.CancelledError:
        mine.cancel()
        # What comes of it nobody waits for.
        answer.add_done_callback(_look_at)
        raise


def _look_at(answer: asyncio.Future[Any]) -> None:
    if not answer.cancelled():
        answer.exception()


async def batches(query: Query, size: int) -> AsyncIterator[pa.RecordBatch]:
    """Yield the rows as record batches, each made while others go on."""
    mine = query._again()
    end = object()
    rows = await _wait(mine, lambda: iter(mine.batches(size)))
    while (batch := await _wait(mine, lambda: next(rows, end))) is not end:
        yield batch
