"""Files without a query: each verb replies as the File DSI does, and leaves the same behind."""

import hashlib
import io
import re
import zlib

import pytest
from gridftp_server import copy, fetch, fetch_part, reply, retrieve


@pytest.fixture(scope="module")
def plain(share):
    """Return a file of 3 MB that is no data file."""
    path = share / "plain.bin"
    path.write_bytes(bytes(range(256)) * 12_000)
    path.chmod(0o644)
    return path


@pytest.fixture(params=["sieva", "file"])
def either(request, server, file_server):
    """Return a server with the plug-in, then one with the File DSI: both must pass."""
    return server if request.param == "sieva" else file_server


@pytest.mark.parametrize("options", [(), ("-p", 1), ("-p", 4), ("-p", 4, "-fast"), ("-bs", 70_000)])
def test_whole_file(either, plain, target, options):
    assert fetch(either.url(plain), target, *options) == plain.read_bytes()


def test_a_part(either, plain, target):
    assert fetch_part(either.url(plain), target, 1000, 77_777) == plain.read_bytes()[1000:78_777]


def test_the_rest(either, plain):
    session = either.session()
    assert retrieve(session, plain, rest=2_000_000) == plain.read_bytes()[2_000_000:]
    session.close()


@pytest.mark.parametrize("options", [(), ("-p", 4)])
def test_storing(either, share, plain, options):
    copied = share / "copied.bin"
    copied.unlink(missing_ok=True)
    copy(*options, f"file://{plain}", either.url(copied))
    assert copied.read_bytes() == plain.read_bytes()


def test_storing_behind_a_position(either, share):
    session = either.session()
    path = share / "appended.bin"
    path.unlink(missing_ok=True)
    session.storbinary(f"STOR {path}", io.BytesIO(b"0123456789"))
    session.storbinary(f"STOR {path}", io.BytesIO(b"abc"), rest=10)
    assert path.read_bytes() == b"0123456789abc"
    session.close()


def test_directories_and_names(either, share):
    session = either.session()
    base = share / f"made-{either.port}"
    assert reply(session, f"MKD {base}").startswith("257")
    session.storbinary(f"STOR {base}/a", io.BytesIO(b"a"))
    session.rename(f"{base}/a", f"{base}/b;sq=1")
    assert "b;sq=1" in session.nlst(str(base))
    session.sendcmd(f"SITE CHMOD 600 {base}/b;sq=1")
    session.sendcmd(f"SITE UTIME 20200102030405 {base}/b;sq=1")
    [(name, facts)] = [entry for entry in session.mlsd(str(base)) if entry[0].startswith("b")]
    assert (name, facts["size"], facts["modify"], facts["unix.mode"]) == (
        "b;sq=1",
        "1",
        "20200102030405",
        "0600",
    )
    session.delete(f"{base}/b;sq=1")
    session.rmd(str(base))
    assert not base.exists()
    session.close()


def _same(text):
    """Return a reply without what differs from server to server."""
    return re.sub(r"localhost:\d+|127,0,0,1,\d+,\d+", "", text)


@pytest.mark.parametrize(
    "command",
    [
        "SIZE {plain}",
        "MDTM {plain}",
        "MLST {plain}",
        "STAT {plain}",
        "STAT {share}/none",
        "SIZE {share}/none",
        "SIZE {share}",
        "CKSM MD5 0 -1 {plain}",
        "CKSM ADLER32 5 1000 {plain}",
        "CKSM SHA256 0 -1 {plain}",
        "CKSM MD5 0 -1 {share}/none",
        "DELE {share}/none",
        "RMD {share}/none",
        "MKD {share}",
        "RNFR {share}/none",
        "CWD {share}",
        "SITE CHMOD 700 {share}/none",
        "RETR {share}/none",
        "NOOP",
        "SITE RDEL {share}/none",
        "OPTS RETR Parallelism=2,2,2;",
    ],
)
def test_replies_are_those_of_the_file_dsi(server, file_server, share, plain, command):
    command = command.format(share=share, plain=plain)
    replies = []
    for each in (server, file_server):
        session = each.session()
        if command.startswith("RETR"):
            session.sendcmd("PASV")
        replies.append(_same(reply(session, command)))
        session.close()
    assert replies[0] == replies[1]


def test_checksums_are_right(either, plain):
    session = either.session()
    assert reply(session, f"CKSM MD5 0 -1 {plain}") == f"213 {hashlib.md5(plain.read_bytes()).hexdigest()}"  # noqa: S324
    assert reply(session, f"CKSM ADLER32 0 -1 {plain}") == f"213 {zlib.adler32(plain.read_bytes()):08x}"
    session.close()


def test_a_listing_of_a_directory(server, file_server, share, plain):
    listings = []
    for each in (server, file_server):
        session = each.session()
        lines = []
        session.retrlines(f"LIST {share}", lines.append)
        listings.append(sorted(line for line in lines if plain.name in line))
        session.close()
    assert listings[0] == listings[1]
    assert len(listings[0]) == 1


def test_names_with_separators_are_names(either, share):
    path = share / "a;b?c&sql=d;id=3.nc"
    path.write_bytes(b"content")
    session = either.session()
    assert retrieve(session, path) == b"content"
    assert session.size(str(path)) == 7
    session.close()


def test_sessions_without_a_query_do_not_load_the_engine(server, plain):
    def loaded():
        return "libsieva_c" in "".join(maps)

    session = server.session()
    retrieve(session, plain)
    maps = [text for pid in _children(server) for text in _maps(pid)]
    assert maps
    assert not loaded()
    session.close()


def _children(server):
    pid = server._process.pid
    with open(f"/proc/{pid}/task/{pid}/children") as file:  # noqa: PTH123 - of the kernel
        return [int(child) for child in file.read().split()]


def _maps(pid):
    try:
        with open(f"/proc/{pid}/maps") as file:  # noqa: PTH123 - of the kernel
            return file.readlines()
    except (FileNotFoundError, PermissionError):
        return []


def test_a_query_leaves_nothing_beside_the_file(server, share, ocean_file):
    directory = share / "clean"
    directory.mkdir()
    directory.chmod(0o777)
    path = directory / "ocean.nc"
    path.write_bytes(ocean_file.read_bytes())
    session = server.session()
    retrieve(session, f"{path};sql=TEMP > 20")
    session.close()
    assert [each.name for each in directory.iterdir()] == ["ocean.nc"]
