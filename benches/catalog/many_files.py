#!/usr/bin/env python3
"""Opening many small files as one source: known to a catalog, not known, and by xarray.

    benches/catalog/many_files.py [--files N] [--few N] [--runs N] [--data DIR]

Each file holds one time of two variables; they are made in DIR once. Opening ends when shape and coordinates
of the whole are known. xarray opens fewer, in its best way for files that are known to fit
(``compat="override"``).
"""

import argparse
import sys
from pathlib import Path

import netCDF4
import numpy as np
import sieva
import xarray as xr

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from timing import Times, seconds_of


def write(directory: Path, count: int) -> None:
    """Write the files that are not there yet."""
    directory.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    for i in range(count):
        values = [(rng.random((1, 10)) + i / 100).astype("f4") for _ in range(2)]
        path = directory / f"m{i:05}.nc"
        if path.exists():
            continue
        with netCDF4.Dataset(path, "w") as file:
            file.createDimension("time", None)
            file.createDimension("lat", 10)
            time = file.createVariable("time", "f8", ("time",))
            time.units = "days since 2000-01-01"
            time[:] = [i]
            for name, of in zip(("TEMP", "SALT"), values, strict=True):
                file.createVariable(name, "f4", ("time", "lat"))[:] = of


def of_xarray(names: list[Path]) -> int:
    """Return the number of times that xarray finds."""
    how = {"combine": "nested", "concat_dim": "time", "data_vars": "minimal"}
    with xr.open_mfdataset(names, coords="minimal", compat="override", **how) as data:
        return int(data.sizes["time"])


def asked(names: list[Path], catalog: sieva.Catalog | None, condition: str | None = None) -> int:
    """Open, and return the number of times, or of hits."""
    source = sieva.open(names, catalog=catalog, learn=False)
    return source["TEMP"].shape[0] if condition is None else source.query(condition).count()


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--files", type=int, default=10_000)
    options.add_argument("--few", type=int, default=500)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--data", type=Path, default=Path("target/bench-data"))
    given = options.parse_args()
    directory = given.data / f"many-{given.files}"
    write(directory, given.files)
    names = sorted(directory.glob("*.nc"))[: given.files]
    few = names[: given.few]
    url = given.data / f"many-{given.files}.sqlite"
    url.unlink(missing_ok=True)
    catalog = sieva.Catalog(url)
    print(f"register {len(names)}: {seconds_of(lambda: catalog.add(directory)):.2f} s")
    print(f"register again: {seconds_of(lambda: catalog.add(directory)):.2f} s")
    condition = f"TEMP > {(given.files - 50) / 100}"
    # Answers first: what is measured has to be right.
    assert asked(names, catalog) == asked(names, None) == len(names)  # noqa: S101
    assert asked(few, catalog) == of_xarray(few) == len(few)  # noqa: S101
    assert asked(few, catalog, condition) == asked(few, None, condition)  # noqa: S101
    works = {
        f"open {len(names)}, known": lambda: asked(names, catalog),
        f"open {len(names)}, not known": lambda: asked(names, None),
        f"open {len(few)}, known": lambda: asked(few, catalog),
        f"open {len(few)}, not known": lambda: asked(few, None),
        f"open {len(few)}, xarray": lambda: of_xarray(few),
        f"open and query {len(names)}, known": lambda: asked(names, catalog, condition),
    }
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(given.runs):
        for name, work in works.items():
            seconds[name].append(seconds_of(work))
    times = {name: Times(tuple(of)) for name, of in seconds.items()}
    for name, of in times.items():
        print(f"{name}: {of}")
    known, plain, theirs = (
        times[f"open {len(few)}, {how}"].median for how in ("known", "not known", "xarray")
    )
    print(f"xarray takes {theirs / known:.0f} times as long as known, {theirs / plain:.1f} as not known")
    catalog.add(directory, statistics=True)
    with_ranges = Times(
        tuple(seconds_of(lambda: asked(names, catalog, condition)) for _ in range(given.runs))
    )
    print(f"open and query {len(names)}, known with ranges: {with_ranges}")


if __name__ == "__main__":
    main()
