"""Who one is in a group, where nobody says."""

from __future__ import annotations

import getpass
import os
import re
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def _plain(parts: Iterable[str]) -> str:
    """Return the first of these as a name of a group, where it can be one."""
    for part in parts:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", part).lstrip("-.")[:64]
        if name and name != "taken":
            return name
    return "unnamed"


def this_user() -> str:
    """Return who asks, where nobody says."""
    try:
        return _plain([getpass.getuser()])
    except (KeyError, OSError):
        return _plain([f"uid{os.getuid()}"])


def this_host() -> str:
    """Return who produces, where nobody says."""
    return _plain([socket.gethostname().split(".")[0], "producer"])
