"""Files of many small objects, and the answers of numpy about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOSTILE = [0.0, -0.0, np.nan, np.inf, -np.inf, 20.0, np.nextafter(20, 21), 5e-324, -1.5]


def make_files(folder: Path, files: int = 4, groups: int = 12, seed: int = 7) -> list[Path]:
    """Write files of groups with attributes and arrays; some lack arrays or have empty ones."""
    rng = np.random.default_rng(seed)
    paths = []
    for n in range(files):
        path = folder / f"plate{n:02d}.h5"
        paths.append(path)
        with h5py.File(path, "w") as file:
            file.attrs["plate"] = 4000 + n
            file.attrs["survey"] = "boss" if n % 2 else "eboss"
            for g in range(groups):
                group = file.create_group(f"{4000 + n}/{g}")
                group.attrs["RADEG"] = 150.0 + (g % 5) / 4
                group.attrs["DECDEG"] = 23.06 + n
                group.attrs["fiber"] = g
                if g % 3:
                    group.attrs["class"] = ["STAR", "GALAXY", "QSO"][g % 3]
                _fill(group, rng, size=0 if g == 3 else 40 + 3 * g, number=g)
    return paths


def _fill(group: h5py.Group, rng: np.random.Generator, size: int, number: int) -> None:
    flux = rng.normal(10, 12, size).astype(np.float64)
    flux[rng.random(size) < 0.3] = rng.choice(HOSTILE)
    where = rng.random(size) < 0.3
    flux[where] = rng.choice(HOSTILE, where.sum())
    order = ">f8" if number % 2 else "<f8"
    if number != 5:
        group.create_dataset(
            "flux", data=flux.astype(order), chunks=(16,) if size and number % 4 == 0 else None
        )
    if number != 7:
        group.create_dataset("mask", data=rng.integers(0, 4, size).astype(">u2" if number % 3 else "<u2"))
    packed = group.create_dataset("ivar", data=rng.integers(-50, 50, size).astype("i2"))
    packed.attrs["scale_factor"] = 0.25
    packed.attrs["add_offset"] = 3.0
    packed.attrs["_FillValue"] = np.int16(-7)


def objects(paths: list[Path]) -> Iterator[tuple[str, str, dict[str, Any], dict[str, np.ndarray]]]:
    """Yield source, path, keys and decoded arrays of every object, in order."""
    for path in paths:
        with h5py.File(path) as file:
            for plate in sorted(file):
                for name in sorted(file[plate]):
                    group = file[plate][name]
                    arrays = {key: group[key][()].astype(group[key].dtype.newbyteorder("=")) for key in group}
                    raw = arrays["ivar"]
                    ivar = raw.astype(np.float64) * 0.25 + 3.0
                    arrays["ivar"] = np.where(raw == -7, np.nan, ivar)
                    yield str(path), f"{plate}/{name}", {**file.attrs, **group.attrs}, arrays
