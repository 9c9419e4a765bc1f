"""The repetition of SDQuery: drawn queries have the share of their class, and numpy's answer is sieva's."""

import contextlib
import importlib
import sys
import types
import zlib
from pathlib import Path

import numpy as np
import pytest
import sieva
from sieva.generate import write_ocean

pytest.importorskip(
    "netCDF4", reason="the benchmark reads its POP-like file by netCDF4, an extra for development"
)
h5py = pytest.importorskip("h5py", reason="the benchmark reads its MODB-like file by h5py, an extra")

BENCH = Path(__file__).resolve().parents[2] / "benches" / "sdquery"


@pytest.fixture(scope="module")
def bench():
    """Return the benchmark's modules that need no network."""
    sys.path.insert(0, str(BENCH))
    try:
        yield {
            name: importlib.import_module(name)
            for name in ("cells", "draw", "network", "oceans", "page", "plots", "subsetting")
        }
    finally:
        sys.path.remove(str(BENCH))
        sys.path.remove(str(BENCH.parent))


@pytest.fixture(scope="module")
def ocean(bench, tmp_path_factory):
    path = tmp_path_factory.mktemp("sdquery") / "pop.nc"
    write_ocean(path, times=3, depths=6, lats=45, lons=60)
    return bench["oceans"].pop(path)


def test_drawn_queries_have_the_share_of_their_class_and_the_answer_of_sieva(bench, ocean):
    draw = bench["draw"]
    queries = draw.draw(ocean, 2, seed=3)
    assert [query.number for query in queries] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    source = sieva.open(ocean.path)
    for query in queries:
        low, high = draw.CLASSES[query.number]
        assert low <= query.hits / ocean.rows < high
        condition = query.sql.split(" WHERE ", 1)[1]
        asked = source.query(condition, select=["TEMP", "SALT"])
        assert asked.count() == query.hits
        for name, checksum in query.checksums.items():
            values = np.array(asked.read(name))
            values[np.isnan(values)] = np.nan
            assert zlib.crc32(values) == checksum


def test_queries_that_are_kept_are_those_that_were_drawn(bench, ocean):
    drawn = bench["draw"].drawn_once(ocean, 1, seed=5)
    assert bench["draw"].drawn_once(ocean, 1, seed=5) == drawn


def test_a_bound_is_a_real_number_whatever_the_type(bench):
    # The float32 nearest to 1.7 lies above it, that nearest to 0.1 too, that nearest to 1.3 below.
    values = np.array([0.1, 1.3, 1.7], "f4")
    within = bench["draw"].within
    assert within(values, ("0.1", "1.7")).tolist() == [True, True, False]
    assert within(values, ("1.3", "1.8")).tolist() == [False, False, True]
    assert within(values.astype("f8"), ("1.3", "1.8")).tolist() == [False, False, True]


def test_a_cell_is_the_mean_of_its_queries_medians(bench):
    cells = bench["cells"]
    seconds = {0: [1.0, 9.0, 2.0], 1: [4.0]}
    runs = [cells.Run(query, 10 * query, spent, 1) for query, of in seconds.items() for spent in of]
    cell = cells.Cell("POP", "1 Gb/s", "< 1 %", runs)
    assert cell.seconds == 3.0
    assert cell.size == 5
    assert cell.range == (1.0, 9.0)
    assert cell.spread == 4.0


def test_runs_go_in_turn_until_the_time_is_used_up(bench):
    cells = bench["cells"]
    both = [cells.Cell("POP", way, "< 1 %") for way in ("a", "b")]
    # The second way transfers a tenth, and that is what it took.
    ways = [lambda at: cells.Run(at, 10, 4.0, 10), lambda at: cells.Run(at, 100, 20.0, 10)]
    cells.fill(both, ways, queries=2, budget=6.0, least=1)
    assert [[run.query for run in cell.runs] for cell in both] == [[0, 1], [0, 1]]
    cells.fill(both, ways, queries=2, budget=0.0, least=1)
    assert [len(cell.runs) for cell in both] == [3, 3]


def test_queries_are_run_again_before_others_are_run(bench):
    cells = bench["cells"]
    cell = cells.Cell("POP", "a", "< 1 %")
    cells.fill([cell], [lambda at: cells.Run(at, 1, 1.0, 1)], queries=3, budget=100.0)
    assert [run.query for run in cell.runs] == [0, 1, 0, 1, 2, 2, 0, 1, 2]


def test_bars_of_a_plot_are_as_high_as_their_values(bench):
    plots = bench["plots"]
    panel = plots.Panel("<a>", [("x", [plots.Bar((1.0, 3.0), (3.5, 4.5))])])
    text = plots.figure([panel], ["one", "other"], "s")
    heights = [float(part.split('"')[0]) for part in text.split('height="')[2:4]]
    assert heights[1] == pytest.approx(3 * heights[0], rel=0.01)
    assert "&lt;a&gt;" in text


def test_the_files_are_of_the_papers_kind(bench, tmp_path):
    oceans = bench["oceans"]
    pop, modb = oceans.prepare(tmp_path, oceans.Size("tiny", (2, 3, 20, 30), (2, 4, 20, 30)))
    stored = {a["array"]: a for a in sieva.open(pop.path).schema()["physical"]}
    assert pop.path.read_bytes()[:4] == b"CDF\x02"
    assert [stored[name]["filters"] for name in ("TEMP", "SALT")] == [[], []]
    assert pop.shape == (2, 3, 20, 30)
    [salinity] = [a for a in sieva.open(modb.path).schema()["physical"] if a["array"].endswith("salinity")]
    assert (salinity["layout"], salinity["filters"]) == ("chunked", [])
    for ocean in (pop, modb):
        first = next(iter(ocean.steps()))[ocean.arrays[0]]
        assert 0.2 < np.isfinite(first).mean() < 1
    assert not list((tmp_path / "tiny").glob("partial*"))


def test_tables_say_what_is_behind_them(bench):
    cells, page = bench["cells"], bench["page"]

    def cell(way, *seconds):
        runs = [cells.Run(query, 10, spent, 10) for query, spent in enumerate(seconds)]
        return cells.Cell("POP", way, "< 1 %", runs)

    text = page.fetching(
        [cell("direct, segments", 2.0, 2.0), cell("memory filter", 1.0, 1.0), cell("hybrid", 1.1, 1.1)]
    )
    assert text.splitlines()[0] == (
        "| share | queries | runs of each way | direct, segments | memory filter | hybrid "
        "| hybrid over the best, % | target |  |"
    )
    assert text.splitlines()[2].startswith("| < 1 % | 2 | 2 | ")
    assert text.splitlines()[2].endswith(" | +10.0 | 2 | NOT met |")


def test_a_lost_ping_ends_no_run(bench, monkeypatch):
    """The first packet may be lost; ping fails only where none of those that it sent was answered."""
    asked = []

    def answer(_network, words):
        asked.append(words)
        if words[0] == "ping" and words[words.index("-c") + 1] == "1":
            raise SystemExit("1 packets transmitted, 0 received")
        return "2% packet loss\nrtt min/avg/max/mdev = 1.0/2.0/3.0/0.1 ms" if words[0] == "ping" else "125000"

    network = bench["network"]
    monkeypatch.setattr(network.Network, "run_at_client", answer)
    for name in ("dropped", "retransmitted"):
        monkeypatch.setattr(network.Network, name, lambda _: 0)
    monkeypatch.setattr(network.Network, "_congestion_control", lambda _: "cubic")
    monkeypatch.setattr(network.Network, "_sender", lambda *_: contextlib.nullcontext())
    measured = network.Network(network.LINES[0], Path("relay")).verify(1)
    assert (measured.rtt_mean, measured.ping_lost, measured.goodput) == (2.0, "2 %", 1.0)


def test_the_first_build_is_not_counted(bench, monkeypatch):
    subsetting, built = bench["subsetting"], []
    monkeypatch.setattr(subsetting, "build_indexes", lambda _, threads: built.append(threads) or len(built))
    ocean = types.SimpleNamespace(name="POP", path=Path(__file__))
    found = {cell.line: [run.seconds for run in cell.runs] for cell in subsetting.building(ocean)}
    assert built == [2, 1, 2, 1, 2, 1, 2]
    assert found == {"1 thread": [2, 4, 6], "2 threads": [3, 5, 7]}
