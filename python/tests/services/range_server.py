"""A web server of a directory's files: byte ranges, counters, latency, and failures where it is told to.

As a program it is a process of its own, for measurements: ``range_server.py DIRECTORY MILLISECONDS`` prints
its port; ``GET /-/traffic`` gives its counters as JSON and sets them back to zero.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import sys
import threading
import time
import urllib.parse
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COUNTERS = "/-/traffic"


@dataclass
class Behaviour:
    """What the server does wrong. Numbers are of requests to come; each is spent once.

    Attributes
    ----------
    latency : float
        Seconds before each answer.
    unavailable, resets, truncations : int
        Answers of 503; connections that are reset after half of the body; bodies that end too early.
    every : int
        Where it is not 0, each request whose number is divisible by it fails in one of these ways in turn.
    is_down : bool
        Whether every request gets 503.
    no_head, no_ranges : bool
        Whether HEAD is refused; whether Range is not looked at.
    slow : float
        Seconds of rest in the middle of each body.
    forbidden : str
        What a path has in it that gets 403.
    """

    latency: float = 0.0
    unavailable: int = 0
    resets: int = 0
    truncations: int = 0
    every: int = 0
    is_down: bool = False
    no_head: bool = False
    no_ranges: bool = False
    slow: float = 0.0
    forbidden: str = ""


@dataclass
class Traffic:
    """What was asked for: requests, bytes of bodies, failures made, and the ranges by path."""

    requests: int = 0
    bytes: int = 0
    failures: int = 0
    most_at_once: int = 0
    ranges: list[tuple[str, str, str]] = field(default_factory=list)

    def by_path(self) -> Counter[str]:
        """Return the number of requests for each path."""
        return Counter(path for _, path, _ in self.ranges)


class RangeServer:
    """Serves `directory` on a free port of the loopback; a context manager.

    Attributes
    ----------
    behaviour : Behaviour
        May be changed while it serves.
    traffic : Traffic
        Counters since the last `reset`.
    """

    def __init__(self, directory: Path, behaviour: Behaviour | None = None) -> None:
        self.directory = Path(directory)
        self.behaviour = behaviour or Behaviour()
        self.traffic = Traffic()
        self._under_way = 0
        self.lock = threading.Lock()
        self._server = _Listener(("127.0.0.1", 0), _Handler)
        self._server.owner = self
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> RangeServer:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def serve(self) -> None:
        """Serve on the calling thread, for ever."""
        self._server.serve_forever()

    def reset(self) -> Traffic:
        """Set the counters to zero and return what they were."""
        with self.lock:
            before, self.traffic = self.traffic, Traffic()
        return before

    def count(self, method: str, path: str, asked: str) -> str | None:
        """Count a request; return how it is to fail, if it is."""
        with self.lock:
            self.traffic.requests += 1
            self.traffic.ranges.append((method, path, asked))
            failure = self._failure()
            self.traffic.failures += failure is not None
            return failure

    def _failure(self) -> str | None:
        how = self.behaviour
        if how.is_down:
            return "unavailable"
        kinds = ("unavailable", "resets", "truncations")
        for kind in kinds:
            if getattr(how, kind):
                setattr(how, kind, getattr(how, kind) - 1)
                return kind
        if how.every and self.traffic.requests % how.every == 0:
            return kinds[self.traffic.requests // how.every % len(kinds)]
        return None

    def enter(self, change: int) -> None:
        """Count a request that begins (1) or ends (-1)."""
        with self.lock:
            self._under_way += change
            self.traffic.most_at_once = max(self.traffic.most_at_once, self._under_way)

    def sent(self, n: int) -> None:
        """Count bytes of a body."""
        with self.lock:
            self.traffic.bytes += n


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    owner: RangeServer

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that went away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self) -> None:
        owner = self.server.owner
        path = urllib.parse.unquote(self.path.split("?")[0])
        if path == COUNTERS:
            self._send_counters(owner.reset())
            return
        owner.enter(1)
        try:
            failure = owner.count(self.command, path, self.headers.get("Range", ""))
            time.sleep(owner.behaviour.latency)
            if failure == "unavailable":
                self._send_nothing(503)
            elif owner.behaviour.forbidden and owner.behaviour.forbidden in path:
                self._send_nothing(403)
            elif self.command == "HEAD" and owner.behaviour.no_head:
                self._send_nothing(405)
            else:
                self._send_file(owner.directory / path.lstrip("/"), failure)
        finally:
            owner.enter(-1)

    def _send_file(self, path: Path, failure: str | None) -> None:
        if not path.is_file():
            self._send_nothing(404)
            return
        with path.open("rb") as file:
            facts = path.stat()
            tag = f'"{facts.st_mtime_ns:x}-{facts.st_size:x}"'
            if self.headers.get("If-Match") not in (None, "*", tag):
                self._send_nothing(412)
                return
            found = None if self.server.owner.behaviour.no_ranges else self._range(facts.st_size)
            start, end = found or (0, facts.st_size)
            if start >= end and facts.st_size and found:
                self._send_nothing(416, {"Content-Range": f"bytes */{facts.st_size}"})
                return
            self.send_response(206 if found else 200)
            if found:
                self.send_header("Content-Range", f"bytes {start}-{end - 1}/{facts.st_size}")
            facts_told = {
                "Accept-Ranges": "bytes",
                "ETag": tag,
                "Last-Modified": self.date_time_string(facts.st_mtime),
                "Content-Length": str(end - start),
            }
            for name, value in facts_told.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self._send_body(file, start, end - start, failure)

    def _range(self, size: int) -> tuple[int, int] | None:
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if not found or not any(found.groups()):
            return None
        first, last = found.groups()
        if not first:
            return max(0, size - int(last)), size
        return int(first), min(size, int(last) + 1 if last else size)

    def _send_body(self, file: object, start: int, length: int, failure: str | None) -> None:
        self.wfile.flush()
        sent = length // 2 if failure else length
        rest = self.server.owner.behaviour.slow
        if rest and sent > 1:
            self._send_part(file, start, sent // 2)
            time.sleep(rest)
            self._send_part(file, start + sent // 2, sent - sent // 2)
        else:
            self._send_part(file, start, sent)
        if failure == "resets":
            # Closing with this option sends a reset in place of an orderly end.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        if failure:
            self.close_connection = True

    def _send_part(self, file: object, start: int, length: int) -> None:
        if length:
            self.connection.sendfile(file, start, length)  # type: ignore[arg-type]
        self.server.owner.sent(length)

    def _send_nothing(self, status: int, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": "0", **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()

    def _send_counters(self, traffic: Traffic) -> None:
        body = json.dumps(vars(traffic)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Serve until the process is ended."""
    directory, latency = Path(sys.argv[1]), float(sys.argv[2]) / 1000
    server = RangeServer(directory, Behaviour(latency=latency))
    print(server.port, flush=True)
    server.serve()


if __name__ == "__main__":
    main()
