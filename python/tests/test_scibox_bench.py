"""The repetition of Scibox at a tiny scale: it counts as the store does, and its page says what it has."""

import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from services.processes import program

pytest.importorskip("h5py", reason="the benchmark writes its variables by h5py, an extra")
ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "benches"


@pytest.fixture(scope="module")
def module():
    """Return the modules of the benchmark that a test asks for by name."""
    places = [str(BENCH / name) for name in ("scibox", "parallel", "sdquery", ".")]
    sys.path[:0] = places
    yield importlib.import_module
    for place in places:
        sys.path.remove(place)


def measured(tmp_path, *figures, stores=("directory",)):
    """Run figures at a tiny scale; return what is kept of each, and the page."""
    page = tmp_path / "scibox.md"
    page.write_text((ROOT / "docs" / "reproduction" / "scibox.md").read_text())
    command = [sys.executable, BENCH / "scibox" / "run.py", "--scale", "tiny", "--only", *figures]
    command += ["--stores", *stores, "--data", tmp_path / "data", "--scratch", tmp_path]
    command += ["--results", tmp_path / "results", "--page", page]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    kept = [json.loads((tmp_path / "results" / f"scibox-tiny-{name}.json").read_text()) for name in figures]
    return kept, page.read_text()


def between(page, mark):
    """Return the cells of the table at a mark, without its head."""
    text = re.search(rf"<!-- {mark} -->(.*?)<!-- /{mark} -->", page, re.DOTALL)[1]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return rows[2:]


@pytest.mark.parametrize("store", ["directory", "moto"])
def test_traffic_and_service_time(store, tmp_path):
    if store == "moto":
        program("moto_server")
    [found], page = measured(tmp_path, "fig6", stores=[store])
    rows = between(page, "fig6")
    assert len(rows) == len(found["cells"]) == 4
    for cell, row in zip(found["cells"], rows, strict=True):
        moved = cell["ours"]["up"] + cell["ours"]["down"]
        if store == "moto":
            logged = cell["ours"]["logged"]
            assert logged["produce"]["data_up"] == cell["ours"]["up"]
            assert logged["follow"]["data_down"] == cell["ours"]["down"]
            moved = sum(one["all"] for one in logged.values())
        assert cell["requests"] == cell["stock"]["done"] == 40
        assert cell["stock"]["up"] == 40 * cell["variable"]
        assert row[-1] == f"{80 * cell['variable'] / moved:.1f}x"
        # What lies between the parts of an object that a user wants comes with them, and nothing twice.
        users = 4
        assert 0 < cell["ours"]["down"] <= users * cell["ours"]["up"]
        # Of each type what its answers are.
        assert sum(kind["up"] for kind in cell["kinds"].values()) == cell["ours"]["up"]


def test_what_is_drawn_has_the_shares_that_the_page_tells(module):
    workload = module("scibox_workload")
    rng = np.random.default_rng(1)
    shape = (5000, workload.COLUMNS)
    columns = {f"v{at}": rng.lognormal(0, sigma, shape) for at, sigma in enumerate(workload.SIGMAS)}
    drawn = workload.Generator(columns, 3).uniform(2000)
    assert {asked.kind for asked in drawn} == set(range(1, 9))
    assert {asked.variable for asked in drawn} == set(range(10))
    shares = {
        kind: np.mean([a.answer(columns).size / columns["v0"].size for a in drawn if a.kind == kind])
        for kind in (4, 5, 6, 7)
    }
    for kind in (4, 5, 7):
        assert 0.01 < shares[kind] < 0.02
    assert 0.10 < shares[6] < 0.16
    popular = workload.Generator(columns, 3).zipfian(1000)
    assert len(set(popular)) < 500


def test_lines_of_the_logs_are_read(module):
    store = module("scibox_store")
    line = (
        "proxy-server: 127.0.0.1 127.0.0.1 27/Nov/2026 PUT /v1/AUTH_test/c/p%201/data/x HTTP/1.0 201 -"
        " sieva AUTH_ftkg... 1048576 - - tx36-6b - 0.1302 - - 1.5 2.5 0 test:tester"
    )
    request = store._request(line)
    assert (request.method, request.path) == ("PUT", "/v1/AUTH_test/c/p 1/data/x")
    assert (request.status, request.received, request.sent, request.seconds) == (201, 1048576, 0, 0.1302)
    assert request.is_data
    # What the proxy asks of itself, and what else it says.
    assert store._request(line.replace("127.0.0.1 127.0.0.1", "- -")) is None
    assert store._request("proxy-server: Started child 21978") is None
    moved = store.Moved([request, store._request("counted: GET /b/p1/group/group.json 200 0 77")])
    assert (moved.bytes_of("PUT", is_data=True), moved.bytes_of("GET", is_data=True)) == (1048576, 0)
    assert moved.total == 1048576 + 77


def test_producers(tmp_path):
    both, page = measured(tmp_path, "fig9", "fig10")
    for found, mark, of, numbers in zip(
        both, ("fig9", "fig10"), ("producers", "requests"), ([1, 2], [20, 40]), strict=True
    ):
        rows = between(page, mark)
        assert [cell[of] for cell in found["cells"]] == [int(row[0]) for row in rows] == numbers
        for cell, row in zip(found["cells"], rows, strict=True):
            mine, theirs = cell["ours"], cell["stock"]
            assert theirs["bytes"] == cell["producers"] * cell["requests"] * cell["variable"]
            assert row[3] == f"{theirs['seconds'] / mine['seconds']:.2f}x"
            assert row[6] == f"{theirs['bytes'] / mine['bytes']:.1f}x"
            assert 0 < mine["objects"] < cell["producers"] * cell["requests"]


def test_consumers_at_three_sites(tmp_path, module):
    program("swift-proxy-server")
    faults = module("scibox_links").missing()
    if faults or shutil.which("memcached") is None:
        pytest.skip("; ".join(faults) or "memcached is not installed")
    [found], page = measured(tmp_path, "fig12")
    rows = between(page, "fig12")
    assert [row[0] for row in rows] == [cell["site"] for cell in found["cells"]] == ["WSU", "OSU", "GT"]
    assert [float(row[1]) for row in rows] == [0.9, 4.4, 44]
    for cell in found["cells"]:
        # What the store sent through the links is counted by it; no link is faster than it is to be.
        assert len(cell["stock"]) == len(cell["ours"]) == 2
        assert min(cell["stock"]) > 0.8 * found["file"] / cell["rate"]
    assert 6144 < found["sizes"]["zion"] < 8192
    assert 96_000 < found["sizes"]["phi"] < 100_000


def test_spectra_of_images(tmp_path):
    [found], page = measured(tmp_path, "fig13")
    rows = between(page, "fig13")
    assert [(row[0], row[1]) for row in rows] == [("2", "1"), ("2", "2")]
    for cell, row in zip(found["cells"], rows, strict=True):
        # A byte for each of 257 x 512 frequencies, twice; a pixel is two bytes. Files are a little more.
        assert 1 < cell["ours"]["bytes"] / (cell["consumers"] * 3 * 2 * 257 * 512) < 1.1
        assert 1 < cell["stock"]["bytes"] / (cell["consumers"] * 3 * 2 * 512 * 512 * 2) < 1.1
        mine = cell["ours"]["produce"] + cell["ours"]["follow"]
        assert row[-1] == f"{cell['stock']['seconds'] / mine:.2f}x"


def test_parts_of_requests_and_of_passes(tmp_path):
    program("swift-proxy-server")
    if shutil.which("memcached") is None:
        pytest.skip("memcached is not installed")
    (requests, passes), page = measured(tmp_path, "fig14", "fig15")
    assert [(c["method"], c["size"]) for c in requests["cells"]] == [
        (method, size) for size in (100_000, 200_000) for method in ("PUT", "GET")
    ]
    rows = between(page, "fig14")
    assert [row[0] for row in rows] == ["GET", "GET", "PUT", "PUT"]
    for cell in requests["cells"] + passes["cells"]:
        assert sum(cell["parts"].values()) == pytest.approx(cell["seconds"][0])
    kinds = [cell["kind"] for cell in passes["cells"] if cell["megabytes"] == 0.1]
    assert sorted(kinds) == list(range(1, 9))
    shown = {(row[0], *row[1:]) for row in between(page, "fig16")}
    assert len(shown) == sum(cell["megabytes"] == 0.2 for cell in passes["cells"])
    [own] = [cell for cell in passes["cells"] if cell["kind"] == 8 and cell["megabytes"] == 0.2]
    assert own["native"] > 0


def test_sizes_of_objects_and_consumers(tmp_path, module):
    (sizes, waited), page = measured(tmp_path, "fig8", "fig11")
    rows = between(page, "fig8")
    assert [cell["size"] for cell in sizes["cells"]] == [100_000, 400_000]
    assert [row[0].endswith("(chosen)") for row in rows] == [
        cell["size"] == sizes["chosen"] for cell in sizes["cells"]
    ]
    # An object that is all of the data is fetched whole, and ranges are 1.4 % of it.
    assert sizes["cells"][1]["fetched"] == pytest.approx(sizes["merged"] / sizes["range"])
    assert 1 < sizes["cells"][0]["fetched"] < sizes["cells"][1]["fetched"]
    for cell, row in zip(waited["cells"], between(page, "fig11"), strict=True):
        assert row[3] == f"{cell['stock']['latency'] / cell['ours']['latency']:.2f}x"
        assert cell["stock"]["bytes"] == cell["consumers"] * 8 * cell["variable"] > cell["ours"]["bytes"] > 0
    chosen = module("scibox_sizes").chosen
    assert chosen({1: 10.0, 2: 95.0, 4: 100.0, 8: 96.0}) == 2
    assert chosen({1: 100.0, 2: 100.0}) == 1
