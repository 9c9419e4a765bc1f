"""Uploads are indexed in the background when they are whole, and not before."""

import contextlib
import ftplib
import io
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import time

import pytest
from conftest import FEW
from gridftp_server import ROOT, TARGET, Server, copy, retrieve
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
    assert f": asked: index {path} --isolated\n" in log
    assert "catalog" not in log


def test_a_catalog_comes_first(share, stored, ocean_file):
    directory, settings = stored
    path = directory / "new.nc"
    with Server(
        share, settings={**settings, "SIEVA_GRIDFTP_CATALOG": "c.db", "SIEVA_GRIDFTP_ISOLATED": "no"}
    ) as server:
        copy(f"file://{ocean_file}", server.url(path))
        log = await_log(directory / "log", ": indexed")
    asked = [line.partition('": ')[2] for line in log.splitlines() if "asked: " in line]
    assert asked == [f"asked: catalog add {path} --catalog c.db", f"asked: index {path}"]


def test_the_log_of_indexing_says_when_and_for_whom(share, stored, ocean_file):
    directory, settings = stored
    path = directory / "new.nc"
    with Server(share, settings=settings) as server:
        copy(f"file://{ocean_file}", server.url(path))
        log = await_log(directory / "log", ": indexed")
    user = "nobody" if os.geteuid() == 0 else '[^"]+'
    head = rf'\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ user="{user}" dn="-" path="{path}": '
    assert [bool(re.match(head, line)) for line in log.splitlines()] == [True, True]


@pytest.mark.parametrize("kept", [True, False])
def test_failures_are_in_the_servers_log(share, stored, ocean_file, kept):
    directory, settings = stored
    program = directory / "sieva"
    program.write_text("#!/bin/sh\necho begun\necho 'io-error: the disk\033[2J is full' >&2\nexit 3\n")
    if not kept:
        del settings["SIEVA_GRIDFTP_LOG"]
    path = directory / "new.nc"
    with Server(share, settings=settings, level="ERROR") as server:
        copy(f"file://{ocean_file}", server.url(path))
        log = await_log(server.log_path, "INDEX")
    [line] = [line for line in log.splitlines() if "INDEX" in line]
    assert re.match(r"\[\d+\] \w{3} \w{3} .* :: sieva: INDEX user=", line)
    assert f'path="{path}"' in line
    assert line.endswith("result=not indexed: begun io-error: the disk [2J is full")
    assert (directory / "log").exists() == kept


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"PROGRAM": "/nonexistent/sieva"}, "cannot run `/nonexistent/sieva`: No such file"),
        (
            {"LOG": "/nonexistent/log"},
            "the log of indexing cannot be written: /nonexistent/log: No such file",
        ),
    ],
)
def test_wrong_settings_of_indexing_are_in_the_servers_log(share, stored, ocean_file, wrong, told):
    directory, settings = stored
    settings |= {f"SIEVA_GRIDFTP_{name}": value for name, value in wrong.items()}
    with Server(share, settings=settings, level="ERROR") as server:
        copy(f"file://{ocean_file}", server.url(directory / "new.nc"))
        assert told in await_log(server.log_path, told)


def test_nobody_else_can_hold_the_lock(share, stored, ocean_file):
    directory, settings = stored
    with Server(share, settings=settings) as server:
        copy(f"file://{ocean_file}", server.url(directory / "new.nc"))
        await_log(directory / "log", ": indexed")
        modes = [
            path.stat().st_mode & 0o777 for path in (server.sessions_path, server.sessions_path / "indexing")
        ]
    assert modes == [0o700, 0o600]
    assert not [path for path in directory.iterdir() if "lock" in path.name]


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
            # Closing it would leave it open: the session's file has it, too.
            session.sock.shutdown(socket.SHUT_RDWR)
            time.sleep(1)
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
        log = await_log(directory / "log", 'again.nc": indexed')
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


@pytest.mark.skipif(not list(TARGET.glob("wheels/sieva-*.whl")), reason="no wheel: `make gridftp` makes it")
def test_what_is_installed_indexes_uploads(share, stored, ocean_file):
    """The plug-in, the engine, the worker and the program, where the plug-in finds them without a setting."""
    directory, settings = stored
    places = [f"LIBDIR={directory}/lib", f"BINDIR={directory}/bin", f"PYTHON={sys.executable}"]
    words = ["make", "-s", "-C", ROOT / "plugins" / "gridftp", "install", *places, "PIP_FLAGS=--no-deps"]
    subprocess.run(words, check=True, env={**os.environ, "CARGO_TARGET_DIR": str(TARGET)})
    asked = subprocess.run(
        [directory / "bin" / "sieva", "--version"], check=True, capture_output=True, text=True
    )
    assert "0.1.0" in asked.stdout
    # The session's user may not be allowed to run this interpreter.
    program = directory / "lib" / "sieva" / "bin" / "sieva"
    program.write_text('#!/bin/sh\necho "installed: $*"\n')
    del settings["SIEVA_GRIDFTP_PROGRAM"]
    settings["LD_LIBRARY_PATH"] = str(directory / "lib")
    path = directory / "new.nc"
    with Server(share, settings=settings) as server:
        copy(f"file://{ocean_file}", server.url(path))
        log = await_log(directory / "log", ": indexed")
    assert f": installed: index {path} --isolated\n" in log
