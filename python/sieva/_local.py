"""What lies at a local path."""

from __future__ import annotations

from pathlib import Path


def is_directory(path: str | Path) -> bool:
    """Return whether a directory lies at a path.

    One that cannot be reached (no permission, a server that is gone) is none: who opens it next says why,
    with an error that names it.
    """
    try:
        return Path(path).is_dir()
    except OSError:
        return False


def exists(path: str | Path) -> bool:
    """Return whether anything lies at a path that can be reached."""
    try:
        return Path(path).exists()
    except OSError:
        return False
