"""Numbers and sizes that are no such thing, in calls that are not of the table of options."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
import sieva
from sieva import Partial, Selection, _schema, errors
from sieva.cli import main


@pytest.fixture
def source(tmp_path: Path) -> sieva.Source:
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["a"] = np.arange(10.0)
    return sieva.open(tmp_path / "a.h5")


@pytest.mark.parametrize("number", [-1, 1.5, "two", 2**70])
def test_numbers_of_things(source: sieva.Source, number: object) -> None:
    query = source.query("a > 1")
    for ask in (query.tasks, lambda n: query.histogram("a", bins=n)):
        with pytest.raises(errors.InvalidValue, match="a whole number, not negative, was expected"):
            ask(number)  # type: ignore[operator]


def test_the_memory_of_a_partial_result_is_a_size(source: sieva.Source) -> None:
    query = source.sql("SELECT sum(a)")
    part = bytes(source.run_task(query.tasks(1)[0]))
    for memory in ("1MiB", 1 << 20, None):
        assert query.finish(Partial.from_bytes(part, memory=memory)).to_arrow()[0].to_pylist() == [45.0]
    with pytest.raises(ValueError, match="'much' is no size"):
        Partial.from_bytes(part, memory="much")
    with pytest.raises(errors.MemoryLimit):
        Partial.from_bytes(part, memory="1")


@pytest.mark.parametrize("positions", [[1, 3], np.array([1, 3]), np.array([3, 1], "u1"), (3, 1, 3)])
def test_positions_are_whole_numbers_of_any_type(positions: object) -> None:
    selection = Selection.from_positions(positions, ["x"], [10])  # type: ignore[arg-type]
    assert selection.positions().tolist() == [1, 3]


def test_coordinates_of_signed_integers_and_no_positions() -> None:
    selection = Selection.from_positions(np.array([[0, 1], [1, 0]]), ["y", "x"], [2, 2])
    assert selection.positions().tolist() == [1, 2]
    assert len(Selection.from_positions([], ["x"], [10])) == 0


@pytest.mark.parametrize(
    ("positions", "told"),
    [([1, -3], "the position -3"), ([1.5], "an array of float64"), (["a"], "whole numbers")],
)
def test_positions_that_are_none(positions: object, told: str) -> None:
    with pytest.raises(errors.InvalidValue, match=told):
        Selection.from_positions(positions, ["x"], [10])  # type: ignore[arg-type]


def test_what_is_given_back_of_aggregates_is_about_their_bytes(source: sieva.Source) -> None:
    price = source.sql("SELECT sum(a), avg(a)").price()
    assert (price.bytes_returned.expected, price.bytes_returned.high) == (16, 18)
    assert source.sql("SELECT histogram(a, 4, 0, 9)").price().bytes_returned.high is None


def test_engines_are_there_without_an_import_of_their_own() -> None:
    assert sieva.engines.LocalEngine.__name__ == "LocalEngine"
    with pytest.raises(AttributeError, match="no attribute 'enginez'"):
        _ = sieva.enginez


@pytest.mark.parametrize("option", ["--striping", "--join"])
def test_an_option_that_is_no_text_is_named(ocean_path, option, capfd):
    assert main(["schema", str(ocean_path), option, "\udcff\udcfe"]) == 2
    err = capfd.readouterr().err
    assert option in err
    assert "is no text in UTF-8" in err
    assert "unexpected" not in err


def test_what_is_not_allowed_is_told_with_what_is(ocean_path):
    source = sieva.open(ocean_path)
    with pytest.raises(sieva.errors.InvalidValue, match="errors is 'raise' or 'return', got 'foo'"):
        source.read_many([], errors="foo")
    with pytest.raises(TypeError, match=r"Selection\.from_positions"):
        source["TEMP"][[1, 2, 3]]


@pytest.mark.parametrize(
    ("counts", "infinite", "told"),
    [
        ([1, 2, 1], [0, 0], "between 1 and 2"),
        ([2, 0, 2], [0, 0], "between 0 and 3"),
        ([1, 0, 0], [3, 0], None),
    ],
)
def test_a_median_is_told_by_bounds_that_hold(counts, infinite, told):
    known = {"count": 4, "missing": 0, "min": 0.0, "max": 3.0}
    known["histogram"] = {"edges": [0.0, 1.0, 2.0, 3.0], "counts": counts, "infinite": infinite}
    text = _schema._distribution(known)
    assert ("median" in text) == (told is not None)
    assert told is None or f"their median lies {told}" in text
