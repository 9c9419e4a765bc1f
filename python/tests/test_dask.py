"""Queries on a Dask cluster: the same answers, regions that stay on their workers, and lost workers."""

import asyncio
import itertools
import os
import pickle
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest
import sieva
from engine_cases import ALL, ASKED, CASES, check
from sieva import errors
from sieva.engines import _effort, _work, engine_of
from sieva.engines import dask as dask_engine
from sieva.generate import write_ocean
from test_conformance import files  # noqa: F401

distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
import sieva.dask  # noqa: E402 - what it needs was looked for


def cluster_of(workers):
    return distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    )


@pytest.fixture(scope="module")
def cluster():
    with cluster_of(2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture
def mortal():
    """Return a client whose workers may be killed: how soon they are replaced is nobody else's matter."""
    with cluster_of(2) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


def replaced(client, pids):
    """Wait until a worker that is gone was replaced."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        try:
            now = set(client.run(os.getpid).values())
        except OSError:
            # The scheduler has not noticed yet.
            now = set()
        if len(now) == len(pids) and now != pids:
            return True
        time.sleep(0.1)
    return False


@pytest.fixture(autouse=True)
def many_parts(monkeypatch):
    """Cut into as many parts as if work were long, as what is asked here is not."""
    monkeypatch.setattr(_effort, "parts", lambda _, workers, each: workers * each)


@pytest.fixture(scope="module")
def ocean(tmp_path_factory):
    path = tmp_path_factory.mktemp("dask") / "ocean.nc"
    write_ocean(path, times=6, depths=5, lats=40, lons=50)
    # What was changed just now is not kept from query to query.
    os.utime(path, (time.time() - 60,) * 2)
    return path


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_all_cases(workers, files, cluster, client):  # noqa: F811
    cluster.scale(workers)
    client.wait_for_workers(workers)
    while len(client.nthreads()) > workers:
        time.sleep(0.05)
    # More workers than two change who does what; a part of the cases is enough to see that.
    names = ASKED if workers == 2 or ALL else ASKED[::6]
    assert sum(check(CASES[name], files, client) for name in names) > len(names) * 0.8
    cluster.scale(2)
    client.wait_for_workers(2)


def totals(client):
    """Return what all workers read and evaluated so far."""
    found = sieva.dask.counters(client).values()
    return {
        name: sum(c.get(name, 0) for c in found)
        for name in ("bytes_read", "requests", "chunks_decoded", "evaluations")
    }


def ask_all(src):
    warm = src.query("TEMP > 5 AND z_t < 5000", select=["TEMP", "SALT"])
    counts = warm.histogram("TEMP", 4)[0].tolist()
    groups = src.sql("SELECT z_t, avg(TEMP), count(*) GROUP BY z_t").to_arrow()
    return warm.count(), len(warm.selection()), warm.to_arrow(), warm.read("SALT").tobytes(), counts, groups


def test_a_series_reads_nothing_the_second_time(ocean, client):
    src = sieva.dask.open(ocean, client, learn=False)
    first = ask_all(src)
    before = totals(client)
    assert before["bytes_read"] > 0
    assert ask_all(src) == first == ask_all(sieva.open(ocean, learn=False))
    assert totals(client) == before
    # Another question of the same regions decodes none of them again.
    src.query("TEMP > 6", select=["TEMP"]).count()
    after = totals(client)
    assert after["evaluations"] > before["evaluations"]
    assert {**after, "evaluations": 0} == {**before, "evaluations": 0}


def test_values_that_were_read_for_the_condition_are_not_read_again(client, tmp_path, monkeypatch):
    monkeypatch.undo()
    path = tmp_path / "plain.h5"
    with h5py.File(path, "w") as file:
        # More than a worker keeps whole.
        file["v"] = np.random.default_rng(1).standard_normal(2_000_000).astype(">f8")
    os.utime(path, (time.time() - 60,) * 2)
    query = sieva.dask.open(path, client, learn=False).query("v > 2.5", select=["v"])
    before = totals(client)["bytes_read"]
    assert query.count() > 1000
    evaluated = totals(client)["bytes_read"]
    assert evaluated - before >= 16_000_000
    want = sieva.open(path, learn=False).query("v > 2.5", select=["v"])
    assert query.read("v").tobytes() == want.read("v").tobytes()
    assert query.to_arrow().equals(want.to_arrow())
    assert totals(client)["bytes_read"] == evaluated


@pytest.mark.parametrize("parts", [1, 3, 8, 9, 65])
def test_results_are_merged_here_or_by_workers(parts, ocean, client, monkeypatch):
    monkeypatch.setattr(_effort, "parts", lambda *_: parts)
    monkeypatch.setattr(type(engine_of(client)), "parts_of_each", 100)
    src, here = sieva.dask.open(ocean, client, learn=False), sieva.open(ocean, learn=False)
    sql = "SELECT z_t, median(TEMP), quantile(SALT, 0.9), count(*) GROUP BY z_t"
    assert src.sql(sql).to_arrow().equals(here.sql(sql).to_arrow())
    assert src.query("TEMP > 3").count() == here.query("TEMP > 3").count()
    got = src.query("TEMP > 3").selection().positions()
    np.testing.assert_array_equal(got, here.query("TEMP > 3").selection().positions())


def test_what_is_sent_at_once_is_bounded(ocean, client, monkeypatch):
    monkeypatch.setattr("sieva.engines.dask.GRAPH_BYTES", 1000)
    src, here = sieva.dask.open(ocean, client, learn=False), sieva.open(ocean, learn=False)
    wanted = here.query("TEMP > 2", select=["SALT"])
    query = src.query("TEMP > 2", select=["SALT"])
    assert query.read("SALT").tobytes() == wanted.read("SALT").tobytes()
    assert list(engine_of(client).run([])) == []


def test_rows_of_a_replica_are_shared_out(client, tmp_path):
    path, store = tmp_path / "sorted.h5", tmp_path / "store"
    values = np.random.default_rng(1).standard_normal(300_000).round(3)
    values[::5] = np.nan
    with h5py.File(path, "w") as file:
        file["v"] = values
    sieva.open(path, store=store).build_index("v", kinds=["sorted"])
    src = sieva.dask.open(path, client, store=store, learn=False)
    query = src.query("v > -0.3", select=["v"], access="sorted")
    np.testing.assert_array_equal(query.selection().positions(), np.flatnonzero(values > -0.3))
    np.testing.assert_array_equal(query.read("v"), values[values > -0.3])
    assert query.count() == np.count_nonzero(values > -0.3)


def test_nothing_is_gathered_on_the_scheduler(ocean, client, cluster, monkeypatch):
    src = sieva.dask.open(ocean, client, learn=False)
    asked = []
    # What a client fetches through the scheduler is a call of this handler, in this process.
    real = cluster.scheduler.handlers["gather"]
    monkeypatch.setitem(
        cluster.scheduler.handlers, "gather", lambda *a, **k: asked.append(1) or real(*a, **k)
    )
    assert client.gather(client.submit(sum, [1, 2]), direct=False) == 3
    assert asked == [1]
    query = src.query("TEMP > 0", select=["TEMP"])
    assert query.to_arrow().num_rows == query.count() > 1000
    assert asked == [1]


def test_a_killed_worker_costs_a_retry(ocean, mortal):
    src = sieva.dask.open(ocean, mortal, learn=False)
    here = sieva.open(ocean, learn=False).query("sqrt(TEMP + 3) > 2 AND SALT > 0", select=["TEMP"])
    pids = list(mortal.run(os.getpid).values())
    batches = src.query("sqrt(TEMP + 3) > 2 AND SALT > 0", select=["TEMP"]).batches(500)
    first = next(batches)
    os.kill(pids[0], signal.SIGKILL)
    rest = [batch.column(0).to_pylist() for batch in batches]
    found = [*first.column(0).to_pylist(), *(v for column in rest for v in column)]
    assert found == here.to_arrow().column(0).to_pylist()
    killed = src.query("TEMP > 4", select=["TEMP"])
    assert replaced(mortal, set(pids))
    os.kill(next(iter(mortal.run(os.getpid).values())), signal.SIGKILL)
    assert killed.count() == sieva.open(ocean).query("TEMP > 4").count()


def _late(dask_worker):
    """Let a worker take a while to send what it has, and count how often it is asked for it."""
    send = dask_worker.handlers["get_data"]
    dask_worker.asked_for_data = 0

    async def late(comm, **asked):
        dask_worker.asked_for_data += 1
        await asyncio.sleep(1)
        return await send(comm, **asked)

    dask_worker.handlers["get_data"] = late


def _asked(dask_worker):
    """Return how often a worker was asked for data; it sends them at once again."""
    dask_worker.handlers["get_data"] = dask_worker.get_data
    return dask_worker.asked_for_data


def test_a_transfer_that_takes_long_is_not_begun_anew(client, monkeypatch):
    # So that it takes long beside what is waited for it at once.
    monkeypatch.setattr(dask_engine, "LOOK", 0.02)
    engine = engine_of(client)
    addresses = sorted(client.nthreads())
    client.run(_late)
    futures = [client.submit(bytes, n, workers=[addresses[n % 2]], pure=False) for n in range(1, 5)]
    leaves = [dask_engine._Leaf(engine, None, None, future) for future in futures]
    assert engine._results(leaves) == [bytes(n) for n in range(1, 5)]
    assert list(client.run(_asked).values()) == [1, 1]


def test_a_transfer_from_a_worker_that_was_given_up_is_begun_anew(client, monkeypatch):
    monkeypatch.setattr(dask_engine, "LOOK", 0.02)
    future = client.submit(bytes, 5, pure=False)
    transfer = dask_engine._Transfer(client, [dask_engine._Leaf(engine_of(client), None, None, future)])
    begun = []
    real = client._gather

    async def silent(futures, **how):
        begun.append(futures)
        # As of a worker that keeps the connection and says nothing.
        return await (asyncio.Event().wait() if len(begun) == 1 else real(futures, **how))

    monkeypatch.setattr(client, "_gather", silent)
    workers = client.nthreads()
    while not future.done():
        time.sleep(0.01)
    # The scheduler knows all of them for a while, then none of those that had it.
    told = itertools.chain([workers] * 3, itertools.repeat({"tcp://127.0.0.1:1": 1}))
    monkeypatch.setattr(client, "nthreads", lambda: next(told))
    assert transfer.results() == [bytes(5)]
    assert len(begun) == 2


def _armed(mark):
    """Let the first worker that builds a part of an index be killed in the midst of it."""
    execute = _work.Worker.execute

    def failing(self, work):
        try:
            if work.kind == "index":
                mark.touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        except FileExistsError:
            pass
        return execute(self, work)

    _work.Worker.execute = failing


def test_a_worker_that_is_killed_in_a_build_costs_a_retry(mortal, tmp_path):
    path, mark = tmp_path / "x.h5", tmp_path / "mark"
    x = np.random.default_rng(4).normal(size=600_000).astype("f4")
    with h5py.File(path, "w") as file:
        file["x"] = x
    pids = set(mortal.run(os.getpid).values())
    mortal.run(_armed, mark)
    report = sieva.dask.open(path, mortal, learn=False).build_index("x", kinds=["bitmap", "sorted"])
    assert mark.exists()
    assert replaced(mortal, pids)
    found = sieva.open(path, learn=False)
    (array,) = found.index_status().arrays
    assert (array.with_bitmap, report.replicas_built) == (array.regions, 1)
    assert found.verify_index(all=True)
    for access in ("bitmap", "sorted"):
        assert found.query("x > 1.5", access=access).count() == (x > 1.5).sum()


def test_an_error_of_a_worker_is_raised(ocean, client, tmp_path):
    copy = tmp_path / "copy.nc"
    copy.write_bytes(ocean.read_bytes())
    query = sieva.dask.open(copy, client, learn=False).query("TEMP > 5")
    write_ocean(copy, times=6, depths=5, lats=40, lons=51)
    with pytest.raises(errors.StaleSource):
        query.count()
    assert sieva.dask.open(copy, client).query("TEMP > 5").count() > 0


def test_indexes_are_built_by_workers(ocean, client, tmp_path):
    src = sieva.dask.open(ocean, client, store=tmp_path / "there", learn=False)
    built = src.build_index("TEMP", "SALT")
    alone = sieva.open(ocean, store=tmp_path / "here", learn=False)
    assert alone.build_index("TEMP", "SALT").regions_built == built.regions_built
    src.build_index("TEMP", kinds=["sorted"], columns=["SALT"])
    indexed = sieva.dask.open(ocean, client, store=tmp_path / "there", learn=False)
    assert indexed.index_status().arrays
    for access in ("zonemap", "bitmap", "sorted"):
        query = indexed.query("TEMP > 20", select=["SALT"], access=access)
        assert query.read("SALT").tolist() == alone.query("TEMP > 20").read("SALT").tolist()


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("condition", ["TEMP > 10", "TEMP > 1000", None])
def test_arrays_and_frames_are_lazy(condition, known, ocean, client):
    query = sieva.open(ocean, learn=False).query(condition, select=["KMT", "TEMP", "z_t"])
    array = query.to_dask_array("SALT", known=known, parts=5)
    frame = query.to_dask_dataframe(known=known, parts=5)
    assert query.stats()["chunks_decoded"] == 0 or known
    wanted = query.read("SALT")
    assert query.to_dask_array("SALT - 1", parts=5).dtype == query.read("SALT - 1").dtype
    for found in (array.compute(scheduler="threads"), client.compute(array).result()):
        assert (found.dtype, found.tobytes()) == (wanted.dtype, wanted.tobytes())
    rows = client.compute(frame).result()
    assert rows.reset_index(drop=True).equals(query.to_pandas().astype(rows.dtypes.to_dict()))
    assert frame.dtypes.equals(rows.dtypes)
    if known:
        assert array.shape == (len(wanted),)
        assert frame.known_divisions
        assert rows.index.tolist() == list(range(len(wanted)))
    else:
        assert np.isnan(array.shape[0])
        assert not frame.known_divisions


def test_a_frame_of_groups_or_sorted_rows_is_one_partition(ocean, client):
    src = sieva.open(ocean, learn=False)
    for sql in ("SELECT z_t, avg(TEMP) AS t GROUP BY z_t", "SELECT TEMP ORDER BY TEMP DESC LIMIT 5"):
        frame = src.sql(sql).to_dask_dataframe()
        assert frame.npartitions == 1
        assert client.compute(frame).result().equals(src.sql(sql).to_pandas())
    with pytest.raises(errors.Unsupported, match="array of groups"):
        src.sql("SELECT z_t, avg(TEMP) GROUP BY z_t").to_dask_array()


def test_integers_of_parts_have_one_type(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        data = file.create_dataset("a", data=np.arange(40, dtype="i4"), chunks=(10,))
        data.attrs["_FillValue"] = np.int32(33)
        file.create_dataset("whole", data=np.arange(40, dtype="u2"), chunks=(10,))
    query = sieva.open(tmp_path / "a.h5").query("whole >= 0", select=["a", "whole"])
    array = query.to_dask_array("a", parts=4)
    assert array.npartitions == 4
    values = array.compute(scheduler="sync")
    assert values.dtype == array.dtype == query.read("a").dtype == np.float64
    assert np.isnan(values[33])
    assert query.to_dask_array("whole", parts=4).dtype == np.uint16
    rows = query.to_dask_dataframe(parts=4).compute(scheduler="sync")
    assert rows.dtypes.astype(str).tolist() == ["float64", "uint16"]


def test_queries_travel_by_themselves(ocean, client):
    query = sieva.open(ocean, learn=False).query("TEMP > 5", select=["TEMP"])
    assert client.submit(len, query).result() == query.count()
    by_dask = pickle.loads(pickle.dumps(sieva.dask.open(ocean, client).query("TEMP > 5")))  # noqa: S301
    assert by_dask.count() == query.count()


def test_what_is_no_engine(client):
    with pytest.raises(errors.InvalidValue, match="workers= beside scheduler="):
        engine_of("dask", scheduler=client.scheduler.address, workers=2)
    assert engine_of(client) is engine_of(client)


def test_command_line(ocean, client):
    sql = f"SELECT z_t, count(*) AS n FROM '{ocean}' WHERE TEMP > 5 GROUP BY z_t"
    command = [sys.executable, "-m", "sieva", "query", sql, "--format", "csv"]
    ways = (
        [],
        ["--engine", "dask", "--scheduler", client.scheduler.address],
        ["--engine", "dask", "--workers", "1"],
    )
    outputs = [subprocess.run([*command, *way], capture_output=True, check=True).stdout for way in ways]
    assert outputs[0] == outputs[1] == outputs[2] != b""


def test_the_command_builds_indexes(ocean, client, tmp_path):
    command = [sys.executable, "-m", "sieva", "index", ocean, "--var", "TEMP", "--store", tmp_path / "store"]
    scheduler = ["--engine", "dask", "--scheduler", client.scheduler.address]
    subprocess.run([*command, *scheduler], capture_output=True, check=True)
    (array,) = sieva.open(ocean, store=tmp_path / "store").index_status().arrays
    assert array.with_bitmap == array.regions > 0


def test_a_closed_client_is_told(cluster):
    closed = distributed.Client(cluster, set_as_default=False)
    engine = engine_of(closed)
    closed.close()
    with pytest.raises(errors.Unsupported, match="client of this engine is closed") as told:
        engine.workers()
    assert "before client.close()" in told.value.hint
