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
    {"collective": _collective, "nonblocking": _nonblocking, "independent": _independent}[mode](comm, waves)


def _collective(comm: Any, waves: list[Wave]) -> None:  # noqa: ANN401
    """Read, then exchange: no rank goes on before all have what the wave is to give."""
    for wave in waves:
        out, found = _buffers(wave)
        wave.read(out)
        comm.Alltoallv(_counted(out, wave.sends), _counted(found, wave.receives))
        wave.take(found)


def _nonblocking(comm: Any, waves: list[Wave]) -> None:  # noqa: ANN401
    """Read a wave while the one before is exchanged."""
    last: tuple[Any, Wave, Bytes, Bytes] | None = None
    for wave in waves:
        out, found = _buffers(wave)
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


def _independent(comm: Any, waves: list[Wave]) -> None:  # noqa: ANN401
    """Send to each rank what it asked for, as soon as it is read; nobody waits for others."""
    last: tuple[list[Any], list[Any], Wave, Bytes, Bytes] | None = None
    for wave in waves:
        out, found = _buffers(wave)
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


def _buffers(wave: Wave) -> tuple[Bytes, Bytes]:
    return np.zeros(sum(wave.sends), np.uint8), np.empty(sum(wave.receives), np.uint8)


def _counted(data: Bytes, counts: Counts) -> list[Any]:
    places = np.cumsum([0, *counts[:-1]]).tolist()
    return [data, (counts, places)]


def _parts(data: Bytes, counts: Counts) -> list[tuple[int, Bytes]]:
    ends = np.cumsum(counts).tolist()
    return [(rank, data[end - n : end]) for rank, (n, end) in enumerate(zip(counts, ends, strict=True))]
