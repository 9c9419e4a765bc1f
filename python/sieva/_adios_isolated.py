"""BP files that a process of its own reads: adios2 is C++ that trusts what a file says.

The worker's answers are read like a file from a stranger: lengths before memory, types and shapes against
what was asked for. It can give wrong values, which a hostile file can do anyway, and nothing else.
"""

from __future__ import annotations

import base64
import json
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from sieva import _adios_worker, errors
from sieva._foreign import ArrayEntry, Description, Dim, Group

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sieva._foreign import Limit

WALL = 30.0
"""Seconds from a request to the end of its answer, starting the process included."""
LONGEST = 256 << 20
"""Bytes of JSON in an answer."""
# What of the environment a library needs to be found and to run; nothing that names secrets.
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR", "TZ")
_WORKER = [sys.executable, "-I", "-m", "sieva._adios_worker"]


class IsolatedFile:
    """An open BP file, as `_adios._File` is one, that a worker process reads."""

    def __init__(self, path: str, files: Sequence[str]) -> None:
        self._path = str(Path(path).absolute())
        self._shown = path
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        answer, _ = self._asked({"what": "description"}, 0)
        try:
            self.description = _description(answer["description"], files)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._nonsense() from error
        self._dtypes = {array["path"]: array["dtype"] for array in self.description["arrays"]}

    def read(self, path: str, start: tuple[int, ...], shape: tuple[int, ...]) -> Any:  # noqa: ANN401 - see Reader
        """Return a box of an array."""
        import numpy as np

        asked = {"what": "box", "array": path, "start": start, "shape": shape}
        if self._dtypes[path] == "str":
            texts = self._asked(asked, 0)[0].get("texts")
            if not isinstance(texts, list) or len(texts) != math.prod(shape):
                raise self._nonsense()
            return [str(text) for text in texts]
        dtype = np.dtype(self._dtypes[path])
        _, data = self._asked(asked, math.prod(shape) * dtype.itemsize)
        return np.frombuffer(data, dtype).reshape(shape)

    def limits(self, path: str) -> Iterable[Limit] | None:
        """Return what the writers noted of their blocks."""
        found = self._asked({"what": "limits", "array": path}, 0)[0].get("limits")
        if found is None:
            return None
        try:
            return [
                (tuple(map(int, start)), tuple(map(int, shape)), _number(low), _number(high))
                for start, shape, low, high in found
            ]
        except (TypeError, ValueError) as error:
            raise self._nonsense() from error

    def _asked(self, request: dict[str, Any], size: int) -> tuple[dict[str, Any], bytearray]:
        """Ask the worker, which is started where there is none; its answer has so many bytes."""
        with self._lock:
            end = time.monotonic() + WALL
            try:
                return self._exchanged(request | {"path": self._path}, size, end)
            except errors.SievaError as error:
                # Of the worker's own accord: it goes on.
                if not isinstance(error, _Told):
                    self._end()
                    raise
                raise errors.make(*error.told) from None
            except BaseException:
                # Interrupted: what it sends later would be taken for the answer to something else.
                self._end()
                raise

    def _exchanged(self, request: dict[str, Any], size: int, end: float) -> tuple[dict[str, Any], bytearray]:
        process = self._process = self._process or self._start()
        pipe = cast("IO[bytes]", process.stdin)
        text = json.dumps(request).encode()
        try:
            pipe.write(_adios_worker.REQUEST.pack(len(text)) + text)
            pipe.flush()
        except OSError as error:
            raise self._ended(process) from error
        lengths = _adios_worker.ANSWER.unpack(self._taken(process, _adios_worker.ANSWER.size, end))
        if lengths[0] > LONGEST:
            raise self._nonsense()
        try:
            answer = json.loads(self._taken(process, lengths[0], end))
        except ValueError as error:
            raise self._nonsense() from error
        if not isinstance(answer, dict):
            raise self._nonsense()
        if "error" in answer:
            raise self._told(answer["error"])
        if lengths[1] != size:
            raise self._nonsense()
        return answer, self._taken(process, size, end)

    def _start(self) -> subprocess.Popen[bytes]:
        kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        # One thread: others would each map memory for themselves. Without a home adios2 ends the process.
        kept |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "HOME": "/nonexistent"}
        process = subprocess.Popen(  # noqa: S603 - this Python itself
            _WORKER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=kept,
            # Ctrl-C is for this process, which ends the worker.
            start_new_session=True,
        )
        weakref.finalize(self, _stop, process)
        return process

    def _taken(self, process: subprocess.Popen[bytes], count: int, end: float) -> bytearray:
        """Return so many bytes of an answer."""
        descriptor = cast("IO[bytes]", process.stdout).fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        taken = bytearray(count)
        left = memoryview(taken)
        while left:
            rest = end - time.monotonic()
            if rest <= 0 or not poll.poll(rest * 1000):
                raise self._failed(f"adios2 took more than {WALL:g} s for one request")
            # Larger pieces than a pipe holds gain nothing.
            n = os.readv(descriptor, [left[: 1 << 20]])
            if n == 0:
                raise self._ended(process)
            left = left[n:]
        return taken

    def _told(self, error: Any) -> errors.SievaError:  # noqa: ANN401 - foreign
        try:
            kind, message, hint = error
        except (TypeError, ValueError):
            return self._nonsense()
        hint = None if hint is None else str(hint)
        known = ("corrupt-file", "unsupported", "permission-denied", "file-not-found", "io-error")
        return _Told((kind if kind in known else "corrupt-file", str(message), hint))

    def _ended(self, process: subprocess.Popen[bytes]) -> errors.SievaError:
        """Return the error of a worker that ended without an answer."""
        try:
            status = process.wait(5)
        except subprocess.TimeoutExpired:
            return self._nonsense()
        if status == -signal.SIGXCPU:
            return self._failed(
                f"adios2 took more than {_adios_worker.SECONDS} s of processor time for one request"
            )
        how = signal.Signals(-status).name if status < 0 else f"status {status}"
        return self._failed(f"the process that reads it by adios2 ended by {how}")

    def _nonsense(self) -> errors.SievaError:
        return self._failed("the process that reads it by adios2 gave an answer that makes no sense")

    def _failed(self, what: str) -> errors.SievaError:
        return errors.CorruptFile(
            f"'{self._shown}': {what}", "the file is damaged, or larger than what a worker process may take"
        )

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            _stop(process)


class _Told(errors.SievaError):
    """An error that the worker told."""

    def __init__(self, told: tuple[str, str, str | None]) -> None:
        super().__init__(told[1], told[2])
        self.told = told


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # what was not sent need not be
                pipe.close()
    process.wait()


def _description(found: dict[str, Any], files: Sequence[str]) -> Description:
    """Return the description that a worker gave, of the types that it must have; files are known here."""
    return Description(
        format="ADIOS2 BP",
        how="read by adios2",
        files=list(files),
        version="",
        groups=[Group(path=_text(g["path"]), attrs=_attrs(g["attrs"])) for g in found["groups"]],
        dims=[
            Dim(
                path=_text(d["path"]),
                length=_count(d["length"]),
                unlimited=bool(d["unlimited"]),
                named=bool(d["named"]),
            )
            for d in found["dims"]
        ],
        arrays=[
            ArrayEntry(
                path=_text(a["path"]),
                dtype=_text(a["dtype"]),
                dims=[_text(dim) for dim in a["dims"]],
                attrs=_attrs(a["attrs"]),
                block=None if a["block"] is None else [_count(n) for n in a["block"]],
            )
            for a in found["arrays"]
        ],
        left_out=[(_text(path), _text(why)) for path, why in found["left_out"]],
        warnings=[_text(one) for one in found["warnings"]],
    )


def _attrs(found: dict[str, Any]) -> dict[str, Any]:
    return {_text(name): _decoded(value) for name, value in found.items()}


def _decoded(value: Any) -> Any:  # noqa: ANN401 - an attribute's value
    import numpy as np

    if isinstance(value, dict):
        dtype = np.dtype(_text(value["dtype"]))
        if dtype.kind not in "biufc":
            raise ValueError("no type of numbers")
        flat = np.frombuffer(base64.b64decode(value["data"]), dtype)
        shaped = flat.reshape([_count(n) for n in value["shape"]])
        return shaped if value["shape"] else shaped[()]
    if isinstance(value, list):
        return [_decoded(one) for one in value]
    if not isinstance(value, str | int | float | bool):
        raise TypeError("no value of an attribute")
    return value


def _text(value: Any) -> str:  # noqa: ANN401 - foreign
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _count(value: Any) -> int:  # noqa: ANN401 - foreign
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise ValueError("no length")
    return value


def _number(value: Any) -> Any:  # noqa: ANN401 - foreign
    if isinstance(value, bool) or not (value is None or isinstance(value, int | float)):
        raise TypeError("no number")
    return value
