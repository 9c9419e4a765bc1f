"""Ctrl-C on one rank: it stops reading, and still sends and receives, so that no other rank waits for it."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, Any, Self

from sieva import errors

if TYPE_CHECKING:
    from collections.abc import Iterator


class Interrupts:
    """Holds back ``KeyboardInterrupt`` but while something is read; what is then asked for is `Cancelled`.

    Used as a context. Nothing is held back on other threads than the first, nor where the program has a
    handler of its own.
    """

    def __init__(self) -> None:
        self.came = False
        self._is_reading = False
        self._before: Any = None

    def __enter__(self) -> Self:
        is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if is_ours and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _take(self, *_: object) -> None:
        self.came = True
        if self._is_reading:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Let what happens inside be interrupted.

        Raises
        ------
        Cancelled
            It was, or something before it.
        """
        message = "the reading was interrupted"
        if self.came:
            raise errors.Cancelled(message, None)
        try:
            self._is_reading = True
            yield
        except KeyboardInterrupt:
            self.came = True
            raise errors.Cancelled(message, None) from None
        finally:
            self._is_reading = False
