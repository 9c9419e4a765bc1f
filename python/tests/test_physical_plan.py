"""The physical plan: made once, shown without reading, its first stage run once whatever is asked."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import sieva


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a file with a large array on three coordinates, one of them of two dimensions."""
    path = tmp_path_factory.mktemp("plan") / "plan.h5"
    rng = np.random.default_rng(13)
    with h5py.File(path, "w") as file:
        depth = file.create_dataset("depth", data=np.linspace(0.0, 5000.0, 40))
        depth.make_scale("depth")
        file.create_dataset("lat", data=rng.uniform(-90, 90, (64, 96)))
        for name, chunks in (("temp", (4, 32, 96)), ("salt", None)):
            data = rng.normal(10, 8, (40, 64, 96)).astype("f4")
            array = file.create_dataset(name, data=data, chunks=chunks)
            array.dims[0].attach_scale(depth)
        for name in ("temp", "salt", "lat"):
            for axis in (-2, -1):
                file[name].dims[len(file[name].shape) + axis].label = "yx"[axis + 2]
    return path


CONDITION = "temp > 20 AND depth < 1000 AND lat > 30"


def did(query: sieva.Query) -> tuple[int, int]:
    """Return requests and bytes so far."""
    stats = query.stats()
    return stats["requests"], stats["bytes_read"]


@pytest.mark.parametrize("access", ["auto", "scan"])
def test_explain_reads_nothing(path: Path, access: str) -> None:
    with sieva.open(path) as src:
        for select in (["temp"], ["salt", "temp", "depth"]):
            query = src.query(CONDITION, select=select, access=access)
            before = did(query)
            text, plan = query.explain(), json.loads(query.explain_json())
            assert did(query) == before
            assert "mask on" in text
            assert [line.split(":")[0] for line in plan["first_stage"]] == [
                "mask on (depth) of depth",
                "mask on (y, x) of lat",
            ]
            hits = query.count()
            assert plan["estimate"]["low"] <= hits <= plan["estimate"]["high"]


def test_explain_of_an_indexed_source_reads_no_value(path: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    with sieva.open(path, store=store) as src:
        src.build_index("temp", "salt", kinds=["zonemap", "bitmap"])
        src.build_index("temp", kinds=["sorted"], columns=["temp", "salt"])
    with sieva.open(path, store=store) as src:
        for condition in ("temp > 35", CONDITION, "temp > 5 AND salt > 3", "temp * 2 > salt"):
            query = src.query(condition, select=["temp", "salt"])
            before = did(query)
            plan = json.loads(query.explain_json())
            assert did(query) == before
            assert plan["estimate"]["low"] <= query.count() <= plan["estimate"]["high"]


def test_the_first_stage_is_run_once(path: Path) -> None:
    with sieva.open(path) as src:
        query = src.query("depth < 1000 AND lat > 30", select=["salt"])
        hits = query.count()
        once = did(query)
        assert once[0] > 0
        low, high = query.estimate()
        assert low <= hits <= high
        query.explain()
        query.explain(analyze=True)
        assert len(query.selection()) == query.count() == hits
        assert did(query) == once


def test_the_order_of_questions_does_not_matter(path: Path) -> None:
    with sieva.open(path) as src:
        first, second = (src.query(CONDITION, select=["salt"]) for _ in range(2))
        first.explain()
        first.estimate()
        answers = first.count(), first.read("salt").tobytes()
        values = second.read("salt").tobytes()
        assert answers == (second.count(), values)


def test_analyze_tells_what_the_first_stage_found(path: Path) -> None:
    with sieva.open(path) as src:
        query = src.query(CONDITION, select=["temp"])
        text = query.explain(analyze=True)
        found = json.loads(query.explain_json(analyze=True))["analyze"]["first_stage"]
        depth = np.linspace(0.0, 5000.0, 40)
        assert found["known"][0] == f"on (depth): {(depth < 1000).sum()} of 40 positions"
        assert found["area"]["shape"][0] == (depth < 1000).sum()
        assert "found" in text
        assert "analyzed" in text
