"""What may not be opened is not opened: allow=, references, redirects, secrets, and names of nothing."""

import contextlib
import http.server
import json
import os
import re
import sqlite3
import stat
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest
import sieva
import zarr
from sieva.generate import write_ocean

OUTSIDE = "is outside of what may be opened"


class _Handler(http.server.BaseHTTPRequestHandler):
    """Serve the bytes in `server.files`, send on what `server.hops` says, and note what was asked."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked.append((self.path, {name.title(): value for name, value in self.headers.items()}))
        if target := self.server.hops.get(self.path):
            self.send_response(302)
            self.send_header("Location", target)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = self.server.files.get(self.path.split("?")[0])
        if body is None:
            self.send_error(404)
            return
        found = re.fullmatch(r"bytes=(\d*)-(\d+)", self.headers.get("Range", ""))
        low, high = 0, len(body)
        if found:
            low = int(found[1]) if found[1] else max(high - int(found[2]), 0)
            high = min(int(found[2]) + 1, high) if found[1] else high
        self.send_response(206 if found else 200)
        if found:
            self.send_header("Content-Range", f"bytes {low}-{high - 1}/{len(body)}")
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(high - low))
        self.end_headers()
        self.wfile.write(body[low:high])

    def log_message(self, *_):
        """Say nothing."""


@contextlib.contextmanager
def _web(files):
    """Yield a web server on the loopback, with `url`, `files`, `hops` and `asked`."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.files, server.hops, server.asked = files, {}, []
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def ocean(tmp_path_factory):
    path = tmp_path_factory.mktemp("ocean") / "ocean.nc"
    write_ocean(path, times=1, depths=3, lats=6, lons=8)
    return path


@pytest.fixture(scope="module")
def warmest(ocean):
    with netCDF4.Dataset(ocean) as file:
        return float(np.ma.max(file["TEMP"][:]))


@pytest.fixture
def places(tmp_path, ocean):
    """Return a directory that may be opened and one that may not, each with a file."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "ocean.nc").write_bytes(ocean.read_bytes())
    return inside, outside


@pytest.fixture
def quick():
    return {"retries": 0, "deadline": 10.0}


def _same_words(ask, names):
    """Assert that each name is refused in the same words, whether there is something or not."""
    for name in names:
        with pytest.raises(sieva.errors.PermissionDenied) as raised:
            ask(name)
        assert raised.value.message == f"'{name}' {OUTSIDE}", name


def test_subqueries_name_no_file_that_may_not_be_opened(places, warmest):
    inside, outside = places
    src = sieva.open(inside / "ocean.nc", allow=[inside])

    def ask(name):
        return src.sql(f"SELECT (SELECT max(TEMP) FROM '{name}') AS m LIMIT 1").to_arrow()["m"][0].as_py()

    assert ask(inside / "ocean.nc") == pytest.approx(warmest)
    assert ask(f"{inside}/oc*.nc") == pytest.approx(warmest)
    (inside / "link.nc").symlink_to(outside / "ocean.nc")
    (inside / "dangling.nc").symlink_to(outside / "none.nc")
    (inside / "up").symlink_to(outside)
    ways = (f"{outside}/", f"{inside}/../outside/", f"{inside}/up/")
    _same_words(ask, [f"{way}{name}.nc" for way in ways for name in ("ocean", "none")])
    _same_words(ask, [f"{inside}/link.nc", f"{inside}/dangling.nc"])
    for pattern in ("oc*.nc", "no*.nc", "*/x.nc", "**/ocean.nc"):
        with pytest.raises(sieva.errors.PermissionDenied, match=f"'{re.escape(str(outside))}' {OUTSIDE}"):
            ask(f"{outside}/{pattern}")
    _same_words(ask, ["http://127.0.0.1:1/a.nc"])
    with pytest.raises(sieva.errors.PermissionDenied, match=f"'s3://bucket/a.nc' {OUTSIDE}"):
        ask("s3://bucket/a.nc")


def test_every_way_of_opening_asks(places):
    inside, outside = places
    _same_words(lambda name: sieva.open(name, allow=[inside]), [f"{outside}/ocean.nc", f"{outside}/none"])
    _same_words(lambda name: sieva.open(name, allow=[]), [f"{inside}/ocean.nc"])
    _same_words(lambda name: sieva.open([inside / "ocean.nc", name], allow=[inside]), [f"{outside}/ocean.nc"])
    _same_words(
        lambda name: sieva.sql(f"SELECT TEMP FROM '{name}'", allow=[inside], isolated=True),
        [f"{outside}/ocean.nc"],
    )
    assert sieva.open(f"{inside}/*.nc", allow=[inside], isolated=True)["TEMP"].shape == (1, 3, 6, 8)
    assert sieva.open(inside / "ocean.nc", allow=[inside / "ocean.nc"])["TEMP"].shape == (1, 3, 6, 8)
    with pytest.raises(sieva.errors.Unsupported, match="allow= cannot hold it back"):
        sieva.open("ftp://127.0.0.1/a.nc", allow=[inside])
    command = [sys.executable, "-m", "sieva", "schema", f"{outside}/ocean.nc", "--allow", str(inside)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode != 0
    assert OUTSIDE in ran.stderr


def test_chunks_of_a_hierarchy_that_lead_out_are_refused(places):
    inside, outside = places
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = zarr.open_group(inside / "g.zarr", mode="w", zarr_format=2)
        group.create_array("a", data=np.arange(8, dtype="i4"), chunks=(4,))
    (outside / "0").write_bytes((inside / "g.zarr/a/0").read_bytes())
    assert sieva.open(inside / "g.zarr", allow=[inside]).query("a > 0").count() == 7
    (inside / "g.zarr/a/0").unlink()
    (inside / "g.zarr/a/0").symlink_to(outside / "0")
    for external, allow in (([outside], None), ([outside], [inside, outside])):
        assert sieva.open(inside / "g.zarr", external=external, allow=allow).query("a > 0").count() == 7
    with pytest.raises(sieva.errors.LinkRefused, match=OUTSIDE):
        sieva.open(inside / "g.zarr", allow=[inside, outside]).query("a > 0").count()
    with pytest.raises(sieva.errors.LinkRefused, match=OUTSIDE):
        sieva.open(inside / "g.zarr", allow=[inside]).query("a > 0").count()


def test_links_of_a_file_need_both_permissions(places):
    inside, outside = places
    with h5py.File(outside / "x.h5", "w") as file:
        file["v"] = np.arange(4.0)
    with h5py.File(inside / "a.h5", "w") as file:
        file["own"] = np.arange(4.0)
        file["v"] = h5py.ExternalLink(str(outside / "x.h5"), "/v")
    assert sieva.open(inside / "a.h5", external=[outside]).query("v > 1").count() == 2
    both = sieva.open(inside / "a.h5", external=[outside], allow=[inside, outside])
    assert both.query("v > 1").count() == 2
    held = sieva.open(inside / "a.h5", external=[outside], allow=[inside])
    assert held.query("own > 1").count() == 2
    with pytest.raises(sieva.errors.LinkRefused, match=OUTSIDE):
        held.query("v > 1").count()


def _references(url):
    """Return a reference set of one array, whose chunk is at `url`."""
    meta = {"shape": [4], "chunks": [4], "dtype": "<i4", "compressor": None, "filters": None}
    meta |= {"fill_value": 0, "order": "C", "zarr_format": 2}
    return json.dumps({".zgroup": '{"zarr_format":2}', "a/.zarray": json.dumps(meta), "a/0": [url, 0, 16]})


def test_spellings_of_a_reference_lead_nowhere_else(tmp_path, quick):
    secret = np.arange(4, dtype="<i4").tobytes()
    with _web({"/secret/x": secret, "/pub/x": secret}) as web:
        path = tmp_path / "r.json"
        path.write_text(_references(f"{web.url}/pub/x"))
        src = sieva.open(path, external=[f"{web.url}/pub"], storage_options=quick)
        assert src.query("a > 1").count() == 2
        web.asked.clear()
        for way in ("%2e%2e/secret/x", "..\\secret\\x", ".\t./secret/x", ".%2E/secret/x", "..%2fsecret/x"):
            path.write_text(_references(f"{web.url}/pub/{way}"))
            with pytest.raises(sieva.errors.LinkRefused, match="outside of the roots"):
                sieva.open(path, external=[f"{web.url}/pub"], storage_options=quick)
        assert web.asked == []
        # A redirect leads there only when it is followed.
        web.hops["/pub/y"] = f"{web.url}/secret/x"
        path.write_text(_references(f"{web.url}/pub/y"))
        src = sieva.open(path, external=[f"{web.url}/pub"], storage_options=quick)
        with pytest.raises(sieva.errors.LinkRefused, match=OUTSIDE):
            src.query("a > 1").count()
        assert {asked for asked, _ in web.asked} == {"/pub/y"}


def test_redirects_are_asked_for_hop_by_hop(ocean, quick):
    with _web({"/ocean.nc": ocean.read_bytes()}) as there, _web({}) as here:
        here.hops["/a.nc"] = "/b.nc"
        here.hops["/b.nc"] = f"{there.url}/ocean.nc"
        assert sieva.open(f"{here.url}/a.nc", storage_options=quick)["TEMP"].shape == (1, 3, 6, 8)
        there.asked.clear()
        with pytest.raises(sieva.errors.LinkRefused, match=OUTSIDE):
            sieva.open(f"{here.url}/a.nc", storage_options=quick, allow=[here.url])
        assert there.asked == []
        both = sieva.open(f"{here.url}/a.nc", storage_options=quick, allow=[here.url, there.url])
        assert both["TEMP"].shape == (1, 3, 6, 8)
        here.hops["/round"] = "/round"
        with pytest.raises(sieva.errors.IoError, match="too many redirects"):
            sieva.open(f"{here.url}/round", storage_options=quick)


def test_another_host_is_told_neither_password_nor_address(ocean, quick):
    with _web({"/ocean.nc": ocean.read_bytes()}) as there, _web({}) as here:
        here.hops["/a.nc?sig=hidden"] = f"{there.url}/ocean.nc"
        url = here.url.replace("http://", "http://me:secret@") + "/a.nc?sig=hidden"
        assert sieva.open(url, storage_options=quick)["TEMP"].shape == (1, 3, 6, 8)
        assert all("Authorization" in headers for path, headers in here.asked if path.startswith("/a.nc?"))
        for _, headers in there.asked:
            assert {"Authorization", "Referer", "Cookie"}.isdisjoint(headers)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "[::ffff:127.0.0.1]"]
)
def test_hosts_that_are_not_public_are_refused(ocean, quick, host):
    with _web({"/ocean.nc": ocean.read_bytes()}) as web:
        url = web.url.replace("127.0.0.1", host) + "/ocean.nc"
        with pytest.raises(sieva.errors.PermissionDenied, match="its host is no public one"):
            sieva.open(url, storage_options={**quick, "public_only": True})
        assert web.asked == []
        if host == "127.0.0.1":
            assert sieva.open(url, storage_options=quick)["TEMP"].shape == (1, 3, 6, 8)


def test_secrets_of_an_address_are_nowhere_written(ocean, quick, tmp_path, monkeypatch):
    monkeypatch.setenv("SIEVA_CACHE", str(tmp_path / "cache"))
    with _web({"/ocean.nc": ocean.read_bytes()}) as web:
        url = web.url.replace("http://", "http://me:hunter2@") + "/ocean.nc?X-Amz-Signature=hunter2"
        src = sieva.open(url, storage_options=quick)
        query = src.query("TEMP > 5", select=["TEMP"])
        said = [repr(src), str(src.schema()), src._repr_html_(), query.explain(True), repr(query)]
        query.to_xarray().to_netcdf(tmp_path / "x.nc")
        for kind in ("netcdf", "hdf5", "zarr", "csv", "json", "parquet"):
            getattr(query, f"to_{kind}")(tmp_path / f"r.{kind}")
        notes = src.to_references(tmp_path / "refs.json")
        assert any("without user, password and signature" in note for note in notes)
        with sieva.Catalog(tmp_path / "c.sqlite") as catalog:
            report = catalog.add(url)
            assert report.added == 1
            assert [one.location for one in catalog.list()] == [f"{web.url}/ocean.nc"]
        with pytest.raises(sieva.errors.UnknownArray) as raised:
            src.query("NOTHING > 5").count()
        said.append(str(raised.value))
        src.close()
    assert [text for text in said if "hunter2" in text] == []
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"hunter2" not in path.read_bytes(), path
    assert stat.S_IMODE((tmp_path / "c.sqlite").stat().st_mode) == 0o600


@pytest.mark.parametrize("isolated", [False, True])
def test_reference_sets_are_read_isolated_too(ocean, tmp_path, isolated):
    (tmp_path / "ocean.nc").write_bytes(ocean.read_bytes())
    sieva.open(tmp_path / "ocean.nc").to_references(tmp_path / "r.json")
    src = sieva.open(tmp_path / "r.json", isolated=isolated)
    assert src.query("TEMP > 5").count() == sieva.open(ocean).query("TEMP > 5").count()


@pytest.mark.parametrize("name", ["", "a\0b.nc", "\0"])
def test_names_of_nothing_are_our_error(ocean, name):
    src = sieva.open(ocean)
    query = src.query("TEMP > 5", select=["TEMP"])
    for ask in (
        lambda: sieva.open(name),
        lambda: sieva.open([ocean, name]),
        lambda: sieva.open(ocean, store=name),
        lambda: sieva.open(ocean, catalog=name),
        lambda: sieva.Catalog(name),
        lambda: sieva.sql(f"SELECT TEMP FROM '{name}'"),
        lambda: src.sql(f"SELECT (SELECT max(TEMP) FROM '{name}') LIMIT 1").to_arrow(),
        lambda: query.to_csv(name),
        lambda: query.to_netcdf(name),
        lambda: query.to_zarr(name),
        lambda: src.to_references(name),
        lambda: query.selection().save(name),
        lambda: sieva.Selection.load(name),
    ):
        with pytest.raises((sieva.errors.InvalidValue, sieva.errors.SyntaxError_)) as raised:
            ask()
        assert "empty" in str(raised.value) or "NUL" in str(raised.value) or name in str(raised.value)


ENDLESS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, 'x' AS location FROM n"
)


@pytest.mark.parametrize(
    "change",
    [
        f"DROP TABLE sources; CREATE VIEW sources AS {ENDLESS}",
        f"CREATE VIEW other AS {ENDLESS}",
        "CREATE TRIGGER t AFTER INSERT ON names BEGIN SELECT 1; END",
        "ALTER TABLE names ADD COLUMN more TEXT AS (hex(zeroblob(100000000)))",
    ],
)
def test_a_catalog_with_foreign_objects_is_refused(tmp_path, ocean, change):
    place = tmp_path / "c.sqlite"
    with sieva.Catalog(place) as catalog:
        catalog.add(ocean)
    with contextlib.closing(sqlite3.connect(place)) as hostile:
        hostile.executescript(change)
    for read_only in (False, True):
        with pytest.raises(sieva.errors.CorruptFile, match="that no catalog has"):
            sieva.Catalog(place, read_only=read_only)


@pytest.mark.parametrize("end", ["", "-wal", "-journal"])
def test_a_pipe_in_place_of_a_catalog_is_not_waited_for(tmp_path, ocean, end):
    place = tmp_path / "c.sqlite"
    if end:
        with sieva.Catalog(place) as catalog:
            catalog.add(ocean)
    Path(f"{place}{end}").unlink(missing_ok=True)
    os.mkfifo(f"{place}{end}")
    with pytest.raises(sieva.errors.UnknownFormat, match="is not a regular file"):
        sieva.Catalog(place)


def test_an_index_that_would_not_be_used_is_not_built(tmp_path):
    path, store = tmp_path / "ocean.nc", tmp_path / "ocean.nc.sieva"
    write_ocean(path, times=2, depths=3, lats=6, lons=8)
    source = sieva.open(path, allow=[path])
    with pytest.raises(sieva.errors.PermissionDenied, match="an index there would not be used") as caught:
        source.build_index("TEMP")
    assert "ocean.nc.sieva" in caught.value.hint
    # Nor is what scans learn written where nothing may be opened.
    assert source.query("TEMP > 5").count() > 0
    del source
    assert not store.exists()
    for allow in ([path, store], [tmp_path]):
        source = sieva.open(path, allow=allow)
        source.build_index("TEMP")
        assert source.query("TEMP > 5", access="zonemap").count() > 0
        source.drop_index()
    elsewhere = sieva.open(path, allow=[path], store=tmp_path / "stores")
    elsewhere.build_index("TEMP")
    assert elsewhere.query("TEMP > 5", access="zonemap").count() > 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
def test_what_another_user_could_have_cached_is_not_believed(tmp_path):
    """A manifest of an object with the same length and tag would be taken for that of this one."""
    first, second = (tmp_path / name for name in ("first.h5", "second.h5"))
    for path, name in ((first, "aaa"), (second, "bbb")):
        with h5py.File(path, "w", libver="earliest") as file:
            file.create_dataset(name, data=np.arange(10.0), track_times=False)
    assert first.stat().st_size == second.stat().st_size
    code = "import sieva, sys; print(list(sieva.open(sys.argv[1], storage_options={'retries': 0}).arrays))"
    environment = {**os.environ, "SIEVA_CACHE": str(tmp_path / "cache")}

    def asked(url):
        command = [sys.executable, "-c", code, url]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        return done.stdout.strip()

    with _web({"/a.h5": first.read_bytes()}) as web:
        url = f"{web.url}/a.h5"
        assert asked(url) == "['aaa']"
        web.files["/a.h5"] = second.read_bytes()
        kept = list((tmp_path / "cache/manifests").iterdir())
        assert len(kept) == 1
        assert asked(url) == "['aaa']"  # of our own making: believed
        for path in kept:
            os.chown(path, 65534, 65534)
        assert asked(url) == "['bbb']"


def test_chunks_that_a_server_changed_are_found_by_verification(tmp_path, monkeypatch):
    """Where metadata are consolidated no server is asked for a listing: the guides say what follows."""
    monkeypatch.setenv("SIEVA_CACHE", str(tmp_path / "cache"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = zarr.open_group(tmp_path / "g.zarr", mode="w", zarr_format=2)
        group.create_array("a", data=np.arange(1000, dtype="i4"), chunks=(500,), compressors=None)
        zarr.consolidate_metadata(tmp_path / "g.zarr")
    folder = tmp_path / "g.zarr"
    files = [path for path in folder.rglob("*") if path.is_file()]
    objects = {f"/{path.relative_to(tmp_path)}": path.read_bytes() for path in files}
    options = {"retries": 0}
    with _web(objects) as web:
        url = f"{web.url}/g.zarr"
        source = sieva.open(url, storage_options=options)
        source.build_index("a")
        assert source.verify_index(all=True)
        web.files["/g.zarr/a/1"] = np.arange(1000, 1500, dtype="<i4").tobytes()
        again = sieva.open(url, storage_options=options)
        assert not again.index_status().stale
        assert not again.verify_index(all=True)
