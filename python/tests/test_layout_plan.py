"""Which servers and stripes queries touch: against offset arithmetic, and on file systems that stripe."""

import json
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import h5py
import numpy as np
import pytest
import sieva
from click.testing import CliRunner
from services import striped
from sieva import _layout_plan, cli

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


def stripes_of(start, stop, size, count, first):
    """Return the stripes of bytes as (server, number, start, stop), by arithmetic."""
    return [
        ((n + first) % count, n, max(start, n * size), min(stop, (n + 1) * size))
        for n in range(start // size, (stop - 1) // size + 1)
    ]


def layout(path, sql, fetch="auto", **how):
    return json.loads(sieva.open(path, learn=False, **how).sql(sql, fetch=fetch).explain_layout_json())


def svg(text):
    return ET.fromstring(text)  # noqa: S314 - written by ourselves


def requests(file):
    """Return (server, stripe, start, stop) of all requests, in the order of the file."""
    found = [
        (server["server"], stripe["stripe"], *request)
        for server in file["servers"]
        for stripe in server["stripes"]
        for request in stripe["requests"]
    ]
    return sorted(found, key=lambda one: one[2])


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


@pytest.mark.skipif(sys.platform != "linux", reason="FUSE of Linux")
def test_cephfs_tells_its_stripes(tmp_path, plain, values):
    path, offset = plain
    with striped.ceph(tmp_path) as mounted:
        there = mounted / "striped"
        there.mkdir()
        words = "stripe_unit=65536 stripe_count=4 object_size=131072"
        subprocess.run([sys.executable, "-c", SET, there, "ceph.dir.layout", words], check=True)
        shutil.copy(path, there / "a.h5")
        plan = layout(there / "a.h5", "SELECT a WHERE a > 1")
        (file,) = plan["files"]
        assert file["striping"] == "stripe_size=64KiB,stripe_count=4,object_size=128KiB"
        assert file["layout"].endswith("(CephFS)")
        # As CephFS deals them: two rounds of four stripes to four objects each.
        wanted = [
            (n // 8 * 4 + n % 4, n, low, high)
            for _, n, low, high in stripes_of(offset, offset + values.nbytes, 65536, 4, 0)
        ]
        assert requests(file) == wanted
        found = sieva.open(there / "a.h5", learn=False).sql("SELECT a WHERE a > 1")
        assert found.count() == int((values > 1).sum())
        # A file that the layout of another directory is not of.
        (mounted / "whole").mkdir()
        shutil.copy(path, mounted / "whole" / "a.h5")
        (other,) = layout(mounted / "whole" / "a.h5", "SELECT a WHERE a > 1")["files"]
        assert other["striping"] == "stripe_size=4MiB,stripe_count=1,object_size=4MiB"


@pytest.mark.skipif(sys.platform != "linux", reason="FUSE of Linux")
def test_glusterfs_tells_its_shards(tmp_path):
    values = np.arange(3 << 20, dtype="f4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a"] = values
        offset = file["a"].id.get_offset()
    with striped.gluster(tmp_path) as mounted:
        shutil.copy(tmp_path / "a.h5", mounted / "a.h5")
        (file,) = layout(mounted / "a.h5", f"SELECT a WHERE a < {2 << 20}")["files"]
        assert file["striping"] == "stripe_size=4MiB,stripe_count=1,object_size=4MiB"
        assert file["layout"].startswith("4 shards")
        wanted = stripes_of(offset, offset + values.nbytes, 4 << 20, 4, 0)
        assert requests(file) == wanted
        # What the bricks have: the first shard under the file's name, the others below .shard.
        shards = list(tmp_path.glob("brick*/.shard/*.[0-9]*")) + list(tmp_path.glob("brick*/a.h5"))
        assert len([s for s in shards if s.stat().st_size > 0]) == 4
        assert sieva.open(mounted / "a.h5", learn=False).sql("SELECT a WHERE a < 7").count() == 7


SET = "import os, sys; os.setxattr(sys.argv[1], sys.argv[2], sys.argv[3].encode())"
