"""Figure 13: consumers want the spectra of images that cameras of a combustion experiment take.

An image is two frames of 512 x 512 pixels of 12 bits. What is looked at are the Fourier transforms of both
together (their mean) and of what moved between them (their difference), as logarithms of their power. In the
group code of the consumers' (`scibox_fft.c`) makes them where the images lie, by so many producers side by
side; stock consumers fetch the images and transform them by numpy.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import sieva.share
from scibox_at_once import at_once
from scibox_store import Store
from scibox_traffic import same
from scibox_workload import values_of
from sieva._native import Objects

Result = dict[str, Any]
SIZE = 512
CODE = Path(__file__).with_name("scibox_fft.c")
ASK = "spectra"


def write(folder: Path, images: int, seed: int) -> list[Path]:
    """Write so many images, a file of HDF5 each; return the files. Those that are there are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    y, x = np.mgrid[:SIZE, :SIZE]
    files = []
    for number in range(images):
        path = folder / f"image-{number:04}.h5"
        files.append(path)
        if path.exists():
            continue
        rng = np.random.default_rng(seed + number)
        frames = [_frame(y, x, rng, number + moved) for moved in (0.0, 0.7)]
        partial = path.with_suffix(".part")
        with h5py.File(partial, "w") as file:
            file["frames"] = np.stack(frames)
        partial.rename(path)
    return files


def _frame(y: np.ndarray, x: np.ndarray, rng: np.random.Generator, at: float) -> np.ndarray:
    """Return waves of flames and the noise of a camera."""
    waves = np.sin(x / 9 + at) * np.cos(y / 23 - at) + np.sin((x + y) / 5 + 2 * at)
    return np.clip(1800 + 700 * waves + rng.normal(0, 90, x.shape), 0, 4095).astype("u2")


def transformed(path: Path) -> np.ndarray:
    """Return what a stock consumer makes of an image that it has: numpy's spectra."""
    with h5py.File(path) as file:
        first, second = file["frames"][:].astype("f8")
    spectra = [np.fft.rfft2(frame).T for frame in ((first + second) / 2, first - second)]
    power = [of.real**2 + of.imag**2 for of in spectra]
    return (4 * np.log2(1 + np.stack(power))).astype("u1").ravel()


def measure(
    store: Store, data: Path, scratch: Path, producers: int, consumers: Sequence[int], *, options: Result
) -> list[Result]:
    """Measure when all consumers have all spectra, after the images are there, by the number of consumers.

    Parameters
    ----------
    store
        Where from.
    data, scratch
        Directories of the images, and of what comes and goes.
    producers
        Processes that transform, among which the images are dealt.
    consumers
        Their numbers.
    options
        ``images``: how many; ``seed``.
    """
    files = write(data / f"images-{options['seed']}", options["images"], options["seed"])
    work = scratch / f"images-{producers}"
    return [_measure(store, files, work / str(number), producers, number) for number in consumers]


def _measure(store: Store, files: list[Path], work: Path, producers: int, consumers: int) -> Result:
    work.mkdir(parents=True)
    try:
        place = store.place()
        _dealt(files, work, producers)
        group = sieva.share.create(place, str(work / "p0" / "*.h5"), producer="p0")
        for number in range(1, producers):
            group.register(str(work / f"p{number}" / "*.h5"), producer=f"p{number}")
        for number in range(consumers):
            group.ask(ASK, "SELECT frames", code=CODE, format="arrow", user=f"c{number}")
        put, producing = at_once([_produce(place, number, work) for number in range(producers)])
        same("answers", sum(one["answers"] for one in put), consumers * len(files))
        mark = store.mark()
        told, following = at_once([_follow(place, number, work, len(files)) for number in range(consumers)])
        moved = sum(one["bytes"] for one in told)
        if store.is_logged:
            same("bytes of spectra", store.moved(mark).bytes_of("GET", is_data=True), moved)
        _checked(files, work, consumers)
        raw = store.place()
        for path in files:
            Objects(raw).put(f"stock/{path.name}", path.read_bytes())
        mark = store.mark()
        fetched, stock = at_once([_fetch(raw, files, work, number) for number in range(consumers)])
        size = consumers * sum(path.stat().st_size for path in files)
        if store.is_logged:
            same("bytes of images", store.moved(mark).bytes_of("GET", is_data=True), size)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return {
        "store": store.name,
        "images": len(files),
        "producers": producers,
        "consumers": consumers,
        "ours": {"produce": producing, "follow": following, "bytes": moved},
        "stock": {"seconds": stock, "analysis": max(one["then"] for one in fetched), "bytes": size},
    }


def _dealt(files: Sequence[Path], work: Path, producers: int) -> None:
    """Deal the images to folders, one for each producer."""
    for number in range(producers):
        (work / f"p{number}").mkdir()
    for at, path in enumerate(files):
        (work / f"p{at % producers}" / path.name).symlink_to(path)


def _produce(place: str, number: int, work: Path) -> Result:
    return {"do": "produce", "place": place, "producer": f"p{number}", "spool": str(work)}


def _follow(place: str, number: int, work: Path, images: int) -> Result:
    job = {"do": "follow", "place": place, "user": f"c{number}", "names": [ASK], "files": images}
    return {**job, "folder": str(work / f"c{number}")}


def _fetch(raw: str, files: Sequence[Path], work: Path, number: int) -> Result:
    images = [[f"stock/{path.name}", path.stat().st_size] for path in files]
    return {"do": "transform", "place": raw, "images": images, "folder": str(work / f"raw-{number}")}


def _checked(files: Sequence[Path], work: Path, consumers: int) -> None:
    """Compare the spectra of all consumers with numpy's.

    A power that lies on the edge of two levels may be in the other one, as sums are in another order.
    """
    for path in files:
        expected = transformed(path).astype("i2")
        for number in range(consumers):
            found = sorted((work / f"c{number}").rglob(f"{path.stem}.arrow"))
            if len(found) != 1:
                raise SystemExit(f"consumer {number} has {len(found)} files of {path.stem}")
            with pa.memory_map(str(found[0])) as mapped:
                values = values_of(pa.ipc.open_file(mapped).read_all().column(0).combine_chunks())
            off = np.abs(values.astype("i2") - expected)
            if off.max() > 1 or np.count_nonzero(off) > 10:
                raise SystemExit(f"{found[0]}: other values than numpy's")


def told(cells: Sequence[Result]) -> str:
    """Return cells in words."""
    return "; ".join(
        f"{one['producers']} producers, {one['consumers']} consumers: "
        f"{one['ours']['produce']:.1f} + {one['ours']['follow']:.1f} s, stock {one['stock']['seconds']:.1f} s"
        for one in cells
    )
