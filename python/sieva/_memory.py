"""Sizes of memory as people write them."""

from __future__ import annotations

import re

_UNITS = {"": 1, "b": 1} | {
    prefix + suffix: factor**power
    for power, prefix in enumerate("kmgt", 1)
    for suffix, factor in (("", 1024), ("b", 1000), ("ib", 1024))
}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)


def memory_bytes(size: int | str | None) -> int | None:
    """Return a size in bytes: a number, or text such as ``"512MiB"``, ``"2GB"``, ``"1g"``.

    KiB, MiB, GiB, TiB and the bare letters are powers of 1024, KB, MB, GB, TB powers of 1000.

    Raises
    ------
    ValueError
        The text is no size, or the size is not positive.

    >>> memory_bytes("512MiB"), memory_bytes("2GB"), memory_bytes(4096)
    (536870912, 2000000000, 4096)
    """
    if size is None:
        return None
    if isinstance(size, bool) or not isinstance(size, int | str):
        raise TypeError(f"a size is a number of bytes or text such as '512MiB', got {size!r}")
    if isinstance(size, str):
        found = _SIZE.fullmatch(size)
        if found is None or found[2].lower() not in _UNITS:
            raise ValueError(
                f"{size!r} is no size: expected a number of bytes, or one with KiB, MiB, GiB, KB, MB, GB"
            )
        size = int(float(found[1]) * _UNITS[found[2].lower()])
    if size <= 0:
        raise ValueError(f"a size of {size} bytes: expected a positive one")
    return size


def size_text(size: float) -> str:
    """Return a number of bytes for people: ``"1.5 MiB"``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
