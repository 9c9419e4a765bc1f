"""Requests cut into pieces: by server and stripe where that is known, and by blocks of bounded size always.

A piece is a row of integers: server, stripe, block, number of the request, then the start and the shape of
its box. Two pieces of one array have the same server, stripe and block, or no element in common: whoever
reads all pieces of a unit (server, stripe, block) reads what nobody else does.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from sieva import _native

    Table = NDArray[np.int64]

# Columns of a piece that are not its box.
SERVER, STRIPE, BLOCK, REQUEST = range(4)
HEAD = 4


def columns(table: Table) -> tuple[Table, Table]:
    """Return the starts and the shapes of pieces, each (n, rank)."""
    rank = (table.shape[1] - HEAD) // 2
    return table[:, HEAD : HEAD + rank], table[:, HEAD + rank :]


def grid_of(shape: Sequence[int], chunks: Sequence[int] | None, itemsize: int, most: int) -> list[int]:
    """Return the shape of the blocks of an array: its chunks, else runs in C order of at most `most` bytes.

    Parameters
    ----------
    shape, chunks
        Of the array; None where it is not chunked.
    itemsize
        Bytes of a value.
    most
        Bytes of a block, unless one chunk or one value is more.

    Returns
    -------
    list of int
        As many as dimensions, each at least 1.
    """
    if chunks is not None:
        return [max(1, n) for n in chunks]
    left = max(1, most // max(1, itemsize))
    block = [1] * len(shape)
    for axis in reversed(range(len(shape))):
        block[axis] = min(max(1, shape[axis]), left)
        left //= max(1, shape[axis])
        if left == 0:
            break
    return block


def cut(start: Sequence[int], shape: Sequence[int], whole: Sequence[int], grid: Sequence[int]) -> Table:
    """Cut a box by the blocks of a grid.

    Parameters
    ----------
    start, shape
        The box; nothing comes of an empty one.
    whole
        The shape of the array.
    grid
        The shape of a block.

    Returns
    -------
    (n, 1 + 2 * rank) ndarray of int64
        The number of the block in C order, and the start and shape of what the box has of it.
    """
    rank = len(start)
    if 0 in shape:
        return np.empty((0, 1 + 2 * rank), np.int64)
    axes = []
    for at, n, g in zip(start, shape, grid, strict=True):
        blocks = np.arange(at // g, (at + n - 1) // g + 1, dtype=np.int64)
        low = np.maximum(blocks * g, at)
        axes.append((blocks, low, np.minimum((blocks + 1) * g, at + n) - low))
    cells = math.prod(len(blocks) for blocks, _, _ in axes)
    out = np.zeros((cells, 1 + 2 * rank), np.int64)
    for axis, (index, low, lengths) in enumerate(_all(axes, rank)):
        out[:, 0] = out[:, 0] * -(-whole[axis] // grid[axis]) + index
        out[:, 1 + axis] = low
        out[:, 1 + rank + axis] = lengths
    return out


def _all(axes: list[Any], rank: int) -> Iterable[tuple[Table, ...]]:
    """Yield blocks, starts and lengths along each axis, for all combinations in C order."""
    counts = [len(blocks) for blocks, _, _ in axes]
    for axis, parts in enumerate(axes):
        outer, inner = math.prod(counts[:axis]), math.prod(counts[axis + 1 : rank])
        yield tuple(np.tile(np.repeat(part, inner), outer) for part in parts)


def pieces_of(
    native: _native.Source,
    path: str,
    boxes: Sequence[tuple[int, list[int], list[int]]],
    itemsize: int,
    most: int,
) -> Table:
    """Cut the requests for one array into pieces.

    Parameters
    ----------
    native, path
        The source and the array.
    boxes
        Number of the request, start and shape of its box.
    itemsize
        Bytes of a value, as it is sent.
    most
        Bytes of a piece, unless a chunk is more.

    Returns
    -------
    (n, 4 + 2 * rank) ndarray of int64
        See the module.
    """
    info = native.info(path)
    chunks = info["chunk_shape"]
    rank = len(info["shape"])
    grid = grid_of(info["shape"], None if chunks is None else chunks[:rank], itemsize, most)
    tables = [np.empty((0, HEAD + 2 * rank), np.int64)]
    for number, start, shape in boxes:
        for server, stripe, at, n in shares(native, path, start, shape):
            cells = cut(at, n, info["shape"], grid)
            head = np.empty((len(cells), HEAD), np.int64)
            head[:, SERVER], head[:, STRIPE], head[:, REQUEST] = server, stripe, number
            head[:, BLOCK] = cells[:, 0]
            tables.append(np.hstack([head, cells[:, 1:]]))
    return np.concatenate(tables)


def shares(
    native: _native.Source, path: str, start: list[int], shape: list[int]
) -> list[tuple[int, int, list[int], list[int]]]:
    """Return server, stripe, start and shape of what each stripe has of a box; one where none is known.

    The sub-correlation set (equation 6), of the box alone.
    """
    known = getattr(native, "shares", None)
    found = known(path, start, shape) if known is not None else None
    return [(0, 0, start, shape)] if found is None else found
