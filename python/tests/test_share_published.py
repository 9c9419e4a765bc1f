"""What is published in groups: by commands, in a directory, on moto and on a real Swift."""

import filecmp
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

import h5py
import numpy as np
import pytest
import sieva
import sieva.share
from sieva import errors


@pytest.fixture(autouse=True)
def locks(tmp_path, monkeypatch):
    """Keep the locks of groups in the test's directory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def data(tmp_path):
    """Return a file of hostile and other values, and the values."""
    values = np.arange(60_000, dtype="f4").reshape(200, 300) % 997
    values[0, :5] = [np.nan, np.inf, -np.inf, -0.0, 0.0]
    path = tmp_path / "run.h5"
    with h5py.File(path, "w") as file:
        file["T"] = values
    return path, values


def sieva_share(*args, check=True, cwd=None):
    command = [sys.executable, "-m", "sieva", "share", *map(str, args)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, cwd=cwd)
    if check:
        assert done.returncode == 0, done.stderr
    return done


def opened(url):
    with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - one that we were given
        return answer.read()


def test_what_is_published_is_read_without_sieva(place, data, tmp_path, request):
    path, values = data
    group = sieva.share.create(place.root)
    done = group.publish(path, user="ada")
    assert (done.user, done.name, done.size, done.complete) == ("ada", "run.h5", path.stat().st_size, True)
    result = group.publish(
        sieva.open(path).sql("SELECT T WHERE T > 990"), "high.nc", format="hdf5", keep=600, user="ada"
    )
    expected = values[values > 990]
    assert (result.rows, (result.until - result.made).total_seconds()) == (expected.size, 600)
    held, unfinished = place.held()
    assert unfinished == 0
    assert {key: size for key, (size, _) in held.items() if key.startswith("published/")} == {
        "published/ada/run.h5": done.size,
        "published/ada/high.nc": result.size,
    }
    # By the address alone, without a key in the environment.
    link = group.link("run.h5", expires=60)
    assert opened(link.url) == path.read_bytes()
    assert link.expires is (place.root[0] != "/")
    fetched = group.fetch("ada/high.nc", tmp_path / "high.h5")
    with h5py.File(fetched) as file:
        (name,) = [key for key in file if file[key].shape == expected.shape and key == "T"]
        assert np.array_equal(file[name][...], expected)
    # moto asks for no signature at all.
    if link.expires and "moto" not in request.node.name:
        with pytest.raises(urllib.error.HTTPError, match=r"40[13]"):
            opened(link.url[:-3] + ("abc" if not link.url.endswith("abc") else "abd"))
        # Swift's S3 interface calls a request without any a bad one.
        with pytest.raises(urllib.error.HTTPError, match=r"40[013]"):
            opened(link.url.split("?")[0])
    with pytest.raises(FileNotFoundError):
        group.unpublish("run.h5", user="bob")
    group.unpublish("run.h5", user="ada")
    group.unpublish("high.nc", user="ada")
    assert [key for key in place.held()[0] if "published" in key] == []
    assert group.published() == []


@pytest.mark.parametrize("place", ["swift"], indirect=True)
def test_a_link_ends_when_its_time_is_over(place, data):
    path, _ = data
    group = sieva.share.create(place.root)
    group.publish(path, user="ada")
    url = group.link("run.h5", expires=2).url
    assert len(opened(url)) == path.stat().st_size
    time.sleep(3)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        opened(url)
    # A second one is signed by the same key.
    again = group.link("run.h5", expires=60).url
    assert len(opened(again)) == path.stat().st_size


@pytest.mark.parametrize("place", ["swift", "moto", "swift-s3"], indirect=True)
def test_links_that_cannot_be_are_refused(place, data):
    group = sieva.share.create(place.root)
    group.publish(data[0], user="ada")
    for expires in (0, -1, float("nan"), 1e300):
        with pytest.raises(ValueError, match="expected seconds above 0"):
            group.link("run.h5", expires=expires)
    if place.root.startswith("s3"):
        with pytest.raises(ValueError, match="for 604801 s"):
            group.link("run.h5", expires=604_801)
    with pytest.raises(FileNotFoundError):
        group.link("none.h5")


def test_commands_publish_list_fetch_and_take_back(data, tmp_path):
    path, values = data
    group = tmp_path / "group"
    sieva_share("create", group)
    done = sieva_share("publish", group, path, "--as", "a.h5", "--keep", "7d", "--user", "ada")
    assert done.stdout.strip() == str(group / "published/ada/a.h5")
    assert f"sieva share unpublish {group} a.h5 --user ada\n" in done.stderr
    assert f"sieva share link {group} ada/a.h5\n" in done.stderr
    sieva_share("publish", group, path, "SELECT T WHERE T > 995", "--as", "b.csv", "--user", "ada")
    for command in ("list", "status"):
        shown = sieva_share(command, group).stdout
        assert "published ada/a.h5" in shown
        assert f"{(values > 995).sum()} rows of SELECT T WHERE T > 995" in shown
    here = tmp_path / "here"
    here.mkdir()
    assert sieva_share("fetch", group, "a.h5", cwd=here).stdout == "a.h5\n"
    assert (here / "a.h5").read_bytes() == path.read_bytes()
    sieva_share("fetch", group, "ada/b.csv", "-o", here / "c.csv")
    found = np.loadtxt(here / "c.csv", delimiter=",", skiprows=1, ndmin=2)[:, -1]
    assert np.array_equal(found.astype("f4"), values[values > 995])
    assert sorted(p.name for p in here.iterdir()) == ["a.h5", "c.csv"]
    os.mkfifo(here / "pipe")
    refused = sieva_share("fetch", group, "a.h5", "-o", here / "pipe", check=False)
    assert (refused.returncode, "not a regular file" in refused.stderr) == (1, True)
    assert (here / "pipe").is_fifo()
    (here / "pipe").unlink()
    link = sieva_share("link", group, "a.h5")
    assert opened(link.stdout.strip()) == path.read_bytes()
    assert "does not expire" in link.stderr
    sieva_share("unpublish", group, "a.h5", "--user", "ada")
    gone = sieva_share("fetch", group, "a.h5", "-o", here / "d", check=False)
    assert gone.returncode == 1
    assert "nothing is published as 'a.h5'" in gone.stderr
    assert "there is ada/b.csv" in gone.stderr
    assert not (here / "d").exists()


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["{path}", "--as", "../x"], 1, "is no name to publish by"),
        (["{path}", "--as", ".x"], 1, "is no name to publish by"),
        (["{path}", "--as", "x" * 200], 1, "is no name to publish by"),
        (["{path}", "--user", "a/b"], 1, "is no name of a user"),
        (["{path}", "--format", "csv"], 2, "a file is put as it is"),
        (["{path}", "SELECT T"], 2, "a result has a name"),
        (["{path}", "SELECT T", "--as", "x.none"], 1, "say one: --format netcdf"),
        (["{path}", "SELECT none", "--as", "x.csv"], 1, "none"),
        (["{path}", "--keep", "soon"], 2, "is no duration"),
        (["{path}", "--keep", "0s"], 1, "expected seconds above 0"),
        (["nowhere"], 1, "nowhere"),
    ],
)
def test_what_cannot_be_published_is_told_and_nothing_is_put(data, tmp_path, args, code, said):
    group = tmp_path / "group"
    sieva_share("create", group)
    before = sorted(group.rglob("*"))
    words = [word.format(path=data[0]) for word in args]
    done = sieva_share("publish", group, *words, check=False)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(group.rglob("*")) == before


def test_names_of_files_are_made_of_names_that_can_be_some(data, tmp_path):
    group = sieva.share.create(tmp_path / "group")
    odd = data[0].rename(tmp_path / "odd name.h5")
    with pytest.raises(ValueError, match=r"'odd name\.h5' is no name to publish by"):
        group.publish(odd)
    for name in ("", "a/", "a/b/..", "a/b/.c", "a/b/c\x1b[2J"):
        with pytest.raises(errors.InvalidValue, match="no file is made of"):
            group.fetch(name)


@pytest.mark.parametrize("place", ["directory", "swift", "moto"], indirect=True)
def test_a_large_file_takes_no_memory(place, tmp_path):
    large = tmp_path / "large.bin"
    size = 400 << 20
    with large.open("wb") as file:
        file.truncate(size)
        file.seek(size - 5)
        file.write(b"ended")
    sieva.share.create(place.root)
    code = "import sieva.share, sys; g = sieva.share.open_group(sys.argv[1]); "
    # Of this program alone: what the system tells of a child counts what its parent had, too.
    told = "; print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM:')).split()[1])"
    for what in ("g.publish(sys.argv[2], user='ada')", "g.fetch('large.bin', sys.argv[2] + '.back')"):
        command = [sys.executable, "-c", code + what + told, place.root, str(large)]
        used = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        # In KiB; importing alone takes some 60 MiB.
        assert used < 280 << 10, (what, used)
    back = tmp_path / "large.bin.back"
    assert back.stat().st_size == size
    assert filecmp.cmp(large, back, shallow=False)
