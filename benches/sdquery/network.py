"""A wide area network inside this machine: namespaces, a veth pair with a rate, and a line with a delay.

    client                          router                              server
    wan0 (TUN) ==== relay ====== wan0 (TUN)   r0 (veth) ============ s0 (veth)
    10.77.0.1     RTT / 2 each   10.77.0.2    10.77.1.2  tbf  tbf   10.77.1.1

`tc tbf` at both ends of the veth pair gives the rate in both directions, its queue is that of the bottleneck;
the relay (`relay.c`) delays packets between two TUN devices. Everything is removed when the block is left, by
an error too. Nothing outside of the three namespaces is changed but their directories in /etc/netns, and no
address of the machine is used.
"""

import contextlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

HERE = Path(__file__).resolve().parent
CLIENT_ADDRESS, SERVER_ADDRESS = "10.77.0.1", "10.77.1.1"
MTU = 1500
# `ip netns exec` mounts what lies here over the files of /etc.
RESOLVING = Path("/etc/netns")
BULK_PORT = 5009
PROGRAMS = {"ip": "iproute2", "tc": "iproute2", "ping": "iputils-ping", "cc": "gcc"}


@dataclass(frozen=True)
class Line:
    """What a network is to be like.

    Attributes
    ----------
    rate
        Bits per second in each direction, counted with Ethernet headers; 0 for no limit.
    rtt
        Seconds of a round trip on the idle line.
    """

    name: str
    rate: int
    rtt: float

    @property
    def bytes_in_flight(self) -> int:
        """The product of bandwidth and delay, in bytes."""
        return int(self.rate * self.rtt / 8)

    @property
    def queue(self) -> int:
        """Bytes that wait at the bottleneck: one bandwidth-delay product, and 1 MiB at least."""
        return max(1 << 20, self.bytes_in_flight)

    @property
    def burst(self) -> int:
        """Bytes that may pass at once: 1 ms of the rate, between four packets and two uncut segments."""
        return min(max(4 * MTU, self.rate // 8000), 1 << 17)


# SC13, section 5: LAN, two clusters of a campus, WAN.
LINES = (
    Line("1 Gb/s", 10**9, 0.17e-3),
    Line("200 Mb/s", 200 * 10**6, 24e-3),
    Line("20 Mb/s", 20 * 10**6, 60e-3),
)
# What the machine carries without a rate and a delay.
UNLIMITED = Line("no limit", 0, 0.0)


@dataclass(frozen=True)
class Measured:
    """What a network was like: round trips in ms, TCP goodput of one stream in Mb/s, and what was lost."""

    rate: int
    rtt_wanted: float
    rtt_least: float
    rtt_mean: float
    rtt_most: float
    ping_lost: str
    goodput: float
    dropped_at_queue: int
    retransmitted: int
    congestion_control: str
    mtu: int = MTU

    def asdict(self) -> dict[str, object]:
        """Return the figures for JSON."""
        return asdict(self)


def missing() -> list[str]:
    """Return what keeps networks from being made here, as sentences."""
    faults = [
        f"{program} is not installed (package {package})"
        for program, package in PROGRAMS.items()
        if not shutil.which(program)
    ]
    if os.geteuid() != 0:
        faults.append("only root can make network namespaces")
    if not Path("/dev/net/tun").exists():
        faults.append("there is no /dev/net/tun")
    return faults


def build_relay(directory: Path) -> Path:
    """Compile the relay; return the program."""
    program = directory / "relay"
    source = HERE / "relay.c"
    command = ["cc", "-O2", "-Wall", "-Wextra", "-pthread", "-o", str(program), str(source)]
    subprocess.run(command, check=True)
    return program


class Network:
    """A network that exists inside a ``with`` block.

    Parameters
    ----------
    line
        Its rate and round-trip time.
    relay
        The compiled relay.
    own
        Seconds of a round trip that the machine itself takes, which the relay need not add.

    Examples
    --------
    >>> with Network(LINES[0], build_relay(Path("/tmp"))) as network:  # doctest: +SKIP
    ...     network.run_at_client(["ping", "-c", "1", SERVER_ADDRESS])
    """

    def __init__(self, line: Line, relay: Path, own: float = 0.0) -> None:
        self.line = line
        self.own = own
        # As many networks at a time as there are benchmarks that run.
        self.names = {role: f"sdq{os.getpid()}{role}" for role in ("client", "router", "server")}
        self.lost: dict[str, dict[str, int]] = {}
        self._relay = relay
        self._stack = contextlib.ExitStack()
        self._delay: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            for role, name in self.names.items():
                _ip("netns", "add", name)
                stack.callback(_ip, "netns", "del", name)
                stack.callback(_end_all, name)
                _name_hosts(name, CLIENT_ADDRESS if role == "client" else SERVER_ADDRESS)
                stack.callback(shutil.rmtree, RESOLVING / name)
            self._connect()
            stack.callback(self._stop_relay)
            self._start_relay()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _connect(self) -> None:
        client, router, server = self.names.values()
        _ip("link", "add", "r0", "netns", router, "type", "veth", "peer", "name", "s0", "netns", server)
        for name, device in ((client, "wan0"), (router, "wan0")):
            _ip("-n", name, "tuntap", "add", "dev", device, "mode", "tun", "vnet_hdr")
        addresses = (
            (client, "wan0", f"{CLIENT_ADDRESS}/30"),
            (router, "wan0", "10.77.0.2/30"),
            (router, "r0", "10.77.1.2/30"),
            (server, "s0", f"{SERVER_ADDRESS}/30"),
        )
        for name, device, address in addresses:
            _ip("-n", name, "address", "add", address, "dev", device)
            # A device's own queue must not lose what the relay has not yet read.
            _ip("-n", name, "link", "set", device, "mtu", str(MTU), "txqueuelen", "10000", "up")
        for name in (client, server):
            _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", client, "route", "add", "default", "via", "10.77.0.2")
        _ip("-n", server, "route", "add", "default", "via", "10.77.1.2")
        self._set(router, ip_forward=1)
        # No memory of earlier transfers; buffers of 32 MiB are many times any product of rate and delay here.
        for name in (client, server):
            self._set(name, tcp_no_metrics_save=1)
            self._set(name, tcp_rmem="4096 131072 33554432", tcp_wmem="4096 65536 33554432")
        if self.line.rate:
            for name, device in ((router, "r0"), (server, "s0")):
                shape = ["rate", f"{self.line.rate}bit", "burst", str(self.line.burst)]
                limit = ["limit", str(self.line.queue)]
                _run(["tc", "-n", name, "qdisc", "add", "dev", device, "root", "tbf", *shape, *limit])

    def _set(self, name: str, **values: object) -> None:
        for key, value in values.items():
            _run(["ip", "netns", "exec", name, "sysctl", "-q", "-w", f"net.ipv4.{key}={value}"])

    def _start_relay(self) -> None:
        client, router, _ = self.names.values()
        delay = str(max(0.0, self.line.rtt - self.own) / 2 * 1e6)
        command = [str(self._relay), client, "wan0", router, "wan0", delay, str(64 << 20)]
        self._delay = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if not self._delay.stdout or self._delay.stdout.readline() != "ready\n":
            raise SystemExit("the relay of the network did not start")

    def _stop_relay(self) -> None:
        if self._delay:
            self._delay.send_signal(signal.SIGTERM)
            told, _ = self._delay.communicate(timeout=10)
            self.lost = json.loads(told or "{}")

    def client_command(self, words: list[str]) -> list[str]:
        """Return a command as it is run at the client's side."""
        return ["ip", "netns", "exec", self.names["client"], *words]

    def server_command(self, words: list[str]) -> list[str]:
        """Return a command as it is run at the server's side."""
        return ["ip", "netns", "exec", self.names["server"], *words]

    def run_at_client(self, words: list[str]) -> str:
        """Run a command at the client's side; return what it printed."""
        return _run(self.client_command(words))

    def dropped(self) -> int:
        """Return how many packets the queues of the bottleneck have dropped, both directions together."""
        told = [
            _run(["tc", "-n", self.names[role], "-s", "qdisc", "show", "dev", device])
            for role, device in (("router", "r0"), ("server", "s0"))
        ]
        return sum(int(number) for text in told for number in re.findall(r"dropped (\d+)", text))

    def retransmitted(self) -> int:
        """Return how many TCP segments the server's side has sent again."""
        text = _run(self.server_command(["cat", "/proc/net/snmp"]))
        names, values = (line.split() for line in text.splitlines() if line.startswith("Tcp:"))
        return int(values[names.index("RetransSegs")])

    def _congestion_control(self) -> str:
        # What the machine does: a namespace may choose only among those that the machine allows to users.
        key = "net.ipv4.tcp_congestion_control"
        return _run(self.server_command(["sysctl", "-n", key])).strip()

    def verify(self, seconds: float = 4.0) -> Measured:
        """Measure round trips by ping on the idle line, and the rate by a bulk TCP transfer."""
        # The first packet waits for the addresses of the veth pair; ping fails only where none is answered.
        self.run_at_client(["ping", "-q", "-i", "0.2", "-c", "5", SERVER_ADDRESS])
        told = self.run_at_client(["ping", "-q", "-i", "0.02", "-c", "50", SERVER_ADDRESS])
        least, mean, most = _round_trips(told)
        lost = re.search(r"([\d.]+)% packet loss", told)
        with self._sender(seconds):
            fetch = [sys.executable, str(HERE / "bulk.py"), "fetch", SERVER_ADDRESS, str(BULK_PORT)]
            goodput = float(self.run_at_client([*fetch, str(seconds / 2)])) * 8e-6
        return Measured(
            self.line.rate,
            self.line.rtt * 1e3,
            least,
            mean,
            most,
            f"{lost[1]} %" if lost else "unknown",
            round(goodput, 1),
            self.dropped(),
            self.retransmitted(),
            self._congestion_control(),
        )

    @contextlib.contextmanager
    def _sender(self, seconds: float) -> Iterator[None]:
        words = [sys.executable, str(HERE / "bulk.py"), "serve", SERVER_ADDRESS, str(BULK_PORT), str(seconds)]
        with subprocess.Popen(self.server_command(words), stdout=subprocess.PIPE, text=True) as sender:
            try:
                if not sender.stdout or sender.stdout.readline() != "ready\n":
                    raise SystemExit("the sender of the bulk transfer did not start")
                yield
            finally:
                sender.terminate()


def _name_hosts(name: str, address: str) -> None:
    """Give a namespace a table of hosts and no name server: nobody asks others for the names of addresses."""
    own = RESOLVING / name
    own.mkdir(parents=True)
    hosts = f"127.0.0.1 localhost\n{CLIENT_ADDRESS} client.wan\n{SERVER_ADDRESS} server.wan\n"
    # Both programs look up the machine's own name.
    hosts += f"{address} {platform.node()}\n"
    (own / "hosts").write_text(hosts, encoding="ascii")
    (own / "resolv.conf").write_text("", encoding="ascii")


def _end_all(name: str) -> None:
    """End what still runs in a namespace: sessions of a server outlive it, and would keep the namespace."""
    for process in _run(["ip", "netns", "pids", name]).split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(process), signal.SIGTERM)


def _round_trips(told: str) -> tuple[float, float, float]:
    """Return the least, mean and longest round trip that ping tells of, in ms."""
    found = re.search(r"= ([\d.]+)/([\d.]+)/([\d.]+)", told)
    if not found:
        raise SystemExit(f"the server's side does not answer a ping: {told}")
    least, mean, most = (float(number) for number in found.groups())
    return least, mean, most


def _ip(*words: str) -> None:
    _run(["ip", *words])


def _run(words: list[str]) -> str:
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
