"""How requests of ranks are cut and dealt out, as Python sees it: without MPI, against marking each element.

The plan itself is tested in the engine (`crates/format/src/physical/ranks/tests.rs`).
"""

import h5py
import numpy as np
import pytest
import sieva
from hypothesis import given, settings
from hypothesis import strategies as st
from sieva import _native, errors
from sieva._ranks.waves import composed

SIDE = 9
HEAD = 7


@st.composite
def boxes(draw, most=8):
    """Draw boxes of rank 3, none of them empty."""
    found = []
    for _ in range(draw(st.integers(1, most))):
        edges = [sorted(draw(st.tuples(*[st.integers(0, SIDE - 1)] * 2))) for _ in range(3)]
        found.append(([a for a, _ in edges], [b - a + 1 for a, b in edges]))
    return found


def marked(found):
    """Count how many boxes each element is in."""
    count = np.zeros((SIDE,) * 3, int)
    for at, n in found:
        count[tuple(slice(a, a + k) for a, k in zip(at, n, strict=True))] += 1
    return count


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pieces")
    values = np.arange(SIDE**3, dtype="<f4").reshape((SIDE,) * 3)
    with h5py.File(folder / "arrays.h5", "w") as file:
        file["whole"] = values
        file.create_dataset("chunked", data=values, chunks=(2, 4, 5), compression="gzip")
        file.create_dataset("never", (SIDE,) * 3, "<f4", chunks=(4, 4, 4))
    return folder


def rows_of(source, name, asked, most):
    numbered = [(7 + i, *box) for i, box in enumerate(asked)]
    rows = _native.rank_pieces(source._native, name, numbered, array=0, width=4, most=most)
    return rows, np.frombuffer(rows, np.int64).reshape(-1, HEAD + 6)


@settings(max_examples=60, deadline=None)
@given(
    boxes(most=1),
    st.sampled_from(["whole", "chunked", "never"]),
    st.integers(1, 5000),
    st.integers(1, 500),
)
def test_pieces_of_a_box_tile_it_within_stripes_and_blocks(folder, drawn, name, most, stripe):
    source = sieva.open(folder / "arrays.h5", striping=f"stripe_size={stripe},stripe_count=3", learn=False)
    _, table = rows_of(source, name, drawn, most)
    found = [(row[HEAD : HEAD + 3], row[HEAD + 3 :]) for row in table.tolist()]
    assert (marked(found) == marked(drawn)).all()
    assert (table[:, :4] == [0, 0, 4, 7]).all()
    if name != "whole":
        # A chunk is of one server alone.
        blocks = {tuple(row[4:7]) for row in table.tolist()}
        assert len({block for _, _, block in blocks}) == len(blocks)
        return
    with h5py.File(folder / "arrays.h5") as file:
        first = file["whole"].id.get_offset()
    for row, box in zip(table, found, strict=True):
        stripes = set((first + 4 * np.flatnonzero(marked([box]))) // stripe)
        assert stripes == {row[5]}
        assert row[4] == row[5] % 3
        assert 4 * np.prod(box[1]) <= max(most, 4)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(boxes(most=4), min_size=1, max_size=4),
    st.sampled_from(["whole", "chunked"]),
    st.integers(40, 3000),
    st.sampled_from(["", "stripe_size=300,stripe_count=3"]),
)
def test_a_plan_reads_what_all_ranks_ask_for_once(folder, asked, name, most, striping):
    options = {"striping": striping} if striping else {}
    source = sieva.open(folder / "arrays.h5", learn=False, **options)
    told = [rows_of(source, name, boxes, 800)[0] for boxes in asked]
    plan = _native.RankPlan([((SIDE,) * 3, name == "chunked")], told, most)
    pieces = np.frombuffer(plan.pieces(), np.int64).reshape(-1, 7)
    _, request, asker, reader, wave, unit, size = pieces.T
    assert wave.max() + 1 == plan.waves
    assert set(unit) == set(range(plan.units))
    assert (reader < len(asked)).all()
    with h5py.File(folder / "arrays.h5") as file:
        values = file[name][()]
    answers = [np.full((len(boxes), *values.shape), -1, "<f4") for boxes in asked]
    for number in range(plan.units):
        inside = np.flatnonzero(unit == number)
        assert len(set(reader[inside])) == len(set(wave[inside])) == 1
        read = plan.reads(number)
        assert marked(read).max() == 1
        found = [(start, values[marked([(start, shape)]) > 0].reshape(shape)) for start, shape in read]
        for i in inside.tolist():
            box = plan.piece(i)
            got = composed(*box, found, values.dtype)
            assert got.nbytes == size[i]
            answers[asker[i]][request[i] - 7][marked([box]) > 0] = got.reshape(-1)
    for boxes_of_rank, answer in zip(asked, answers, strict=True):
        for box, got in zip(boxes_of_rank, answer, strict=True):
            assert (got == np.where(marked([box]) > 0, values, -1)).all()


def test_rows_that_are_no_pieces_are_refused():
    for rows in (b"\0" * 8, b"\1" * 8 * 13, np.array([1, 0, 4, 0, 0, 0, 0], np.int64).tobytes()):
        with pytest.raises(errors.InvalidValue):
            _native.RankPlan([((SIDE,) * 3, False)], [rows], 100)
    empty = _native.RankPlan([], [b"", b""], 100)
    assert (empty.waves, empty.units, empty.pieces()) == (0, 0, b"")
    with pytest.raises(IndexError):
        empty.piece(0)
