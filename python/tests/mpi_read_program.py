"""What the tests of `sieva.mpi.read_many` run on all ranks: ``mpi_read_program.py NAME ARGUMENT...``."""

import itertools
import json
import os
import signal
import sys
from pathlib import Path

import h5py
import numpy as np
import sieva
import sieva.mpi
from mpi4py import MPI
from mpi_aborting import aborting
from read_many_files import brute
from sieva import errors
from sieva._ranks import together

COMM = MPI.COMM_WORLD
MODES = ("independent", "collective", "nonblocking")


def drawn(rng, shape):
    """Return a basic index of an array, of any kind."""
    keys = []
    for n in shape:
        kind = rng.integers(5)
        a, b = sorted(rng.integers(-n, n + 1, 2).tolist())
        if kind == 0 and n:
            keys.append(int(rng.integers(-n, n)))
        elif kind == 1:
            keys.append(slice(None))
        elif kind == 2:
            keys.append(slice(b, a, -int(rng.integers(1, 3))))
        else:
            keys.append(slice(a, b if b else None, int(rng.integers(1, 4)) if kind == 3 else None))
    if keys and rng.integers(4) == 0:
        keys[-1] = ...
    return tuple(keys)


def same(got, wanted):
    """Compare bits, types and shapes; texts by themselves."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    assert got.tolist() == wanted.tolist() if got.dtype.hasobject else got.tobytes() == wanted.tobytes()


def boxes(folder):
    """Ask for random boxes of all files: each rank its own, rank 1 for nothing in the first batch."""
    asked = 0
    for batch, mode in enumerate(MODES * 2):
        rng = np.random.default_rng(100 * batch + COMM.rank)
        # Stripes that begin and end anywhere, too.
        options = {"striping": "stripe_size=4096,stripe_count=3,stripe_offset=1"} if batch % 2 else {}
        sources = {path: sieva.open(path, **options) for path in sorted(Path(folder).iterdir())}
        requests, wanted = [], []
        if not (batch == 0 and COMM.rank == 1):
            for path, source in sources.items():
                for name in source.arrays:
                    values = brute(path, name)
                    for _ in range(3):
                        key = drawn(rng, values.shape)
                        requests.append((source, name, key))
                        wanted.append(values[key])
        memory = None if batch < 3 else 2048
        found = sieva.mpi.read_many(COMM, requests, mode=mode, memory=memory)
        assert len(found) == len(requests)
        for got, want in zip(found, wanted, strict=True):
            same(got, want)
        asked += len(requests)
    tell(asked=COMM.allreduce(asked), waves=COMM.allgather(together.last.waves))


def once(path, mode, striping):
    """Read overlapping boxes; tell what was read, asked for, and what numpy says their union is."""
    options = {"striping": striping} if striping else {}
    source = sieva.open(path, learn=False, **options)
    values = brute(Path(path), "T")
    rng = np.random.default_rng(COMM.rank)
    keys = []
    for _ in range(6):
        corner = [int(rng.integers(0, n // 2)) for n in values.shape]
        keys.append(tuple(slice(a, a + n // 2) for a, n in zip(corner, values.shape, strict=True)))
    # What tells its state is read once.
    source._native.state()
    before = source._native.traffic()
    found = sieva.mpi.read_many(COMM, [(source, "T", key) for key in keys], mode=mode)
    after = source._native.traffic()
    mask = np.zeros(values.shape, bool)
    for key in itertools.chain(*COMM.allgather(keys)):
        mask[key] = True
    for got, key in zip(found, keys, strict=True):
        same(got, values[key])
    did = together.last
    tell(
        union=int(mask.sum()) * values.itemsize,
        read=COMM.allreduce(did.read),
        asked=COMM.allreduce(did.asked),
        bytes=COMM.allreduce(after["bytes_read"] - before["bytes_read"]),
        chunks=COMM.allreduce(after["chunks_decoded"] - before["chunks_decoded"]),
        readers=[n > 0 for n in COMM.allgather(did.read)],
    )


def rows(path, mode, striping):
    """Read rows that follow one another, each by one rank."""
    apart(path, mode, striping, (slice(COMM.rank * 16, COMM.rank * 16 + 16),))


def columns(path, mode, striping):
    """Read a quarter of each row."""
    apart(path, mode, striping, (slice(None), slice(COMM.rank * 1024, COMM.rank * 1024 + 1024)))


def apart(path, mode, striping, key):
    """Read a box of each rank, none of which overlap; tell what was read and sent."""
    source = sieva.open(path, learn=False, **({"striping": striping} if striping else {}))
    source._native.state()
    before = source._native.traffic()
    (found,) = sieva.mpi.read_many(COMM, [(source, "T", key)], mode=mode)
    after = source._native.traffic()
    same(found, brute(Path(path), "T")[key])
    did = together.last
    tell(
        sent=COMM.allreduce(did.sent),
        read=COMM.allreduce(did.read),
        asked=COMM.allreduce(did.asked),
        bytes=COMM.allreduce(after["bytes_read"] - before["bytes_read"]),
    )


def ramp(first, end):
    """Return rows of what the file holds: numbers in C order."""
    return np.arange(first * 16384.0, end * 16384.0).reshape(end - first, 16384)


def rows_of_ramp(path, mode):
    """Read rows that overlap with those of the next rank."""
    first = COMM.rank * 16
    source = sieva.open(path, learn=False)
    (found,) = sieva.mpi.read_many(COMM, [(source, "T", slice(first, first + 32))], mode=mode)
    tell(right=COMM.allgather(bool((found == ramp(first, first + 32)).all())))


def gone(path, mode):
    """Read all rows in eight requests; tell what became of each."""
    try:
        source = sieva.open(path, learn=False)
        requests = [(source, "T", slice(i, i + 8)) for i in range(0, 64, 8)]
    except errors.SievaError as error:
        requests, failed = [], error.kind
    found = sieva.mpi.read_many(COMM, requests, mode=mode, errors="return")
    said = [failed] if not requests else []
    for i, got in enumerate(found):
        is_right = not isinstance(got, errors.SievaError) and (got == ramp(8 * i, 8 * i + 8)).all()
        said.append(got.kind if isinstance(got, errors.SievaError) else "right" if is_right else "wrong")
    tell(said=COMM.allgather(said))


def interrupted(path, mode):
    """Interrupt rank 1 where it reads its first block, or a later one."""
    source = sieva.open(path, learn=False)
    read, n = together._Opener.read, 0

    def stopping(self, *box):
        nonlocal n
        n += 1
        if COMM.rank == 1 and n == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return read(self, *box)

    together._Opener.read = stopping
    raised, found = None, None
    try:
        (found,) = sieva.mpi.read_many(COMM, [(source, "T", ...)], mode=mode, errors="return")
    except KeyboardInterrupt:
        raised = "KeyboardInterrupt"
    together._Opener.read = read
    said = COMM.allgather(getattr(found, "kind", None))
    words = COMM.allgather(str(found))
    (again,) = sieva.mpi.read_many(COMM, [(source, "T", ...)], mode=mode)
    right = COMM.allgather(bool((again == ramp(0, 64)).all()))
    tell(raised=COMM.allgather(raised), said=said, words=words, again=right)


def killed(path, mode):
    """Kill rank 1 where it reads."""
    source = sieva.open(path, learn=False)

    def kill(*_):
        if COMM.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    together._Opener.read = kill
    sieva.mpi.read_many(COMM, [(source, "T", ...)], mode=mode)
    print("unreachable", flush=True)


def broken(path, mode):
    """Read chunks of which one is damaged: only who asked for it is told."""
    source = sieva.open(path, learn=False)
    with h5py.File(path) as file:
        size = file["v"].shape[0]
    chunk = size // 8
    # Each rank asks for the chunk of its number, and rank 0 for all but the last two in pieces besides.
    keys = [slice(COMM.rank * chunk, (COMM.rank + 1) * chunk)]
    if COMM.rank == 0:
        keys += [slice(i * chunk, (i + 1) * chunk) for i in range(6)]
    found = sieva.mpi.read_many(COMM, [(source, "v", key) for key in keys], mode=mode, errors="return")
    said = []
    for key, got in zip(keys, found, strict=True):
        if isinstance(got, errors.SievaError):
            said.append([got.kind, str(got)])
        else:
            said.append(bool((got == np.arange(size, dtype="<f8")[key]).all()))
    raised = None
    try:
        sieva.mpi.read_many(COMM, [(source, "v", key) for key in keys], mode=mode)
    except errors.SievaError as error:
        raised = error.kind
    tell(said=COMM.allgather(said), raised=COMM.allgather(raised))


def others(path, mode):
    """Fail to read what rank 0 alone asks for, before what another rank asks for is sent."""
    source = sieva.open(path, learn=False)
    good = np.arange(1, 4097, dtype="i4").reshape(64, 64)
    mine = [(source, "good", ...), (source, "broken" if COMM.rank == 0 else "later", ...)]
    found = sieva.mpi.read_many(COMM, mine, mode=mode, errors="return")
    same(found[0], good)
    if COMM.rank:
        same(found[1], np.arange(50_000))
    tell(said=COMM.allgather(getattr(found[1], "kind", "right")))


def marks(path, mode):
    """Ask for integers of which some are missing, each rank another part, by steps and one by one."""
    source = sieva.open(path, learn=False)
    keys = [slice(0, 2), slice(0, 6), slice(2, 3), 3, 0, slice(None, None, 4), slice(3, 3), slice(5, 0, -2)]
    keys = keys[COMM.rank :] + keys[: COMM.rank]
    names = ["wide", "chunked", "narrow"]
    requests = [(source, name, key) for name in names for key in keys]
    for (_, name, key), got in zip(requests, sieva.mpi.read_many(COMM, requests, mode=mode), strict=True):
        same(got, source[name][key])
    first = source["wide"][0:2]
    tell(exact=first.dtype.str, first=first.tolist(), missing=source["wide"][:4].dtype.str)


def scattered(path, mode):
    """Ask of stripes of one byte, with little memory."""
    source = sieva.open(path, learn=False, striping="stripe_size=1,stripe_count=3")
    raised = None
    try:
        sieva.mpi.read_many(COMM, [(source, "v", ...)], mode=mode, memory="1MiB")
    except errors.SievaError as error:
        raised = error.kind
    (few,) = sieva.mpi.read_many(COMM, [(source, "v", slice(0, 9))], mode=mode, memory="1MiB")
    tell(raised=COMM.allgather(raised), few=few.tolist())


def interrupted_at_first(path, mode):
    """Interrupt rank 0 where the communicator is made known to sieva: nobody waits for it."""
    source = sieva.open(path, learn=False)
    made = sieva.mpi._engine_of

    def stopping(comm):
        if COMM.rank == 0:
            os.kill(os.getpid(), signal.SIGINT)
        return made(comm)

    sieva.mpi._engine_of = stopping
    raised = None
    try:
        sieva.mpi.read_many(COMM, [(source, "T", ...)], mode=mode, errors="return")
    except KeyboardInterrupt:
        raised = "KeyboardInterrupt"
    COMM.barrier()
    tell(raised=COMM.allgather(raised))


def wrong(path, mode):
    """Ask for what there is not, on the last rank: others have what they asked for."""
    source = sieva.open(path, learn=False)
    values = brute(Path(path), "T")
    requests = [(source, "T", (slice(2, 5),))]
    if COMM.rank == COMM.size - 1:
        requests += [(source, "nothing", ...), (source, "T", 10**6), (source, "T", "x"), "text"]
    found = sieva.mpi.read_many(COMM, requests, mode=mode, errors="return")
    same(found[0], values[2:5])
    mine = [type(one).__name__ for one in found[1:]]
    raised = None
    try:
        sieva.mpi.read_many(COMM, requests, mode=mode)
    except errors.SievaError as error:
        raised = error.kind
    tell(mine=COMM.allgather(mine), raised=COMM.allgather(raised))


def stale(path, mode):
    """Change the file between opening it and reading by the others."""
    old = sieva.open(path, learn=False)
    COMM.barrier()
    if COMM.rank == 0:
        with h5py.File(path, "r+") as file:
            file["v"][0] = -1
    COMM.barrier()
    found = sieva.mpi.read_many(COMM, [(old, "v", slice(0, 9))], mode=mode, errors="return")
    tell(said=COMM.allgather(getattr(found[0], "kind", "read")))


def tell(**found):
    """Print what was found, on one rank."""
    if COMM.rank == 0:
        print(json.dumps(found), flush=True)


def one_fails():
    """Fail on the last rank, which the others wait for."""
    assert COMM.rank < COMM.size - 1, "this rank found something else"
    COMM.barrier()


if __name__ == "__main__":
    aborting(globals()[sys.argv[1]], *sys.argv[2:])
