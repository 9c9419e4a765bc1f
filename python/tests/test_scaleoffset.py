"""HDF5's scale-offset packing, decoded by our own reader: bit for bit what libhdf5 decodes."""

import h5py
import numpy as np
import pytest
import sieva
from sieva import errors

SHAPE, CHUNKS = (13, 9), (4, 5)
INTEGERS = [order + kind for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8") for order in "<>"]
FLOATS = ["<f4", ">f4", "<f8", ">f8"]


def create(f, name, values, factor, fill=None, **options):
    """Create a dataset; h5py gives a fill value to all, so that those without are made by its lower level."""
    if fill is not None:
        return f.create_dataset(
            name, data=values, chunks=CHUNKS, scaleoffset=factor, fillvalue=fill, **options
        )
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(CHUNKS)
    plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    is_float = values.dtype.kind == "f"
    plist.set_scaleoffset(h5py.h5z.SO_FLOAT_DSCALE if is_float else h5py.h5z.SO_INT, factor)
    if options.get("fletcher32"):
        plist.set_fletcher32()
    kind, space = h5py.h5t.py_create(values.dtype), h5py.h5s.create_simple(values.shape)
    dataset = h5py.h5d.create(f.id, name.encode(), kind, space, plist)
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(values))
    return h5py.Dataset(dataset)


def assert_read_as_by_libhdf5(path):
    """Every dataset of the file has the same bits, and libhdf5 decoded none for us."""
    source = sieva.open(path)
    with h5py.File(path) as f:
        assert len(f) > 0
        for name in f:
            expected = f[name][...]
            expected = expected.astype(expected.dtype.newbyteorder("="))
            got = source[name].read_stored([0, 0], list(SHAPE))
            assert got.dtype == expected.dtype, name
            assert got.tobytes() == expected.tobytes(), name
            assert "libhdf5" not in str(source.query(f'"{name}" = 1').explain()), name


def draws(rng, dtype):
    """Yield values of all ranges, from those in no bits to those in all."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        for width in (0, 1e-3, 3.0, 1e5):
            yield (rng.random(SHAPE) * width - width / 3).astype(dtype)
        return
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    for bits in range(0, 8 * dtype.itemsize + 1, max(1, dtype.itemsize // 2)):
        start = int(
            rng.integers(low, max(low, high - (1 << bits)), endpoint=True, dtype=np.int64 if low else "u8")
        )
        end = min(start + (1 << bits) - 1, high)
        yield rng.integers(start, end, SHAPE, endpoint=True, dtype=dtype.newbyteorder("=")).astype(dtype)


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_every_width_of_every_type(tmp_path, dtype):
    rng = np.random.default_rng(11)
    factors = (0, 2, 5, 9) if np.dtype(dtype).kind == "f" else (0,)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        for n, values in enumerate(draws(rng, dtype)):
            for factor in factors:
                create(f, f"plain_{n}_{factor}", values, factor)
                create(f, f"summed_{n}_{factor}", values, factor, fletcher32=True)
                # A fill value that occurs, and one that need not.
                for k, fill in enumerate((values[3, 3], np.dtype(dtype).type(1))):
                    create(f, f"filled_{n}_{factor}_{k}", values, factor, fill, compression="gzip")
    assert_read_as_by_libhdf5(tmp_path / "a.h5")


@pytest.mark.parametrize("bits", [1, 3, 8, 12, 15, 16])
def test_bits_that_the_writer_chose(tmp_path, bits):
    values = np.random.default_rng(bits).integers(0, 1 << bits, SHAPE, dtype="u2", endpoint=False)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        create(f, "plain", values, bits)
        create(f, "filled", values, bits, values[0, 0])
        create(f, "big", values.astype(">u2"), bits, values[0, 0])
    assert_read_as_by_libhdf5(tmp_path / "a.h5")


def test_a_chunk_that_is_too_short_is_an_error(tmp_path):
    """Of values in all their bits libhdf5 reads what lies behind the chunk in memory."""
    path = tmp_path / "a.h5"
    values = np.arange(20, dtype="i8").reshape(4, 5)
    with h5py.File(path, "w") as f:
        d = create(f, "x", values, 0)
        header = (64).to_bytes(4, "little") + bytes([8]) + bytes(16)
        d.id.write_direct_chunk((0, 0), header + values.tobytes()[:-8])
    with pytest.raises(errors.CorruptFile, match="scaleoffset: 160 bytes at 21 of 173 stored"):
        sieva.open(path).query("x >= 0").count()


def test_integers_of_fewer_bits_than_they_take(tmp_path):
    """Of 20 bits, which are converted once their chunks are decoded."""
    path = tmp_path / "a.h5"
    kind = h5py.h5t.STD_I32LE.copy()
    kind.set_precision(20)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((10,))
    plist.set_scaleoffset(h5py.h5z.SO_INT, 0)
    with h5py.File(path, "w") as f:
        d = h5py.h5d.create(f.id, b"x", kind, h5py.h5s.create_simple((20,)), plist)
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(20, dtype="i4"))
    assert sieva.open(path).query("x >= 15").count() == 5
    with h5py.File(path, "r+") as f:
        f["x"].id.write_direct_chunk((10,), (32).to_bytes(4, "little") + bytes([8]) + bytes(20))
    with pytest.raises(errors.CorruptFile, match=r"chunk \[1\]: scaleoffset: 40 bytes at 21"):
        sieva.open(path).query("x >= 15").count()
