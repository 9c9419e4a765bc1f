"""Every way of fetching gives the same values, whatever the layout: dense, records, chunks."""

import h5py
import netCDF4
import numpy as np
import pytest
import sieva

SHAPE = (5, 7, 300)


@pytest.fixture(scope="module")
def values():
    rng = np.random.default_rng(7)
    return rng.normal(size=SHAPE).astype("f4"), rng.integers(-(2**15), 2**15, SHAPE).astype("i2")


@pytest.fixture(scope="module", params=["records", "classic", "contiguous", "chunked", "deflated"])
def source(request, values, tmp_path_factory):
    path = tmp_path_factory.mktemp("fetch") / request.param
    a, b = values
    if request.param in ("records", "classic"):
        with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as f:
            for name, n in zip("tyx", SHAPE, strict=True):
                f.createDimension(name, None if name == "t" and request.param == "records" else n)
            # Two record variables of different sizes: records are neither dense nor a multiple of one.
            f.createVariable("a", "f4", ("t", "y", "x"))[:] = a
            f.createVariable("b", "i2", ("t", "y", "x"))[:] = b
    else:
        options = {"contiguous": {}, "chunked": {"chunks": (2, 3, 100)}}.get(
            request.param, {"chunks": (2, 3, 100), "compression": "gzip"}
        )
        with h5py.File(path, "w") as f:
            f.create_dataset("a", data=a, **options)
            f.create_dataset("b", data=b.astype(">i2"), **options)
    return sieva.open(path)


@pytest.mark.parametrize("fetch", ["auto", "direct", "block"])
@pytest.mark.parametrize("condition", ["a > 1.5", "a > -1", "b BETWEEN 5 AND 6", "a > -100"])
def test_every_way_fetches_the_same(source, values, fetch, condition):
    a, b = values
    wide = a.astype("f8")
    mask = {
        "a > 1.5": wide > 1.5,
        "a > -1": wide > -1,
        "b BETWEEN 5 AND 6": (b >= 5) & (b <= 6),
        "a > -100": wide > -100,
    }[condition]
    query = source.query(condition, fetch=fetch)
    np.testing.assert_array_equal(query.read("a"), a[mask])
    np.testing.assert_array_equal(query.read("b"), b[mask])
    ordered = source.query(condition, select=["a", "b"], fetch=fetch).to_pandas()
    assert len(ordered) == mask.sum()


def test_an_unknown_way_is_refused(source):
    with pytest.raises(ValueError, match="not one of auto, direct, block"):
        source.query("a > 1", fetch="fast")
