"""Servers as processes: started on free ports of the loopback, awaited, and stopped by their ids."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# Made by `make services`; another one may be named.
VENV = Path(os.environ.get("SIEVA_SERVICES_VENV") or ROOT / ".venv-services")
SECONDS = 30


def program(name: str) -> Path:
    """Return a program of the services' environment, or skip the test and say how to get it."""
    found = VENV / "bin" / name
    if not found.exists():
        pytest.skip(f"no {name} in {VENV}: `make services` installs it")
    return found


def free_ports(n: int) -> list[int]:
    """Return ports of the loopback that nobody listens on, all different."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


class Processes:
    """Some processes that are stopped together, the last one first."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, command: Sequence[str | Path], **environment: str) -> None:
        """Start a process whose output goes to a file."""
        with (self.logs / f"{name}.log").open("wb") as log:
            self._running.append(
                subprocess.Popen(
                    [os.fspath(word) for word in command],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **environment},
                )
            )

    def await_answer(self, url: str) -> None:
        """Wait until a server answers, with whatever status."""
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            for process in self._running:
                if process.poll() is not None:
                    raise RuntimeError(f"{process.args!r} ended: {self._said()}")
            try:
                urllib.request.urlopen(url, timeout=2).close()  # noqa: S310 - of a server started here
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise RuntimeError(f"no answer of {url} in {SECONDS} s: {self._said()}")

    def _said(self) -> str:
        return "\n".join(log.read_text(errors="replace")[-2000:] for log in sorted(self.logs.glob("*.log")))

    def stop(self) -> None:
        """End them all and wait for that."""
        for process in reversed(self._running):
            process.terminate()
        for process in reversed(self._running):
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running.clear()


def run_in_venv(script: str, *words: str) -> None:
    """Run a script with the interpreter of the services' environment."""
    subprocess.run([program("python"), "-c", script, *words], check=True, stdin=subprocess.DEVNULL)


if sys.platform != "linux":
    pytest.skip("the services are started on Linux only", allow_module_level=True)
