"""CephFS on loopback for a benchmark: OSDs that keep objects in memory, and a mount for each node.

Nodes are ceph-fuse processes of their own, so that none of them sees what another has in its cache. All
daemons are
children of this process, in the foreground; `Ceph.close` ends them. Needs root and /dev/fuse: ``make hila-
packages``.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import struct
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PROGRAMS = ("ceph", "ceph-mon", "ceph-mgr", "ceph-osd", "ceph-mds", "ceph-fuse", "monmaptool", "setfattr")
# Seconds until what does not come up is given up.
DEADLINE = 60
CONF = """[global]
fsid = {fsid}
mon host = {address}
public addr = 127.0.0.1
ms bind port min = {low}
ms bind port max = {high}
auth cluster required = none
auth service required = none
auth client required = none
mon data = {d}/mon
mgr data = {d}/mgr
mds data = {d}/mds
osd data = {d}/osd.$id
run dir = {d}/run
admin socket = {d}/run/$name.$pid.asok
log file = {d}/log/$name.log
osd objectstore = memstore
memstore device bytes = {room}
osd pool default size = 1
osd pool default min size = 1
osd pool default pg autoscale mode = off
mon allow pool size one = true
mon data avail warn = 1
mon data avail crit = 0
osd crush chooseleaf type = 0
mgr initial modules =
client oc = false
client use random mds = true
"""


def missing() -> str | None:
    """Return what keeps this machine from running it, None where nothing does."""
    gone = [name for name in PROGRAMS if shutil.which(name) is None]
    if gone:
        return f"no {', '.join(gone)}: make hila-packages"
    if os.geteuid() or not Path("/dev/fuse").exists():
        return "CephFS is mounted by root, with /dev/fuse"
    return None


class Ceph:
    """A cluster, and a file system that is mounted once for each node.

    Parameters
    ----------
    directory
        A new one; all files of the daemons go there, and mounts to ``directory/node-I``.
    osds, nodes
        How many object servers and mounts.
    room
        Bytes of memory of each OSD.
    """

    def __init__(self, directory: Path, osds: int = 4, nodes: int = 4, room: int = 4 << 30) -> None:
        self.directory = directory
        self.osds = osds
        self.mounts = [directory / f"node-{i}" for i in range(nodes)]
        self._daemons: list[subprocess.Popen[bytes]] = []
        for name in ("log", "run", "mon", "mgr", "mds"):
            (directory / name).mkdir(parents=True)
        try:
            self._start(room)
        except BaseException:
            self.close()
            raise

    def _start(self, room: int) -> None:
        d, fsid = self.directory, str(uuid.uuid4())
        port = _free_port()
        address = f"[v2:127.0.0.1:{port},v1:127.0.0.1:{port + 1}]"
        conf = CONF.format(fsid=fsid, address=address, low=port + 2, high=port + 200, d=d, room=room)
        (d / "ceph.conf").write_text(conf)
        _run("monmaptool", "--create", "--clobber", "--fsid", fsid, "--addv", "a", address, str(d / "monmap"))
        _run(
            "ceph-authtool",
            "--create-keyring",
            str(d / "keyring"),
            "--gen-key",
            "-n",
            "mon.",
            "--cap",
            "mon",
            "allow *",
        )
        conf_of = ("-c", str(d / "ceph.conf"))
        _run(
            "ceph-mon",
            *conf_of,
            "-i",
            "a",
            "--mkfs",
            "--monmap",
            str(d / "monmap"),
            "--keyring",
            str(d / "keyring"),
        )
        self._daemon("ceph-mon", "-i", "a")
        self.ceph("mon", "stat")
        self._daemon("ceph-mgr", "-i", "x")
        for i in range(self.osds):
            (d / f"osd.{i}").mkdir()
            own = str(uuid.uuid4())
            self.ceph("osd", "new", own, str(i))
            _run("ceph-osd", *conf_of, "-i", str(i), "--mkfs", "--osd-uuid", own)
            self._daemon("ceph-osd", "-i", str(i))
        self.ceph("osd", "pool", "create", "meta", "8")
        self.ceph("osd", "pool", "create", "data", "256")
        self.ceph("fs", "new", "fs", "meta", "data")
        self._daemon("ceph-mds", "-i", "m")
        _await(lambda: "up:active" in self.ceph("mds", "stat"), "the metadata server is not active")
        for mount in self.mounts:
            mount.mkdir()
            self._daemon("ceph-fuse", "-n", "client.admin", str(mount))
        for mount in self.mounts:
            _await(mount.is_mount, f"{mount} is not mounted")

    def _daemon(self, program: str, *arguments: str) -> None:
        command = [program, "-c", str(self.directory / "ceph.conf"), "-f", *arguments]
        log = self.directory / "log" / f"{program}-{len(self._daemons)}.out"
        with log.open("wb") as out:
            self._daemons.append(subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True))

    def ceph(self, *words: str) -> str:
        """Return what the command ``ceph`` says."""
        return _run("ceph", "-c", str(self.directory / "ceph.conf"), "--connect-timeout", "20", *words)

    def folder(self, name: str, stripe: int, count: int) -> str:
        """Make a directory whose files lie in stripes of `stripe` bytes, each an object; return its name."""
        path = self.mounts[0] / name
        path.mkdir()
        layout = f"stripe_unit={stripe} stripe_count={count} object_size={stripe}"
        _run("setfattr", "-n", "ceph.dir.layout", "-v", layout, str(path))
        return name

    def spread(self, path: Path, objects: int) -> None:
        """Put the objects of a file that is not written yet on the OSDs in turn, as stripes of Lustre lie.

        CephFS places by a hash, which leaves some OSDs without any of a few large objects. Where two
        objects have
        the same hash, the second goes where the first is.
        """
        inode = path.stat().st_ino
        self.ceph("osd", "set-require-min-compat-client", "luminous")
        placed: set[str] = set()
        for i in range(objects):
            told = json.loads(self.ceph("osd", "map", "data", f"{inode:x}.{i:08x}", "-f", "json"))
            if told["pgid"] not in placed:
                placed.add(told["pgid"])
                self.ceph("osd", "pg-upmap", told["pgid"], str(i % self.osds))
        _await(
            lambda: (
                "unclean" not in self.ceph("health", "detail") and "peering" not in self.ceph("pg", "stat")
            ),
            "placement",
        )

    def traffic(self) -> dict[str, list[int]]:
        """Return what each OSD has read for clients so far: ``op_r`` and ``op_r_out_bytes``."""
        found: dict[str, list[int]] = {"requests": [], "bytes": []}
        for i in range(self.osds):
            (path,) = (self.directory / "run").glob(f"osd.{i}.*.asok")
            counters = asked(path, "perf dump")["osd"]
            found["requests"].append(counters["op_r"])
            found["bytes"].append(counters["op_r_out_bytes"])
        return found

    def cpu(self) -> dict[str, float]:
        """Return the seconds of processor time that OSDs and mounts have taken so far."""
        found = {"servers": 0.0, "mounts": 0.0}
        for daemon in self._daemons:
            program = str(daemon.args[0])  # type: ignore[index]
            who = {"ceph-osd": "servers", "ceph-fuse": "mounts"}.get(program)
            if who is not None:
                fields = Path(f"/proc/{daemon.pid}/stat").read_text().rpartition(")")[2].split()
                found[who] += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return found

    def holders(self, path: Path) -> list[int]:
        """Return the OSD of each object of a file."""
        told = os.getxattr(path, "ceph.file.layout").decode()
        size = int(dict(word.split("=") for word in told.split())["object_size"])
        inode = path.stat().st_ino
        objects = -(-path.stat().st_size // size)
        return [
            json.loads(self.ceph("osd", "map", "data", f"{inode:x}.{i:08x}", "-f", "json"))["acting_primary"]
            for i in range(objects)
        ]

    def close(self) -> None:
        """Unmount, and end the daemons."""
        for mount in self.mounts:
            if mount.is_mount():
                subprocess.run(["umount", "-l", str(mount)], check=False, capture_output=True)
        for daemon in reversed(self._daemons):
            daemon.terminate()
        for daemon in reversed(self._daemons):
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self._daemons.clear()


@contextlib.contextmanager
def running(directory: Path, **options: int) -> Iterator[Ceph]:
    """Yield a cluster in a directory that is made, and removed at the end."""
    cluster = Ceph(directory, **options)
    try:
        yield cluster
    finally:
        cluster.close()
        shutil.rmtree(directory, ignore_errors=True)


def asked(path: Path, command: str) -> dict[str, Any]:
    """Return what a daemon says on its admin socket."""
    with socket.socket(socket.AF_UNIX) as link:
        # The path of a socket has at most 107 bytes.
        where = os.open(path.parent, os.O_RDONLY)
        try:
            link.connect(f"/proc/self/fd/{where}/{path.name}")
        finally:
            os.close(where)
        link.sendall(json.dumps({"prefix": command}).encode() + b"\0")
        with link.makefile("rb") as told:
            (size,) = struct.unpack(">I", told.read(4))
            found: dict[str, Any] = json.loads(told.read(size))
            return found


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def _await(is_so: Callable[[], bool], otherwise: str) -> None:
    end = time.monotonic() + DEADLINE
    while not is_so():
        if time.monotonic() > end:
            raise RuntimeError(otherwise)
        time.sleep(0.2)


def _free_port() -> int:
    """Return a port behind which some hundred are likely to be free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return 10_000 + int(probe.getsockname()[1]) % 20_000
