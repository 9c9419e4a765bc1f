"""Writes the BP files of `data/`, which `files.rs` reads; needs the package adios2."""

from pathlib import Path

import adios2
import numpy as np

DATA = Path(__file__).parent / "data"
STEPS = 3


def field(step: int) -> np.ndarray:
    """Return 6 by 4 real numbers, with those that are easily lost."""
    values = np.arange(24.0).reshape(6, 4) + 100 * step
    values[0] = np.nan, np.inf, -np.inf, -0.0
    return values


def write(engine: str) -> None:
    """Write a file of three steps, whose field is in two blocks."""
    io = adios2.Adios().declare_io("writer")
    io.set_engine(engine)
    with adios2.Stream(io, str(DATA / f"{engine.lower()}.bp"), "w") as file:
        file.write_attribute("title", "a test")
        file.write_attribute("names", ["one", "three"])
        file.write_attribute("sizes", np.array([1, 2**64 - 1], "u8"))
        for _ in file.steps(STEPS):
            step = file.current_step()
            for first in (0, 3):
                part = np.ascontiguousarray(field(step)[first : first + 3])
                file.write("g/T", part, [6, 4], [first, 0], [3, 4])
            file.write("u", np.array([2**64 - 1 - step, step], "u8"), [2], [0], [2])
            file.write("small", np.array([-128, 127], "i1"), [2], [0], [2])
            file.write("gap", np.full((1, 3), 7.0, "f4"), [2, 3], [0, 0], [1, 3])  # one row is never written
            file.write("time", np.array(0.5 * step))
            file.write("label", f"step {step}")
            file.write("wave", np.arange(2) * 1j, [2], [0], [2])
            file.write("grow", np.arange(3.0 + step), [3 + step], [0], [3 + step])
            file.write("local", np.arange(3.0), [], [], [3])
            if step == 0:
                file.write("once", np.arange(4, dtype="i2"), [4], [0], [4])
                file.write_attribute("units", "K", "g/T")
            if step > 0:
                file.write("some", np.full(4, step, "i4"), [4], [0], [4])


for name in ("BP3", "BP4", "BP5"):
    write(name)
