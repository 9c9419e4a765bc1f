"""A session or a worker that dies takes nothing else with it."""

import ftplib
import os
import sys
from pathlib import Path

import pytest
import sieva
from conftest import FEW, MANY
from gridftp_server import Server, copy, retrieve
from local_result import local_result
from test_gridftp_store import await_log

# Longer than the buffers between server and client, so that a session that nobody reads waits.
LONG = "SELECT " + ", ".join(f"TEMP + {i} AS t{i}" for i in range(40))


def children(pid):
    """Return the processes that a process has started, and those that they have."""
    listing = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        found = [int(child) for child in listing.read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return found + [below for child in found for below in children(child)]


def has_engine(pid):
    """Return whether a process has loaded the query engine."""
    try:
        return "libsieva_c" in Path(f"/proc/{pid}/maps").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def finish(session, data):
    """Take what is left of a transfer, and the reply."""
    while data.recv(1 << 16):
        pass
    session.voidresp()


def test_a_session_that_crashes_ends_alone(share, ocean_file):
    wanted = local_result(ocean_file, MANY)
    with Server(share) as server:
        first = server.session()
        assert retrieve(first, f"{ocean_file};sql={FEW}") == local_result(ocean_file, FEW)
        # The one session that has been asked: connections that were mere looks may still be there.
        [victim] = [pid for pid in children(server.pid) if has_engine(pid)]
        other = server.session()
        assert retrieve(other, f"{ocean_file};sql={MANY}") == wanted
        data = first.transfercmd(f"RETR {ocean_file};sql={LONG}")
        assert len(data.recv(1000)) > 0
        server.kill_session(victim)
        with pytest.raises((ftplib.Error, EOFError, OSError)):
            finish(first, data)
        data.close()
        first.close()
        assert retrieve(other, f"{ocean_file};sql={MANY}") == wanted
        again = server.session()
        assert retrieve(again, f"{ocean_file};sql={FEW}") == local_result(ocean_file, FEW)
        for session in (other, again):
            session.close()


def test_a_worker_that_dies_is_a_reply(share, ocean_file):
    """The process that parses the file: here one that is killed as by a crash of a library."""
    worker = share / "worker-that-dies"
    worker.write_text("#!/bin/sh\nkill -KILL $$\n")
    worker.chmod(0o755)
    with Server(share, settings={"SIEVA_GRIDFTP_WORKER": str(worker)}) as server:
        session = server.session()
        with pytest.raises(ftplib.error_perm, match=r"(?s)^550.*corrupt-file"):
            retrieve(session, f"{ocean_file};sql={FEW}")
        # The session goes on.
        assert retrieve(session, str(ocean_file)) == ocean_file.read_bytes()
        session.close()
    worker.unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="sessions of others cannot run this interpreter")
def test_an_upload_is_registered_and_indexed_by_the_real_program(share, ocean_file, tmp_path):
    program, log = tmp_path / "sieva", tmp_path / "log"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m sieva "$@"\n')
    program.chmod(0o755)
    catalog, path = tmp_path / "catalog.sqlite", tmp_path / "new.nc"
    settings = {
        "SIEVA_GRIDFTP_INDEX": "yes",
        "SIEVA_GRIDFTP_PROGRAM": str(program),
        "SIEVA_GRIDFTP_LOG": str(log),
        "SIEVA_GRIDFTP_CATALOG": str(catalog),
        "PYTHONPATH": str(Path(sieva.__file__).parents[1]),
    }
    with Server(share, ("-anonymous-user", "root", "-allow-root"), settings=settings) as server:
        copy("-p", 2, f"file://{ocean_file}", server.url(path))
        await_log(log, f'{path}": indexed')
        status = {one.path: one for one in sieva.open(path).index_status().arrays}
        assert status["TEMP"].with_bitmap == status["TEMP"].regions > 0
        assert [found.location for found in sieva.Catalog(catalog).list()] == [str(path)]
        session = server.session()
        assert retrieve(session, f"{path};sql={FEW}") == local_result(path, FEW)
        session.close()
