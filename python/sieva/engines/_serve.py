"""The main loop of a worker process, fed by `local`.

It is started anew and not forked: a fork of a process with threads may wait for locks that nobody gives back.
Work comes on stdin, each behind its length, results go to stdout behind a byte that tells them from errors.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from typing import BinaryIO

from sieva.engines import _work
from sieva.engines._frames import pack_error

DONE, FAILED = b"\0", b"\1"


def read_frame(stream: BinaryIO) -> bytes | None:
    """Return the next frame; None at the end, or where it was cut off."""
    head = stream.read(8)
    n = int.from_bytes(head, "little")
    data = stream.read(n) if len(head) == 8 else b""
    return data if len(head) == 8 and len(data) == n else None


def write_frame(stream: BinaryIO, *parts: bytes) -> None:
    """Write parts as one frame."""
    stream.write(sum(map(len, parts)).to_bytes(8, "little"))
    for part in parts:
        stream.write(part)
    stream.flush()


def main() -> None:
    """Run work until nobody gives any more."""
    # Ctrl-C reaches the whole group of processes; who gave the work decides what becomes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = os.fdopen(os.dup(1), "wb")
    # What some library prints must not get among the results.
    os.dup2(2, 1)
    memory, threads = (int(arg) for arg in sys.argv[1:3])
    _work.configure(memory=memory, threads=threads)
    given: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(given,), daemon=True).start()
    while True:
        try:
            answer = DONE, _work.execute(_work.Work.from_bytes(given.get()))
        except Exception as error:
            answer = FAILED, pack_error(error)
        write_frame(out, *answer)


def _read(given: queue.SimpleQueue[bytes]) -> None:
    """Hand on what comes; the process ends with the one that gave the work, even in the midst of some."""
    while (data := read_frame(sys.stdin.buffer)) is not None:
        given.put(data)
    os._exit(0)
