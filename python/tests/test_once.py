"""A condition is evaluated once, whatever is asked of a query and in which order."""

import itertools
import threading

import h5py
import numpy as np
import pytest
import sieva

CHUNK, CHUNKS = 1000, 31


@pytest.fixture(scope="module")
def particles(tmp_path_factory):
    """Return a file of deflated arrays, and the values."""
    path = tmp_path_factory.mktemp("once") / "particles.h5"
    rng = np.random.default_rng(5)
    values = {
        "Energy": rng.exponential(1.0, CHUNK * CHUNKS).astype("f4"),
        "x": rng.random(CHUNK * CHUNKS),
        "grid": rng.random((40, 50, 60)).astype("f4"),
    }
    with h5py.File(path, "w") as f:
        for name, array in values.items():
            chunks = (CHUNK,) if array.ndim == 1 else (7, 11, 13)
            f.create_dataset(name, data=array, chunks=chunks, compression="gzip", shuffle=True)
    return path, values


ASKED = {
    "count": lambda q: q.count(),
    "selection": lambda q: len(q.selection()),
    "read": lambda q: len(q.read("Energy")),
    "rows": lambda q: q.to_arrow().num_rows,
}


@pytest.mark.parametrize("order", list(itertools.permutations(ASKED)))
def test_all_questions_decode_each_chunk_once(particles, order):
    path, values = particles
    query = sieva.open(path, learn=False).query("Energy > 1.5", select=["Energy"])
    want = int((values["Energy"] > 1.5).sum())
    assert [ASKED[name](query) for name in order] == [want] * len(order)
    stats = query.stats()
    assert (stats["chunks_decoded"], stats["evaluations"]) == (CHUNKS, 1)
    np.testing.assert_array_equal(query.read("Energy"), values["Energy"][values["Energy"] > 1.5])
    assert query.stats()["chunks_decoded"] == CHUNKS


def test_other_values_are_read_by_themselves(particles):
    path, values = particles
    query = sieva.open(path, learn=False).query("Energy > 9")
    hits = np.flatnonzero(values["Energy"] > 9)
    assert query.count() == len(hits)
    np.testing.assert_array_equal(query.read("x"), values["x"][hits])
    np.testing.assert_array_equal(query.read("Energy"), values["Energy"][hits])
    # Arrays of up to a million elements are read whole.
    assert query.stats()["chunks_decoded"] == 2 * CHUNKS


@pytest.mark.parametrize("condition", ["grid > 0.9", "grid < 2", "grid > 2", "grid > 0.5 AND grid < 0.6"])
def test_positions_kept_by_counting_are_those_of_a_selection(particles, condition):
    path, _ = particles
    source = sieva.open(path, learn=False)
    counted, asked = source.query(condition), source.query(condition)
    n = counted.count()
    kept, found = counted.selection(), asked.selection()
    assert len(kept) == n == len(found)
    np.testing.assert_array_equal(kept.coords(), found.coords())
    assert counted.stats()["evaluations"] == 1


def test_what_does_not_fit_is_evaluated_again(tmp_path):
    path, rng = tmp_path / "wide.h5", np.random.default_rng(6)
    values = rng.random(1 << 22).astype("f4")
    with h5py.File(path, "w") as f:
        f["v"] = values
    source = sieva.open(path, learn=False)
    # Half a mebibyte of masks; 256 KiB may be kept of 2 MiB.
    query = source.query("v > 0.5", memory="2MiB")
    want = np.flatnonzero(values > 0.5)
    assert query.count() == len(want)
    assert query.count() == len(want)
    assert query.stats()["evaluations"] == 1
    np.testing.assert_array_equal(query.selection().coords()[:, 0], want)
    assert query.stats()["evaluations"] == 2
    query = source.query("v > 0.5", memory="8MiB")
    assert query.count() == len(query.selection())
    assert query.stats()["evaluations"] == 1


def test_rows_under_limit_are_found_once(particles):
    path, values = particles
    query = sieva.open(path, learn=False).sql("SELECT Energy WHERE Energy > 1.5 LIMIT 5")
    for _ in range(2):
        got = query.to_arrow()["Energy"].to_numpy()
        np.testing.assert_array_equal(got, values["Energy"][values["Energy"] > 1.5][:5])
    assert query.stats()["evaluations"] == 1
    assert query.count() == 5
    assert query.to_arrow().num_rows == 5
    # LIMIT had ended the first one.
    assert query.stats()["evaluations"] == 2
    assert query.stats()["chunks_decoded"] == CHUNKS


def test_questions_of_several_threads_are_one_evaluation(particles):
    path, values = particles
    query = sieva.open(path, learn=False).query("Energy > 1.5")
    got = []
    threads = [threading.Thread(target=lambda: got.append(query.count())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [int((values["Energy"] > 1.5).sum())] * 6
    assert (query.stats()["evaluations"], query.stats()["chunks_decoded"]) == (1, CHUNKS)
