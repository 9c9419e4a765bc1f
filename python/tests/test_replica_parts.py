"""Parts of a selection are fetched from the replica that found it, by whatever process has them."""

import itertools

import h5py
import numpy as np
import pytest
import sieva
from sieva import _native

N = 200_000
CONDITION = "e > 9.5"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("parts") / "p.h5"
    rng = np.random.default_rng(5)
    with h5py.File(path, "w") as f:
        e = rng.exponential(1.0, N).astype("f4")
        e[::1000], e[1::1000], e[2::1000], e[3::1000] = np.nan, np.inf, -np.inf, 12
        f["e"] = e
        f["x"] = rng.normal(size=N).astype(">f8")
        f["far"] = rng.normal(size=N).astype("f4")
    with sieva.open(path, learn=False) as s:
        s.build_index("e", kinds=["sorted"], columns=["x"])
    return path


def source(path):
    _native.Session.shared().forget()
    return sieva.open(path, learn=False)


@pytest.mark.parametrize("cuts", [(0.0, 1.0), (0.0, 0.3, 0.31, 1.0)])
@pytest.mark.parametrize("name", ["e", "x", "far"])
def test_parts_have_the_values_of_numpy(path, name, cuts):
    with h5py.File(path) as f:
        values, hits = f[name][:], np.flatnonzero(f["e"][:] > 9.5)
    s = source(path)
    found = s.query(CONDITION).selection()
    whole = s._native.query_of(s.query(CONDITION).tasks(1)[0], {})
    for low, high in itertools.pairwise(cuts):
        a, b = int(low * len(hits)), int(high * len(hits))
        part = whole.at(found.part(a, b))
        np.testing.assert_array_equal(part.read(name), values[hits[a:b]])


def test_a_part_reads_no_byte_of_the_source_that_the_replica_has(path):
    s = source(path)
    found = s.query(CONDITION).selection()
    whole = s._native.query_of(s.query(CONDITION).tasks(1)[0], {})
    part = whole.at(found.part(10, len(found) - 10))
    before = s._native.traffic()["bytes_read"]
    part.read("x")
    assert s._native.traffic()["bytes_read"] == before
    part.read("far")
    assert s._native.traffic()["bytes_read"] > before
