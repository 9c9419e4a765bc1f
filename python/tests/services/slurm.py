"""A Slurm cluster on loopback: munged, slurmctld and two slurmd, in the foreground, stopped by their ids.

Both nodes are this host, under two names and ports. Without accounting, as small clusters are.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from services.processes import free_ports

SECONDS = 240
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "sinfo")
# Daemons are installed where a user's PATH may not lead.
PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
NODES = ("n1", "n2")


def is_missing() -> str | None:
    """Return the programs that are not installed, as a reason to skip; None: they all are."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    return f"no {', '.join(missing)}: `make slurm-packages` installs them" if missing else None


class Cluster:
    """Daemons of Slurm, each a child of this process."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.conf = directory / "slurm.conf"
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("state", "log", "munge"):
            (directory / name).mkdir(mode=0o700)
        directory.chmod(0o755)
        self._write_conf()

    def _write_conf(self) -> None:
        host, user = socket.gethostname().partition(".")[0], getpass.getuser()
        controller, *nodes = free_ports(1 + len(NODES))
        d = self.directory
        lines = [
            "ClusterName=test",
            f"SlurmctldHost={host}(127.0.0.1)",
            f"SlurmctldPort={controller}",
            f"SlurmUser={user}",
            f"SlurmdUser={user}",
            f"AuthInfo=socket={d}/munge/munge.sock",
            f"StateSaveLocation={d}/state",
            f"SlurmdSpoolDir={d}/spool.%n",
            f"SlurmctldPidFile={d}/slurmctld.pid",
            f"SlurmdPidFile={d}/slurmd.%n.pid",
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "JobAcctGatherType=jobacct_gather/none",
            "AccountingStorageType=accounting_storage/none",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core_Memory",
            "SchedulerParameters=sched_min_interval=0,sched_interval=1,batch_sched_delay=0",
            "ReturnToService=2",
            "KillWait=5",
            # A node that is gone is noticed soon.
            "SlurmdTimeout=5",
            "MessageTimeout=5",
            "MinJobAge=3600",
            "PropagateResourceLimits=NONE",
            # More cores than there are: what is tested is not their speed.
            "SlurmdParameters=config_overrides",
            *(
                f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 RealMemory=8000"
                for name, port in zip(NODES, nodes, strict=True)
            ),
            "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
        ]
        self.conf.write_text("\n".join(lines) + "\n")

    def start(self) -> None:
        """Start all daemons and wait until both nodes are there."""
        key = self.directory / "munge" / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(1024))
        self._start_munge()
        self.start_missing()
        await_that(lambda: self.idle_nodes() == len(NODES), "two idle nodes", self.said)

    def _start_munge(self) -> None:
        d = self.directory / "munge"
        places = {"key-file": "munge.key", "socket": "munge.sock", "pid-file": "munged.pid"}
        places |= {"log-file": "munged.log", "seed-file": "munged.seed"}
        words = [f"--{option}={d / name}" for option, name in places.items()]
        # Its directory lies in one that others may write to.
        self._start("munged", "munged", "--foreground", "--force", *words)
        await_that((d / "munge.sock").exists, "munged", self.said)

    def start_controller(self) -> None:
        """Start slurmctld, which knows what it knew."""
        self._start("slurmctld", "slurmctld", "-D")

    def start_node(self, name: str) -> None:
        """Start the slurmd of a node."""
        self._start(name, "slurmd", "-D", "-N", name)

    def _start(self, name: str, program: str, *words: str) -> None:
        path = shutil.which(program, path=PATH)
        assert path is not None
        with (self.directory / "log" / f"{name}.log").open("ab") as log:
            self._daemons[name] = subprocess.Popen(
                [path, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "SLURM_CONF": str(self.conf)},
            )

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """End a daemon at once: ``"slurmctld"``, ``"n1"``."""
        process = self._daemons.pop(name)
        process.send_signal(number)
        process.wait(SECONDS)

    def kill_node(self, name: str) -> None:
        """End a node at once, with all that runs there, once something does."""
        await_that(lambda: self._processes_of(name), f"a task on {name}", self.said)
        self.kill(name)
        self._kill_tasks(name)

    def _kill_tasks(self, node: str) -> None:
        """End the tasks of a node, and who looks after each: a child of pid 1, for slurmd detaches it."""
        for pid in self._processes_of(node):
            parent = _parent(pid)
            if parent and b"slurmstepd" in _read(parent, "cmdline"):
                _kill(parent)
            _kill(pid)

    def _processes_of(self, node: str) -> list[int]:
        marks = (f"SLURMD_NODENAME={node}".encode(), f"SLURM_CONF={self.conf}".encode())
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
        return [pid for pid in pids if set(marks) <= set(_read(pid, "environ").split(b"\0"))]

    def ask(self, *command: str) -> str:
        """Run a program of Slurm; return what it prints."""
        done = subprocess.run(
            command,
            env={**os.environ, "SLURM_CONF": str(self.conf)},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout if done.returncode == 0 else ""

    def idle_nodes(self) -> int:
        """Return how many nodes wait for work."""
        return len(self.ask("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split())

    def running(self) -> int:
        """Return how many tasks run."""
        return len(self.ask("squeue", "-h", "-r", "-t", "running", "-o", "%i").split())

    def tidy(self) -> None:
        """End what a test that failed has left: its jobs, which wait for a gate; start what it has killed.

        Else all tests behind it wait for the nodes.
        """
        self.start_missing()
        if self.ask("squeue", "-h", "-o", "%i").split():
            self.ask("scancel", "-u", getpass.getuser())
            for node in NODES:
                self._kill_tasks(node)
        await_that(lambda: self.idle_nodes() == len(NODES), "two idle nodes", self.said)

    def start_missing(self) -> None:
        """Start the daemons that were killed and not started again."""
        if "slurmctld" not in self._daemons:
            self.start_controller()
        for node in NODES:
            if node not in self._daemons:
                self.start_node(node)

    def said(self) -> str:
        """Return the ends of the daemons' logs."""
        logs = sorted((self.directory / "log").glob("*.log"))
        return "\n".join(f"{log.name}:\n{log.read_text(errors='replace')[-1500:]}" for log in logs)

    def stop(self) -> None:
        """End everything, jobs first."""
        self.ask("scancel", "-u", getpass.getuser())
        for node in NODES:
            self._kill_tasks(node)
        for process in reversed(self._daemons.values()):
            process.terminate()
        for process in self._daemons.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._daemons.clear()


@contextlib.contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Start a cluster, and let this process ask it; skip the tests where Slurm is not installed."""
    if reason := is_missing():
        pytest.skip(reason)
    # A socket's path has 108 bytes at most.
    with tempfile.TemporaryDirectory(prefix="sieva-slurm-", ignore_cleanup_errors=True) as place:
        cluster = Cluster(Path(place))
        before = os.environ.get("SLURM_CONF")
        os.environ["SLURM_CONF"] = str(cluster.conf)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
            if before is None:
                del os.environ["SLURM_CONF"]
            else:
                os.environ["SLURM_CONF"] = before


def await_that(is_so: Callable[[], object], what: str, said: Callable[[], str] = str) -> None:
    """Wait until something is so."""
    until = time.monotonic() + SECONDS
    while not is_so():
        if time.monotonic() > until:
            raise RuntimeError(f"waited {SECONDS} s for {what}: {said()}")
        time.sleep(0.05)


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _parent(pid: int) -> int:
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return int(fields[1]) if fields else 0


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
