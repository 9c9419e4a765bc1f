"""Which worker does what: the same region goes to the same worker, and nobody has more than a fair share.

Rendezvous hashing (Thaler and Ravishankar 1998): each worker has a score for each region, by a hash of both,
and the one with the highest takes it. When a worker comes or goes, only regions that it has or had move. The
share of a worker is bounded (Mirrokni, Thorup and Zadimoghaddam 2018): who is full is passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b


def affinity_of(source: str, start: Sequence[int], shape: Sequence[int]) -> int:
    """Return the number of a region: the same in every process, for every query of the source."""
    text = f"{source}|{list(start)}|{list(shape)}".encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


def ranked(affinity: int, workers: Sequence[str]) -> list[str]:
    """Return workers by their score for a region, the highest first."""

    def score(worker: str) -> bytes:
        return blake2b(f"{affinity}|{worker}".encode(), digest_size=8).digest()

    return sorted(workers, key=score, reverse=True)


def place(affinities: Sequence[int | None], workers: Sequence[str]) -> list[str]:
    """Return the worker for each of these regions; each has at most its share, rounded up.

    Parameters
    ----------
    affinities
        Numbers of regions, None where it does not matter.
    workers
        Their names, the same in every process.
    """
    most = -(-len(affinities) // len(workers))
    load = dict.fromkeys(workers, 0)
    placed: list[str | None] = []
    for affinity in affinities:
        order = [] if affinity is None else ranked(affinity, workers)
        found = next((worker for worker in order if load[worker] < most), None)
        if found is not None:
            load[found] += 1
        placed.append(found)
    for i, known in enumerate(placed):
        if known is None:
            free = min(workers, key=lambda worker: load[worker])
            load[free] += 1
            placed[i] = free
    return [worker for worker in placed if worker is not None]
