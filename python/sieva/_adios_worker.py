"""The process that reads BP files for another; see `sieva.open` with ``isolated``, and `_adios_isolated`.

A request is a length of 4 bytes and JSON. An answer is a length of 4 bytes, one of 8, JSON of the first
length, and bytes of the second. Lengths are big-endian.
"""

from __future__ import annotations

import base64
import json
import os
import resource
import struct
from typing import Any

MEMORY = 2 << 30
"""Bytes of address space."""
SECONDS = 30
"""Of processor time that a request may take."""
REQUEST, ANSWER = struct.Struct(">I"), struct.Struct(">IQ")

_NO_NEW_PRIVS, _DUMPABLE = 38, 4


def main() -> None:
    """Answer requests until there are no more."""
    requests, answers = os.dup(0), os.dup(1)
    # What a library prints is for nobody, and nothing that it prints is taken for an answer.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    _confine()
    _serve(requests, answers)


def _confine() -> None:
    """Give up what a parser does not need: memory beyond the limit, dumps, writing files, privileges."""
    import ctypes

    for which, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_AS, MEMORY),
    ):
        least = _allowed(which, most)
        resource.setrlimit(which, (least, least))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_DUMPABLE, 0, 0, 0, 0):
        raise SystemExit("cannot give up privileges")


def _allowed(which: int, most: int) -> int:
    """Return a limit, or that of the user where it is lower."""
    hard = resource.getrlimit(which)[1]
    return most if hard == resource.RLIM_INFINITY else min(most, hard)


def _grant() -> None:
    """Grant more processor time than this process has used: at the limit the system ends it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime) + SECONDS + 1
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (_allowed(resource.RLIMIT_CPU, most), hard))


def _serve(requests: int, answers: int) -> None:
    from sieva import _adios, errors

    file: _adios._File | None = None
    while head := _taken(requests, REQUEST.size):
        _grant()
        body: bytes | memoryview = b""
        try:
            asked = json.loads(_taken(requests, REQUEST.unpack(head)[0]))
            file = file or _adios._File(asked["path"])
            answer, body = _answered(file, asked)
        except errors.SievaError as error:
            answer = {"error": [error.kind, error.message, error.hint]}
        except MemoryError:
            message = f"'{asked['path']}': adios2 needs more than {MEMORY >> 20} MiB for it"
            answer = {"error": ["corrupt-file", message, None]}
        text = json.dumps(answer).encode()
        _give(answers, ANSWER.pack(len(text), len(body)) + text)
        _give(answers, body)


def _answered(file: Any, asked: dict[str, Any]) -> tuple[dict[str, Any], bytes | memoryview]:  # noqa: ANN401 - a _File
    if asked["what"] == "description":
        return {"description": json.loads(json.dumps(file.description, default=_encoded))}, b""
    if asked["what"] == "limits":
        return {"limits": json.loads(json.dumps(file.limits(asked["array"]), default=_plain))}, b""
    found = file.read(asked["array"], tuple(asked["start"]), tuple(asked["shape"]))
    if isinstance(found, list):
        return {"texts": found}, b""
    return {}, memoryview(found).cast("B") if found.size else b""


def _encoded(value: Any) -> Any:  # noqa: ANN401 - an attribute's value
    """Return an attribute's value that JSON does not have as something that it has."""
    import numpy as np

    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufc":
        of = np.ascontiguousarray(value)
        data = base64.b64encode(of.tobytes()).decode()
        return {"dtype": of.dtype.str, "shape": list(np.shape(value)), "data": data}
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def _plain(value: Any) -> Any:  # noqa: ANN401 - a number of numpy
    return value.item()


def _taken(descriptor: int, count: int) -> bytes:
    """Return so many bytes; none at the end."""
    parts = b""
    while len(parts) < count:
        part = os.read(descriptor, count - len(parts))
        if not part:
            return b""
        parts += part
    return parts


def _give(descriptor: int, data: bytes | memoryview) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


if __name__ == "__main__":
    main()
