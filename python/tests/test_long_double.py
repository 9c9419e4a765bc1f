"""Numbers of 80 bits: as numpy converts them, and an error where they are none."""

import h5py
import numpy as np
import pytest
import sieva
from sieva import errors

if np.finfo(np.longdouble).nmant != 63:
    pytest.skip("this machine's long double is not that of x87", allow_module_level=True)

TINY = np.nextafter(np.longdouble(0), np.longdouble(1))
VALUES = np.array([1, -2.5, 0, -0.0, np.inf, -np.inf, 1e-320, 3.7, np.nan], np.longdouble) / 3
RECORDS = np.dtype([("id", "i4"), ("x", np.longdouble, (3,))])


@pytest.fixture
def path(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["x"] = VALUES
        f["big"] = VALUES.astype(VALUES.dtype.newbyteorder(">"))
        records = np.zeros(3, RECORDS)
        records["x"] = VALUES.reshape(3, 3)
        f["r"] = records
        f.create_dataset("packed", data=VALUES, chunks=(4,), compression="gzip")
    return tmp_path / "a.h5"


def test_numbers_are_rounded_as_by_numpy(path):
    source = sieva.open(path)
    expected = VALUES.astype("f8")
    for name in ("x", "big", "packed"):
        np.testing.assert_array_equal(source[name].read_stored([0], [9]), expected)
    np.testing.assert_array_equal(source["r.x"].read_stored([0, 0], [3, 3]), expected.reshape(3, 3))
    assert source.query("x > 0.5").count() == 2


def test_the_least_numbers_are_zeros(path):
    """Without an integer bit, as processors write them under the least exponent."""
    with h5py.File(path, "r+") as f:
        f["x"][1] = TINY
        f["big"][1] = -TINY
    source = sieva.open(path)
    for name in ("x", "big"):
        assert source[name].read_stored([0], [3]).tolist() == [VALUES[0].astype("f8"), 0, 0]


def test_what_is_no_number_is_an_error(path):
    """An exponent whose integer bit is zero, which no processor writes."""
    with h5py.File(path) as f:
        at = f["x"].id.get_offset() + 16 + 7
    content = bytearray(path.read_bytes())
    assert content[at] & 0x80
    content[at] &= 0x7F
    path.write_bytes(content)
    source = sieva.open(path)
    with pytest.raises(errors.CorruptFile, match="an item is no floating-point number"):
        source.query("x > 0.5").count()
    assert source["x"].read_stored([2], [4]).tolist() == VALUES[2:6].astype("f8").tolist()
    assert source.query("big > 0.5").count() == 2
