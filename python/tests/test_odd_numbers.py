"""Numbers that no machine computes with, plain and packed by nbit: what libhdf5 and numpy make of them."""

import h5py
import numpy as np
import pytest
import sieva
from sieva import errors

SHAPE, CHUNKS = (7, 9), (3, 4)
LE, BE = h5py.h5t.ORDER_LE, h5py.h5t.ORDER_BE
# Bytes, bits, the bit that they begin at, and the type that holds so many bits.
INTEGERS = [
    (1, 3, 0, "1"),
    (1, 5, 2, "1"),
    (2, 9, 0, "2"),
    (2, 10, 5, "2"),
    (4, 17, 8, "4"),
    (4, 31, 1, "4"),
    (8, 63, 1, "8"),
    (8, 40, 11, "8"),
    (3, 24, 0, "4"),
    (5, 33, 3, "8"),
    (16, 60, 37, "8"),
]
# Bytes, mantissa, exponent, bias and the bit that they begin at, of formats that float64 holds.
FLOATS = [
    (2, 7, 8, 127, 0),
    (3, 15, 8, 127, 0),
    (4, 20, 9, 255, 2),
    (1, 2, 5, 15, 0),
    (8, 40, 11, 1023, 5),
    (4, 23, 8, 120, 0),
    (6, 36, 10, 400, 1),
]


def integer_type(size, bits, start, order, signed):
    """Make an HDF5 integer type."""
    kind = (h5py.h5t.STD_I64LE if signed else h5py.h5t.STD_U64LE).copy()
    # The precision has to fit at all times.
    if size >= 8:
        kind.set_size(size)
    kind.set_precision(bits)
    kind.set_offset(0)
    kind.set_size(size)
    kind.set_offset(start)
    kind.set_order(order)
    return kind


def float_type(fields, order):
    """Make an HDF5 floating-point type with a hidden bit."""
    size, mantissa, exponent, bias, start = fields
    kind = h5py.h5t.IEEE_F64LE.copy()
    kind.set_fields(start + mantissa + exponent, start + mantissa, exponent, start, mantissa)
    kind.set_offset(start)
    kind.set_precision(mantissa + exponent + 1)
    kind.set_size(size)
    kind.set_ebias(bias)
    kind.set_order(order)
    return kind


def create(f, name, kind, values, packed):
    """Create a dataset of an HDF5 type, packed by nbit or contiguous; libhdf5 converts the values."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if packed:
        plist.set_chunk(CHUNKS[: values.ndim])
        # h5py has no name for it.
        plist.set_filter(5, 0, ())
    space = h5py.h5s.create_simple(values.shape)
    dataset = h5py.h5d.create(f.id, name.encode(), kind, space, plist)
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(values))


def by_libhdf5(f, name, dtype):
    """Return what libhdf5 converts a dataset to."""
    out = np.empty(f[name].shape, dtype)
    f[name].id.read(h5py.h5s.ALL, h5py.h5s.ALL, out)
    return out


def assert_same(source, name, expected):
    """Check that bits are the same, read at once and in parts, and the hits."""
    whole = source[name].read_stored([0, 0], list(SHAPE))
    assert (whole.dtype, whole.tobytes()) == (expected.dtype, expected.tobytes()), name
    part = source[name].read_stored([2, 3], [4, 5])
    assert part.tobytes() == expected[2:6, 3:8].tobytes(), name
    value = expected[3, 4].item()
    assert source.query(f'"{name}" >= {value!r}').count() == np.count_nonzero(expected >= value), name


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("order", [LE, BE])
def test_integers_of_any_bits_anywhere(tmp_path, order, packed):
    rng = np.random.default_rng(5)
    names = {}
    with h5py.File(tmp_path / "a.h5", "w") as f:
        for size, bits, start, width in INTEGERS:
            for signed in (False, True):
                low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
                values = rng.integers(low, high, SHAPE, "i8" if signed else "u8", endpoint=True)
                values[0, :2] = low, high
                name = f"{size}_{bits}_{start}_{signed}"
                create(f, name, integer_type(size, bits, start, order, signed), values, packed)
                names[name] = values, ("i" if signed else "u") + width
    source = sieva.open(tmp_path / "a.h5")
    # What was written, not what libhdf5 reads: it takes no sign from big-endian integers of one byte.
    for name, (values, dtype) in names.items():
        assert_same(source, name, values.astype(dtype))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("order", [LE, BE])
def test_floats_of_any_fields(tmp_path, order, packed):
    rng = np.random.default_rng(6)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        for kind in FLOATS:
            values = rng.standard_normal(SHAPE) * 2.0 ** rng.integers(-12, 12, SHAPE)
            values[0] = [0.0, -0.0, np.inf, -np.inf, 1e300, -1e300, 1.0, 2.0**-14, -3.0]
            create(f, "_".join(map(str, kind)), float_type(kind, order), values, packed)
    source = sieva.open(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as f:
        for name in f:
            assert_same(source, name, by_libhdf5(f, name, "f8"))


@pytest.mark.parametrize("order", [LE, BE])
def test_every_number_of_two_bytes(tmp_path, order):
    """All bits of two formats: bfloat16, the first half of a float32, and one with a bias of its own."""
    bits = np.arange(1 << 16, dtype="<u2" if order == LE else ">u2")
    path = tmp_path / "a.h5"
    kinds = {"bfloat16": (2, 7, 8, 127, 0), "other": (2, 9, 6, 20, 0)}
    with h5py.File(path, "w") as f:
        for name, kind in kinds.items():
            create(f, name, float_type(kind, order), np.ones(1 << 16), packed=False)
    content = bytearray(path.read_bytes())
    with h5py.File(path) as f:
        places = [f[name].id.get_offset() for name in kinds]
    for place in places:
        content[place : place + bits.nbytes] = bits.tobytes()
    path.write_bytes(content)
    got = {name: sieva.open(path)[name].read_stored([0], [1 << 16]) for name in kinds}
    with np.errstate(invalid="ignore"):
        expected = (bits.astype("u4") << 16).view("f4").astype("f8")
    np.testing.assert_array_equal(got["bfloat16"], expected)
    with h5py.File(path) as f:
        np.testing.assert_array_equal(got["other"], by_libhdf5(f, "other", "f8"))
    for name in kinds:
        plus, minus = np.split(got[name], 2)
        assert not np.signbit(plus[~np.isnan(plus)]).any(), name
        assert np.signbit(minus[~np.isnan(minus)]).all(), name


def test_quadruple_precision_is_rounded_to_even(tmp_path):
    """IEEE's binary128, of which libhdf5 rounds halves away from zero."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as f:
        kind = h5py.h5t.IEEE_F64LE.copy()
        kind.set_size(16)
        kind.set_precision(128)
        kind.set_fields(127, 112, 15, 0, 112)
        kind.set_ebias(16383)
        create(f, "x", kind, np.ones(5), packed=False)
        place = f["x"].id.get_offset()
    half = 1 << 59
    numbers = [(16383 << 112) + extra for extra in (half, half + 1, 3 * half, 3 * half - 1, 2 * half)]
    content = bytearray(path.read_bytes())
    content[place : place + 80] = b"".join(n.to_bytes(16, "little") for n in numbers)
    path.write_bytes(content)
    got = sieva.open(path)["x"].read_stored([0], [5])
    assert ((got - 1) / np.finfo("f8").eps).tolist() == [0, 1, 2, 1, 1]


def test_members_fill_values_and_attributes(tmp_path):
    """Within a compound, where nothing was written, and in attributes."""
    half = float_type((2, 7, 8, 127, 0), LE)
    record = h5py.h5t.create(h5py.h5t.COMPOUND, 16)
    record.insert(b"id", 0, h5py.h5t.STD_I32LE)
    record.insert(b"n", 4, integer_type(4, 20, 6, BE, signed=True))
    record.insert(b"x", 8, half)
    values = np.zeros(SHAPE, [("id", "i4"), ("n", "i4"), ("x", "f8")])
    values["id"], values["n"] = 7, np.arange(63).reshape(SHAPE) - 30
    values["x"] = (np.arange(63).reshape(SHAPE) - 9) / 4
    with h5py.File(tmp_path / "a.h5", "w") as f:
        for packed in (False, True):
            create(f, f"r{packed}", record, values, packed)
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk(CHUNKS)
        plist.set_fill_value(np.array(-2.5))
        h5py.h5d.create(f.id, b"none", half, h5py.h5s.create_simple(SHAPE), plist)
        space = h5py.h5s.create_simple((3,))
        for name, kind, written in [
            (b"half", half, np.array([1.5, -0.25, np.inf])),
            (b"few", integer_type(2, 5, 3, LE, signed=True), np.array([-16, 0, 15])),
        ]:
            h5py.h5a.create(f["none"].id, name, kind, space).write(written)
    source = sieva.open(tmp_path / "a.h5")
    for packed in (False, True):
        assert_same(source, f"r{packed}.n", values["n"].copy())
        assert_same(source, f"r{packed}.x", values["x"].copy())
        assert source.query(f'"r{packed}.x" > 10 and "r{packed}.id" = 7').count() == np.sum(values["x"] > 10)
    assert source["none"].read_stored([0, 0], list(SHAPE)).tolist() == np.full(SHAPE, -2.5).tolist()
    assert list(source["none"].attrs["half"]) == [1.5, -0.25, np.inf]
    assert list(source["none"].attrs["few"]) == [-16, 0, 15]


def test_a_packed_chunk_that_is_too_short(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as f:
        create(f, "x", integer_type(4, 17, 8, LE, signed=False), np.arange(63).reshape(SHAPE), packed=True)
        f["x"].id.write_direct_chunk((3, 4), b"\x01" * 25)
    source = sieva.open(path)
    assert source["x"].read_stored([0, 0], [3, 4]).tolist() == np.arange(63).reshape(SHAPE)[:3, :4].tolist()
    with pytest.raises(errors.CorruptFile, match="nbit: 26 bytes at 0 of 25 stored"):
        source.query("x > 3").count()


def test_packed_chunks_that_virtual_data_are_made_of(tmp_path):
    """Which libhdf5 decodes, after they were looked at."""
    values = np.arange(63).reshape(SHAPE)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        create(f, "x", integer_type(4, 17, 8, LE, signed=False), values, packed=True)
        layout = h5py.VirtualLayout(SHAPE, "i8")
        layout[...] = h5py.VirtualSource(f["x"])
        f.create_virtual_dataset("v", layout)
    assert sieva.open(tmp_path / "a.h5")["v"].read_stored([0, 0], list(SHAPE)).tolist() == values.tolist()
    with h5py.File(tmp_path / "a.h5", "r+") as f:
        f["x"].id.write_direct_chunk((3, 4), b"\x01" * 25)
    with pytest.raises(errors.CorruptFile, match=r"its chunk at offset .*nbit: 26 bytes at 0 of 25 stored"):
        sieva.open(tmp_path / "a.h5")["v"].read_stored([0, 0], list(SHAPE))


def test_chunks_are_decoded_once(tmp_path):
    """Tiles follow the chunks, and chunks that are cut are kept."""
    values = np.arange(600 * 900).reshape(600, 900) % (1 << 20)
    kind = integer_type(4, 20, 0, LE, signed=False)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((200, 300))
        plist.set_deflate(1)
        dataset = h5py.h5d.create(f.id, b"x", kind, h5py.h5s.create_simple(values.shape), plist)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, values)
    query = sieva.open(tmp_path / "a.h5").query("x > 500000")
    assert query.count() == np.count_nonzero(values > 500000)
    assert query.stats()["chunks_decoded"] == 9


def test_two_arrays_that_claim_one_chunk(tmp_path):
    """Of other sizes: each decodes it in its own way, whichever is asked first."""
    path, kind = tmp_path / "a.h5", integer_type(4, 20, 0, LE, signed=False)
    with h5py.File(path, "w", libver="earliest") as f:
        rng = np.random.default_rng(1)
        for name, n in (("a", 8), ("b", 4000)):
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_chunk((n,))
            plist.set_deflate(1)
            dataset = h5py.h5d.create(f.id, name.encode(), kind, h5py.h5s.create_simple((n,)), plist)
            dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, rng.integers(0, 1 << 20, n))
        place, other = (f[name].id.get_chunk_info(0).byte_offset for name in "ab")
        expected = by_libhdf5(f, "a", "u4")
    content = path.read_bytes()
    assert content.count(other.to_bytes(8, "little")) == 1
    content = content.replace(other.to_bytes(8, "little"), place.to_bytes(8, "little"))
    path.write_bytes(content)
    for order in ("ab", "ba"):
        source = sieva.open(path)
        for name in order:
            if name == "a":
                assert source["a"].read_stored([2], [3]).tolist() == expected[2:5].tolist()
            else:
                with pytest.raises(errors.CorruptFile, match="decoded to 32 bytes, expected 16000"):
                    source["b"].read_stored([3000], [5])
