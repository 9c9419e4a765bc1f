"""Complex numbers of Zarr: two parts, as h5py names them, and as numpy has them."""

import numpy as np
import pytest
import sieva

zarr = pytest.importorskip("zarr")

SHAPE, CHUNKS = (7, 5), (3, 2)
TYPES = [("<c8", 2), (">c8", 2), ("<c16", 2), (">c16", 2), ("c8", 3), ("c16", 3)]


def numbers(dtype):
    """Draw numbers of which one chunk is left unwritten."""
    rng = np.random.default_rng(3)
    z = (rng.standard_normal(SHAPE) + 1j * rng.standard_normal(SHAPE)).astype(dtype)
    z[1, 1] = complex(np.nan, 2)
    z[2, 3] = complex(-0.0, np.inf)
    return z


def written(path, dtype, version, fill, **how):
    root = zarr.open_group(path, mode="w", zarr_format=version)
    made = root.create_array("z", shape=SHAPE, chunks=CHUNKS, dtype=dtype, fill_value=fill, **how)
    made[:6, :4] = numbers(dtype)[:6, :4]
    return made[...]


@pytest.mark.parametrize("fill", [0, 1.5 - 2j, complex(np.nan, np.inf)])
@pytest.mark.parametrize(
    ("dtype", "version"), [("<c8", 2), (">c8", 2), ("<c16", 2), (">c16", 2), ("c8", 3), ("c16", 3)]
)
def test_the_parts_are_numpys(tmp_path, dtype, version, fill):
    z = written(tmp_path / "z.zarr", dtype, version, fill)
    source = sieva.open(tmp_path / "z.zarr")
    assert sorted(source) == ["z.i", "z.r"]
    for name, part in (("r", z.real), ("i", z.imag)):
        got = source[f"z.{name}"][...]
        np.testing.assert_array_equal(got, part)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(part))
        assert got.dtype == part.dtype.newbyteorder("=")
    real, imag = z.real.astype("f8"), z.imag.astype("f8")
    with np.errstate(invalid="ignore"):
        hits = np.hypot(real, imag) > 1.5
        # Missing, as NaN is.
        hits &= ~np.isnan(real) & ~np.isnan(imag)
        assert source.query("hypot(z.real, z.imag) > 1.5").count() == hits.sum()
        assert source.query("z.r > 0 AND z.i < 0").count() == ((real > 0) & (imag < 0)).sum()


def test_the_order_of_columns(tmp_path):
    z = written(tmp_path / "z.zarr", "<c16", 2, 7j, order="F")
    source = sieva.open(tmp_path / "z.zarr")
    np.testing.assert_array_equal(source["z.i"][...], z.imag)


def test_members_of_compounds(tmp_path):
    dtype = np.dtype([("n", "<i2"), ("z", "<c8"), ("m", ">c16")])
    items = np.zeros(9, dtype)
    items["n"], items["z"], items["m"] = np.arange(9), np.arange(9) * (1 - 2j), np.arange(9) * (0.1 + 3j)
    made = zarr.open_group(tmp_path / "c.zarr", mode="w", zarr_format=2)
    made.create_array("t", shape=(9,), chunks=(4,), dtype=dtype)[...] = items
    source = sieva.open(tmp_path / "c.zarr")
    for name in ("z", "m"):
        np.testing.assert_array_equal(source[f"t.{name}.r"][...], items[name].real)
        np.testing.assert_array_equal(source[f"t.{name}.i"][...], items[name].imag)
    assert source.sql('SELECT sum("t.m.i") AS s').to_arrow().to_pylist() == [{"s": items["m"].imag.sum()}]
