"""The stock Globus GridFTP server at one side of a network, globus-url-copy at the other."""

import contextlib
import os
import re
import shutil
import subprocess
import threading
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from network import MTU, SERVER_ADDRESS, Network

PORT = 5011
PROGRAMS = {
    "globus-gridftp-server": "globus-gridftp-server-progs",
    "globus-url-copy": "globus-gass-copy-progs",
}
MODULE = "libglobus_gridftp_server_sieva.so"
LISTENS = "0A"
# Bytes received, in /proc/net/dev, and the share of a packet that is TCP's data, with its timestamps.
RECEIVED = re.compile(r"wan0: *(\d+)")
PAYLOAD = (MTU - 52) / MTU


@dataclass(frozen=True)
class Plugin:
    """A built plug-in: the directories of its module, and of the engine's library and worker."""

    module: Path
    engine: Path

    @property
    def settings(self) -> dict[str, str]:
        """The environment that the server finds it by."""
        return {
            "LD_LIBRARY_PATH": str(self.module),
            "SIEVA_GRIDFTP_LIBRARY": str(self.engine / "libsieva_c.so"),
            "SIEVA_GRIDFTP_WORKER": str(self.engine / "sieva-worker"),
        }

    def missing(self) -> list[str]:
        """Return which of its files are not there."""
        wanted = self.module / MODULE, self.engine / "libsieva_c.so"
        return [f"there is no {path}: build it with `make gridftp`" for path in wanted if not path.exists()]


def missing() -> list[str]:
    """Return which programs are not installed, as sentences."""
    return [
        f"{program} is not installed (package {package})"
        for program, package in PROGRAMS.items()
        if not shutil.which(program)
    ]


def encoded(path: Path, sql: str = "") -> str:
    """Return the path part of a URL that asks for a file, or for what a query selects from it."""
    return quote(str(path)) + (quote(f"?sql={sql}") if sql else "")


class _Arrivals(threading.Thread):
    """Counts what arrives at the network device of a process, as long as it runs."""

    PAUSE = 0.02

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.table = Path(f"/proc/{process}/net/dev")
        self.seen: list[tuple[float, int]] = []
        self.is_over = threading.Event()

    def run(self) -> None:
        while not self.is_over.wait(self.PAUSE):
            with contextlib.suppress(OSError):
                found = RECEIVED.search(self.table.read_text(encoding="ascii"))
                # The process enters the client's namespace a moment after it was started.
                if found:
                    self.seen.append((time.perf_counter(), int(found[1])))

    def stop(self) -> None:
        """End counting."""
        self.is_over.set()
        self.join()

    def rate(self) -> float:
        """Return the bytes of data per second after a quarter has arrived; 0 where it came at once."""
        if not self.seen:
            return 0.0
        first, most = self.seen[0][1], self.seen[-1][1]
        # What comes after nearly all of it, and takes a round trip or more, is not the transfer's data.
        chosen = [one for one in self.seen if 0.25 <= (one[1] - first) / max(1, most - first) <= 0.99]
        if len(chosen) < 2:
            return 0.0
        (start, early), (end, late) = chosen[0], chosen[-1]
        return (late - early) / (end - start) * PAYLOAD


@dataclass(frozen=True)
class Server:
    """A running server.

    Attributes
    ----------
    network
        Where it is.
    target
        The directory at the client, in memory: the client's disk is not what is measured.
    """

    network: Network
    target: Path

    def copy(
        self, path: str, streams: int, *, length: int = 0, options: tuple[str, ...] = ()
    ) -> tuple[float, float]:
        """Copy a file or a result to `received`.

        Parameters
        ----------
        path
            As `encoded` makes it.
        streams
            1 for stream mode (MODE S), more for as many connections of MODE E.
        length
            Bytes from the start; 0 for all.
        options
            Others of globus-url-copy.

        Returns
        -------
        seconds, rate
            The client's whole process, and the bytes per second of the last three quarters of what arrived.
        """
        self.received.unlink(missing_ok=True)
        words = ["globus-url-copy", *options]
        if streams > 1:
            words += ["-p", str(streams)]
        if length:
            words += ["-off", "0", "-len", str(length)]
        words += [f"ftp://{SERVER_ADDRESS}:{PORT}{path}", f"file://{self.received}"]
        command = self.network.client_command(words)
        start = time.perf_counter()
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as client:
            arrived = _Arrivals(client.pid)
            arrived.start()
            _, said = client.communicate()
        seconds = time.perf_counter() - start
        arrived.stop()
        if client.returncode:
            raise SystemExit(f"{' '.join(words)}: {said.strip()}")
        if length and self.received.stat().st_size != length:
            raise SystemExit(f"{path}: {self.received.stat().st_size} bytes arrived, asked were {length}")
        return seconds, arrived.rate() or self.received.stat().st_size / seconds

    @property
    def received(self) -> Path:
        """What the last copy has brought."""
        return self.target / "received"


@contextlib.contextmanager
def serving(network: Network, target: Path, plugin: Plugin | None) -> Iterator[Server]:
    """Run a server for anonymous users, who read as `nobody`.

    Parameters
    ----------
    network
        At whose server side it is.
    target
        Where copies go.
    plugin
        The plug-in; None for the File DSI.
    """
    words = ["globus-gridftp-server", "-c", "none", "-p", str(PORT), "-aa", "-anonymous-user", "nobody"]
    words += ["-control-interface", SERVER_ADDRESS, "-data-interface", SERVER_ADDRESS, "-no-cas"]
    words += ["-disable-usage-stats", "-d", "ERROR,WARN", "-l", str(target / "server.log")]
    environment = dict(os.environ)
    if plugin:
        words += ["-dsi", "sieva", "-allowed-modules", "sieva"]
        environment |= plugin.settings
    with subprocess.Popen(network.server_command(words), env=environment) as process:
        try:
            _wait_for(process)
            yield Server(network, target)
        finally:
            process.terminate()


def _wait_for(process: subprocess.Popen[bytes]) -> None:
    """Wait until a process listens, as the table of its own namespace tells."""
    port = f":{PORT:04X}"
    table = Path(f"/proc/{process.pid}/net/tcp")
    for _ in range(100):
        if process.poll() is not None:
            raise SystemExit(f"the GridFTP server ended with code {process.returncode}")
        rows = [line.split() for line in table.read_text(encoding="ascii").splitlines()[1:]]
        if any(row[1].endswith(port) and row[3] == LISTENS for row in rows):
            return
        time.sleep(0.05)
    raise SystemExit("the GridFTP server does not listen after 5 s")


def checksum(path: Path, length: int = 0) -> int:
    """Return the CRC-32 of a file's first bytes; of all for 0."""
    left = length or path.stat().st_size
    found = 0
    with path.open("rb") as f:
        while left and (part := f.read(min(left, 1 << 22))):
            found = zlib.crc32(part, found)
            left -= len(part)
    return found
