"""Which rank reads what, and when: the same on all ranks, as all of them know all pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sieva._ranks.pieces import BLOCK, SERVER, STRIPE, columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


class Plan(NamedTuple):
    """Who reads which piece when; an item for each piece of all arrays, in the order in which they are read.

    Attributes
    ----------
    array, row
        Which piece it is: the number of the array, and the row of its table.
    unit
        What is read together: elements of one unit are in no other.
    reader, wave
        The rank that reads it, and in which wave.
    waves
        How many there are.
    """

    array: Ints
    row: Ints
    unit: Ints
    reader: Ints
    wave: Ints
    waves: int


def plan(tables: Sequence[Ints], itemsizes: Sequence[int], size: int, most: int) -> Plan:
    """Deal pieces out to ranks.

    Parameters
    ----------
    tables
        For each array, the pieces of all ranks; see `sieva._ranks.pieces`.
    itemsizes
        Bytes of a value of each array.
    size
        The number of ranks.
    most
        Bytes that a rank sends in a wave, unless a unit is more.
    """
    keys = np.concatenate([_keys(i, table) for i, table in enumerate(tables)] or [np.empty((0, 5), np.int64)])
    sent = np.concatenate(
        [columns(t)[1].prod(axis=1) * n for t, n in zip(tables, itemsizes, strict=True)]
        or [np.empty(0, np.int64)]
    )
    # By server, and there in the order in which bytes lie.
    order = np.lexsort((keys[:, 4], keys[:, 3], keys[:, 1], keys[:, 2], keys[:, 0]))
    keys, sent = keys[order], sent[order]
    is_new = np.ones(len(keys), bool)
    is_new[1:] = (keys[1:, :4] != keys[:-1, :4]).any(axis=1)
    unit = np.cumsum(is_new) - 1
    first = np.flatnonzero(is_new)
    read = np.concatenate([_hulls(t, n) for t, n in zip(tables, itemsizes, strict=True)] or [sent])[order]
    weight = np.maximum.reduceat(read, first) if len(first) else read[:0]
    reader = readers(keys[first, 0], weight, size)
    volume = np.add.reduceat(sent, first) if len(first) else sent[:0]
    wave = _waves(reader, volume, size, most)
    waves = int(wave.max()) + 1 if len(wave) else 0
    return Plan(keys[:, 1], keys[:, 4], unit, reader[unit], wave[unit], waves)


def _keys(array: int, table: Ints) -> Ints:
    """Return server, array, stripe, block and row of each piece."""
    n = len(table)
    out = np.empty((n, 5), np.int64)
    out[:, 0], out[:, 1], out[:, 2] = table[:, SERVER], array, table[:, STRIPE]
    out[:, 3], out[:, 4] = table[:, BLOCK], np.arange(n)
    return out


def _hulls(table: Ints, itemsize: int) -> Ints:
    """Return the bytes of the hull of each piece's unit: what reading it may take, however many want it."""
    if not len(table):
        return np.empty(0, np.int64)
    start, shape = columns(table)
    _, unit = np.unique(table[:, [SERVER, STRIPE, BLOCK]], axis=0, return_inverse=True)
    unit = unit.reshape(-1)
    low = np.full((unit.max() + 1, start.shape[1]), np.iinfo(np.int64).max)
    high = np.zeros_like(low)
    np.minimum.at(low, unit, start)
    np.maximum.at(high, unit, start + shape)
    hull: Any = (high - low).prod(axis=1) * itemsize
    return hull[unit]  # type: ignore[no-any-return]


def readers(server: Ints, weight: Ints, size: int) -> Ints:
    """Return the rank that reads each unit.

    A server has one reader where there are as many servers as ranks, the heaviest servers dealt out first to
    whoever has the least; else each has as many as its bytes are worth, which divide its
    units in their order.

    Parameters
    ----------
    server, weight
        Of each unit, by server: its number, and the bytes of the unit.
    size
        The number of ranks.
    """
    if not len(server):
        return np.empty(0, np.int64)
    _, first, which = np.unique(server, return_index=True, return_inverse=True)
    total = np.add.reduceat(weight, first)
    if len(total) >= size:
        load = np.zeros(size, np.int64)
        of_server = np.empty(len(total), np.int64)
        for one in np.argsort(-total, kind="stable"):
            of_server[one] = np.argmin(load)
            load[of_server[one]] += total[one]
        return of_server[which]
    count = np.ones(len(total), np.int64)
    for _ in range(size - len(total)):
        count[np.argmax(total / count)] += 1
    before = np.cumsum(weight) - weight - (np.cumsum(total) - total)[which]
    middle = before + weight / 2
    part = (middle * count[which] / np.maximum(total[which], 1)).astype(np.int64)
    reader: Ints = (np.cumsum(count) - count)[which] + np.minimum(part, count[which] - 1)
    return reader


def _waves(reader: Ints, volume: Ints, size: int, most: int) -> Ints:
    """Return the wave of each unit: a reader sends at most `most` bytes in each, or one unit."""
    wave = np.zeros(len(reader), np.int64)
    for rank in range(size):
        mine = np.flatnonzero(reader == rank)
        at = used = 0
        for unit in mine.tolist():
            n = int(volume[unit])
            if used and used + n > most:
                at, used = at + 1, 0
            used += n
            wave[unit] = at
    return wave
