"""Who asks: anonymous, by password, or by certificate; the log tells, and the result is the same."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import time

import pytest
import sieva
from conftest import FEW, MANY
from gridftp_server import SECONDS, Server, copy, fetch, retrieve
from local_result import local_result

GSI_PROGRAMS = ("openssl", "grid-proxy-init")


def test_anonymous(server, ocean_file):
    session = server.session()
    retrieve(session, f"{ocean_file};sql={FEW}")
    request = server.requests()[-1]
    assert request["user"] == ("nobody" if os.geteuid() == 0 else os.environ.get("USER", request["user"]))
    session.close()


def _crypt(word):
    done = subprocess.run(
        ["perl", "-e", "print crypt($ARGV[0], 'ab')", word], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.skipif(not shutil.which("perl"), reason="perl makes the password file")
def test_password(share, ocean_file, target):
    path = share / "passwords"
    # Of the user that the sessions get; a uid of root's own choice where root runs the server.
    uid, gid = (65534, 65534) if os.geteuid() == 0 else (os.getuid(), os.getgid())
    name = "nobody" if os.geteuid() == 0 else os.environ["USER"]
    path.write_text(f"{name}:{_crypt('secret')}:{uid}:{gid}::{share}:/bin/sh\n")
    path.chmod(0o600)
    with Server(share, ("-password-file", str(path)), anonymous=False) as server:
        url = server.url(ocean_file, f";sql={FEW}", login=f"{name}:secret@")
        assert fetch(url, target) == local_result(ocean_file, FEW)
        assert server.requests()[-1]["user"] == name
        wrong = copy(
            server.url(ocean_file, f";sql={FEW}", login=f"{name}:wrong@"), f"file://{target}", check=False
        )
        assert wrong.returncode == 1


def _openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


class Grid:
    """An authority, a host's certificate, a user's certificate and proxy."""

    USER = "/O=Grid/OU=Test/CN=Ada Lovelace"

    def __init__(self, directory):
        self.directory = directory
        self.trusted = directory / "certificates"
        self.trusted.mkdir()
        self._make_authority()
        self.host = self._certificate("host", "/O=Grid/OU=Test/CN=localhost", "DNS:localhost,IP:127.0.0.1")
        self.user = self._certificate("user", self.USER, None)
        self.map = directory / "grid-mapfile"
        self.map.write_text(f'"{self.USER}" {"nobody" if os.geteuid() == 0 else os.environ["USER"]}\n')
        self.proxy = directory / "proxy"
        subprocess.run(
            ["grid-proxy-init", "-valid", "2:00", "-out", self.proxy],
            env={**os.environ, **self.client()},
            check=True,
            capture_output=True,
        )

    def _make_authority(self):
        name = "/O=Grid/OU=Test/CN=Authority of a test"
        key, certificate = self.directory / "ca.key", self.directory / "ca.pem"
        _openssl(
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            2,
            "-subj",
            name,
            "-keyout",
            key,
            "-out",
            certificate,
        )
        done = subprocess.run(
            ["openssl", "x509", "-hash", "-noout", "-in", certificate],
            check=True,
            capture_output=True,
            text=True,
        )
        digest = done.stdout.strip()
        shutil.copy(certificate, self.trusted / f"{digest}.0")
        policy = f"access_id_CA X509 '{name}'\npos_rights globus CA:sign\n"
        (self.trusted / f"{digest}.signing_policy").write_text(
            policy + "cond_subjects globus '\"/O=Grid/OU=Test/*\"'\n"
        )

    def _certificate(self, name, subject, alternatives):
        key, request, certificate = (self.directory / f"{name}.{suffix}" for suffix in ("key", "csr", "pem"))
        extensions = self.directory / f"{name}.ext"
        extensions.write_text(
            f"subjectAltName={alternatives}\n" if alternatives else "keyUsage=digitalSignature\n"
        )
        _openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", subject, "-keyout", key, "-out", request)
        authority = ("-CA", self.directory / "ca.pem", "-CAkey", self.directory / "ca.key", "-CAcreateserial")
        _openssl(
            "x509",
            "-req",
            "-in",
            request,
            *authority,
            "-days",
            2,
            "-extfile",
            extensions,
            "-out",
            certificate,
        )
        key.chmod(0o400)
        return certificate, key

    def server(self):
        """Return the environment of a server."""
        certificate, key = map(str, self.host)
        return {
            "X509_CERT_DIR": str(self.trusted),
            "X509_USER_CERT": certificate,
            "X509_USER_KEY": key,
            "GRIDMAP": str(self.map),
        }

    def client(self):
        """Return the environment of a client."""
        certificate, key = map(str, self.user)
        return {
            "X509_CERT_DIR": str(self.trusted),
            "X509_USER_CERT": certificate,
            "X509_USER_KEY": key,
            "X509_USER_PROXY": str(self.directory / "proxy"),
        }


@pytest.fixture(scope="module")
def grid(share):
    """Return certificates of this test's own."""
    if missing := [name for name in GSI_PROGRAMS if not shutil.which(name)]:
        pytest.skip(f"no {', '.join(missing)}: `make gridftp-packages` installs them")
    directory = share / "grid"
    directory.mkdir()
    return Grid(directory)


@pytest.mark.parametrize("options", [(), ("-p", 4), ("-p", 2, "-dcpriv")])
def test_certificate(share, ocean_file, target, grid, options):
    with Server(share, anonymous=False, settings=grid.server()) as server:
        url = server.url(ocean_file, f";sql={MANY}", scheme="gsiftp", host="localhost")
        got = fetch(url, target, *options, environment=grid.client())
        assert got == local_result(ocean_file, MANY)
        request = server.requests()[-1]
        assert request["dn"] == Grid.USER


def test_certificate_and_the_client_of_sieva(share, ocean_file, target, grid):
    """``sieva get`` and ``FROM 'gsiftp://...'``, with the certificate that globus-url-copy finds."""
    environment = {**os.environ, **grid.client()}
    with Server(share, anonymous=False, settings=grid.server()) as server:
        url = server.url(ocean_file, scheme="gsiftp", host="localhost")
        command = [sys.executable, "-m", "sieva", "get", url, FEW, "-o", target.with_suffix(".nc")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert target.with_suffix(".nc").read_bytes() == local_result(ocean_file, FEW)
        sql = f"SELECT count(*) AS n FROM '{url}' WHERE TEMP > 20"
        command = [sys.executable, "-m", "sieva", "query", sql, "--format", "csv"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert int(done.stdout.split()[1]) == sieva.open(ocean_file).query("TEMP > 20").count()
        assert {request["dn"] for request in server.requests()} == {Grid.USER}


def test_certificate_and_eret(share, ocean_file, target, grid):
    with Server(share, dsi="file", anonymous=False, settings=grid.server()) as server:
        url = server.url(ocean_file, scheme="gsiftp", host="localhost")
        got = fetch(url, target, "-smn", "sieva", "-smp", FEW, environment=grid.client())
        assert got == local_result(ocean_file, FEW)
        assert server.requests()[-1]["dn"] == Grid.USER


def test_the_engine_notes_who_asked(share, ocean_file, target, grid):
    """What is noted of uses, for advice, bears the identity that the server found out."""
    notes = share / "notes"
    notes.mkdir()
    notes.chmod(0o777)
    asked_by = {}
    for name, is_proved in (("proved", True), ("anonymous", False)):
        catalog = notes / f"{name}.db"
        settings = {
            "SIEVA_GRIDFTP_STORE": str(notes / f"{name}-store"),
            "SIEVA_GRIDFTP_CATALOG": str(catalog),
            **(grid.server() if is_proved else {}),
        }
        with Server(share, anonymous=not is_proved, settings=settings) as server:
            if is_proved:
                url = server.url(ocean_file, f";sql={FEW}", scheme="gsiftp", host="localhost")
                fetch(url, target, environment=grid.client())
            else:
                session = server.session()
                retrieve(session, f"{ocean_file};sql={FEW}")
                session.quit()
            asked_by[name] = _noted(catalog)
            user = server.requests()[-1]["user"]
    assert asked_by == {"proved": {(Grid.USER, "TEMP")}, "anonymous": {(user, "TEMP")}}


def _noted(catalog):
    """Return who asked for which array, once it is written: within seconds of the query."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        if catalog.exists():
            database = sqlite3.connect(f"file:{catalog}?mode=ro", uri=True)
            with contextlib.closing(database), contextlib.suppress(sqlite3.OperationalError):
                if found := database.execute("SELECT asked_by, path FROM usage").fetchall():
                    return set(found)
        time.sleep(0.05)
    return set()
