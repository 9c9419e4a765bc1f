"""The object that the benchmark asks: an HDF5 file of about 1 GB, as netCDF-4 libraries write them."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np

TIMES, LATS, LONS = 120, 721, 1440
CHUNK = (1, 361, 720)
VARIABLES = ("t2m", "u10", "v10", "msl")
OTHERS = ("tp", "sst", "skt", "blh", "tcc", "cape", "swvl1", "sd")


def write(path: Path, times: int = TIMES) -> None:
    """Write a file of a dozen compressed variables over (time, lat, lon), if it is not there."""
    if path.exists():
        return
    aside = path.with_suffix(".new")
    rng = np.random.default_rng(7)
    with h5py.File(aside, "w", libver="earliest") as file:
        axes = coordinates(file, times)
        lat, lon = np.meshgrid(file["lat"][:], file["lon"][:], indexing="ij")
        shape = (times, LATS, LONS)
        base = (np.cos(np.radians(lat)) * 40 + np.sin(np.radians(lon)) * 5 + 250).astype("f4")
        for number, name in enumerate((*VARIABLES, *OTHERS)):
            # The last ones are short, so that the file is about 1 GB.
            n = times if name in VARIABLES else times // 10
            v = file.create_dataset(
                name,
                (n, *shape[1:]),
                "f4",
                chunks=CHUNK,
                compression="gzip",
                compression_opts=1,
                shuffle=True,
            )
            v.attrs["units"] = "K"
            v.attrs["long_name"] = f"variable {number}"
            for t in range(n):
                noise = rng.normal(0, 2, (LATS, LONS)).astype("f4")
                v[t] = np.round(base + number + noise + 3 * np.sin(t / 9), 2)
            if n == times:
                for d, axis in enumerate(axes):
                    v.dims[d].attach_scale(file[axis])
    aside.rename(path)


def coordinates(file: h5py.File, times: int) -> tuple[str, str, str]:
    """Write the coordinates as dimension scales; return their names."""
    values = {
        "time": np.arange(times, dtype="f8") * 6,
        "lat": np.linspace(90, -90, LATS),
        "lon": np.arange(LONS) * 0.25,
    }
    for name, v in values.items():
        file[name] = v
        file[name].make_scale(name)
    file["time"].attrs["units"] = "hours since 2000-01-01"
    file["lat"].attrs["units"], file["lon"].attrs["units"] = "degrees_north", "degrees_east"
    return "time", "lat", "lon"
