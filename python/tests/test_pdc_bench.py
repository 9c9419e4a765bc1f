"""The repetition of PDC-Query: it runs on little data, its answers are numpy's, and its page is filled."""

import importlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="the benchmark runs Dask workers, of the extra dask")
pytest.importorskip("h5py", reason="the benchmark's rival is h5py, an extra")

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reproduction" / "pdc.md"
HAS_MPI = shutil.which("mpirun") is not None and importlib.util.find_spec("mpi4py") is not None


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Return what a quick run wrote as JSON, the page that it filled, and its directory."""
    place = tmp_path_factory.mktemp("pdc")
    page = place / "pdc.md"
    shutil.copy(PAGE, page)
    command = [sys.executable, ROOT / "benches" / "parallel" / "pdc.py", "--quick"]
    figures = ["fig3", "fig4", "fig6", *(["fig5"] if HAS_MPI else [])]
    command += ["--only", *figures, "--data", place / "data", "--results", place / "results", "--page", page]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert run.returncode == 0, run.stdout + run.stderr
    [record] = (place / "results").glob("*-pdc-*.json")
    return json.loads(record.read_text()), page.read_text(encoding="utf-8"), place


@pytest.fixture(scope="module")
def model():
    """Return the module of the model of figure 6."""
    sys.path.insert(0, str(ROOT / "benches" / "parallel"))
    try:
        yield importlib.import_module("pdc_model")
    finally:
        sys.path.remove(str(ROOT / "benches" / "parallel"))


def table(page, mark):
    """Return the rows of the table between marks, as lists of cells, without its head."""
    between = re.search(rf"<!-- {mark} -->\n(.*?)<!-- /{mark} -->", page, re.DOTALL)[1]
    lines = [line for line in between.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_a_series_is_measured_by_all_ways_and_regions(measured):
    found, page, place = measured
    rows = found["fig3"]["rows"]
    asked = {(row["mib"], row["way"], row["state"]) for row in rows}
    ways = {0.25: ("scan", "zonemap", "bitmap", "sorted", "auto", "h5py"), 1: ("zonemap", "bitmap")}
    assert asked == {(mib, way, state) for mib in ways for way in ways[mib] for state in ("warm", "cold")}
    assert all(min(row["select"]) > 0 for row in rows)
    # 400 KB are two regions of 256 KiB, and one of 1 MiB.
    assert [(one["mib"], one["regions"]) for one in found["fig3"]["built"]] == [(0.25, 2), (1, 1)]
    # The page has a table for regions by themselves, and one more where another size was best.
    told = [cells[0] for cells in table(page, "fig3-queries") if "< E <" in cells[0]]
    assert told[:3] == ["2.1 < E < 2.2", "2.8 < E < 2.9", "3.5 < E < 3.6"]
    assert (place / "pdc-3.svg").read_text().startswith("<svg")


def test_what_was_evaluated_is_not_read_again(measured):
    found, page, _ = measured
    by_scan = [row for row in found["fig3"]["rows"] if row["way"] == "scan"]
    # So little work is one part: one worker reads the array, and the values of the hits come from memory.
    assert by_scan[0]["bytes"] == [4 * found["particles"]]
    assert [row["bytes"] for row in by_scan[1:3]] == [[0], [0]]
    assert [row["bytes_get"] for row in by_scan] == [[0]] * len(by_scan)
    chosen = [row for row in found["fig3"]["rows"] if "again" in row]
    for asked in (chosen, found["fig3"]["deflated"]):
        assert [row["again_bytes"] for row in asked] == [row["again_bytes_get"] for row in asked] == [0] * 3
    rows = {cells[0]: cells for cells in table(page, "fig3-targets") if "bytes read" in cells[0]}
    assert len(rows) == 4
    # Where an index answered, the array was not read before: getting data reads it once.
    once = next(name for name in rows if name.startswith("contiguous") and "getting data" in name)
    assert {cells[3] for name, cells in rows.items() if name != once} == {"met"}
    assert int(rows[once][2].replace(",", "")) <= 4 * found["particles"]


def evaluated(row):
    """Return how many conditions were evaluated on regions."""
    return row["by_scan"] + row["by_points"] if row["way"] == "zonemap" else row["by_bitmap"]


def test_the_order_of_conditions_is_forced_and_told_by_counters(measured):
    found, page, _ = measured
    rows = found["fig4"]["order"]
    assert {row["order"] for row in rows} == {"the planner's", "Energy first", "Energy last"}
    for row in rows:
        assert sorted(row["arrays"]) == ["Energy", "x", "y", "z"]
        if row["order"] != "the planner's":
            assert row["arrays"].index("Energy") == (0 if row["order"] == "Energy first" else 3)
    # By zone maps: one condition more for each region of which the others left something.
    scans = {(row["query"], row["order"]): row["by_scan"] for row in rows if row["way"] == "zonemap"}
    assert all(scans[query, "Energy last"] <= scans[query, "Energy first"] for query, _ in scans)
    assert len(table(page, "fig4-order")) == len(rows) == 2 * 3 * 2
    # The same order evaluates as much, forced or not; how values in cut bins are looked up follows costs.
    did = {(row["query"], row["way"], row["order"]): (row["arrays"], evaluated(row)) for row in rows}
    for (query, way, _), (arrays, n) in did.items():
        planned = did[query, way, "the planner's"]
        assert planned[0] != arrays or planned[1] == n
    assert len(table(page, "fig4-targets")) == 4


@pytest.mark.skipif(not HAS_MPI, reason="figure 5 runs ranks of MPI: `make mpi-packages`, and the extra mpi")
def test_objects_are_asked_on_one_and_two_ranks(measured):
    found, page, _ = measured
    rows = found["fig5"]["rows"]
    shares = (11, 20, 29, 38, 47, 56, 65)
    ours = {(row["ranks"], row["state"], row["share"]) for row in rows if row["way"] == "sieva"}
    assert ours == {(n, state, share) for n in (1, 2) for state in ("warm", "cold") for share in shares}
    # 3 files of 100 groups with three arrays, and what lies between them and the root.
    assert found["fig5"]["catalog_objects"] == 3 * (100 * 4 + 3)
    assert {row["objects"] for row in rows} == {12}
    assert len(table(page, "fig5-targets")) == 8


def test_two_workers_and_the_model_of_more_are_told(measured):
    found, page, place = measured
    ways = ("scan", "zonemap", "bitmap", "sorted")
    assert {(row["way"], row["workers"]) for row in found["fig6"]["rows"]} == {
        (w, n) for w in ways for n in (1, 2)
    }
    assert len(table(page, "fig6-measured")) == 8
    # Of each way these particles and the paper's; ten numbers of workers, and the best one.
    assert [len(cells) for cells in table(page, "fig6-model")] == [13] * 8
    assert (place / "pdc-6.svg").read_text().count("125 billion") == 4


def test_the_model_finds_the_terms_that_seconds_were_made_of(model):
    made = model.Overhead(0.007, 0.002, 0.02)
    found = model.overhead([(n, made.of(n)) for n in (2, 4, 8, 16, 64, 128)])
    assert [found.fixed, found.part, found.level] == pytest.approx([0.007, 0.002, 0.02])
    # Nothing takes less than no time: what falls with more parts is told as a constant.
    falling = model.work([(1, 0.3), (8, 0.2), (32, 0.1)])
    assert falling.repeated == 0
    assert 0.1 < falling.work < 0.3


def test_the_model_merges_eight_at_a_time_where_there_are_more(model):
    assert [model.levels(parts) for parts in (1, 2, 8, 9, 64, 65, 2048)] == [0, 0, 0, 2, 2, 3, 4]


def test_the_model_shares_work_and_not_what_parts_repeat(model):
    by = model.Model(model.Overhead(0.01, 0.001, 0.0), model.Work(1.0, 0.002))
    # Four parts for each worker: 4 * 0.001 are handed out, each takes 0.002 anew.
    assert by.seconds(1) == pytest.approx(0.01 + 0.004 + 1.0 + 0.008)
    assert by.seconds(2) == pytest.approx(0.01 + 0.008 + 0.5 + 0.008)
    # From 0.25 s of each worker on there is one part of each, and no more than have 4 ms to do.
    assert [by.parts(n) for n in (1, 2, 4, 8, 64, 512)] == [4, 8, 16, 8, 64, 128]
    assert by.seconds(8) == pytest.approx(0.01 + 0.008 + 0.125 + 0.002)
    assert by.of_more(10).seconds(1) == pytest.approx(0.01 + 0.004 + 10.0 + 0.008)
