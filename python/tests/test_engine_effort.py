"""Into how many parts an engine cuts work: as many as it is worth."""

import h5py
import numpy as np
import pytest
import sieva
from sieva.engines import _driver, _effort, execute


@pytest.mark.parametrize(
    ("seconds", "workers", "each", "parts"),
    [
        (0.0, 1, 4, 1),
        (0.0, 512, 4, 1),
        (0.003, 2, 4, 1),
        (0.009, 2, 4, 2),
        (0.4, 2, 4, 2),
        (0.6, 2, 4, 8),
        (0.1, 64, 4, 16),
        (0.1, 7, 4, 7),
        (0.01, 7, 4, 2),
        (1e9, 3, 4, 12),
        (float("inf"), 3, 4, 12),
    ],
)
def test_parts_are_worth_handing_out(seconds, workers, each, parts):
    assert _effort.parts(seconds, workers, each) == parts


class _Here:
    """An engine that notes what it runs."""

    name = "here"
    at_once = 4

    def __init__(self):
        self.ran = []

    def workers(self):
        return 4

    def run(self, work):
        self.ran.append(len(work))
        yield from enumerate(map(execute, work))

    def close(self):
        pass


@pytest.fixture
def plain(tmp_path):
    path = tmp_path / "plain.h5"
    with h5py.File(path, "w") as file:
        file["v"] = np.random.default_rng(1).standard_normal(3_000_000)
    return path


def test_short_work_is_one_part_and_long_work_many(plain, monkeypatch):
    engine = _Here()
    src = sieva.open(plain, learn=False)
    few = src.query("v > 3 AND idx(phony_dim_0) < 1000", engine=engine)
    here = src.query("v > 3")
    assert len(few.selection()) == src.query("v > 3 AND idx(phony_dim_0) < 1000").count()
    assert engine.ran == [1]
    # Whatever the machine is said to take.
    monkeypatch.setattr(_effort, "LEAST", 1e-6)
    assert src.query("v > 3", engine=engine).count() == here.count()
    monkeypatch.setattr(_effort, "LONG", 1e-9)
    assert len(src.query("v > 3", engine=engine).selection()) == here.count()
    assert engine.ran == [1, 4, 4 * _driver.PARTS]


def test_values_are_fetched_in_the_parts_that_found_them(plain):
    engine = _Here()
    engine.keeps_regions = True
    src = sieva.open(plain, learn=False)
    query = src.query("v > 3 AND idx(phony_dim_0) < 1000000", engine=engine)
    want = src.query("v > 3 AND idx(phony_dim_0) < 1000000").read("v")
    assert query.read("v").tobytes() == want.tobytes()
    assert engine.ran[0] == engine.ran[1]
