"""What the tests of MPI run on all ranks: ``python mpi_program.py NAME ARGUMENT...``."""

import json
import os
import resource
import signal
import sys
from pathlib import Path

import h5py
import numpy as np
import sieva
import sieva.mpi
from engine_cases import ASKED, CASES, is_cut
from mpi4py import MPI
from mpi_aborting import aborting
from sieva import errors
from sieva.engines import _work
from test_conformance import check_rows, check_selection

COMM = MPI.COMM_WORLD


def cases(files, step):
    """Compare the answers of all cases, on all ranks; tell how many were asked and cut."""
    names = ASKED[:: int(step)]
    cut = 0
    for name in names:
        case = CASES[name]
        path = Path(files) / case["file"]
        options = dict(case.get("options", {}))
        if "sql" in case:
            query = sieva.mpi.sql(case["sql"].replace("{file}", str(path)), **options)
            check_rows(case, query)
        else:
            cross = options.pop("cross", False)
            source = sieva.mpi.open(path, **options)
            query = source.query(case["where"], select=list(case.get("values", {})) or None, cross=cross)
            check_selection(case, query)
        cut += is_cut(query)
    tell(asked=len(names), cut=cut)


def words(path):
    """Ask by each word of the interface; compare with one process."""
    src, here = sieva.mpi.open(path, learn=False), sieva.open(path, learn=False)
    opened = src.comm.allgather(src._native.traffic()["bytes_read"])
    for condition in ("TEMP > 5", "TEMP > 1000", "KMT > 3", None):
        query = src.query(condition, select=["TEMP", "SALT"])
        alone = here.query(condition, select=["TEMP", "SALT"])
        assert query.count() == alone.count()
        assert query.selection() == alone.selection()
        values = alone.read("SALT")
        mine = query.read("SALT", gather="none")
        first, stop = query.my_rows()
        assert mine.tobytes() == values[first:stop].tobytes()
        assert query.to_arrow(gather="none").equals(alone.to_arrow().slice(first, stop - first))
        assert query.read("SALT").tobytes() == values.tobytes()
        assert query.to_arrow().equals(alone.to_arrow())
        rooted = query.read("SALT", gather="root")
        assert rooted.tobytes() == (values if src.comm.rank == 0 else values[:0]).tobytes()
        assert query.to_arrow(gather="root").num_rows == (alone.count() if src.comm.rank == 0 else 0)
        assert [b.num_rows for b in query.batches(999)] == [b.num_rows for b in alone.batches(999)]
        for got, wanted in zip(query.histogram("TEMP", 9), alone.histogram("TEMP", 9), strict=True):
            assert got.tobytes() == wanted.tobytes()
    sql = "SELECT z_t, avg(TEMP), max(SALT) GROUP BY z_t ORDER BY 2 DESC"
    assert src.sql(sql).to_arrow().equals(here.sql(sql).to_arrow())
    assert src.sql(sql).to_arrow(gather="none").num_rows == (5 if src.comm.rank == 0 else 0)
    rows = src.comm.allgather(int(np.diff(src.query("TEMP > 5").my_rows())[0]))
    tell(
        opened=opened,
        rows=rows,
        evaluations=src.comm.allgather(evaluations(src)),
        threads=src._engine.threads,
    )


def evaluations(src):
    """Return how often this rank evaluates the condition of a query that is counted, selected and read."""
    from sieva.engines import _work  # noqa: PLC0415 - it is made when a source is opened

    before = _work.counters()["evaluations"]
    query = src.query("TEMP > 7.25", select=["TEMP"])
    query.selection()
    query.count()
    query.read("TEMP", gather="none")
    query.to_arrow()
    return _work.counters()["evaluations"] - before


def index(path, store):
    """Build indexes by all ranks."""
    report = sieva.mpi.open(path, store=store, learn=False).build_index("TEMP", "SALT")
    sieva.mpi.open(path, store=store, learn=False).build_index("TEMP", kinds=["sorted"], columns=["SALT"])
    src = sieva.mpi.open(path, store=store, learn=False)
    counts = [src.query("TEMP > 20", access=access).count() for access in ("bitmap", "sorted", "scan")]
    tell(regions=report.regions_built, counts=counts)


def collection(catalog):
    """Ask the objects of a collection."""
    sql = "SELECT object, flux FROM collection('boss') WHERE flux > 15 AND RADEG = 150.25"
    grouped = "SELECT class, avg(flux), count(*) FROM collection('boss') WHERE ivar > 0 GROUP BY class"
    for text in (sql, grouped):
        mine, alone = sieva.mpi.sql(text, catalog=catalog), sieva.sql(text, catalog=catalog)
        assert str(mine.to_arrow().to_pydict()) == str(alone.to_arrow().to_pydict())
        assert mine.count() == alone.count()
    tell(rows=COMM.allgather(sieva.mpi.sql(sql, catalog=catalog).count()))


def failing(path, folder):
    """Raise on all ranks what happens on one."""
    copy = Path(folder) / "copy.nc"
    if COMM.rank == 0:
        copy.write_bytes(Path(path).read_bytes())
    COMM.barrier()
    query = sieva.mpi.open(copy, learn=False).query("TEMP > 5")
    last = COMM.size - 1

    def part():
        if COMM.rank == last:
            raise errors.CorruptFile("the bytes of this rank", "look at them")
        return 1

    try:
        query.engine.agreed(part)
    except errors.CorruptFile as error:
        said = str(error), error.hint
    COMM.barrier()
    if COMM.rank == 0:
        os.utime(copy, (1, 1))
    COMM.barrier()
    try:
        query.count()
    except errors.SievaError as error:
        found = error.kind
    try:
        sieva.mpi.open(Path(folder) / "nowhere.nc")
    except errors.FileNotFound as error:
        missing = str(error)
    # All go on together.
    counts = COMM.allgather(sieva.mpi.open(path).query("TEMP > 5").count())
    tell(
        said=COMM.allgather(said), found=COMM.allgather(found), missing=COMM.allgather(missing), counts=counts
    )


def killed(path, output):
    """Lose a rank in the midst of a query whose result is written."""
    query = sieva.mpi.open(path, learn=False).query("TEMP > 5", select=["TEMP"])
    query.count()
    if COMM.rank == COMM.size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    query.to_parquet(output)
    tell(written=True)


def faulty(fault, stage, path, store, mark):
    """Build indexes by all ranks; the last meets a fault in its share of a stage."""
    source = sieva.mpi.open(path, store=store, learn=False)
    execute, left = _work.execute, [int(stage)]

    def failing(work):
        left[0] -= 1
        if left[0]:
            return execute(work)
        if fault == "killed":
            Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "replaced":
            with h5py.File(path, "r+") as file:
                file["TEMP"][0] = 7
            return execute(work)
        # As on a full disk; a signal besides, which Python ignores.
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, limits[1]))
        try:
            return execute(work)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    if COMM.rank == COMM.size - 1:
        _work.execute = failing
    said = None
    try:
        source.build_index("TEMP", kinds=["bitmap", "sorted"], columns=["SALT"])
    except errors.SievaError as error:
        said = [error.kind, str(error)]
    tell(said=COMM.allgather(said))


def tell(**found):
    """Print what was found, on one rank."""
    if COMM.rank == 0:
        print(json.dumps(found), flush=True)


def listed(catalog, sql):
    """Count the rows of a collection; tell how many sources each rank opened to cut the work."""
    query = sieva.mpi.sql(sql, catalog=catalog)
    rows = COMM.allgather(query.count())
    # What tasks open is not among them.
    tell(rows=rows, opened=COMM.allgather(query.source._native.traffic()["sources_opened"]))


def one_fails():
    """Fail on the last rank, which the others wait for."""
    assert COMM.rank < COMM.size - 1, "this rank found something else"
    COMM.barrier()


if __name__ == "__main__":
    aborting(globals()[sys.argv[1]], *sys.argv[2:])
