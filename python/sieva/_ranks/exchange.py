"""Bytes from who read them to who asked, wave by wave, in three ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Counts = list[int]

# Messages of sieva's own communicator: nobody else's have a tag.
_TAG = 15


class Wave(Protocol):
    """What is read and sent at once.

    Attributes
    ----------
    sends, receives
        Bytes to and from each rank.
    """

    sends: Counts
    receives: Counts

    def read(self, out: Bytes) -> None:
        """Read what this rank reads into `out`: what the first rank asked for, then the next's."""

    def take(self, found: Bytes) -> None:
        """Take what others read: what comes from the first rank, then the next's."""


def run(mode: str, comm: Any, waves: list[Wave]) -> None:  # noqa: ANN401 - an mpi4py communicator
    """Read and send all waves, of which every rank has as many. At most two are held at any time.

    Parameters
    ----------
    mode
        ``"collective"``, ``"nonblocking"`` or ``"independent"``.
    comm
        The communicator.
    waves
        What is done.
    """
    ways = {"collective": _collective, "nonblocking": _nonblocking, "independent": _independent}
    ways[mode](comm, waves, _Buffers(waves))


class _Buffers:
    """Memory for two waves, which is used again and again."""

    def __init__(self, waves: list[Wave]) -> None:
        going = max((sum(wave.sends) for wave in waves), default=0)
        coming = max((sum(wave.receives) for wave in waves), default=0)
        n = min(2, len(waves))
        self._pairs = [(np.empty(going, np.uint8), np.empty(coming, np.uint8)) for _ in range(n)]
        self._next = 0

    def of(self, wave: Wave) -> tuple[Bytes, Bytes]:
        """Return room for what a wave sends and receives; that of the wave before stays as it is."""
        out, found = self._pairs[self._next % len(self._pairs)]
        self._next += 1
        return out[: sum(wave.sends)], found[: sum(wave.receives)]


def _collective(comm: Any, waves: list[Wave], buffers: _Buffers) -> None:  # noqa: ANN401
    """Read, then exchange: no rank goes on before all have what the wave is to give."""
    for wave in waves:
        out, found = buffers.of(wave)
        wave.read(out)
        comm.Alltoallv(_counted(out, wave.sends), _counted(found, wave.receives))
        wave.take(found)


def _nonblocking(comm: Any, waves: list[Wave], buffers: _Buffers) -> None:  # noqa: ANN401
    """Read a wave while the one before is exchanged."""
    last: tuple[Any, Wave, Bytes, Bytes] | None = None
    for wave in waves:
        out, found = buffers.of(wave)
        wave.read(out)
        request = comm.Ialltoallv(_counted(out, wave.sends), _counted(found, wave.receives))
        if last is not None:
            last[0].Wait()
            last[1].take(last[2])
        # What is sent is held until it has gone.
        last = (request, wave, found, out)
    if last is not None:
        last[0].Wait()
        last[1].take(last[2])


def _independent(comm: Any, waves: list[Wave], buffers: _Buffers) -> None:  # noqa: ANN401
    """Send to each rank what it asked for, as soon as it is read; nobody waits for others."""
    last: tuple[list[Any], list[Any], Wave, Bytes, Bytes] | None = None
    for wave in waves:
        out, found = buffers.of(wave)
        coming = [
            comm.Irecv(part, source=rank, tag=_TAG)
            for rank, part in _parts(found, wave.receives)
            if len(part)
        ]
        wave.read(out)
        going = [comm.Isend(part, dest=rank, tag=_TAG) for rank, part in _parts(out, wave.sends) if len(part)]
        if last is not None:
            _finish(last)
        last = (coming, going, wave, found, out)
    if last is not None:
        _finish(last)


def _finish(last: tuple[list[Any], list[Any], Wave, Bytes, Bytes]) -> None:
    coming, going, wave, found, _ = last
    for request in coming:
        request.Wait()
    wave.take(found)
    for request in going:
        request.Wait()


def _counted(data: Bytes, counts: Counts) -> list[Any]:
    places = np.cumsum([0, *counts[:-1]]).tolist()
    return [data, (counts, places)]


def _parts(data: Bytes, counts: Counts) -> list[tuple[int, Bytes]]:
    ends = np.cumsum(counts).tolist()
    return [(rank, data[end - n : end]) for rank, (n, end) in enumerate(zip(counts, ends, strict=True))]
