"""Questions end: in time, when their client leaves, and when the server has enough of them."""

import contextlib
import ftplib
import json
import os
import socket
import time
from pathlib import Path

import netCDF4
import numpy as np
import pytest
from conftest import FEW, MANY
from gridftp_server import Server, fetch, reply, retrieve
from local_result import local_result
from slow_engine import slow_engine
from test_gridftp_crash import LONG, children, finish, has_engine

# Against a hang only: what is waited for comes in a second or two.
DEADLINE = 20
# 8 billion rows, none of which an index or the least and greatest values decide.
ENDLESS = "SELECT count(*) WHERE sin(a + c) > 2"


@pytest.fixture(scope="module")
def wide_file(share):
    """Return a file whose queries can take very long."""
    path = share / "wide.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        for name in "xyz":
            file.createDimension(name, 2000)
        values = np.random.default_rng(1).random((2000, 2000), dtype="f4")
        file.createVariable("a", "f4", ("x", "y"))[:] = values
        file.createVariable("c", "f4", ("y", "z"))[:] = values
    path.chmod(0o644)
    return path


def await_true(said):
    """Wait until something is so."""
    until = time.monotonic() + DEADLINE
    while not said():
        assert time.monotonic() < until
        time.sleep(0.02)


def engines(server):
    """Return the sessions that have been asked."""
    return [pid for pid in children(server.pid) if has_engine(pid)]


def test_a_small_result_of_many_columns(session, ocean_file):
    for sql in ("TEMP > 30", "TEMP > 29.9", "SELECT * WHERE TEMP > 30", LONG + " LIMIT 7"):
        assert retrieve(session, f"{ocean_file};sql={sql}") == local_result(ocean_file, sql)


@pytest.mark.parametrize("size", [4096, 1_000_003, 256 << 20])
def test_blocks_of_any_size(share, ocean_file, target, size):
    with Server(share, settings={"SIEVA_GRIDFTP_MEMORY": "16M"}) as server:
        url = server.url(ocean_file, f";sql={LONG}")
        assert fetch(url, target, "-bs", size) == local_result(ocean_file, LONG)


@pytest.mark.parametrize("verb", ["SIZE", "RETR", "CKSM MD5 0 -1"])
def test_a_question_that_takes_too_long(share, ocean_file, wide_file, verb):
    with Server(share, settings={"SIEVA_GRIDFTP_TIME_LIMIT": "1"}) as server:
        session = server.session()
        said = _asked(session, verb, f"{wide_file};sql={ENDLESS}")
        assert said.startswith("451")
        assert "evaluating the query took more than this server's 1 seconds" in said
        assert retrieve(session, f"{ocean_file};sql={FEW}") == local_result(ocean_file, FEW)
        assert server.requests()[0]["result"].startswith("cancelled: evaluating")


def _asked(session, verb, path):
    if verb != "RETR":
        return reply(session, f"{verb} {path}")
    with pytest.raises(ftplib.Error) as caught:
        retrieve(session, path)
    return str(caught.value)


def test_blocks_that_are_not_made(share, ocean_file):
    settings = slow_engine(share, "ready") | {"SIEVA_GRIDFTP_PROGRESS_LIMIT": "1"}
    with Server(share, settings=settings) as server:
        session = server.session()
        said = _asked(session, "RETR", f"{ocean_file};sql={FEW}")
        assert said.startswith("451")
        assert "a block of the result took more than this server's 1 seconds" in said
        assert json_of(session, f"{ocean_file};sql={FEW}")["rows"] > 0
        assert retrieve(session, ocean_file) == ocean_file.read_bytes()


def json_of(session, path):
    """Return what describes a result."""
    return json.loads(retrieve(session, f"{path};describe"))


def test_a_checksum_that_is_not_made(share, ocean_file):
    settings = slow_engine(share, "read") | {"SIEVA_GRIDFTP_PROGRESS_LIMIT": "1"}
    with Server(share, settings=settings) as server:
        session = server.session()
        said = reply(session, f"CKSM MD5 0 -1 {ocean_file};sql={FEW}")
        assert said.startswith("451")
        assert "a part of the result took more than this server's 1 seconds" in said
        assert retrieve(session, ocean_file) == ocean_file.read_bytes()


def test_an_engine_that_does_not_even_stop(share, ocean_file):
    settings = slow_engine(share, "open", "ready", "free")
    limits = {"TIME_LIMIT": "1", "PROGRESS_LIMIT": "1", "WAIT": "0"}
    settings |= {f"SIEVA_GRIDFTP_{name}": value for name, value in limits.items()}
    with Server(share, settings=settings) as server:
        for sql in ("SELECT TEMP WHERE TEMP > -12345", FEW):
            session = server.session()
            assert _asked(session, "RETR", f"{ocean_file};sql={sql}").startswith("451")
            # The thread is still there, and so is what it takes.
            assert reply(session, f"SIZE {ocean_file};sql={FEW} AND z_t > 1").startswith("450")
            assert retrieve(session, ocean_file) == ocean_file.read_bytes()
            session.quit()
        await_true(lambda: not engines(server))


@pytest.mark.parametrize("verb", ["SIZE", "RETR", "CKSM MD5 0 -1"])
def test_a_client_that_leaves_ends_its_question(share, wide_file, verb):
    with Server(share) as server:
        session = server.session()
        data = socket.create_connection(session.makepasv()) if verb == "RETR" else contextlib.nullcontext()
        session.putcmd(f"{verb} {wide_file};sql={ENDLESS}")
        await_true(lambda: engines(server))
        with data:
            pass
        session.sock.close()
        session.file.close()
        started = time.monotonic()
        await_true(lambda: not engines(server))
        print(f"{verb}: ended after {time.monotonic() - started:.2f} s")
        assert "the client left" in server.log()


def test_a_client_that_leaves_ends_its_transfer(share, ocean_file):
    settings = slow_engine(share, "ready", "free")
    with Server(share, settings=settings) as server:
        session = server.session()
        data = session.transfercmd(f"RETR {ocean_file};sql={FEW}")
        assert engines(server)
        data.close()
        session.sock.close()
        session.file.close()
        started = time.monotonic()
        await_true(lambda: not engines(server))
        print(f"ended after {time.monotonic() - started:.2f} s")


class Limited(contextlib.ExitStack):
    """A server with limits for all its sessions together."""

    def __init__(self, share, **settings):
        super().__init__()
        names = {f"SIEVA_GRIDFTP_{name.upper()}": str(value) for name, value in settings.items()}
        self.server = self.enter_context(Server(share, settings={"SIEVA_GRIDFTP_WAIT": "0", **names}))

    def hold(self, path, sql=LONG):
        """Begin a transfer that does not end by itself."""
        session = self.server.session()
        data = session.transfercmd(f"RETR {path};sql={sql}")
        assert data.recv(1000)
        return session, data


@pytest.mark.parametrize(
    "limit", [{"total_queries": 1}, {"memory": "64M", "total_memory": "100M"}], ids=["queries", "memory"]
)
def test_more_questions_than_all_may_ask(share, ocean_file, limit):
    with Limited(share, **limit) as limited:
        first, data = limited.hold(ocean_file)
        other = limited.server.session()
        for _ in range(2):
            said = reply(other, f"SIZE {ocean_file};sql={FEW}")
            assert said.startswith("450")
            assert "busy: the server answers as many questions" in said
            assert "try again later" in said
        assert retrieve(other, ocean_file) == ocean_file.read_bytes()
        with data:
            finish(first, data)
        assert retrieve(other, f"{ocean_file};sql={FEW}") == local_result(ocean_file, FEW)
        place = limited.server.sessions_path
        assert place.stat().st_mode & 0o777 == 0o700
        assert {path.stat().st_mode & 0o777 for path in place.iterdir()} == {0o600}


def test_who_crashed_holds_nothing(share, ocean_file):
    with Limited(share, total_queries=1) as limited:
        server = limited.server
        first, data = limited.hold(ocean_file)
        [victim] = engines(server)
        other = server.session()
        assert reply(other, f"SIZE {ocean_file};sql={FEW}").startswith("450")
        server.kill_session(victim)
        await_true(lambda: victim not in children(server.pid))
        assert retrieve(other, f"{ocean_file};sql={FEW}") == local_result(ocean_file, FEW)
        data.close()
        first.close()


def test_a_client_that_takes_nothing_holds_nothing(share, ocean_file):
    with Limited(share, total_queries=1, stall_limit=1) as limited:
        first, data = limited.hold(ocean_file)
        other = limited.server.session()
        await_true(lambda: reply(other, f"SIZE {ocean_file};sql={FEW}").startswith("213"))
        with (
            data,
            pytest.raises(ftplib.error_temp, match="the client took nothing for this server's 1 seconds"),
        ):
            finish(first, data)
        assert retrieve(first, f"{ocean_file};sql={FEW}") == local_result(ocean_file, FEW)


def test_a_question_waits_for_its_turn(share, ocean_file):
    with Limited(share, total_queries=1, wait=DEADLINE) as limited:
        first, data = limited.hold(ocean_file)
        other = limited.server.session()
        other.putcmd(f"SIZE {ocean_file};sql={MANY}")
        with data:
            finish(first, data)
        assert other.getresp() == f"213 {len(local_result(ocean_file, MANY))}"


def spooled(server):
    """Return the bytes that sessions have in the spool."""
    found = 0
    for pid in engines(server):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if ".sieva-" in os.readlink(link):  # noqa: PTH115
                    found += link.stat().st_size
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can look into sessions of another user")
def test_an_idle_session_gives_its_spool_back(share, ocean_file):
    with Limited(share, keep=1) as limited:
        session = limited.server.session()
        for sql in (MANY, MANY + " AND z_t > 1"):
            size = session.size(f"{ocean_file};sql={sql};format=csv")
            assert spooled(limited.server) == size  # never two
        await_true(lambda: spooled(limited.server) == 0)
        assert session.size(f"{ocean_file};sql={MANY};format=csv") > 0


def test_the_spool_of_all_sessions_is_bounded(share, ocean_file):
    size = len(local_result(ocean_file, MANY, "csv"))
    limits = {"spool_limit": size + 1000, "total_spool": 2 * size, "keep": 2}
    with Limited(share, **limits) as limited:
        first, second = limited.server.session(), limited.server.session()
        path = f"{ocean_file};sql={MANY};format=csv"
        assert first.size(path) == size
        assert reply(second, f"SIZE {path}").startswith("450")
        assert second.size(path.replace("csv", "netcdf")) == len(local_result(ocean_file, MANY))
        await_true(lambda: reply(second, f"SIZE {path}") == f"213 {size}")


def test_what_cannot_be_kept_is_not_tried(share, ocean_file):
    place = share / "open-to-all"
    place.mkdir(exist_ok=True)
    place.chmod(0o777)
    with Server(share, settings={"SIEVA_GRIDFTP_SESSIONS": str(place)}) as server:
        session = server.session()
        said = reply(session, f"SIZE {ocean_file};sql={FEW}")
        assert said.startswith("451")
        assert "cannot keep its limits" in said
        assert "others than its owner may enter it; hint: the setting `sessions`" in server.log()
        assert retrieve(session, ocean_file) == ocean_file.read_bytes()
    assert not list(place.iterdir())


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("TIME_LIMIT", "soon", "expected a number of seconds up to 1000000, got `soon`"),
        ("KEEP", "5M", "expected a number of seconds"),
        ("TOTAL_MEMORY", "-1", "expected a number of bytes"),
        ("MEMORY", "0", "must not be 0: `memory, spool_limit`"),
    ],
)
def test_wrong_limits(share, ocean_file, name, value, told):
    with Server(share, settings={f"SIEVA_GRIDFTP_{name}": value}) as server:
        session = server.session()
        said = reply(session, f"SIZE {ocean_file};sql={FEW}")
        assert said.startswith("451")
        assert told in said
