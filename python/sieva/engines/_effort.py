"""Into how many parts work is cut: as many as it is worth, since each has to be handed out and waited for."""

from __future__ import annotations

import math

# Seconds of one thread that a part is to take at least: handing out another one takes about as long.
LEAST = 0.004
# Seconds of a worker's share above which it is cut further: who is done first takes more then.
LONG = 0.25


def parts(seconds: float, workers: int, each: int) -> int:
    """Return into how many parts work is cut.

    Of work that takes longer there are as many or more, and of numbers that are few: parts of the same bounds
    go to the same workers.

    Parameters
    ----------
    seconds
        What all of it takes one thread, about.
    workers
        How many parts run at once.
    each
        Parts for each of them, at most, where they take long.
    """
    if seconds > LONG * workers:
        return workers * each
    found = workers
    while found > 1 and seconds < LEAST * found:
        found = math.ceil(found / 2)
    return found
