"""Results in parallel streams, in parts, after an interruption, to several clients, and from back ends."""

import contextlib
import ftplib
import hashlib
import json
import threading
import zlib

import pytest
from conftest import FEW, MANY
from gridftp_server import Server, copy, fetch, fetch_part, reply, retrieve
from local_result import local_result


@pytest.fixture(scope="module")
def many(ocean_file):
    """Return the bytes of the large result."""
    return local_result(ocean_file, MANY)


@pytest.mark.parametrize("options", [(), ("-fast",), ("-bs", 20_000)])
@pytest.mark.parametrize("streams", [1, 2, 4, 8, 16])
def test_parallel_streams(server, ocean_file, many, target, *, streams, options):
    assert fetch(server.url(ocean_file, f";sql={MANY}"), target, "-p", streams, *options) == many


@pytest.mark.parametrize(
    ("offset", "length"), [(0, 1), (1000, 5000), (300_001, 262_144), (500_000, 99_999_999)]
)
@pytest.mark.parametrize("options", [(), ("-p", 4)])
def test_parts(server, ocean_file, many, target, *, offset, length, options):
    url = server.url(ocean_file, f";sql={MANY}")
    assert fetch_part(url, target, offset, length, *options) == many[offset : offset + length]


def test_restart_in_the_middle(session, ocean_file, many):
    path = f"{ocean_file};sql={MANY}"
    described = json.loads(retrieve(session, f"{path};describe"))
    first = b""
    with contextlib.closing(session.transfercmd(f"RETR {path}")) as connection:
        while len(first) < 100_000:
            first += connection.recv(8192)
    with contextlib.suppress(ftplib.Error):
        session.voidresp()
    rest = retrieve(session, f"{path};id={described['id']}", rest=len(first))
    assert first + rest == many


def test_a_restart_after_the_file_was_changed_is_refused(session, share, ocean_file):
    copied = share / "changing.nc"
    copied.write_bytes(ocean_file.read_bytes())
    path = f"{copied};sql={FEW}"
    wanted = json.loads(retrieve(session, f"{path};describe"))["id"]
    assert retrieve(session, f"{path};id={wanted}") == local_result(copied, FEW)
    with copied.open("ab") as file:
        file.write(b"\0")
    said = reply(session, f"SIZE {path};id={wanted}")
    assert said.startswith("550")
    assert "stale-source" in said
    assert "start the transfer anew" in said


def test_checksums(session, ocean_file, many):
    path = f"{ocean_file};sql={MANY}"
    for name in ("MD5", "SHA1", "SHA256", "SHA512"):
        assert reply(session, f"CKSM {name} 0 -1 {path}") == f"213 {hashlib.new(name, many).hexdigest()}"
    assert reply(session, f"CKSM ADLER32 0 -1 {path}") == f"213 {zlib.adler32(many):08x}"
    assert reply(session, f"CKSM ADLER32 1000 70000 {path}") == f"213 {zlib.adler32(many[1000:71_000]):08x}"
    assert "one of MD5, ADLER32, SHA1" in reply(session, f"CKSM SHA3 0 -1 {path}")


def test_verified_by_the_client(server, ocean_file, many, target):
    url = server.url(ocean_file, f";sql={MANY}")
    assert fetch(url, target, "-p", 2, "-verify-checksum", "-checksum-alg", "MD5") == many


def test_the_facts_of_a_result(session, ocean_file, many):
    path = f"{ocean_file};sql={MANY}"
    assert session.size(path) == len(many)
    facts = reply(session, f"MLST {path}")
    assert f"Size={len(many)};" in facts
    assert "Type=file;" in facts
    assert "UNIX.mode=0444;" in facts
    assert reply(session, f"MDTM {path}") == reply(session, f"MDTM {ocean_file}")
    lines = []
    session.retrlines(f"LIST {path}", lines.append)
    assert [line.split()[4] for line in lines if line] == [str(len(many))]


def test_size_then_retr_evaluates_once(server, ocean_file):
    session = server.session()
    path = f"{ocean_file};sql={MANY} AND z_t > 1"
    before = len(server.requests())
    assert session.size(path) == len(retrieve(session, path))
    stat, retr = server.requests()[before:]
    assert (stat["verb"], retr["verb"]) == ("STAT", "RETR")
    session.close()


def test_two_clients_at_once(server, ocean_file, many, tmp_path):
    few = local_result(ocean_file, FEW)
    wrong = []

    def run(number):
        sql, expected = ((MANY, many), (FEW, few))[number % 2]
        url = server.url(ocean_file, f";sql={sql}")
        got = [fetch(url, tmp_path / str(number), "-p", 2) for _ in range(3)]
        if any(each != expected for each in got):
            wrong.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("streams", [1, 4])
def test_third_party(server, share, ocean_file, many, streams):
    with Server(share) as other:
        received = share / "third.nc"
        received.unlink(missing_ok=True)
        copy("-p", streams, server.url(ocean_file, f";sql={MANY}"), other.url(received))
        assert received.read_bytes() == many


@pytest.mark.parametrize("options", [("-stripe",), ("-stripe", "-p", 4), ("-p", 2)])
def test_striped_back_ends(share, ocean_file, many, target, options):
    nodes = [Server(share, ("-dn",)) for _ in range(2)]
    front = None
    try:
        remote = ",".join(f"127.0.0.1:{node.port}" for node in nodes)
        front = Server(share, ("-r", remote), dsi="remote")
        assert fetch(front.url(ocean_file, f";sql={MANY}"), target, *options) == many
        assert fetch(front.url(ocean_file), target, *options) == ocean_file.read_bytes()
    finally:
        for each in [front, *nodes]:
            if each is not None:
                each.stop()


@pytest.mark.parametrize("threads", [1, 3])
def test_a_server_with_threads(share, ocean_file, many, target, threads):
    with Server(share, ("-threads", str(threads))) as server:
        assert fetch(server.url(ocean_file, f";sql={MANY}"), target, "-p", 4) == many


def test_a_client_that_leaves_harms_nobody(server, ocean_file, many):
    for _ in range(3):
        session = server.session()
        connection = session.transfercmd(f"RETR {ocean_file};sql={MANY}")
        connection.recv(1000)
        session.sock.close()
        connection.close()
    session = server.session()
    assert retrieve(session, f"{ocean_file};sql={MANY}") == many
    session.close()
