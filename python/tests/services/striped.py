"""File systems that deal files to servers, on loopback: CephFS and GlusterFS, mounted by FUSE.

Their daemons run in the foreground as children of this process, and are stopped by their ids. Root only, as
mounting is. What is kept is small: one OSD in memory, and bricks that are directories.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from services.processes import Processes, free_ports

SECONDS = 60
PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
CEPH = ("ceph", "ceph-mon", "ceph-osd", "ceph-mds", "ceph-fuse", "monmaptool", "ceph-authtool")
GLUSTER = ("glusterfsd", "glusterfs")


def _needs(*programs: str) -> None:
    """Skip the test where one of the programs is not there, or nothing can be mounted."""
    missing = [name for name in programs if shutil.which(name, path=PATH) is None]
    if missing:
        pytest.skip(f"no {', '.join(missing)}: `make striped-packages` installs them")
    if os.geteuid() != 0 or not Path("/dev/fuse").exists():
        pytest.skip("mounting takes root and /dev/fuse")


@contextlib.contextmanager
def ceph(directory: Path) -> Iterator[Path]:
    """Run CephFS below a directory, which gives where it is mounted: a monitor, an OSD, a metadata server."""
    _needs(*CEPH)
    mounted = directory / "mnt"
    mounted.mkdir()
    # Names of sockets have at most 107 bytes, and directories of tests are long.
    with tempfile.TemporaryDirectory(prefix="ceph-") as run:
        yield from _ceph(directory, mounted, _ceph_conf(directory, Path(run)))


def _ceph(directory: Path, mounted: Path, conf: Path) -> Iterator[Path]:
    c = ["-c", str(conf)]
    keyring, monmap = directory / "keyring", directory / "monmap"
    _run("ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
    address = next(
        line.split("= ")[1] for line in conf.read_text().splitlines() if line.startswith("mon host")
    )
    fsid = next(line.split("= ")[1] for line in conf.read_text().splitlines() if line.startswith("fsid"))
    _run("monmaptool", "--create", "--clobber", "--fsid", fsid, "--addv", "a", address, monmap)
    _run("ceph-mon", *c, "-i", "a", "--mkfs", "--monmap", monmap, "--keyring", keyring)
    processes = Processes(directory / "log")
    try:
        _start_monitor(processes, c)
        osd = str(uuid.uuid4())
        _run("ceph", *c, "--connect-timeout", "30", "osd", "new", osd, "0")
        (directory / "osd.0").mkdir()
        _run("ceph-osd", *c, "-i", "0", "--mkfs", "--osd-uuid", osd)
        processes.start("osd", ["ceph-osd", *c, "-i", "0", "-f"], PATH=PATH)
        for pool in ("meta", "data"):
            _run("ceph", *c, "osd", "pool", "create", pool, "8")
        _run("ceph", *c, "fs", "new", "fs", "meta", "data")
        processes.start("mds", ["ceph-mds", *c, "-i", "m", "-f"], PATH=PATH)
        _until("a metadata server", lambda: "up:active" in _run("ceph", *c, "mds", "stat"))
        processes.start("fuse", ["ceph-fuse", *c, "-n", "client.admin", "-f", mounted], PATH=PATH)
        _until("the mount", lambda: os.path.ismount(mounted))
        yield mounted
    finally:
        _unmount(mounted)
        processes.stop()


def _start_monitor(processes: Processes, c: Sequence[str]) -> None:
    """Start a monitor; one that does not answer, as some do that are started at once after `--mkfs`, anew."""
    for last in (False, False, True):
        processes.start("mon", ["ceph-mon", *c, "-i", "a", "-f"], PATH=PATH)
        try:
            _run("ceph", *c, "--connect-timeout", "15", "mon", "stat")
        except RuntimeError:
            if last:
                raise
            processes.stop()
        else:
            return


def _ceph_conf(directory: Path, run: Path) -> Path:
    for name in ("log", "mon", "mds"):
        (directory / name).mkdir()
    v2, v1, *rest = free_ports(4)
    d = directory
    lines = [
        "[global]",
        f"fsid = {uuid.uuid4()}",
        f"mon host = [v2:127.0.0.1:{v2},v1:127.0.0.1:{v1}]",
        "public addr = 127.0.0.1",
        f"ms bind port min = {min(rest)}",
        f"ms bind port max = {min(rest) + 200}",
        *(f"auth {of} required = none" for of in ("cluster", "service", "client")),
        f"mon data = {d}/mon",
        f"mds data = {d}/mds",
        f"osd data = {d}/osd.$id",
        f"run dir = {run}",
        f"admin socket = {run}/$name.$pid.asok",
        f"log file = {d}/log/$type.$id.txt",
        "osd objectstore = memstore",
        "memstore device bytes = 268435456",
        "osd pool default size = 1",
        "osd pool default min size = 1",
        "osd pool default pg autoscale mode = off",
        "osd crush chooseleaf type = 0",
        "mon allow pool size one = true",
    ]
    path = directory / "ceph.conf"
    path.write_text("\n".join([*lines, ""]))
    return path


@contextlib.contextmanager
def gluster(directory: Path, *, bricks: int = 2, shards: str = "4MB", patience: int = 42) -> Iterator[Path]:
    """Run a GlusterFS volume of sharded files below a directory, which gives where it is mounted.

    A brick that says nothing for `patience` seconds is given up.
    """
    _needs(*GLUSTER)
    mounted, log = directory / "mnt", directory / "log"
    mounted.mkdir()
    log.mkdir()
    processes = Processes(log)
    ports = free_ports(bricks)
    try:
        for number, port in enumerate(ports):
            (directory / f"brick{number}").mkdir()
            volume = _brick(directory, number, port)
            logged = ["-l", log / f"brick{number}.txt"]
            processes.start(f"brick{number}", ["glusterfsd", "-N", "-f", volume, *logged], PATH=PATH)
        volume = _client(directory, ports, shards, patience)
        options = ["-N", "-f", volume, "-l", log / "client.txt", "--direct-io-mode=disable"]
        processes.start("client", ["glusterfs", *options, mounted], PATH=PATH)
        _until("the mount", lambda: os.path.ismount(mounted) and _is_written(mounted))
        yield mounted
    finally:
        _unmount(mounted)
        processes.stop()


def _volume(name: str, kind: str, *lines: str) -> str:
    return "\n".join([f"volume {name}", f" type {kind}", *(f" {line}" for line in lines), "end-volume", ""])


def _brick(directory: Path, number: int, port: int) -> Path:
    name = f"brick{number}"
    path = directory / f"{name}.vol"
    path.write_text(
        _volume("posix", "storage/posix", f"option directory {directory / name}")
        + _volume("locks", "features/locks", "subvolumes posix")
        + _volume(name, "performance/io-threads", "subvolumes locks")
        + _volume(
            "server",
            "protocol/server",
            "option transport-type tcp",
            "option transport.address-family inet",
            "option transport.socket.bind-address 127.0.0.1",
            f"option transport.socket.listen-port {port}",
            f"option auth.addr.{name}.allow *",
            f"subvolumes {name}",
        )
    )
    return path


def _client(directory: Path, ports: Sequence[int], shards: str, patience: int) -> Path:
    names = [f"c{number}" for number in range(len(ports))]
    each = [
        _volume(
            name,
            "protocol/client",
            "option transport-type tcp",
            "option transport.address-family inet",
            "option remote-host 127.0.0.1",
            f"option remote-port {port}",
            f"option remote-subvolume brick{number}",
            f"option ping-timeout {patience}",
        )
        for number, (name, port) in enumerate(zip(names, ports, strict=True))
    ]
    path = directory / "client.vol"
    path.write_text(
        "".join(each)
        + _volume("dht", "cluster/distribute", f"subvolumes {' '.join(names)}")
        + _volume("shard", "features/shard", f"option shard-block-size {shards}", "subvolumes dht")
    )
    return path


def _is_written(mounted: Path) -> bool:
    """Whether a file can be made: a mount is there before its bricks are."""
    with contextlib.suppress(OSError):
        probe = mounted / "probe"
        probe.touch()
        probe.unlink()
        return True
    return False


def _run(*command: str | Path) -> str:
    words = [os.fspath(word) for word in command]
    ran = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": PATH},
        check=False,
    )
    if ran.returncode != 0:
        raise RuntimeError(f"{words!r} ended with {ran.returncode}: {ran.stderr[-2000:]}")
    return ran.stdout


def _until(what: str, is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not is_so():
        if time.monotonic() > until:
            raise RuntimeError(f"{what} is not there after {SECONDS} s")
        time.sleep(0.1)


def _unmount(mounted: Path) -> None:
    if os.path.ismount(mounted):
        _run("umount", "-l", mounted)
