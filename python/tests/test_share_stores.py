"""Groups on a real Swift, by its own protocol and by S3, and on moto, beside the stores' own listings."""

import json

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest
import sieva.share


@pytest.fixture
def steps(tmp_path, monkeypatch):
    """Return a directory with two files of a producer."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "steps"
    folder.mkdir()
    for number in range(2):
        with h5py.File(folder / f"run.{number}.h5", "w") as file:
            file["T"] = values_of(number)
    return folder


def values_of(number):
    return np.random.default_rng(number).normal(size=50_000).astype("f4")


def test_a_group_in_a_store_holds_what_was_asked_and_no_more(place, steps, tmp_path):
    group = sieva.share.create(place.root, steps, producer="model")
    for user in ("ada", "bob", "cyd"):
        group.ask("high", "SELECT T WHERE T > 2", format="parquet", user=user)
    group.ask("mean", "SELECT avg(T) AS mean, count(T) AS n", format="json", user="ada")
    done = group.produce(settle=0)
    assert (done.answers, done.failed, done.objects) == (8, 0, 4)
    held, unfinished = place.held()
    data = {key: size for key, (size, _) in held.items() if key.startswith("data/")}
    assert (len(data), sum(data.values()), unfinished) == (4, done.bytes, 0)
    assert [ask.name for ask in sieva.share.open_group(place.root).asks("bob")] == ["high"]
    for user in ("ada", "bob"):
        followed = group.follow("high", tmp_path / user, user=user)
        assert len(followed.files) == 2
        for number in range(2):
            values = values_of(number)
            found = pq.read_table(tmp_path / user / f"run.{number}.parquet")["T"].to_numpy()
            assert np.array_equal(found, values[values > 2])
    group.follow("mean", tmp_path / "mean", user="ada")
    (row,) = json.loads((tmp_path / "mean" / "run.1.json").read_text())["rows"]
    assert row == [pytest.approx(values_of(1).astype("f8").mean(), rel=1e-12), 50_000]
    # One of three has not taken it yet.
    assert group.produce(settle=0).deleted == 2
    group.leave("cyd")
    assert group.produce(settle=0).deleted == 2
    assert [key for key in place.held()[0] if key.startswith("data/")] == []
