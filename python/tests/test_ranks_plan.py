"""How requests of ranks are cut, dealt out and united: without MPI, against marking each element."""

import h5py
import numpy as np
import pytest
import sieva
from hypothesis import given, settings
from hypothesis import strategies as st
from sieva._ranks.pieces import HEAD, columns, pieces_of
from sieva._ranks.plan import plan, readers
from sieva._ranks.union import disjoint

SIDE = 9


@st.composite
def boxes(draw, rank=None, most=8):
    """Draw boxes of one rank, none of them empty."""
    rank = draw(st.integers(0, 4)) if rank is None else rank
    found = []
    for _ in range(draw(st.integers(1, most))):
        edges = [sorted(draw(st.tuples(*[st.integers(0, SIDE - 1)] * 2))) for _ in range(rank)]
        found.append(([a for a, _ in edges], [b - a + 1 for a, b in edges]))
    start, shape = zip(*found, strict=True)
    n = len(found)
    return np.array(start, np.int64).reshape(n, rank), np.array(shape, np.int64).reshape(n, rank)


def marked(start, shape):
    """Count how many boxes each element is in."""
    count = np.zeros((SIDE,) * start.shape[1], int)
    for at, n in zip(start.tolist(), shape.tolist(), strict=True):
        count[tuple(slice(a, a + k) for a, k in zip(at, n, strict=True))] += 1
    return count


@given(boxes(), st.booleans())
def test_a_union_covers_each_element_once(drawn, is_row):
    count = marked(*disjoint(*drawn, is_row=is_row))
    wanted = marked(*drawn) > 0
    assert count.max() == 1
    assert (count[wanted] == 1).all()
    if is_row:
        # Nothing before the first element that is asked for, nor behind the last.
        first, last = np.flatnonzero(wanted.reshape(-1))[[0, -1]]
        assert not count.reshape(-1)[:first].any()
        assert not count.reshape(-1)[last + 1 :].any()


def test_a_union_of_boxes_far_apart_is_exact():
    start, shape = np.array([[0, 0], [7, 7], [0, 0]]), np.array([[1, 2], [2, 1], [2, 1]])
    count = marked(*disjoint(start, shape))
    assert (count == (marked(start, shape) > 0)).all()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pieces")
    values = np.arange(SIDE**3, dtype="<f4").reshape((SIDE,) * 3)
    with h5py.File(folder / "arrays.h5", "w") as file:
        file["whole"] = values
        file.create_dataset("chunked", data=values, chunks=(2, 4, 5), compression="gzip")
        file.create_dataset("never", (SIDE,) * 3, "<f4", chunks=(4, 4, 4))
    return folder


@settings(max_examples=60)
@given(
    boxes(rank=3, most=1),
    st.sampled_from(["whole", "chunked", "never"]),
    st.integers(1, 5000),
    st.integers(1, 500),
)
def test_pieces_of_a_box_tile_it_within_stripes_and_blocks(folder, drawn, name, most, stripe):
    source = sieva.open(folder / "arrays.h5", striping=f"stripe_size={stripe},stripe_count=3", learn=False)
    (start,), (shape,) = drawn
    table = pieces_of(source._native, name, [(7, start.tolist(), shape.tolist())], most)
    corner, lengths = columns(table)
    assert (marked(corner, lengths) == marked(*drawn)).all()
    assert set(table[:, 3]) == {7}
    if name != "whole":
        # A chunk is of one server alone.
        blocks = {tuple(row[:3]) for row in table.tolist()}
        assert len({block for _, _, block in blocks}) == len(blocks)
        return
    with h5py.File(folder / "arrays.h5") as file:
        first = file["whole"].id.get_offset()
    for row, at, n in zip(table, corner, lengths, strict=True):
        inside = np.zeros((SIDE,) * 3, bool)
        inside[tuple(slice(a, a + k) for a, k in zip(at, n, strict=True))] = True
        stripes = set((first + 4 * np.flatnonzero(inside)) // stripe)
        assert stripes == {row[1]}
        assert row[0] == row[1] % 3
        assert 4 * n.prod() <= max(most, 4)


@settings(max_examples=60)
@given(st.integers(1, 7), st.integers(1, 4), st.integers(40, 3000), st.randoms(use_true_random=False))
def test_a_unit_has_one_reader_and_one_wave(size, servers, most, random):
    rng = np.random.default_rng(random.randrange(2**32))
    tables = []
    for rank in (1, 3):
        n = int(rng.integers(0, 40))
        table = np.ones((n, HEAD + 2 * rank), np.int64)
        table[:, 0] = rng.integers(0, servers, n)
        table[:, 1] = rng.integers(0, 5, n)
        table[:, 2] = rng.integers(0, 3, n)
        columns(table)[1][:] = rng.integers(1, 5, (n, rank))
        tables.append(table)
    steps = plan(tables, [4, 8], size, most)
    assert sorted(zip(steps.array, steps.row, strict=True)) == [
        (a, row) for a, table in enumerate(tables) for row in range(len(table))
    ]
    keys = [(a, *tables[a][row, :3]) for a, row in zip(steps.array, steps.row, strict=True)]
    of_unit: dict = {}
    for key, unit, reader, wave in zip(keys, steps.unit, steps.reader, steps.wave, strict=True):
        assert of_unit.setdefault(key, (unit, reader, wave)) == (unit, reader, wave)
        assert 0 <= reader < size
    assert len({unit for unit, _, _ in of_unit.values()}) == len(of_unit)
    sent: dict = {}
    for a, row, unit, reader, wave in zip(*steps[:5], strict=True):
        n = int(columns(tables[a])[1][row].prod()) * (4, 8)[a]
        sent.setdefault((reader, wave), {}).setdefault(unit, []).append(n)
    for units in sent.values():
        assert len(units) == 1 or sum(map(sum, units.values())) <= most
    assert steps.waves == (steps.wave.max() + 1 if len(steps.wave) else 0)


def test_readers_are_balanced_by_bytes():
    # More servers than ranks: the heaviest first, to whoever has the least.
    assert readers(np.array([0, 1, 2, 3]), np.array([9, 5, 4, 1]), 2).tolist() == [0, 1, 1, 0]
    # Fewer: each has readers by its bytes, who divide its units in their order.
    server = np.repeat([0, 1], [8, 2])
    of = readers(server, np.full(10, 3), 5)
    assert of.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert readers(np.array([], int), np.array([], int), 3).tolist() == []
