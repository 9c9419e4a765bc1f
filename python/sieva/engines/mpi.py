"""MPI: the ranks of a communicator run the parts. All of them ask the same, at the same time (SPMD).

Rank 0 says what is done, each rank does a share of it, contiguous and of equal size, and all get what all
found. An error of one rank is raised on every rank, so that none waits for one that has given up.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

from sieva import _native
from sieva._extras import required
from sieva.engines import _work
from sieva.engines._frames import pack_error, unpack_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sieva._query import Query
    from sieva.engines._collection import EngineCollectionQuery
    from sieva.engines._query import EngineQuery
    from sieva.engines._work import Work

    T = TypeVar("T")


class MpiEngine:
    """The ranks of an mpi4py communicator. Making one is collective, as is whatever is asked by it.

    Each rank has its share of the cores and of the memory of its node.

    Parameters
    ----------
    comm
        The communicator; None: that of all ranks. It is duplicated: messages of others do not get among ours.
    """

    name = "mpi"
    # Ranks do not wait for one another before all is done.
    parts_of_each = 1

    def __init__(self, comm: Any = None) -> None:  # noqa: ANN401 - an mpi4py communicator
        self._mpi = required("mpi4py.MPI", "the engine mpi", "mpi")
        given = self._mpi.COMM_WORLD if comm is None else comm
        self.comm = given.Dup()
        # Held, as what engines are remembered by is where it lies.
        self._given = given
        node = self.comm.Split_type(self._mpi.COMM_TYPE_SHARED)
        self.threads = max(1, len(os.sched_getaffinity(0)) // node.size)
        self.memory = _native.Session.shared().stats()["memory"] // node.size
        node.Free()
        _work.configure(memory=self.memory, threads=self.threads)

    @property
    def rank(self) -> int:
        """The number of this process."""
        return int(self.comm.rank)

    @property
    def is_here(self) -> bool:
        """Whether this process does all of the work, which need not be cut then."""
        return self.workers() == 1

    def workers(self) -> int:
        """Return how many ranks there are."""
        return int(self.comm.size)

    def share(self, n: int) -> range:
        """Return which of ``n`` things this rank does."""
        size = self.comm.size
        return range(n * self.rank // size, n * (self.rank + 1) // size)

    def run(self, work: Sequence[Work]) -> Iterator[tuple[int, bytes]]:
        """Yield the number of each work and its result, on every rank; collective.

        Raises
        ------
        SievaError
            What a work raised, on every rank; the message names the rank.
        """
        # Ranks plan alike; where they should not, it is rank 0 that counts.
        given: list[Work] = self.comm.bcast(list(work) if self.rank == 0 else None)
        mine = self.agreed(lambda: [(i, _work.execute(given[i])) for i in self.share(len(given))])
        for found in self.comm.allgather(mine):
            yield from found

    def agreed(self, work: Callable[[], T]) -> T:
        """Return what this rank's work gave; where one of a rank failed, raise that on every rank."""
        error: BaseException | None = None
        result: Any = None
        try:
            result = work()
        except Exception as raised:
            if is_agreed(raised):
                raise
            error = raised
        told = self.comm.allgather(None if error is None else pack_error(error))
        failed = next(((rank, data) for rank, data in enumerate(told) if data is not None), None)
        if failed is None:
            return result  # type: ignore[no-any-return]
        raised_there = unpack_error(failed[1])
        message = f"rank {failed[0]}: {raised_there}"
        hint = getattr(raised_there, "hint", None)
        again = type(raised_there)(message, hint) if hint is not None else type(raised_there)(message)
        # Every rank has it: nobody has to be told.
        again.add_note(AGREED)
        raise again from error

    def from_root(self, work: Callable[[], T]) -> T:
        """Return what rank 0's work gave, on every rank; collective. Its error is raised on every rank."""
        made = self.agreed(lambda: work() if self.rank == 0 else None)
        return self.comm.bcast(made)  # type: ignore[no-any-return]

    def on_root(self, query: EngineQuery | EngineCollectionQuery) -> Query | None:
        """Return the query that knows its answer, on rank 0; None on the others. Collective."""
        settled = self.agreed(query.settled)
        return settled if self.rank == 0 else None

    def close(self) -> None:
        """Do nothing: ranks belong to who started them."""


# What an error says that all ranks have raised.
AGREED = "raised on all ranks"


def is_agreed(error: BaseException) -> bool:
    """Return whether all ranks raised this error."""
    return AGREED in getattr(error, "__notes__", ())
