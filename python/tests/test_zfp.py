"""zfp in HDF5 files and Zarr arrays, decoded by our own reader: bit for bit what libzfp decodes."""

import json

import h5py
import hdf5plugin
import numpy as np
import pytest
import sieva
from sieva import errors

SHAPES = [(1,), (37,), (4,), (9, 14), (1, 5), (5, 6, 7), (4, 4, 4), (3, 5, 2, 6), (6, 9, 4, 4)]
INTEGER_MODES = [{"rate": 3}, {"rate": 17}, {"precision": 11}, {"reversible": True}]
MODES = [
    *INTEGER_MODES,
    {"accuracy": 1e-3},
    {"accuracy": 64.0},
    {"minbits": 20, "maxbits": 900, "maxprec": 20, "minexp": -20},
]


def draws(rng, shape, dtype):
    """Yield smooth values, noise, values of all exponents, zeros, and what no transform likes."""
    grid = sum(np.indices(shape))
    if np.dtype(dtype).kind == "i":
        limits = np.iinfo(dtype)
        yield (grid * 31 - 50).astype(dtype)
        # libzfp computes with the sums of its inputs: larger ones overflow, in C to no defined result.
        yield rng.integers(limits.min // 8, limits.max // 8, shape, dtype=dtype)
        return
    yield np.sin(grid / 3).astype(dtype)
    yield rng.normal(size=shape).astype(dtype)
    yield (rng.normal(size=shape) * 10.0 ** rng.integers(-30, 30, shape)).astype(dtype)
    yield np.zeros(shape, dtype)
    tiny = np.full(shape, np.finfo(dtype).smallest_subnormal, dtype)
    yield tiny * rng.integers(0, 5, shape).astype(dtype)


def expert(options):
    """Return the options of hdf5plugin for a mode."""
    return dict(hdf5plugin.Zfp(**options))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["<f4", "<f8", "<i4", "<i8"])
def test_every_mode_of_every_type(tmp_path, dtype, shape):
    rng = np.random.default_rng(5)
    path = tmp_path / "a.h5"
    modes = MODES if np.dtype(dtype).kind == "f" else INTEGER_MODES
    with h5py.File(path, "w") as f:
        for n, values in enumerate(draws(rng, shape, dtype)):
            for m, mode in enumerate(modes):
                f.create_dataset(f"x_{n}_{m}", data=values, chunks=shape, **expert(mode))
    source = sieva.open(path)
    with h5py.File(path) as f:
        assert len(f) >= 8
        for name in f:
            expected, got = f[name][...], source[name].read_stored([0] * len(shape), list(shape))
            assert got.dtype == expected.dtype
            assert got.tobytes() == expected.tobytes(), (name, f[name]._filters)


def test_special_values_are_kept_reversibly(tmp_path):
    values = np.array([[np.nan, -0.0, np.inf, -np.inf], [1e-310, 1.5, -2.5, 0.0]] * 3)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("x", data=values, chunks=(4, 3), **hdf5plugin.Zfp(reversible=True))
    source = sieva.open(tmp_path / "a.h5")
    assert source["x"].read_stored([0, 0], [6, 4]).tobytes() == values.tobytes()
    assert source.query("x > 1").count() == 6
    assert "libhdf5" not in str(source.query("x > 1").explain())


def stored(tmp_path, values, **mode):
    """Return what libzfp makes of an array, with the header before it as of zfpy, and what it decodes."""
    with h5py.File(tmp_path / "chunk.h5", "w") as f:
        d = f.create_dataset("x", data=values, chunks=values.shape, **hdf5plugin.Zfp(**mode))
        [client_data] = d._filters.values()
        return np.array(client_data[1:4], "<u4").tobytes() + d.id.read_direct_chunk((0, 0))[1], d[...]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("mode", [{"accuracy": 0.01}, {"rate": 9}, {"precision": 14}], ids=str)
def test_zarr_arrays(tmp_path, version, mode):
    """Without numcodecs, whose import fails where the latest zfpy is installed."""
    values = np.random.default_rng(3).normal(size=(16, 12)).astype("f4")
    chunk, expected = stored(tmp_path, values, **mode)
    assert np.abs(expected - values).max() > 0
    array = tmp_path / "a.zarr"
    array.mkdir()
    codec = {"id": "zfpy", "mode": 4, "tolerance": 0.01, "rate": -1, "precision": -1}
    if version == 2:
        header = {
            "zarr_format": 2,
            "shape": [16, 12],
            "chunks": [16, 12],
            "dtype": "<f4",
            "compressor": codec,
        }
        header |= {"fill_value": 0, "order": "C", "filters": None}
        (array / ".zarray").write_text(json.dumps(header))
        (array / "0.0").write_bytes(chunk)
    else:
        grid = {"name": "regular", "configuration": {"chunk_shape": [16, 12]}}
        keys = {"name": "default", "configuration": {"separator": "/"}}
        codecs = [{"name": "numcodecs.zfpy", "configuration": {"mode": 4}}]
        header = {"zarr_format": 3, "node_type": "array", "shape": [16, 12], "data_type": "float32"}
        header |= {"chunk_grid": grid, "chunk_key_encoding": keys, "fill_value": 0, "codecs": codecs}
        (array / "zarr.json").write_text(json.dumps(header))
        (array / "c" / "0").mkdir(parents=True)
        (array / "c" / "0" / "0").write_bytes(chunk)
    source = sieva.open(array)
    [name] = source
    assert source[name].read_stored([0, 0], [16, 12]).tobytes() == expected.tobytes()


def test_a_chunk_that_ends_too_early_is_an_error(tmp_path):
    path = tmp_path / "a.h5"
    values = np.random.default_rng(1).normal(size=(8, 8))
    with h5py.File(path, "w") as f:
        d = f.create_dataset("x", data=values, chunks=(8, 8), **hdf5plugin.Zfp(precision=30))
        mask, stored = d.id.read_direct_chunk((0, 0))
        d.id.write_direct_chunk((0, 0), stored[: len(stored) // 2], mask)
    with pytest.raises(errors.CorruptFile, match="zfp: the chunk ends within its blocks"):
        sieva.open(path).query("x > 0").count()
