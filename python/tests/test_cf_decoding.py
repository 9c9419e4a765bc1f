"""CF decoding at its edges: signs of zero, missing values of other types, fill values; numpy's answers."""

import json

import h5py
import numpy as np
import pandas as pd
import pytest
import sieva
import xarray as xr

CONDITIONS = ["x > 0", "x < 0", "x = 0", "x >= 100", "x IS NULL", "NOT (x < 5)"]


def made(path, values, **attrs):
    """Write an array and return it with its source."""
    with h5py.File(path, "w") as file:
        file["x"] = values
        for name, value in attrs.items():
            file["x"].attrs[name] = value
    return sieva.open(path)


def check(source, decoded):
    """Compare values and the answers to conditions with what numpy says of the decoded values."""
    got = source["x"][...]
    np.testing.assert_array_equal(got, decoded)
    np.testing.assert_array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(decoded[~np.isnan(decoded)]))
    wide = decoded.astype("f8")
    with np.errstate(invalid="ignore"):
        answers = [wide > 0, wide < 0, wide == 0, wide >= 100, np.isnan(wide), wide >= 5]
    for condition, answer in zip(CONDITIONS, answers, strict=True):
        for access in ("auto", "scan"):
            assert source.query(condition, access=access).count() == answer.sum(), condition


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f4", "f2"])
@pytest.mark.parametrize(
    ("attrs", "unpacked"),
    [
        ({"scale_factor": 2.0}, lambda x: x * 2.0),
        ({"add_offset": 0.0}, lambda x: x + 0.0),
        ({"scale_factor": 2.0, "add_offset": 0.0}, lambda x: x * 2.0 + 0.0),
        ({"scale_factor": -0.5}, lambda x: x * -0.5),
    ],
)
def test_the_sign_of_zero_is_that_of_numpy(tmp_path, dtype, attrs, unpacked):
    values = np.array([-0.0, 0.0, 1.5, -7, np.inf, -np.inf, np.nan, 60], dtype)
    check(made(tmp_path / "x.h5", values, **attrs), unpacked(values.astype("f8")))


def test_fits_without_bzero_keeps_the_sign_of_zero(tmp_path):
    path = tmp_path / "x.fits"
    write_fits(path, np.array([-0.0, 0.0, 3.0], ">f4"), BITPIX=-32, BSCALE=2.0)
    got = sieva.open(path)["hdu0"][...]
    assert list(np.signbit(got)) == [True, False, False]


@pytest.mark.parametrize("missing", [np.float32(0.1), np.float64(0.1), np.int32(-9999), np.float64(1e20)])
def test_wide_missing_values_of_halves(tmp_path, missing):
    values = np.array([0.1, -9999, 5, np.inf, -np.inf, 65504], "f2")
    with np.errstate(over="ignore"):
        half = np.float16(missing)
    decoded = np.where((values == half) & np.isfinite(half), np.nan, values).astype("f2")
    check(made(tmp_path / "x.h5", values, missing_value=missing), decoded)


@pytest.mark.parametrize("missing", [1e300, -1e300, np.inf, 1e20])
def test_missing_values_beyond_the_type_mask_no_infinity(tmp_path, missing):
    values = np.array([1, np.inf, -np.inf, 1e20, 200], "f4")
    masked = values == np.float32(missing) if abs(missing) < 1e39 or np.isinf(missing) else np.zeros(5, bool)
    source = made(tmp_path / "x.h5", values, missing_value=np.float64(missing))
    check(source, np.where(masked, np.nan, values).astype("f4"))


def test_a_valid_range_beyond_the_type_leaves_infinities_out(tmp_path):
    values = np.array([1, np.inf, -np.inf, 1e20], "f4")
    made(tmp_path / "x.h5", values, valid_range=np.array([-1e300, 1e300]))
    source = sieva.open(tmp_path / "x.h5", valid_range=True)
    assert source.query("x IS NULL").count() == 2


@pytest.mark.parametrize("attrs", [{}, {"missing_value": -1.0}, {"_FillValue": "AAAAAAAA+H8="}])
def test_a_fill_value_of_zarr_3_counts_where_no_attribute_says_more(tmp_path, attrs):
    values = np.array([1, -1, -999, 4], "<f4")
    array = {
        "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "float32", "fill_value": -999.0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "dimension_names": ["d"], "attributes": attrs,
    }  # fmt: skip
    (tmp_path / "g.zarr" / "x" / "c").mkdir(parents=True)
    (tmp_path / "g.zarr" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    (tmp_path / "g.zarr" / "x" / "zarr.json").write_text(json.dumps(array))
    (tmp_path / "g.zarr" / "x" / "c" / "0").write_bytes(values.tobytes())
    got = sieva.open(tmp_path / "g.zarr")["x"][...]
    missing = {"missing_value": [1], "_FillValue": []}.get(next(iter(attrs), ""), [2])
    np.testing.assert_array_equal(np.nonzero(np.isnan(got))[0], missing)


def write_fits(path, data, **cards):
    """Write an image of one dimension."""
    cards = {"SIMPLE": True, "BITPIX": 16, "NAXIS": 1, "NAXIS1": len(data)} | cards
    text = "".join(f"{k:<8}= {'T' if v is True else v:>20}".ljust(80) for k, v in cards.items())
    head = (text + "END".ljust(80)).encode()
    body = data.tobytes()
    path.write_bytes(head + b" " * (-len(head) % 2880) + body + b"\0" * (-len(body) % 2880))


FITS = {
    "blank": {"BLANK": -32768},
    "scaled": {"BLANK": -32768, "BSCALE": 0.5, "BZERO": 10.0},
    "unsigned": {"BLANK": 7, "BZERO": 32768},
}


@pytest.mark.parametrize("cards", FITS.values(), ids=FITS.keys())
@pytest.mark.parametrize("kind", ["netcdf", "hdf5", "zarr", "xarray", "parquet", "csv"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_fits_integers_with_blanks_are_written(tmp_path, cards, kind):
    write_fits(tmp_path / "x.fits", np.array([1, 2, -32768, 7, 32767], ">i2"), **cards)
    query = sieva.open(tmp_path / "x.fits").query(None, ["hdu0"])
    expected = query.to_pandas()["hdu0"].to_numpy("f8", na_value=np.nan)
    assert np.isnan(expected).sum() == 1
    out = tmp_path / "out"
    if kind == "xarray":
        got = query.to_xarray().hdu0.values
    elif kind == "parquet":
        query.to_parquet(out)
        got = pd.read_parquet(out)["hdu0"]
    elif kind == "csv":
        query.to_csv(out)
        got = pd.read_csv(out)["hdu0"]
    else:
        getattr(query, f"to_{kind}")(out)
        engine = {"netcdf": "h5netcdf", "hdf5": "h5netcdf", "zarr": "zarr"}[kind]
        options = {"consolidated": False} if kind == "zarr" else {}
        with xr.open_dataset(out, engine=engine, **options) as dataset:
            got = dataset["hdu0"].values
    np.testing.assert_array_equal(np.asarray(got, "f8"), expected)


@pytest.mark.parametrize("cards", [FITS["blank"], FITS["scaled"]], ids=["blank", "scaled"])
def test_references_keep_what_fits_says_of_values(tmp_path, cards):
    write_fits(tmp_path / "x.fits", np.array([1, 2, -32768, 4], ">i2"), **cards)
    source = sieva.open(tmp_path / "x.fits")
    assert source.to_references(tmp_path / "x.json") == []
    back = sieva.open(tmp_path / "x.json", external=[tmp_path])
    np.testing.assert_array_equal(back["hdu0"][...], source["hdu0"][...])
    assert np.isnan(back["hdu0"][...]).sum() == 1


@pytest.mark.parametrize("name", ["missing_value", "_FillValue"])
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_references_keep_infinite_missing_values(tmp_path, name, value):
    source = made(tmp_path / "x.h5", np.array([1, np.inf, -np.inf, 2], "f4"), **{name: np.float32(value)})
    assert source.to_references(tmp_path / "x.json") == []
    back = sieva.open(tmp_path / "x.json", external=[tmp_path])
    np.testing.assert_array_equal(back["x"][...], source["x"][...])
    assert back.query("x IS NULL").count() == 1
