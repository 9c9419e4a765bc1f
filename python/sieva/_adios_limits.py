"""Least and greatest of the blocks of BP files: which of them can be believed, and what they say.

Measured with adios2 2.12: extremes are found by comparing, so that one NaN makes those of its block wrong: of
``1, 2, 3, 4, 5, NaN`` BP5 notes 1 and 1. They are of the values before compression, and those of real numbers
are printed with 6 digits.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

Limits = list[tuple[tuple[int, ...], tuple[int, ...], Any, Any]]
"""Start and shape of blocks, and the numbers that their values lie between, or None."""

NO_NAN = "SIEVA_ADIOS_NO_NAN"
"""The variable of the environment by which users vouch for it that their real numbers are all finite."""

_LOSSY = ("zfp", "sz", "mgard", "mgardplus", "libpressio")
# More pieces than these are not looked at for gaps between blocks.
_MAX_CELLS = 1 << 22


def believed(adios: Any, dtype: str) -> bool:  # noqa: ANN401 - a module
    """Tell whether the extremes of blocks of such values hold for all of them.

    Those of 8 bits are printed as characters, which cannot always be told from digits.
    """
    if (
        dtype in {"str", "int8", "uint8"}
        or "ADIOS2_PLUGIN_PATH" in os.environ
        or _decompresses_lossily(adios)
    ):
        return False
    return not dtype.startswith("float") or os.environ.get(NO_NAN) == "1"


@cache
def _decompresses_lossily(adios: Any) -> bool:  # noqa: ANN401 - a module
    """Tell whether the library may give other values than were written; the wheels may not."""
    for kind in _LOSSY:
        try:
            adios.bindings.ADIOS().DefineOperator(kind, kind, {})
        except (RuntimeError, ValueError):
            continue
        return True
    return False


def numbers(text: str) -> tuple[int, ...]:
    """Return ``"1,2,3"`` as numbers."""
    return tuple(int(part) for part in text.split(",") if part)


def of_step(infos: Sequence[Mapping[str, str]], shape: Sequence[int], dtype: str) -> Limits | None:
    """Return the limits of the blocks of one step; None where they are not what they should be.

    What no block covers is read as zero: where blocks may leave gaps, zero is a limit of all.
    """
    limits: Limits = []
    for info in infos:
        start, count = numbers(info["Start"]), numbers(info["Count"])
        inside = len(start) == len(count) == len(shape) and all(
            s >= 0 and n >= 0 and s + n <= length for s, n, length in zip(start, count, shape, strict=True)
        )
        # Whether places are those of a file whose writer counts dimensions from the last one is not said.
        if not inside or info.get("IsReverseDims") == "True":
            return None
        if 0 in count:
            continue
        low, high = extremes(info.get("Min", ""), info.get("Max", ""), dtype)
        limits.append((start, count, low, high))
    if not limits:
        return None
    if not _cover(limits, shape):
        limits.append((tuple(0 for _ in shape), tuple(shape), 0, 0))
    return limits


def extremes(low: str, high: str, dtype: str) -> tuple[Any, Any]:
    """Return numbers that values between two printed extremes lie between; None and None: there are none."""
    try:
        if not dtype.startswith("float"):
            return int(low), int(high)
        least, greatest = float(low), float(high)
    except ValueError:
        return None, None
    if math.isnan(least) or math.isnan(greatest):
        return None, None
    return least - _last_digit(least), greatest + _last_digit(greatest)


def _last_digit(printed: float) -> float:
    """Return more than printing 6 digits may take off a number or add to it."""
    if printed == 0 or math.isinf(printed):
        return 0.0
    return 10.0 ** max(math.floor(math.log10(abs(printed))) - 4, -323)


def _cover(limits: Limits, shape: Sequence[int]) -> bool:
    """Tell whether blocks surely leave no gap."""
    if not shape:
        return True
    import numpy as np

    cuts = []
    for axis, length in enumerate(shape):
        ends = {0, length}
        for start, count, *_ in limits:
            ends |= {start[axis], start[axis] + count[axis]}
        cuts.append(np.array(sorted(ends)))
    if math.prod(len(cut) - 1 for cut in cuts) > _MAX_CELLS:
        return False
    seen = np.zeros([len(cut) - 1 for cut in cuts], bool)
    for start, count, *_ in limits:
        cells = [
            slice(np.searchsorted(cut, s), np.searchsorted(cut, s + n))
            for cut, s, n in zip(cuts, start, count, strict=True)
        ]
        seen[tuple(cells)] = True
    return bool(seen.all())
