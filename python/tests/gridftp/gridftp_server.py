"""The Globus GridFTP server with the plug-in as a process: started on a free port, stopped by its id."""

from __future__ import annotations

import ftplib
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from services.processes import free_ports

ROOT = Path(__file__).resolve().parents[3]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
PLUGIN = TARGET / "gridftp" / "libglobus_gridftp_server_sieva.so"
LIBRARY = TARGET / "release" / "libsieva_c.so"
WORKER = TARGET / "release" / "sieva-worker"
PROGRAMS = ("globus-gridftp-server", "globus-url-copy")
SECONDS = 30


def require_plugin():
    """Skip where the server or the plug-in is missing, and say how to get them."""
    if missing := [name for name in PROGRAMS if not shutil.which(name)]:
        pytest.skip(f"no {', '.join(missing)}: `make gridftp-packages` installs them")
    if missing := [path.name for path in (PLUGIN, LIBRARY, WORKER) if not path.exists()]:
        pytest.skip(f"no {', '.join(missing)} in {TARGET}: `make gridftp` builds them")


class Server:
    """A server that is up, and its log.

    Parameters
    ----------
    directory
        For its log and configuration.
    options
        Of the command line, beside those that every server here gets.
    dsi
        Of the sessions.
    anonymous
        Whether anybody may log in as ``anonymous``.
    settings
        Environment variables.
    level
        Of what the log keeps.
    """

    def __init__(self, directory, options=(), *, dsi="sieva", anonymous=True, settings=None, level="ALL"):
        [self.port] = free_ports(1)
        self._sessions = []
        self.killed = set()
        self.log_path = directory / f"gridftp-{self.port}.log"
        # A port may have been another server's before, whose log would go on.
        self.log_path.unlink(missing_ok=True)
        self.sessions_path = directory / f"sessions-{self.port}"
        command = ["globus-gridftp-server", "-c", "none", "-p", str(self.port), "-no-cas"]
        command += ["-control-interface", "127.0.0.1", "-data-interface", "127.0.0.1"]
        command += ["-allowed-modules", "sieva", "-dsi", dsi]
        command += ["-d", level] if level != "ERROR" else []  # which is the default
        command += ["-l", str(self.log_path), "-log-module", "stdio:buffer=0"]
        if anonymous:
            command += ["-aa", *(["-anonymous-user", "nobody"] if os.geteuid() == 0 else [])]
        environment = {
            **os.environ,
            "LD_LIBRARY_PATH": str(PLUGIN.parent),
            "SIEVA_GRIDFTP_LIBRARY": str(LIBRARY),
            "SIEVA_GRIDFTP_WORKER": str(WORKER),
            "SIEVA_GRIDFTP_SESSIONS": str(self.sessions_path),
            **(settings or {}),
        }
        self._process = subprocess.Popen(
            [*command, *options],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self._await()

    def _await(self):
        until = time.monotonic() + SECONDS
        while time.monotonic() < until and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        self._process.kill()
        raise RuntimeError(f"the server did not start: {self._process.stderr.read().decode()}")

    def kill_session(self, number):
        """End a session as a crash would, which the end of the test then expects."""
        self.killed.add(str(number))
        os.kill(number, signal.SIGSEGV)

    @property
    def pid(self):
        """The number of its process, whose children are the sessions."""
        return self._process.pid

    def stop(self):
        """End it and wait for that; close the sessions that a test left open."""
        for session in self._sessions:
            session.close()
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stderr.close()
        crashed = re.findall(r"Child process (\d+) ended with rc = (?!0\b).*", self.log())
        assert set(crashed) <= self.killed, crashed

    def __enter__(self):
        return self

    def __exit__(self, *error):
        time.sleep(0.1)  # what the last session's end says is still to come
        self.stop()

    def url(self, path, question="", *, scheme="ftp", login="", host="127.0.0.1"):
        """Return the URL of a path here, with a question behind it: globus-url-copy takes no bare `<`."""
        return f"{scheme}://{login}{host}:{self.port}{path}{quote(question, safe=';=&, ')}"

    def session(self, user="anonymous", password="somebody@"):  # noqa: S107 - of nobody
        """Return a session of Python's client, for binary transfers."""
        session = ftplib.FTP(timeout=SECONDS)
        self._sessions.append(session)
        session.connect("127.0.0.1", self.port)
        session.login(user, password)
        session.voidcmd("TYPE I")
        return session

    def requests(self):
        """Return what the log says of questions: a mapping for each."""
        line = re.compile(
            r'sieva: (?P<verb>[A-Z]+) user="(?P<user>[^"]*)" dn="(?P<dn>[^"]*)" path="(?P<path>[^"]*)" '
            r'sql="(?P<sql>.*)" format=(?P<format>\S+) rows=(?P<rows>\d+) bytes=(?P<bytes>\d+) '
            r"seconds=(?P<seconds>[\d.]+) result=(?P<result>.*)"
        )
        return [found.groupdict() for found in line.finditer(self.log())]

    def log(self):
        """Return the log's text."""
        return self.log_path.read_text(errors="replace")


def copy(*words, check=True, environment=None):
    """Run globus-url-copy; return what it said, which is its complaint if it failed."""
    done = subprocess.run(
        ["globus-url-copy", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    if check:
        assert done.returncode == 0, done.stderr
    return done


def fetch(url, target, *options, environment=None):
    """Return the bytes that globus-url-copy gets from a URL by way of a file."""
    target.unlink(missing_ok=True)
    copy(*options, url, f"file://{target}", environment=environment)
    return target.read_bytes()


def fetch_part(url, target, offset, length, *options):
    """Return what globus-url-copy gets of a part; it leaves it where it was, behind a hole."""
    got = fetch(url, target, *options, "-off", offset, "-len", length)
    assert not any(got[:offset])
    return got[offset:]


def retrieve(session, path, **options):
    """Return the bytes that RETR gives."""
    blocks = []
    session.retrbinary(f"RETR {path}", blocks.append, **options)
    return b"".join(blocks)


def reply(session, command):
    """Return the reply to a command, whatever it is."""
    try:
        return session.sendcmd(command)
    except ftplib.Error as e:
        return str(e)
