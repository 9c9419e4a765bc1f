"""Which servers and stripes queries touch, against offset arithmetic."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest
import sieva
from click.testing import CliRunner
from sieva import _layout_plan, cli
from striping_requests import layout, requests, stripes_of

SVG = "{http://www.w3.org/2000/svg}"
SHAPE = (48, 64, 32)


@pytest.fixture
def values():
    values = np.random.default_rng(5).normal(size=SHAPE).astype("f4")
    values[3, 4] = np.nan
    values[5, 6, 7] = -0.0
    return values


@pytest.fixture
def plain(tmp_path, values):
    """Return a file with one contiguous array, and where that begins."""
    path = tmp_path / "plain.h5"
    with h5py.File(path, "w") as file:
        file["a"] = values
        offset = file["a"].id.get_offset()
    return path, offset


def svg(text):
    return ET.fromstring(text)  # noqa: S314 - written by ourselves


@pytest.mark.parametrize("striping", [(4096, 3, 2), (10_000, 4, 0), (65536, 1, 0), (1000, 7, 3)])
@pytest.mark.parametrize(("low", "high"), [(0, 48), (5, 9), (47, 48)])
def test_stripes_of_a_range_are_those_of_offset_arithmetic(plain, striping, low, high):
    (path, offset), (size, count, first) = plain, striping
    row = 64 * 32 * 4
    how = f"stripe_size={size},stripe_count={count},stripe_offset={first}"
    along = f'idx("{sieva.open(path)["a"].dims[0]}")'
    sql = f"SELECT a WHERE {along} >= {low} AND {along} < {high}"
    # Small arrays are fetched whole where the way is not said.
    plan = layout(path, sql, fetch="direct", striping=how)
    (file,) = plan["files"]
    wanted = stripes_of(offset + low * row, offset + high * row, size, count, first)
    assert requests(file) == wanted
    assert (file["stripe_size"], file["server_count"]) == (size, count)
    assert sum(s["after"]["bytes"] for s in file["servers"]) == (high - low) * row
    assert plan["notes"] == []


def test_a_condition_and_its_result_are_counted_once_together(plain, values):
    path, offset = plain
    query = sieva.open(path, striping="stripe_size=16KiB,stripe_count=4", learn=False).sql(
        "SELECT a WHERE a > 1"
    )
    (file,) = json.loads(query.explain_layout_json())["files"]
    before, after = (
        {key: sum(server[when][key] for server in file["servers"]) for key in ("bytes", "requests")}
        for when in ("before", "after")
    )
    assert before["bytes"] == 2 * values.nbytes
    assert after["bytes"] == values.nbytes
    assert (
        after["requests"] == len(stripes_of(offset, offset + values.nbytes, 16384, 4, 0)) < before["requests"]
    )
    assert query.stats()["bytes_read"] == 0
    assert query.count() == int((values > 1).sum())


def test_chunks_are_on_the_servers_of_their_stored_bytes(tmp_path, values):
    path = tmp_path / "chunked.h5"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("a", data=values, chunks=(7, 16, 32), compression="gzip", shuffle=True)
        chunks = [dataset.id.get_chunk_info(n) for n in range(dataset.id.get_num_chunks())]
    plan = layout(path, "SELECT a WHERE a > 0", striping="stripe_size=3000,stripe_count=5")
    stored = {at for c in chunks for at in range(c.byte_offset, c.byte_offset + c.size)}
    asked = [at for _, _, start, stop in requests(plan["files"][0]) for at in range(start, stop)]
    assert len(asked) == len(set(asked))
    assert stored <= set(asked)
    for server, stripe, start, stop in requests(plan["files"][0]):
        assert start // 3000 == (stop - 1) // 3000 == stripe
        assert server == stripe % 5


def test_records_that_alternate_are_where_their_bytes_are(tmp_path):
    path, n = tmp_path / "records.nc", 50
    values = (np.arange(n * 30).reshape(n, 30) + 0.5).astype(">f4")
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        file.createDimension("t", None)
        file.createDimension("x", 30)
        for name, factor in (("a", 1), ("other", -1)):
            file.createVariable(name, "f4", ("t", "x"))[:] = factor * values
    stored = path.read_bytes()
    begins = {stored.index(record.tobytes()) for record in values}
    (file,) = layout(path, "SELECT a WHERE a > 0", striping="stripe_size=100,stripe_count=3")["files"]
    asked = [at for _, _, start, stop in requests(file) for at in range(start, stop)]
    assert len(asked) == len(set(asked))
    assert {at for begin in begins for at in range(begin, begin + 120)} <= set(asked)
    for server, stripe, start, stop in requests(file):
        assert start // 100 == (stop - 1) // 100 == stripe
        assert server == stripe % 3
    # Of one record alone its own stripes.
    begin = stored.index(values[7].tobytes())
    sql = "SELECT a WHERE idx(t) = 7"
    (file,) = layout(path, sql, fetch="direct", striping="stripe_size=100,stripe_count=3")["files"]
    assert requests(file) == stripes_of(begin, begin + 120, 100, 3, 0)


def test_each_file_of_many_has_its_own_servers(tmp_path, values):
    for n in range(3):
        with h5py.File(tmp_path / f"part{n}.h5", "w") as file:
            file["t"] = np.arange(n * 48.0, n * 48.0 + 48)
            file["t"].make_scale("t")
            file["a"] = values[:, 0, 0] + n
            file["a"].dims[0].attach_scale(file["t"])
    plan = layout(
        str(tmp_path / "part*.h5"), "SELECT a WHERE a > 0", striping="stripe_size=64,stripe_count=2"
    )
    assert sorted(Path(f["file"]).name for f in plan["files"]) == ["part0.h5", "part1.h5", "part2.h5"]
    assert all(f["server_count"] == 2 and f["servers"] for f in plan["files"])


@pytest.mark.parametrize("what", ["a", "count(a)"])
def test_what_is_never_read_touches_nothing(plain, what):
    source = sieva.open(plain[0])
    query = source.sql(f'SELECT {what} WHERE idx("{source["a"].dims[0]}") > 99 AND a > 1')
    assert query.explain_layout() == "touches    nothing\n"
    assert json.loads(query.explain_layout_json()) == {"files": [], "objects": 0, "notes": []}


def test_the_command_line_tells_and_draws_it(plain, tmp_path):
    path, offset = plain
    sql, picture = f"SELECT a FROM '{path}' WHERE a > 2", tmp_path / "touched.svg"
    striping = ["--striping", "stripe_size=64KiB,stripe_count=3"]
    run = CliRunner().invoke
    told = run(cli.cli, ["explain", "--layout", sql, *striping, "--plot", str(picture)])
    assert told.exit_code == 0, told.output
    assert "layout     3 servers, stripe_size=64KiB,stripe_count=3,stripe_offset=0 (given)" in told.output
    assert "touches    3 of 3 servers, 7 stripes" in told.output
    drawn = svg(picture.read_text())
    filled = [r for r in drawn.iter(f"{SVG}rect") if r.get("fill") == _layout_plan.TOUCHED]
    assert len(filled) == len(stripes_of(offset, offset + 48 * 64 * 32 * 4, 65536, 3, 0)) == 7
    names = [text.text for text in drawn.iter(f"{SVG}text")]
    assert [f"server {n}" for n in range(3)] == [
        name for name in names if name in {"server 0", "server 1", "server 2"}
    ]
    as_json = run(cli.cli, ["explain", "--layout", "--json", sql, *striping])
    assert json.loads(as_json.output)["files"][0]["server_count"] == 3
    wrong = run(cli.cli, ["explain", "--layout", sql, "--striping", "stripe_size=0"])
    assert wrong.exit_code == 1
    assert "at least one of each" in str(wrong.output) + str(wrong.exception)
    assert run(cli.cli, ["explain", "--layout", "--analyze", sql]).exit_code == 2


def test_ranges_too_close_to_be_seen_apart_are_drawn_as_one():
    touched = [[n * 100, n * 100 + 50] for n in range(10_000)]
    traffic = {"bytes": 1, "requests": 1}
    stripe = {"stripe": 0, "before": traffic, "after": traffic, "requests": touched}
    server = {"server": 0, "name": "<a & b>", "before": traffic, "after": traffic, "stripes": [stripe]}
    file = {"file": "x", "length": 10**6, "layout": "words", "servers": [server] * 70}
    text = _layout_plan.drawn({"files": [file], "notes": [], "objects": 0})
    drawn = svg(text)
    filled = [r for r in drawn.iter(f"{SVG}rect") if r.get("fill") == _layout_plan.TOUCHED]
    assert len(filled) == _layout_plan.MOST_ROWS
    assert "and 10 servers more" in [t.text for t in drawn.iter(f"{SVG}text")]
    assert svg(_layout_plan.drawn({"files": []})) is not None
