"""What is asked: calls, each a box of whole records, divided among processes; and the file they are of.

The paper's: a 4-D netCDF file of 3.8 GB, calls of 77.82 MB, 10 to 50 of them by 50 processes each, stripes
of 100 and
10 MB on 40 servers. Here all bytes are a quarter (`SCALE`), servers a tenth, and processes what two cores
can run.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np

# Of the paper's bytes: the file, calls and stripes.
SCALE = 4
# time, level, lat, lon; a record is 1 555 200 bytes, the file 948.7 MB.
SHAPE = (610, 20, 120, 162)
# Records of a call: 18.66 MB (the paper's 77.82 MB / 4 would be 12.5).
RECORDS = 12
STRIPES = {"large": 25 << 20, "small": 2_621_440}
NAME = "T"


@dataclass(frozen=True)
class Asked:
    """A batch of calls.

    Attributes
    ----------
    calls
        How many.
    step
        Records between the starts of two calls; less than `RECORDS` where they overlap.
    groups
        Groups of processes. Calls are dealt out to groups, which run at the same time; the processes of a
        group divide
        each call along latitude.
    """

    calls: int
    step: int
    groups: int = 2

    @property
    def overlaps(self) -> bool:
        """Whether calls ask for what others ask for."""
        return self.step < RECORDS

    def of_rank(
        self, rank: int, size: int, shape: tuple[int, ...] = SHAPE
    ) -> list[tuple[list[int], list[int]]]:
        """Return start and shape of the boxes that a process reads, one of each call of its group."""
        each = size // self.groups
        group, place = rank // each, rank % each
        low, high = shape[2] * place // each, shape[2] * (place + 1) // each
        return [
            (
                [(call * self.step) % (shape[0] - RECORDS + 1), 0, low, 0],
                [RECORDS, shape[1], high - low, shape[3]],
            )
            for call in range(group, self.calls, self.groups)
        ]

    def bytes_asked(self) -> int:
        """Return the bytes of all calls."""
        return self.calls * RECORDS * 4 * inner()

    def bytes_distinct(self) -> int:
        """Return the bytes that any call asks for."""
        records = {
            (call * self.step) % (SHAPE[0] - RECORDS + 1) + i
            for call in range(self.calls)
            for i in range(RECORDS)
        }
        return len(records) * 4 * inner()

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def batch(calls: int, overlaps: bool, groups: int) -> Asked:
    """Return calls that follow one another, or of which each shares half with the next."""
    return Asked(calls, RECORDS // 2 if overlaps else RECORDS, groups)


def inner() -> int:
    """Return the values of a record."""
    return int(np.prod(SHAPE[1:]))


def records(first: int, count: int, shape: tuple[int, ...] = SHAPE) -> np.ndarray[Any, Any]:
    """Return the values of records: cheap to make anywhere, and different everywhere."""
    inner = int(np.prod(shape[1:]))
    numbers = np.arange(first * inner, (first + count) * inner, dtype=np.uint32)
    # Odd factor: no two of 2^32 are the same before the shift keeps them within float32's exact integers.
    return ((numbers * np.uint32(2_654_435_761)) >> 8).astype(np.float32).reshape(count, *shape[1:])


def values(start: list[int], shape: list[int]) -> np.ndarray[Any, Any]:
    """Return the values of a box."""
    whole = records(start[0], shape[0])
    return whole[tuple(slice(a, a + n) for a, n in zip([0, *start[1:]], shape, strict=True))]


def write(path: Path) -> None:
    """Write the file: netCDF-3 CDF-5, one record variable, so that records lie one behind the other."""
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_DATA") as file:
        for name, n in zip(("time", "level", "lat", "lon"), (None, *SHAPE[1:]), strict=True):
            file.createDimension(name, n)
        variable = file.createVariable(NAME, "f4", ("time", "level", "lat", "lon"))
        for first in range(0, SHAPE[0], 10):
            variable[first : first + 10] = records(first, min(10, SHAPE[0] - first))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
