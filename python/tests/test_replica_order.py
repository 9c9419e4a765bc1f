"""Rows by a sorted replica come back in the order of the file, whatever threads and parts put them there."""

import h5py
import numpy as np
import pytest
import sieva

# Several parts, which are not as long as one another.
N = 210_001
FILL = -999


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    rng = np.random.default_rng(3)
    key = rng.normal(0, 1, N).astype("f4")
    key[rng.integers(0, N, 3000)] = rng.choice(
        np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45], "f4"), 3000
    )
    # Equal keys, and a run of neighbours: what is chosen lies anywhere, or all in one place.
    key[50_000:90_000] = 3.5
    values = {
        "key": key,
        "f4": rng.normal(0, 1, N).astype(">f4"),
        "f8": rng.choice(np.array([np.nan, -0.0, 0.0, -np.inf, 1e300]), N),
        "i2": rng.integers(-(2**15), 2**15, N).astype(">i2"),
        "u8": rng.integers(0, 2**64, N, dtype="u8"),
        "i8": rng.integers(-(2**63), 2**63, N, dtype="i8"),
        "u1": rng.integers(0, 256, N, dtype="u1"),
        "gaps": np.where(rng.random(N) < 0.1, FILL, rng.integers(0, 50, N)).astype("i4"),
    }
    path = tmp_path_factory.mktemp("replica") / "rows.h5"
    with h5py.File(path, "w") as f:
        for name, array in values.items():
            f[name] = array
        f["gaps"].attrs["_FillValue"] = np.int32(FILL)
    source = sieva.open(path, learn=False)
    source.build_index("key", kinds=["sorted"])
    return source, values


CONDITIONS = {
    "key > -10": lambda v: v["key"] > -10,
    "key > 1.5": lambda v: v["key"] > 1.5,
    "key = 3.5": lambda v: v["key"] == 3.5,
    "key = 0": lambda v: v["key"] == 0,
    "key > 0.5 AND key < 0.500001": lambda v: (v["key"] > 0.5) & (v["key"].astype("f8") < 0.500001),
    "key < -1 OR key > 2": lambda v: (v["key"] < -1) | (v["key"] > 2),
    "key > 0 AND i2 < 0": lambda v: (v["key"] > 0) & (v["i2"] < 0),
    "key > 3 AND u8 > 18446744073709000000": lambda v: (
        (v["key"] > 3) & (v["u8"] > np.uint64(18446744073709000000))
    ),
}


def bits(array):
    array = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("=")))
    return array.view(f"u{array.dtype.itemsize}")


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_values_stand_in_the_order_of_the_file(stored, condition, threads):
    source, values = stored
    mask = CONDITIONS[condition](values)
    names = list(values)
    query = source.query(condition, select=names, access="sorted", threads=threads)
    table = query.to_arrow()
    for name in names:
        column, expected = table.column(name), values[name][mask]
        if name == "gaps":
            assert column.null_count == (expected == FILL).sum()
            column, expected = column.drop_null(), expected[expected != FILL]
        np.testing.assert_array_equal(bits(column.to_numpy()), bits(expected), err_msg=name)
    assert query.stats()["by_replica"] == mask.sum()
    again = source.query(condition, select=["f8"], access="sorted", threads=threads)
    np.testing.assert_array_equal(again.selection().coords()[:, 0], np.flatnonzero(mask))
    np.testing.assert_array_equal(bits(again.read("f8")), bits(values["f8"][mask]))


def test_some_of_the_rows_and_few_at_a_time(stored):
    source, values = stored
    expected = values["f4"][values["key"] > 1.5]
    query = source.sql("SELECT f4 WHERE key > 1.5 LIMIT 5000 OFFSET 777", access="sorted")
    np.testing.assert_array_equal(bits(query.to_arrow().column("f4").to_numpy()), bits(expected[777:5777]))
    batches = source.query("key > 1.5", select=["f4"], access="sorted").batches(1000)
    found = [batch.column("f4").to_numpy() for batch in batches]
    assert max(map(len, found)) == 1000
    np.testing.assert_array_equal(bits(np.concatenate(found)), bits(expected))
    # What is computed of the values, and the values beside it.
    table = source.query("key > 1.5", select=["f4", "i2 + 1"], access="sorted").to_arrow()
    np.testing.assert_array_equal(
        table.column(1).to_numpy(), values["i2"][values["key"] > 1.5].astype("i8") + 1
    )
    np.testing.assert_array_equal(bits(table.column("f4").to_numpy()), bits(expected))
    assert source.query("key > 100 AND key < inf", select=["f4"], access="sorted").to_arrow().num_rows == 0
