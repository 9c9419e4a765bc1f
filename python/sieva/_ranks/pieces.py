"""Requests cut into pieces: by server and stripe where that is known, and by chunks or bounded blocks.

A piece is a row of integers: server, stripe, block, number of the request, then the start and the shape of
its box. Two pieces of one array have the same server, stripe and block, or no element in common: whoever
reads all pieces of a unit (server, stripe, block) reads what nobody else does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def pieces_of(
    native: _native.Source, path: str, boxes: Sequence[tuple[int, list[int], list[int]]], most: int
) -> Table:
    """Cut the requests for one array into pieces (step one of Algorithm 1 of HiLa).

    Parameters
    ----------
    native, path
        The source and the array.
    boxes
        Number of the request, start and shape of its box.
    most
        Bytes of a piece, unless a chunk is more.

    Returns
    -------
    (n, 4 + 2 * rank) ndarray of int64
        See the module.
    """
    rank = len(native.info(path)["shape"])
    tables = [np.empty((0, HEAD + 2 * rank), np.int64)]
    for number, start, shape in boxes:
        rows = np.frombuffer(native.parts_of_box(path, start, shape, most), np.int64)
        rows = rows.reshape(-1, HEAD - 1 + 2 * rank)
        tables.append(np.insert(rows, REQUEST, number, axis=1))
    return np.concatenate(tables)
