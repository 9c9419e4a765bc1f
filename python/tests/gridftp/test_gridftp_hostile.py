"""Paths, queries and files that mean harm stay in the roots, and harm no session but their own."""

import contextlib
import ftplib
import json
import os
import socket
from pathlib import Path
from urllib.parse import quote

import h5py
import numpy as np
import pytest
from conftest import FEW
from gridftp_server import Server, fetch, reply, retrieve
from local_result import local_result

ODD = (
    Path(os.environ.get("SIEVA_SHARED_DATA") or Path(__file__).resolve().parents[4] / "shared" / "data")
    / "odd"
)


@pytest.fixture(scope="module")
def rooted(share, ocean_file):
    """Return a server restricted to `open`, in which some files are denied again, and that directory."""
    root = share / "open"
    root.mkdir(exist_ok=True)
    for name in ("seen.nc", "denied.nc", "s1.nc"):
        (root / name).write_bytes(ocean_file.read_bytes())
    links = {"out.nc": "../ocean.nc", "in.nc": "seen.nc", "up": ".."}
    for name, leads_to in links.items():
        if not (root / name).is_symlink():
            (root / name).symlink_to(leads_to)
    return f"{root},N{root}/denied.nc,N{root}/s*.nc,R{root}/seen.nc", root


@pytest.fixture(
    scope="module", params=[(), ("-rp-follow-symlinks",)], ids=["links-checked", "links-followed"]
)
def rooted_session(request, share, rooted):
    """Return a session of that server, its root, and whether links may lead out."""
    paths, root = rooted
    with Server(share, ("-rp", paths, *request.param)) as server:
        session = server.session()
        yield session, root, bool(request.param)
        session.close()


QUESTIONS = [f";sql={FEW}", f"?sql={FEW}", "%3Bsql=TEMP%3E20", ";schema", f";sql={FEW};describe"]


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_is_inside_is_served(rooted_session, question):
    session, root, _ = rooted_session
    for name in ("seen.nc", "in.nc", "../open/seen.nc"):
        assert reply(session, f"SIZE {root}/{name}{question}").startswith("213 ")


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    "path",
    ["../ocean.nc", "%2e%2e/ocean.nc", "..%2focean.nc", "denied.nc", "s1.nc", "./denied.nc", "x/../s1.nc"],
)
def test_what_is_outside_is_refused(rooted_session, path, question):
    session, root, _ = rooted_session
    said = reply(session, f"SIZE {root}/{path}{question}")
    assert said.startswith("550")
    with pytest.raises(ftplib.error_perm):
        retrieve(session, f"{root}/{path}{question}")


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("path", ["out.nc", "up/ocean.nc", "up/open/denied.nc"])
def test_links_out_of_the_roots_are_as_the_server_has_them(rooted_session, path, question):
    session, root, followed = rooted_session
    assert reply(session, f"SIZE {root}/{path}{question}").startswith("213 " if followed else "550")
    assert reply(session, f"SIZE {root}/{path}").startswith("213 " if followed else "550")


def test_a_path_inside_the_query_opens_nothing(rooted_session):
    session, root, _ = rooted_session
    for sql in (
        f"n=5/../../{root.parent}/ocean.nc",
        f"SELECT TEMP FROM '{root.parent}/ocean.nc' WHERE TEMP > 20",
    ):
        said = reply(session, f"SIZE {root}/seen.nc;sql={sql}")
        assert said.startswith(("550", "501"))


def _asked(name):
    """Return a query that asks another file, as a path may bear it."""
    return quote(f"SELECT (SELECT max(TEMP) FROM '{name}') AS m LIMIT 1", safe="")


@pytest.mark.parametrize("isolated", ["yes", "no"])
def test_subqueries_open_what_a_plain_transfer_would(share, rooted, isolated):
    paths, root = rooted
    (root / "gone.nc").unlink(missing_ok=True)
    with Server(share, ("-rp", paths), settings={"SIEVA_GRIDFTP_ISOLATED": isolated}) as server:
        session = server.session()
        for name in ("seen.nc", "in.nc", "../open/seen.nc", "see?.nc"):
            assert reply(session, f"SIZE {root}/seen.nc;sql={_asked(root / name)}").startswith("213 "), name
        for name in (
            "denied.nc",
            "s1.nc",
            "out.nc",
            "up/ocean.nc",
            "../ocean.nc",
            "../none.nc",
            "s2.nc",
            "../oc*.nc",
        ):
            said = reply(session, f"SIZE {root}/seen.nc;sql={_asked(root / name)}")
            assert said.startswith("550"), name
            assert "is outside of what may be opened" in said, name
            plain = reply(session, f"SIZE {root / name};sql={quote(FEW, safe='')}")
            assert plain.startswith("550"), name
        said = reply(session, f"SIZE {root}/seen.nc;sql={_asked(root / 'gone.nc')}")
        assert said.startswith("550")
        assert "file-not-found: " in said
        session.close()


def test_no_query_reaches_a_network(share, session, ocean_file):
    del share
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/a.nc"
        for name in (address, "s3://bucket/a.nc", "swift://container/a.nc", "https://example.org/a.nc"):
            said = reply(session, f"SIZE {ocean_file};sql={_asked(name)}")
            assert said.startswith("550"), said
            assert "is outside of what may be opened" in said
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.parametrize("what", ["chunk", "reference"])
def test_members_of_a_source_stay_inside(share, rooted, what):
    paths, root = rooted
    values = np.arange(4, dtype="<i4")
    (share / "secret.bin").write_bytes(values.tobytes())
    meta = {"shape": [4], "chunks": [4], "dtype": "<i4", "compressor": None, "filters": None}
    meta |= {"fill_value": 0, "order": "C", "zarr_format": 2}
    if what == "chunk":
        path = root / "g.zarr"
        (path / "a").mkdir(parents=True, exist_ok=True)
        (path / ".zgroup").write_text('{"zarr_format":2}')
        (path / "a/.zarray").write_text(json.dumps(meta))
        (path / "a/0").unlink(missing_ok=True)
        (path / "a/0").symlink_to(share / "secret.bin")
    else:
        path = root / "r.json"
        refs = {".zgroup": '{"zarr_format":2}', "a/.zarray": json.dumps(meta), "a/0": ["denied.nc", 0, 16]}
        path.write_text(json.dumps(refs))
    with Server(share, ("-rp", paths)) as server:
        session = server.session()
        said = reply(session, f"SIZE {path};sql={quote('a >= 0', safe='')}")
        assert said.startswith("550"), said
        assert "link-refused: " in said
        session.close()


def test_eret_and_site_sieva_stay_inside(share, rooted, target):
    paths, root = rooted
    with Server(share, ("-rp", paths), dsi="file") as server:
        session = server.session()
        for name in ("../ocean.nc", "denied.nc", "out.nc"):
            with pytest.raises(ftplib.error_perm):
                retrieve(session, f"{root}/{name}")
            with pytest.raises(AssertionError):
                fetch(server.url(f"{root}/{name}"), target, "-smn", "sieva", "-smp", FEW)
        session.close()


@pytest.mark.parametrize("way", ["link", "storage"])
def test_external_links_are_not_followed(session, share, ocean_file, way):
    path = share / f"external-{way}.h5"
    with h5py.File(path, "w") as file:
        if way == "link":
            file["TEMP"] = h5py.ExternalLink(str(ocean_file), "/TEMP")
        else:
            file.create_dataset("TEMP", (10,), "f4", external=[(str(ocean_file), 0, 40)])
    path.chmod(0o644)
    said = reply(session, f"SIZE {path};sql=SELECT TEMP WHERE TEMP > -1e30")
    assert said.startswith(("550", "501"))


@pytest.mark.parametrize(
    "sql",
    [
        "x%00y",
        "x\x01y",
        "%s%s%s%n%n%n",
        "\x7f" * 100,
        "'" * 1000,
        "(" * 3000,
        "NOT " * 900 + "TEMP > 5",
        "\\" * 500,
        "SELECT " + "TEMP," * 700 + "TEMP WHERE TEMP > 1e9",
        "TEMP > " + "9" * 3000,
        "TEMP > 1e999999999",
        "\N{SNOWMAN} > 5",
        "TEMP > 5; DROP TABLE x",
        "../../../../etc/passwd",
        "%ff%fe",
    ],
)
def test_hostile_queries(session, ocean_file, sql):
    assert reply(session, f"SIZE {ocean_file};sql={sql}")[:3] in {"501", "550", "552", "213"}
    assert retrieve(session, f"{ocean_file};sql={FEW}") == local_result(ocean_file, FEW)


@pytest.mark.parametrize("route", ["path", "site"])
def test_a_query_of_100_kilobytes(session, ocean_file, route):
    sql = FEW + " AND TEMP != 1" * 7000
    with pytest.raises(ftplib.error_perm, match="more than 65536"):
        retrieve(session, f"{ocean_file};sql={sql}") if route == "path" else session.sendcmd(
            f"SITE SIEVA {sql}"
        )
    assert session.size(str(ocean_file)) == ocean_file.stat().st_size


def test_log_lines_cannot_be_forged(server, session, ocean_file):
    lines = server.log().count('sieva: RETR user="forged"')
    for text in ("%0Asieva: RETR user=%22forged%22", "x%0D%0Asieva:%20RETR%20user=%22forged%22"):
        reply(session, f"SIZE {ocean_file};sql={text}")
    forged = [line for line in server.log().splitlines() if line.startswith("sieva:")]
    assert not forged
    assert server.log().count('\nsieva: RETR user="forged"') == lines


def _damaged(share, ocean_file):
    """Yield damaged files: cut, overwritten in the middle and at the end, of zeros."""
    content = ocean_file.read_bytes()
    changes = {
        "cut": content[: len(content) // 2],
        "short": content[:100],
        "zeros": content[:8] + bytes(4096),
        "flipped": content[:300] + bytes(b ^ 0xFF for b in content[300:3000]) + content[3000:],
        "ends": content[:-5000] + b"\xff" * 5000,
    }
    for name, changed in changes.items():
        path = share / f"damaged-{name}.nc"
        path.write_bytes(changed)
        path.chmod(0o644)
        yield path


def test_damaged_files(server, share, ocean_file):
    session = server.session()
    for path in _damaged(share, ocean_file):
        for question in (f";sql={FEW}", ";schema"):
            said = reply(session, f"SIZE {path}{question}")
            assert said[:3] in {"550", "501", "451", "213"}
    assert retrieve(session, f"{ocean_file};sql={FEW}") == local_result(ocean_file, FEW)
    session.close()


@pytest.mark.skipif(not ODD.is_dir(), reason="the shared data of odd files are not here")
def test_odd_files(share):
    """Ask each odd file for its schema: every question gets a reply, and the session lives on."""
    with Server(share, settings={"SIEVA_GRIDFTP_MEMORY": "256M"}) as server:
        session = server.session()
        files = sorted(path for path in (ODD / "hdf5-cve").rglob("*") if path.is_file())
        assert files
        for path in files:
            assert reply(session, f"SIZE {path};schema")[:3] in {"213", "550", "501", "552", "451"}, path
        with contextlib.suppress(ftplib.Error):
            session.quit()
