"""Sizes of memory as people write them."""

from __future__ import annotations

from sieva import _native


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
    return None if size is None else _native.size_bytes(size)


def size_text(size: float) -> str:
    """Return a number of bytes for people: ``"1.5 MiB"``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
