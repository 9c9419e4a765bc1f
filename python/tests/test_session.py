"""Sessions: what is kept from query to query, who may run, and that answers are the same all the while."""

import os
import signal
import threading

import h5py
import numpy as np
import pytest
import sieva
from sieva import errors

N = 400_000
LONG_AGO = 1_000_000_000


def write(path, seed=7, when=LONG_AGO):
    """Write particles, contiguous and deflated, and return their values."""
    rng = np.random.default_rng(seed)
    values = {name: rng.random(N).astype("f4") for name in ("x", "y", "z")}
    values["Energy"] = rng.exponential(0.5, N).astype("f4")
    values["packed"] = rng.integers(0, 1000, N).astype("i2")
    values["grid"] = rng.random((20, 100, 200)).astype("f4")
    with h5py.File(path, "w") as f:
        for name, array in values.items():
            deflated = name in {"packed", "grid"}
            chunks = {"packed": (10_000,), "grid": (3, 40, 60)}.get(name)
            f.create_dataset(name, data=array, chunks=chunks, compression="gzip" if deflated else None)
    os.utime(path, (when, when))
    return values


@pytest.fixture(scope="module")
def particles(tmp_path_factory):
    path = tmp_path_factory.mktemp("session") / "particles.h5"
    return path, write(path)


# Those of the paper: energy, and energy within a box.
QUESTIONS = {
    "Q1": ("Energy > 2", lambda v: v["Energy"] > 2),
    "Q2": ("Energy > 1.5 AND x < 0.3", lambda v: (v["Energy"] > 1.5) & (v["x"] < 0.3)),
    "Q3": (
        "Energy > 1 AND x BETWEEN 0.2 AND 0.4 AND y < 0.5 AND z > 0.1",
        lambda v: (v["Energy"] > 1) & (v["x"] >= 0.2) & (v["x"] <= 0.4) & (v["y"] < 0.5) & (v["z"] > 0.1),
    ),
    "packed": ("packed > 990", lambda v: v["packed"] > 990),
}


def ask(source, condition, columns=("x", "y", "Energy", "packed"), **options):
    """Return the answers to several questions on a condition, and the bytes that they took of the source."""
    query = source.query(condition, select=list(columns), **options)
    table = query.to_arrow()
    answers = [query.count(), query.selection().coords(), *(query.read(name) for name in columns)]
    answers += [table[name].to_numpy() for name in columns]
    return answers, query.stats()


def check(answers, values, mask, columns=("x", "y", "Energy", "packed")):
    assert answers[0] == mask.sum()
    np.testing.assert_array_equal(answers[1][:, 0], np.flatnonzero(mask))
    for got in (answers[2 : 2 + len(columns)], answers[2 + len(columns) :]):
        for name, column in zip(columns, got, strict=True):
            np.testing.assert_array_equal(column, values[name][mask])


@pytest.mark.parametrize("name", QUESTIONS)
def test_asked_again_nothing_is_read(particles, name):
    path, values = particles
    condition, mask = QUESTIONS[name]
    with sieva.Session(memory="256MiB") as session:
        source = session.open(path, learn=False)
        answers, stats = ask(source, condition)
        check(answers, values, mask(values))
        assert stats["bytes_read"] > 0
        # Another query, and another source of the same file.
        for again in (source, session.open(path, learn=False)):
            answers, stats = ask(again, condition)
            check(answers, values, mask(values))
            assert (stats["bytes_read"], stats["requests"], stats["evaluations"]) == (0, 0, 0)
        did = session.stats()
        assert did["evaluations"] == 1
        assert did["selections_reused"] >= 2
        assert did["cache_hits"] > 0


def test_the_same_condition_with_other_columns_is_known(particles):
    path, values = particles
    with sieva.Session(memory="256MiB") as session:
        source = session.open(path, learn=False)
        n = source.query("Energy > 2", select=["x"]).count()
        query = source.sql("SELECT y FROM 'particles' WHERE Energy > 2")
        assert query.count() == n == (values["Energy"] > 2).sum()
        assert query.stats()["bytes_read"] == 0
        np.testing.assert_array_equal(query.read("y"), values["y"][values["Energy"] > 2])
        # Other conditions, and other rows, are others.
        assert source.query("Energy >= 2.5").count() == (values["Energy"] >= 2.5).sum()
        assert source.query("Energy > 2 OR x > 2").count() == n
        assert session.stats()["selections_reused"] == 1


def test_a_way_that_is_asked_for_is_gone(particles):
    path, values = particles
    with sieva.Session(memory="256MiB") as session:
        source = session.open(path, learn=False)
        for _ in range(2):
            query = source.query("Energy > 2", access="scan")
            assert query.count() == (values["Energy"] > 2).sum()
            assert query.stats()["evaluations"] == 1


@pytest.mark.parametrize("options", [{}, {"cache": 0}, {"memory": "4MiB"}, {"memory": "1MiB", "queries": 1}])
def test_answers_are_the_same_with_any_memory(particles, options):
    path, values = particles
    with sieva.Session(**options) as session:
        source = session.open(path, learn=False)
        for _ in range(2):
            for condition, mask in QUESTIONS.values():
                check(ask(source, condition)[0], values, mask(values))
            grid = source.query("grid > 0.99")
            np.testing.assert_array_equal(grid.read("grid"), values["grid"][values["grid"] > 0.99])
        stats = session.stats()
        assert stats["cache_bytes"] + stats["selections_bytes"] + stats["peak_reserved"] <= stats["memory"]


def test_threads_get_the_answers_and_stay_within_the_memory(particles):
    path, values = particles
    failures = []
    with sieva.Session(memory="24MiB", queries=3) as session:
        sources = [session.open(path, learn=False) for _ in range(2)]

        def work(number):
            for i in range(12):
                condition, mask = list(QUESTIONS.values())[(i + number) % len(QUESTIONS)]
                try:
                    check(ask(sources[number % 2], condition, memory="6MiB")[0], values, mask(values))
                except Exception as e:
                    failures.append(e)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stats = session.stats()
    assert failures == []
    assert (stats["running"], stats["waiting"], stats["reserved"]) == (0, 0, 0)
    assert stats["peak_reserved"] <= 18 << 20
    assert stats["cache_bytes"] + stats["selections_bytes"] + stats["peak_reserved"] <= stats["memory"]


def test_a_changed_file_is_never_answered_from_what_was_kept(tmp_path):
    path = tmp_path / "changing.h5"
    with sieva.Session(memory="256MiB") as session:
        for round_number, seed in enumerate((1, 2, 3)):
            # Of one size, and never changed within the last seconds.
            values = write(path, seed, LONG_AGO + round_number)
            source = session.open(path, learn=False)
            for _ in range(2):
                check(ask(source, "Energy > 2")[0], values, values["Energy"] > 2)
        query = source.query("Energy > 2")
        write(path, 4, LONG_AGO + 9)
        with pytest.raises(sieva.errors.StaleSource):
            query.count()
        with pytest.raises(sieva.errors.StaleSource):
            source.query("Energy > 2")
        assert session.stats()["evaluations"] == 3


def test_what_changed_just_now_is_not_kept(tmp_path):
    path = tmp_path / "fresh.h5"
    write(path)
    os.utime(path)
    with sieva.Session(memory="256MiB") as session:
        source = session.open(path, learn=False)
        assert source.query("Energy > 2").count() == source.query("Energy > 2").count()
        assert session.stats()["evaluations"] == 2
        assert session.stats()["cache_entries"] == 0


def test_a_query_of_more_than_there_is_is_refused(particles):
    path, _ = particles
    with sieva.Session(memory="64MiB") as session:
        query = session.open(path).query("Energy > 2", memory="1GiB")
        with pytest.raises(
            sieva.errors.MemoryLimit, match="a query of 1073741824 bytes in a session that has"
        ):
            query.count()
        assert session.stats()["refused"] == 1
    with pytest.raises(sieva.errors.InvalidValue, match="nothing is left for queries"):
        sieva.Session(memory="64MiB", cache="64MiB")


def test_a_closed_session_answers_no_more(particles):
    path, _ = particles
    session = sieva.Session(memory="64MiB")
    query = session.open(path).query("Energy > 2")
    assert "64" in repr(session) or "67108864" in repr(session)
    session.close()
    assert session.closed
    with pytest.raises(sieva.errors.Cancelled, match="closed"):
        query.count()
    assert session.stats()["cache_bytes"] == 0


def test_sql_plans_and_what_is_allowed(particles, tmp_path):
    path, values = particles
    with sieva.Session(memory="256MiB", allow=[path.parent]) as session:
        query = session.sql(f"SELECT max(Energy) FROM '{path}'")
        assert query.read is not None
        plan = query.plan()
        assert plan.source == str(path)
        again = session.query(plan).to_arrow()
        assert again.column(0)[0].as_py() == values["Energy"].max()
        with pytest.raises(sieva.errors.PermissionDenied):
            session.open(tmp_path / "elsewhere.h5")


def test_cancel_ends_what_runs(particles):
    path, _ = particles
    with sieva.Session(memory="256MiB") as session:
        batches = session.open(path).query("Energy > 0", select=["x"]).batches(1000)
        next(batches)
        session.cancel()
        # Nothing ran: what rests is not stopped.
        assert next(batches).num_rows == 1000
        assert session.open(path).query("Energy > 0").count() > 0


def test_a_forked_process_has_threads_of_its_own(particles):
    path, values = particles
    source = sieva.open(path, learn=False)
    expected = np.count_nonzero(values["Energy"] > 0.5)
    # Those that wait in this process are not there in the other.
    assert source.query("Energy > 0.5", threads=4).count() == expected
    child = os.fork()
    if child == 0:
        code = 1
        try:
            counts = {source.query("Energy > 0.5", threads=n).count() for n in (1, 4, 7)}
            code = 0 if counts == {expected} else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert source.query("Energy > 0.5", threads=4).count() == expected


def test_a_forked_process_reads_boxes_while_threads_of_its_parent_do(particles):
    path, values = particles
    with sieva.open(path, learn=False) as source:
        over = threading.Event()

        def read():
            while not over.is_set():
                source["Energy"][10:5000]

        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(40):
                child = os.fork()
                if child == 0:
                    code = 1
                    try:
                        signal.alarm(60)  # a child that waits for ever is ended
                        own = source["Energy"][10:5000]
                        code = 0 if np.array_equal(own, values["Energy"][10:5000]) else 2
                    finally:
                        os._exit(code)
                assert os.waitpid(child, 0)[1] == 0
        finally:
            over.set()
            for thread in threads:
                thread.join()


def test_boxes_and_texts_of_a_session_have_what_its_queries_have(tmp_path):
    path = tmp_path / "texts.h5"
    texts = np.array([f"t{i % 7}".encode() for i in range(3000)])
    with h5py.File(path, "w") as file:
        file["n"], file["wide"] = texts, np.zeros(4_000_000)
    with sieva.Session(memory="64MiB", cache="1MiB") as session:
        source = session.open(path, dims={"n": ["x"]})
        selection = source.query("n = 't3'").selection()
        assert [str(t) for t in source.read_many([("n", selection)])[0]] == ["t3"] * 429
        with pytest.raises(errors.MemoryLimit):
            session.open(path, memory="1GiB")["wide"][:]
    assert len(sieva.open(path)["wide"][:]) == 4_000_000
