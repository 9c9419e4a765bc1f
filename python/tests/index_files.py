"""Files that tests index, and what their answers must be."""

from contextlib import suppress

import h5py
import numpy as np
import sieva
from sieva import errors

N = 300_000
"""Values of each array: several regions."""
ALL = ["auto", "scan", "zonemap", "bitmap", "sorted"]
"""Every way, for a file with indexes of all kinds."""


def write(path, energy=None, seed=0):
    """Write a file of four regions and more to each array."""
    rng = np.random.default_rng(seed)
    energy = rng.normal(2, 1, N).astype("f4") if energy is None else energy
    with h5py.File(path, "w") as file:
        file["energy"] = energy
        file["x"] = rng.uniform(0, 10, len(energy)).astype("f4")
        file.create_dataset(
            "class", data=rng.integers(-3, 4, (500, 600)).astype("i2"), chunks=(100, 100), compression="gzip"
        )
    return energy


def energy_of(path):
    with h5py.File(path) as file:
        return file["energy"][:]


def assert_right(path, **options):
    """Compare answers of all ways that there are with numpy's; returns which those are."""
    with h5py.File(path) as file:
        energy, x, classes = file["energy"][:], file["x"][:], file["class"][:]
    ways = []
    for access in ("auto", "scan", "zonemap", "bitmap", "sorted"):
        source = sieva.open(path, **options)
        with suppress(errors.NoIndex):
            assert source.query("class = 2", access=access).count() == (classes == 2).sum()
        with suppress(errors.NoIndex):
            query = source.query("energy > 3.21 AND x < 4.321", access=access)
            ways.append(access)
            mask = (energy.astype("f8") > 3.21) & (x.astype("f8") < 4.321)
            np.testing.assert_array_equal(query.selection().mask(), mask)
            np.testing.assert_array_equal(query.read("x"), x[mask])
    return ways
