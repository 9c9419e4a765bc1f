"""Figure 14: what a PUT and a GET of Swift are made of, by the size of the object."""

from __future__ import annotations

import http.client
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from scibox_store import Store

Result = dict[str, Any]
PARTS = ("authorization and container", "header", "disk", "transfer and server", "other")


def measure(store: Store, scratch: Path, sizes: Sequence[float], runs: int) -> list[Result]:
    """Measure objects of these megabytes, one request after the other, without a client of ours.

    Parameters
    ----------
    store
        A Swift.
    scratch
        A directory on the disk that the store is on.
    sizes
        In megabytes.
    runs
        Of each, after one that is not counted.
    """
    cells = []
    for megabytes in sizes:
        data = os.urandom(int(megabytes * 1e6))
        rounds = [_round(store, scratch, data) for _ in range(runs + 1)][1:]
        for method in ("PUT", "GET"):
            parts = {part: median(one[method][part] for one in rounds) for part in PARTS}
            whole = [sum(one[method].values()) for one in rounds]
            cells.append({"method": method, "size": len(data), "parts": parts, "seconds": whole})
    return cells


def _round(store: Store, scratch: Path, data: bytes) -> dict[str, dict[str, float]]:
    client = _Client(store)
    path = scratch / "disk"
    found = {}
    for method in ("PUT", "GET"):
        entering = _seconds(client.enter)
        header = _seconds(lambda: client.ask("HEAD", "stock/object")) if method == "GET" else 0.0
        mark = store.mark()
        whole = _seconds(lambda m=method: client.ask(m, "stock/object", data if m == "PUT" else None))
        [told] = [one for one in store.moved(mark).requests if one.method == method and one.is_data]
        disk = _seconds(lambda: _written(path, data)) if method == "PUT" else _seconds(path.read_bytes)
        # What the server says that it took has the disk's part in it, what the client waits for the server's.
        parts = (
            entering,
            header,
            min(disk, told.seconds),
            max(0.0, told.seconds - disk),
            max(0.0, whole - told.seconds),
        )
        found[method] = dict(zip(PARTS, parts, strict=True))
    path.unlink()
    return found


def _written(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


class _Client:
    """Swift's protocol in its plainest form, by one connection."""

    def __init__(self, store: Store) -> None:
        self._environment = store.environment
        self._container = store.root.removeprefix("swift://")
        self._connection = http.client.HTTPConnection(urlsplit(store.environment["ST_AUTH"]).netloc)
        self._headers: dict[str, str] = {}
        self._account = ""

    def enter(self) -> None:
        """Get a token, and see that the container is there."""
        names = {"X-Auth-User": self._environment["ST_USER"], "X-Auth-Key": self._environment["ST_KEY"]}
        answer = self._request("GET", urlsplit(self._environment["ST_AUTH"]).path, names)
        self._headers = {"X-Auth-Token": answer["X-Auth-Token"]}
        self._account = urlsplit(answer["X-Storage-Url"]).path
        self._request("HEAD", f"{self._account}/{self._container}", self._headers)

    def ask(self, method: str, key: str, body: bytes | None = None) -> None:
        """Ask for an object, or put it."""
        self._request(method, f"{self._account}/{self._container}/{key}", self._headers, body)

    def _request(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None = None
    ) -> http.client.HTTPMessage:
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status}")
        return answer.headers
