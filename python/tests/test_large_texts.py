"""Texts of arrays too large to be held whole: fetched by chunk and by run, at the hits alone."""

import h5py
import numpy as np
import pytest
import sieva

N = (1 << 20) + 5


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "texts.h5"
    texts = np.char.add("t", (np.arange(N) % 1000).astype("U4")).astype("S5")
    with h5py.File(path, "w") as file:
        file["number"] = np.arange(N)
        file["contiguous"] = texts
        file.create_dataset("chunked", data=texts, chunks=(1 << 16,), compression="gzip", compression_opts=1)
        file.create_dataset("variable", data=texts.astype(object), dtype=h5py.string_dtype())
    return path


@pytest.mark.parametrize("name", ["contiguous", "chunked", "variable"])
def test_texts_at_scattered_hits(path, name):
    query = sieva.open(path).query("number % 99991 = 7", select=["number", name])
    numbers = np.arange(7, N, 99991)
    assert query.read("number").tolist() == numbers.tolist()
    assert query.read(name).tolist() == [f"t{n % 1000}" for n in numbers]
    backwards = sieva.open(path).sql(f"SELECT {name} WHERE number % 99991 = 7 ORDER BY number DESC")
    assert backwards.to_arrow().column(0).to_pylist() == [f"t{n % 1000}" for n in numbers[::-1]]
