"""The stores that are measured on, and what each of them says itself of what it moved and holds."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import pytest
from sieva._native import Objects

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "tests"))

from services.places import MAKE_BUCKET, run
from services.processes import Processes, free_ports, program
from services.stores import keys_of, swift

STORES = ("swift", "swift-s3", "moto", "directory")
HERE = Path(__file__).resolve().parent
# Seconds in which a server writes down what it answered.
PATIENCE = 10.0


# What a place holds, listed by the store's own clients.
LIST = """
import json, sys
said, container, prefix = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
if sys.argv[4] == "swift":
    import swiftclient
    client = swiftclient.Connection(said["ST_AUTH"], said["ST_USER"], said["ST_KEY"])
    entries = client.get_container(container, prefix=prefix, full_listing=True)[1]
    found = {entry["name"]: entry["bytes"] for entry in entries}
else:
    import boto3
    client = boto3.client("s3", endpoint_url=said["AWS_ENDPOINT_URL"], region_name="us-east-1",
        aws_access_key_id=said["AWS_ACCESS_KEY_ID"], aws_secret_access_key=said["AWS_SECRET_ACCESS_KEY"])
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=container, Prefix=prefix)
    found = {entry["Key"]: entry["Size"] for page in pages for entry in page.get("Contents", [])}
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Request:
    """A request of a client, as the store has written it down.

    Attributes
    ----------
    received, sent
        Bytes of the bodies.
    seconds
        From its first byte to the last one of the answer; 0 where the store does not say it.
    """

    method: str
    path: str
    status: int
    received: int
    sent: int
    seconds: float = 0.0

    @property
    def is_data(self) -> bool:
        """Whether it is of a result of a group, or of a variable of the stock system."""
        return "/data/" in self.path or "/stock/" in self.path


@dataclass
class Moved:
    """What a store says that it moved."""

    requests: list[Request] = field(default_factory=list)

    def bytes_of(self, method: str, *, is_data: bool | None = None) -> int:
        """Return the bytes of all bodies of a method, both ways; of data alone, or of all else."""
        return sum(
            one.received + one.sent
            for one in self.requests
            if one.method == method and is_data in {None, one.is_data} and one.status < 300
        )

    @property
    def total(self) -> int:
        """All bytes of all bodies."""
        return sum(one.received + one.sent for one in self.requests)

    def asdict(self) -> dict[str, int]:
        """Return the sums for JSON."""
        return {
            "requests": len(self.requests),
            "data_up": self.bytes_of("PUT", is_data=True),
            "data_down": self.bytes_of("GET", is_data=True),
            "all": self.total,
        }


class Store:
    """A store that runs, with places in it.

    Parameters
    ----------
    name
        One of `STORES`.
    root
        The address of a container, or a directory; places are below it.
    log
        The file of its accesses; None where it has none.
    """

    def __init__(self, name: str, root: str, log: Path | None, environment: dict[str, str]) -> None:
        self.name, self.root, self.environment = name, root, environment
        self._log = log
        self._places = 0

    def place(self) -> str:
        """Return the address of a place that nobody used."""
        self._places += 1
        return f"{self.root}/p{self._places}"

    def held(self, place: str) -> dict[str, int]:
        """Return the sizes of all objects of a place, listed by the store's own clients."""
        if self.name == "directory":
            root = Path(place)
            return {str(p.relative_to(root)): p.stat().st_size for p in root.rglob("*") if p.is_file()}
        container, prefix = place.split("://")[1].split("/", 1)
        found = run(LIST, json.dumps(self.environment), container, f"{prefix}/", self.name)
        return {key.removeprefix(f"{prefix}/"): size for key, size in found.items()}

    @property
    def is_logged(self) -> bool:
        """Whether it says what it moved."""
        return self._log is not None

    def mark(self) -> int:
        """Return where the log of accesses ends now."""
        return self._log.stat().st_size if self._log else 0

    def moved(self, since: int) -> Moved:
        """Return what was moved since a mark.

        Servers write a request down after its answer was sent: a last request, of our own, is waited for.
        """
        if self._log is None:
            return Moved()
        sentinel = uuid.uuid4().hex
        Objects(self.root).get(f"end/{sentinel}")
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            with self._log.open("rb") as log:
                log.seek(since)
                lines = log.read().decode(errors="replace").splitlines()
            if any(sentinel in line for line in lines):
                requests = filter(None, map(_request, lines))
                return Moved([one for one in requests if "/end/" not in one.path])
            time.sleep(0.02)
        raise SystemExit(f"{self.name}: its log {self._log} does not have the last request")


def _request(line: str) -> Request | None:
    """Return the request of a client that a line tells of: of Swift's proxy, or of `counted_moto.py`."""
    server, _, rest = line.partition(": ")
    words = rest.split(" ")
    if server == "counted":
        method, path, status, received, sent = words
        return Request(method, unquote(path), int(status), int(received), int(sent))
    # What Swift asks of itself has no client.
    if server != "proxy-server" or len(words) < 17 or words[0] == "-" or not words[5].startswith("HTTP/"):
        return None
    received, sent = (0 if word == "-" else int(word) for word in words[10:12])
    return Request(words[3], unquote(words[4]), int(words[6]), received, sent, float(words[15]))


@contextlib.contextmanager
def running(name: str, scratch: Path, address: str = "127.0.0.1") -> Iterator[Store]:
    """Run a store; its files are below a directory, which is removed with them.

    Parameters
    ----------
    name
        One of `STORES`.
    scratch
        Where the directory is made.
    address
        Of this machine, where Swift is to be reached.

    Raises
    ------
    SystemExit
        The programs are not installed.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(
            stack.enter_context(
                tempfile.TemporaryDirectory(prefix="store-", dir=scratch, ignore_cleanup_errors=True)
            )
        )
        if name == "directory":
            yield Store(name, str(folder), None, {})
            return
        try:
            url, log, environment = stack.enter_context(_served(name, folder, address))
        except pytest.skip.Exception as why:
            raise SystemExit(f"{name}: {why}") from None
        before = {key: os.environ.get(key) for key in environment}
        os.environ.update(environment)
        try:
            yield Store(name, url, log, environment)
        finally:
            for key, value in before.items():
                os.environ.pop(key, None) if value is None else os.environ.update({key: value})


@contextlib.contextmanager
def _served(name: str, folder: Path, address: str) -> Iterator[tuple[str, Path, dict[str, str]]]:
    bucket = f"scibox-{uuid.uuid4().hex[:8]}"
    if name == "moto":
        log = folder / "moto.log"
        processes, [port] = Processes(folder), free_ports(1)
        try:
            command = [program("python"), HERE / "counted_moto.py", str(port)]
            processes.start("moto", command)
            processes.await_answer(f"http://127.0.0.1:{port}")
            environment = keys_of(f"http://127.0.0.1:{port}", "someone", "anything")
            run(MAKE_BUCKET, json.dumps(environment), bucket)
            yield f"s3://{bucket}", log, environment
        finally:
            processes.stop()
        return
    with contextlib.ExitStack() as stack:
        cache = stack.enter_context(_memcached(folder))
        s3, native = stack.enter_context(swift(folder, is_logged=True, memcached=cache, address=address))
        served = native if name == "swift" else s3
        environment = dict(served.environment)
        if name == "swift-s3":
            run(MAKE_BUCKET, json.dumps(environment), bucket)
        else:
            # A first object makes the container.
            os.environ.update(environment)
            Objects(f"swift://{bucket}/first").put("object", b"")
        yield f"{served.scheme}://{bucket}", folder / "proxy.log", environment


@contextlib.contextmanager
def _memcached(folder: Path) -> Iterator[str]:
    """Run memcached, without which Swift asks for account and container in each request."""
    found = shutil.which("memcached")
    if found is None:
        raise SystemExit("there is no memcached: `make scibox-packages` installs it")
    processes, [port] = Processes(folder), free_ports(1)
    user = pwd.getpwuid(os.getuid()).pw_name
    try:
        command = [found, "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-m", "16", "-u", user]
        processes.start("memcached", command)
        yield f"127.0.0.1:{port}"
    finally:
        processes.stop()


def versions() -> dict[str, str]:
    """Return the versions of the stores; none where they are not installed."""
    try:
        python = program("python")
    except pytest.skip.Exception:
        return {}
    script = (
        "import importlib.metadata as m, json;"
        "print(json.dumps({n: m.version(n) for n in ('swift', 'moto', 'eventlet')}))"
    )
    told = subprocess.run([python, "-c", script], check=True, capture_output=True, text=True)
    return dict(json.loads(told.stdout))
