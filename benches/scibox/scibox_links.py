"""Links of consumers elsewhere, shaped for real: each consumer in a network namespace whose rate `tc` bounds.

    consumer 0 (namespace)  e0 ==== v0 (tbf) |
    consumer 1 (namespace)  e1 ==== v1 (tbf) | bridge, 10.78.0.1: the store
    ...                                      |

Both ends of each pair have the rate, so that it is that of either direction. All is removed when the block is
left, by an error too; nothing else of the machine is changed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

STORE_ADDRESS = "10.78.0.1"
# Packets of an Ethernet are to fit, some at once.
LEAST_BURST = 6000


@dataclass(frozen=True)
class Site:
    """Where consumers are, and how many bytes a second reach each of them."""

    name: str
    rate: float


# Figure 12: measured from the store to Wayne State, Ohio State and Georgia Tech.
SITES = (Site("WSU", 900e3), Site("OSU", 4.4e6), Site("GT", 44e6))


def missing() -> list[str]:
    """Return what keeps links from being made here, as sentences."""
    faults = [f"{name} is not installed (iproute2)" for name in ("ip", "tc") if not shutil.which(name)]
    if os.geteuid() != 0:
        faults.append("only root can make network namespaces")
    return faults


@contextlib.contextmanager
def linked(each: int) -> Iterator[list[list[str]]]:
    """Make links for so many consumers of each site.

    Yields
    ------
    list of list of str
        The words before a command that is to run at the other end of each, those of a site together.
    """
    # As many at a time as there are benchmarks that run.
    mark = f"sbx{os.getpid()}"
    bridge = f"{mark}b"
    with contextlib.ExitStack() as stack:
        _run("ip", "link", "add", bridge, "type", "bridge")
        stack.callback(_run, "ip", "link", "del", bridge)
        _run("ip", "address", "add", f"{STORE_ADDRESS}/16", "dev", bridge)
        _run("ip", "link", "set", bridge, "up")
        commands = []
        for number, site in enumerate(site for site in SITES for _ in range(each)):
            namespace, near, far = f"{mark}-{number}", f"{mark}v{number}", f"{mark}e{number}"
            _run("ip", "netns", "add", namespace)
            stack.callback(_run, "ip", "netns", "del", namespace)
            _run("ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", namespace)
            _run("ip", "link", "set", near, "master", bridge, "up")
            address = f"10.78.{1 + number // 250}.{1 + number % 250}/16"
            _run("ip", "-n", namespace, "address", "add", address, "dev", far)
            for device in ("lo", far):
                _run("ip", "-n", namespace, "link", "set", device, "up")
            _shape(["tc"], near, site.rate)
            _shape(["tc", "-n", namespace], far, site.rate)
            commands.append(["ip", "netns", "exec", namespace])
        yield commands


def _shape(command: list[str], device: str, rate: float) -> None:
    bits = round(8 * rate)
    burst = min(max(LEAST_BURST, bits // 8000), 1 << 17)
    shape = ["tbf", "rate", f"{bits}bit", "burst", str(burst), "limit", str(1 << 20)]
    _run(*command, "qdisc", "add", "dev", device, "root", *shape)


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
