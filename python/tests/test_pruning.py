"""What is not read: chunks outside of the box that conditions on coordinates leave."""

import itertools
import math

import h5py
import numpy as np
import pytest
import sieva
from sieva.generate import write_ocean

CONDITION = "TEMP > 5 AND TLAT BETWEEN 18 AND 31 AND TLONG BETWEEN 262 AND 280 AND z_t < 5000"


@pytest.fixture(scope="module")
def ocean(tmp_path_factory):
    path = tmp_path_factory.mktemp("pruning") / "ocean.nc"
    write_ocean(path, times=3, depths=20, lats=180, lons=240, seed=1)
    return path


def chunks_of_the_box(path):
    """Return how many chunks of TEMP the bounding box of the coordinates' conditions touches."""
    with h5py.File(path) as f:
        lat, lon = f["TLAT"][:], f["TLONG"][:]
        rows, columns = np.nonzero((lat >= 18) & (lat <= 31) & (lon >= 262) & (lon <= 280))
        depths = np.flatnonzero(f["z_t"][:] < 5000)
        temp = f["TEMP"]
        spans = [(0, len(temp) - 1), (depths.min(), depths.max()), (rows.min(), rows.max())]
        spans.append((columns.min(), columns.max()))
        numbers = [range(low // c, high // c + 1) for (low, high), c in zip(spans, temp.chunks, strict=True)]
        return len(list(itertools.product(*numbers))), math.prod(
            math.ceil(n / c) for n, c in zip(temp.shape, temp.chunks, strict=True)
        )


def test_only_chunks_of_the_box_are_decoded(ocean):
    wanted, there = chunks_of_the_box(ocean)
    assert wanted < there / 4
    query = sieva.open(ocean).query(CONDITION)
    assert query.count() > 0
    assert query.stats()["chunks_decoded"] == wanted


def test_nothing_is_read_where_coordinates_leave_nothing(ocean):
    query = sieva.open(ocean).query("TEMP > 5 AND TLAT > 100")
    assert query.count() == 0
    assert query.stats()["chunks_decoded"] == 0


def test_positions_are_slices(ocean):
    query = sieva.open(ocean).query("TEMP > 5 AND idx(time) = 1 AND idx(z_t) < 10")
    assert query.count() > 0
    with h5py.File(ocean) as f:
        depth = f["TEMP"].chunks[1]
        in_a_layer = math.ceil(180 / f["TEMP"].chunks[2]) * math.ceil(240 / f["TEMP"].chunks[3])
    assert query.stats()["chunks_decoded"] == math.ceil(10 / depth) * in_a_layer
