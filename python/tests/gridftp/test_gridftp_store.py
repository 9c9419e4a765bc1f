"""Uploads are indexed in the background when they are whole, and not before."""

import contextlib
import ftplib
import io
import json
import shutil
import struct
import subprocess
import sys
import time

import pytest
from conftest import FEW
from gridftp_server import Server, copy, retrieve
from local_result import local_result

SECONDS = 60


def await_log(path, words, *, times=1):
    """Wait until a log says something so many times."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        text = path.read_text() if path.exists() else ""
        if text.count(words) >= times:
            return text
        time.sleep(0.05)
    raise AssertionError(f"no {words!r} in {SECONDS} s: {text}")


@pytest.fixture
def stored(share, tmp_path):
    """Return a directory for uploads, and the settings of a server that indexes them."""
    directory = share / tmp_path.name
    directory.mkdir()
    directory.chmod(0o777)
    # The session's user may not be allowed to run this interpreter: a script notes what it is asked for.
    program = directory / "sieva"
    program.write_text('#!/bin/sh\n[ -e "$(dirname "$0")/slow" ] && sleep 1\necho "asked: $*"\n')
    program.chmod(0o755)
    settings = {
        "SIEVA_GRIDFTP_INDEX": "yes",
        "SIEVA_GRIDFTP_PROGRAM": str(program),
        "SIEVA_GRIDFTP_LOG": str(directory / "log"),
        "SIEVA_GRIDFTP_LOCK": str(directory),
    }
    yield directory, settings
    shutil.rmtree(directory)


@pytest.mark.parametrize("options", [(), ("-p", 4)])
def test_an_upload_is_indexed(share, stored, ocean_file, options):
    directory, settings = stored
    path = directory / "new.nc"
    with Server(share, settings=settings) as server:
        copy(*options, f"file://{ocean_file}", server.url(path))
        log = await_log(directory / "log", ": indexed")
    assert f"asked: index {path} --isolated\n" in log
    assert "catalog" not in log


def test_a_catalog_comes_first(share, stored, ocean_file):
    directory, settings = stored
    path = directory / "new.nc"
    with Server(
        share, settings={**settings, "SIEVA_GRIDFTP_CATALOG": "c.db", "SIEVA_GRIDFTP_ISOLATED": "no"}
    ) as server:
        copy(f"file://{ocean_file}", server.url(path))
        log = await_log(directory / "log", ": indexed")
    asked = [line for line in log.splitlines() if line.startswith("asked: ")]
    assert asked == [f"asked: catalog add {path} --catalog c.db", f"asked: index {path}"]


def test_the_index_answers(share, stored, ocean_file):
    """With this package's own program, run by the user of the test."""
    directory, settings = stored
    real = directory / "run"
    real.write_text(f'#!/bin/sh\nexec {sys.executable} -m sieva "$@"\n')
    real.chmod(0o755)
    path = directory / ocean_file.name
    with Server(share, settings={**settings, "SIEVA_GRIDFTP_INDEX": "no"}) as server:
        copy(f"file://{ocean_file}", server.url(path))
    subprocess.run([real, "index", path], check=True, capture_output=True)
    with Server(share) as server:
        session = server.session()
        assert retrieve(session, f"{path};sql={FEW}") == local_result(ocean_file, FEW)
        session.close()


def _leave(session, path, how):
    """Begin an upload, and end it before its end."""
    if how == "extended":  # a block that is announced longer than it is, in a connection that then ends
        session.sendcmd("MODE E")
    connection = session.transfercmd(f"STOR {path}")
    connection.sendall((b"\0" + struct.pack(">QQ", 10**6, 0) if how == "extended" else b"") + b"x" * 100_000)
    time.sleep(0.2)
    with contextlib.suppress(EOFError, OSError, ftplib.Error):
        if how == "abort":
            session.sock.sendall(b"ABOR\r\n")
            session.getmultiline()
        elif how == "leave":
            session.sock.close()
            time.sleep(0.2)
    connection.close()
    if how == "extended":
        with pytest.raises(ftplib.Error):
            session.voidresp()
    session.close()


def test_aborted_uploads_start_nothing(share, stored, ocean_file):
    directory, settings = stored
    with Server(share, settings=settings) as server:
        for how in ("abort", "leave", "extended"):
            _leave(server.session(), directory / f"{how}.nc", how)
        copy(f"file://{ocean_file}", server.url(f"{directory}/missing/new.nc"), check=False)
        copy(f"file://{ocean_file}", server.url(directory / "whole.nc"))
        log = await_log(directory / "log", ": indexed")
    assert [line for line in log.splitlines() if "whole.nc" not in line] == []


def test_downloads_and_settings_start_nothing(share, stored, ocean_file):
    directory, settings = stored
    with Server(share, settings=settings) as server:
        session = server.session()
        retrieve(session, ocean_file)
        retrieve(session, f"{ocean_file};sql={FEW}")
        session.close()
    with Server(share, settings={**settings, "SIEVA_GRIDFTP_INDEX": "no"}) as server:
        copy(f"file://{ocean_file}", server.url(directory / "new.nc"))
    time.sleep(0.3)
    assert not (directory / "log").exists()


def test_many_uploads_of_one_file_are_indexed_once(share, stored, ocean_file):
    directory, settings = stored
    (directory / "slow").touch()
    path = directory / "again.nc"
    content = ocean_file.read_bytes()
    with Server(share, settings=settings) as server:
        session = server.session()
        # The first holds the lock; of the others, only the last finds the file as it left it.
        session.storbinary(f"STOR {directory}/first.nc", io.BytesIO(content))
        await_log(directory / "log", "", times=0)
        time.sleep(0.2)
        for number in range(4):
            session.storbinary(f"STOR {path}", io.BytesIO(content + bytes(number)))
        began = time.monotonic()
        assert retrieve(session, ocean_file) == content
        assert time.monotonic() - began < SECONDS
        log = await_log(directory / "log", "again.nc: indexed")
        log = await_log(directory / "log", "changed or removed meanwhile", times=3)
        session.close()
    assert log.count(f"asked: index {path}") == 1


def test_indexing_is_of_the_lowest_priority(share, stored, ocean_file):
    directory, settings = stored
    program = directory / "sieva"
    program.write_text("#!/bin/sh\necho nice $(nice) $(ps -o pid= -o ppid= -p $$ | wc -l)\n")
    with Server(share, settings=settings) as server:
        copy(f"file://{ocean_file}", server.url(directory / "new.nc"))
        log = await_log(directory / "log", ": indexed")
    assert "nice 19 " in log


def test_the_next_session_is_served_meanwhile(share, stored, ocean_file):
    directory, settings = stored
    (directory / "slow").touch()
    with Server(share, settings=settings) as server:
        copy(f"file://{ocean_file}", server.url(directory / "new.nc"))
        session = server.session()
        described = json.loads(retrieve(session, f"{ocean_file};sql={FEW};describe"))
        assert described["rows"] > 100
        session.close()
        await_log(directory / "log", ": indexed")
