"""What is wrong with a request is told by its reply: a code, and a text that says what to mend."""

import ftplib
import os

import pytest
from conftest import FEW
from gridftp_server import Server, copy, reply, retrieve

QUERIES = [
    ("SELECT TEMP WHER TEMP > 5", "501", "SYNTAX_ERROR", "WHER"),
    ("SELECT TEMP WHERE TEMP >", "501", "SYNTAX_ERROR", "syntax-error"),
    ("SELECT TMP WHERE TEMP > 5", "501", "UNKNOWN_ARRAY", "TEMP"),
    ("SELECT TEMP WHERE nosuch(TEMP) > 5", "501", "UNKNOWN_FUNCTION", "nosuch"),
    ("SELECT TEMP WHERE TEMP > 'warm'", "501", "TYPE_MISMATCH", "TEMP"),
    ("SELECT TEMP FROM 'other.nc' WHERE TEMP > 5", "501", "SYNTAX_ERROR", "FROM"),
    ("", "501", "SYNTAX_ERROR", "the query is empty"),
]


@pytest.mark.parametrize(("sql", "code", "name", "told"), QUERIES)
def test_wrong_queries(session, ocean_file, *, sql, code, name, told):
    said = reply(session, f"SIZE {ocean_file};sql={sql}")
    assert said.startswith(code)
    assert f"c={name}" in said
    assert told in said
    with pytest.raises(ftplib.error_perm) as caught:
        retrieve(session, f"{ocean_file};sql={sql}")
    assert str(caught.value) == said


def test_globus_url_copy_shows_the_text(server, ocean_file, target):
    done = copy(server.url(ocean_file, ";sql=SELECT TEMP WHER x"), f"file://{target}", check=False)
    assert done.returncode == 1
    assert "syntax-error" in done.stderr
    assert "WHER" in done.stderr


def test_the_position_is_told(session, ocean_file):
    text = "SELECT TEMP WHERE TEMP >> 5"
    assert str(text.index(">>") + 2) in reply(session, f"SIZE {ocean_file};sql={text}")


def test_files_that_are_not_there(session, share):
    for path in (share / "none.nc", share / "none" / "none.nc"):
        said = reply(session, f"SIZE {path};sql={FEW}")
        assert said.startswith("550")
        assert "file-not-found" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files that the server's user cannot read")
def test_files_that_may_not_be_read(session, share, ocean_file):
    path = share / "private.nc"
    path.write_bytes(ocean_file.read_bytes())
    path.chmod(0o600)
    said = reply(session, f"SIZE {path};sql={FEW}")
    assert said.startswith("550")
    assert "permission-denied" in said


def test_files_that_are_no_data(session, share):
    path = share / "notes.txt"
    path.write_text("nothing but text\n")
    said = reply(session, f"SIZE {path};sql={FEW}")
    assert said.startswith("550")
    assert "unknown-format" in said


def test_more_than_the_memory_limit(share, ocean_file):
    with Server(share, settings={"SIEVA_GRIDFTP_MEMORY": "20000"}) as server:
        session = server.session()
        said = reply(session, f"SIZE {ocean_file};sql=SELECT TEMP, SALT WHERE TEMP > -1000 ORDER BY SALT")
        assert said.startswith("552")
        assert "memory-limit" in said
        assert "hint: ask for fewer columns" in said
        assert "--" not in said.partition("hint:")[2]
        session.close()


def test_the_servers_own_paths_stay_its_own(share, ocean_file, tmp_path):
    """Where a link leads, where results are spooled: the log has that."""
    directory = share / tmp_path.name
    (directory / "inside").mkdir(parents=True)
    damaged = directory / "inside" / "damaged.nc"
    damaged.write_bytes(ocean_file.read_bytes()[:3000])
    link = directory / "link.nc"
    link.symlink_to(damaged)
    spool = directory / "missing"
    with Server(share, settings={"SIEVA_GRIDFTP_SPOOL": str(spool)}, level="ERROR") as server:
        session = server.session()
        for question in (f"{link};sql=TEMP > 1", f"{link};schema", f"{ocean_file};sql={FEW};format=csv"):
            with pytest.raises(ftplib.Error) as caught:
                retrieve(session, question)
            assert "inside" not in str(caught.value)
            assert str(spool) not in str(caught.value)
        session.close()
        assert str(spool) in server.log()


def test_more_than_the_spool_limit(share, ocean_file):
    with Server(share, settings={"SIEVA_GRIDFTP_SPOOL_LIMIT": "1000"}) as server:
        session = server.session()
        said = reply(session, f"SIZE {ocean_file};sql={FEW};format=csv")
        assert said.startswith("552")
        assert "memory-limit" in said
        session.close()


def test_a_result_cannot_be_stored_to(session, ocean_file, share):
    before = set(share.iterdir())
    for path in (f"{ocean_file};sql={FEW}", f"{share}/new.nc?sql={FEW}"):
        with pytest.raises(ftplib.error_perm, match="553"), open(__file__, "rb") as file:  # noqa: PTH123
            session.storbinary(f"STOR {path}", file)
    assert set(share.iterdir()) == before


def test_a_session_goes_on_after_errors(session, ocean_file):
    for _ in range(5):
        reply(session, f"SIZE {ocean_file};sql=SELECT")
    assert retrieve(session, ocean_file) == ocean_file.read_bytes()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"SIEVA_GRIDFTP_MEMORY": "plenty"}, "SIEVA_GRIDFTP_MEMORY: expected a number of bytes such as 512M"),
        ({"SIEVA_GRIDFTP_ISOLATED": "perhaps"}, "expected yes or no"),
        ({"SIEVA_GRIDFTP_CONF": "/nonexistent/gridftp.conf"}, "/nonexistent/gridftp.conf: cannot be read"),
        ({"SIEVA_GRIDFTP_LIBRARY": "/nonexistent/libsieva_c.so"}, "cannot load its query engine"),
    ],
)
def test_wrong_settings_refuse_queries_and_serve_files(share, ocean_file, settings, told):
    with Server(share, settings=settings) as server:
        session = server.session()
        said = reply(session, f"SIZE {ocean_file};sql={FEW}")
        assert said.startswith("451")
        assert told in said
        assert retrieve(session, ocean_file) == ocean_file.read_bytes()
        assert "sieva: " in server.log()
        session.close()


def test_settings_of_a_file(share, ocean_file):
    path = share / "gridftp.conf"
    path.write_text("# limits\nmemory = 20000\nthreads=2\n\nisolated = no\n")
    path.chmod(0o644)
    wide = "SELECT TEMP, SALT WHERE TEMP > -1000 ORDER BY SALT"
    with Server(share, settings={"SIEVA_GRIDFTP_CONF": str(path)}) as server:
        session = server.session()
        assert "memory-limit" in reply(session, f"SIZE {ocean_file};sql={wide}")
        session.close()
    path.write_text("memory = 1G\ncolour = blue\n")
    with Server(share, settings={"SIEVA_GRIDFTP_CONF": str(path)}) as server:
        session = server.session()
        assert "gridftp.conf:2: no setting `colour`" in reply(session, f"SIZE {ocean_file};sql={wide}")
        session.close()


def test_what_cannot_be_taken_apart_is_logged_too(server, session, ocean_file):
    reply(session, f"SIZE {ocean_file};sql={FEW};format=xml")
    request = server.requests()[-1]
    assert (request["verb"], request["path"]) == ("STAT", f"{ocean_file};sql={FEW};format=xml")
    assert request["result"].startswith("invalid-value: 'xml' is no format of results: ")
