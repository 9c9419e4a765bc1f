"""One task of the benchmark by h5py over fsspec: ``theirs.py TASK URL CACHE``; prints JSON."""

import json
import sys
import time

import fsspec
import h5py
import numpy as np

task, url, cache = sys.argv[1:4]


def span(kept: np.ndarray) -> slice:
    """Return the positions from the first to the last that is kept."""
    at = np.flatnonzero(kept)
    return slice(int(at[0]), int(at[-1]) + 1)


def above(values: np.ndarray, bound: float) -> np.ndarray:
    """Return where float32 values are above a bound that is exact in them."""
    return values > np.float32(bound)


started = time.perf_counter()
opened = fsspec.open(url, cache_type=cache, block_size=5 << 20).open()
with h5py.File(opened, "r", rdcc_nbytes=64 << 20) as file:
    if task == "list":
        answer = ",".join(f"{name}{file[name].shape}" for name in sorted(file))
    elif task == "range":
        lat, lon, hours = (file[name][:] for name in ("lat", "lon", "time"))
        box = (span(hours < 96), span((lat >= 40) & (lat <= 60)), span((lon >= 0) & (lon <= 30)))
        answer = str(int(np.count_nonzero(above(file["t2m"][box], 285))))
    elif task in ("scan", "rare"):
        u, bound = file["u10"], 300 if task == "scan" else 308
        answer = str(sum(int(np.count_nonzero(above(u[t], bound))) for t in range(len(u))))
    else:
        v, m = file["v10"], file["msl"]
        hits = (above(v[t], 300) & above(m[t], 290) for t in range(len(v)))
        answer = str(sum(int(np.count_nonzero(h)) for h in hits))
print(json.dumps({"seconds": time.perf_counter() - started, "answer": answer}))
