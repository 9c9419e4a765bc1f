"""Ctrl-C at the right moments.

Python raises KeyboardInterrupt wherever it happens to be. Within libraries that call back from C or wait for
threads it may be swallowed, or leave a lock behind. Their calls are short, so the signal waits for their end.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from sieva._output.variable import Container, Variable

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold signals that end a program back until the end of the block, where they do what they do."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are handled in the main thread alone
        return
    held: list[int] = []
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    # What is not a Python function would have ended the process at once: it may.
    ours = [number for number, handler in handlers.items() if callable(handler)]
    for number in ours:
        signal.signal(number, lambda number, _: held.append(number))
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, handlers[number])
        if held:
            signal.raise_signal(held[0])


@contextmanager
def opened(make: Callable[[], AbstractContextManager[Any]]) -> Iterator[Any]:
    """Open and close a file of a library uninterrupted."""
    with uninterrupted():
        file = make()
    try:
        yield file.__enter__()
    finally:
        with uninterrupted():
            file.__exit__(None, None, None)


class Uninterrupted:
    """A container whose calls are not interrupted."""

    def __init__(self, container: Container) -> None:
        self._container = container

    def define(self, dims: dict[str, int | None], variables: list[Variable], attrs: dict[str, Any]) -> None:
        """Make dimensions and variables."""
        with uninterrupted():
            self._container.define(dims, variables, attrs)

    def grow(self, dim: str, length: int) -> None:
        """Make a dimension longer."""
        with uninterrupted():
            self._container.grow(dim, length)

    def write(self, name: str, region: tuple[slice, ...], values: NDArray[Any]) -> None:
        """Write values to a region of a variable."""
        with uninterrupted():
            self._container.write(name, region, values)

    def read(self, name: str, region: tuple[slice, ...]) -> NDArray[Any]:
        """Return the values of a region."""
        with uninterrupted():
            return self._container.read(name, region)
