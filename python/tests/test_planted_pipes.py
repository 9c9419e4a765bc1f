"""Pipes, sockets and sparse files where a file is expected: refused at once, and never waited for."""

import json
import os
import socket
import subprocess
import sys

import h5py
import numpy as np
import pytest
import sieva

# Asked in a process of its own: one that waits for a pipe cannot be interrupted.
ASK = """
import json, sys, sieva
try:
    source = sieva.open(sys.argv[1])
    told = {"value": eval(sys.argv[2])}
except sieva.SievaError as e:
    told = {"error": e.kind, "message": str(e)}
print(json.dumps(told))
"""


def ask(path, action="len(source)"):
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(path), action],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.fixture
def group(tmp_path):
    """Make a Zarr group of one array of two chunks, by hand."""
    root = tmp_path / "g.zarr"
    (root / "a").mkdir(parents=True)
    (root / ".zgroup").write_text('{"zarr_format": 2}')
    (root / "a" / ".zattrs").write_text('{"_ARRAY_DIMENSIONS": ["x"]}')
    meta = {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i4", "order": "C"}
    (root / "a" / ".zarray").write_text(
        json.dumps(meta | dict.fromkeys(("compressor", "filters", "fill_value")))
    )
    (root / "a" / "0").write_bytes(np.array([1, 2], "<i4").tobytes())
    (root / "a" / "1").write_bytes(np.array([3, 4], "<i4").tobytes())
    assert sieva.open(root).query("a > 1").count() == 3
    return root


def test_a_pipe_is_no_source(tmp_path):
    os.mkfifo(tmp_path / "pipe.nc")
    with socket.socket(socket.AF_UNIX) as planted:
        planted.bind(str(tmp_path / "s.nc"))
        for name in ("pipe.nc", "s.nc"):
            told = ask(tmp_path / name)
            assert told["error"] == "unknown-format", told
            assert name in told["message"]


@pytest.mark.parametrize("name", [".zgroup", ".zmetadata", "zarr.json", "a/.zarray", ".zattrs", "a/.zattrs"])
def test_a_pipe_is_no_metadata(group, name):
    (group / name).unlink(missing_ok=True)
    os.mkfifo(group / name)
    told = ask(group)
    if "value" in told:
        # A listing has files only: what is none is not there.
        assert name not in {".zgroup", ".zmetadata", "zarr.json"}
        return
    assert told["error"] == "unknown-format", told
    assert name in told["message"]
    assert "not a regular file" in told["message"]


def test_a_pipe_is_no_chunk(group):
    (group / "a" / "1").unlink()
    os.mkfifo(group / "a" / "1")
    told = ask(group, "source.query('a > 1').count()")
    assert told["error"] == "unknown-format", told
    assert "a/1" in told["message"]
    # What does not need it is answered.
    assert ask(group, "source['a'][:2].tolist()") == {"value": [1, 2]}


@pytest.mark.parametrize("name", [".zmetadata", "a/.zattrs", "a/.zarray", "a/1"])
def test_a_file_of_holes_takes_no_memory(group, name):
    with (group / name).open("wb") as file:
        file.truncate(3 << 30)
    told = ask(group, "source.query('a > 1', memory='64MiB').count()")
    # Attributes that cannot be read are left out.
    assert told == {"value": 3} or told["error"] in {"unsupported", "corrupt-file", "memory-limit"}, told


def test_a_pattern_passes_over_pipes(tmp_path):
    for n in range(2):
        with h5py.File(tmp_path / f"f{n}.h5", "w") as f:
            f[f"a{n}"] = np.arange(3)
    os.mkfifo(tmp_path / "pipe.h5")
    told = ask(tmp_path / "f*.h5", "len(source.files)")
    assert told == {"value": 2}
    told = ask(tmp_path / "*.h5")
    assert told["error"] == "unknown-format", told
    assert "pipe.h5" in told["message"]


def test_a_catalog_walks_past_pipes(tmp_path):
    with h5py.File(tmp_path / "f.h5", "w") as f:
        f["a"] = np.arange(3)
    for name in ("pipe", "pipe.h5", "pipe.json"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "z.zarr").mkdir()
    os.mkfifo(tmp_path / "z.zarr" / ".zgroup")
    env = dict(os.environ, SIEVA_CATALOG=f"sqlite:{tmp_path / 'catalog.db'}")
    command = [sys.executable, "-m", "sieva", "catalog", "add", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env, check=False)
    assert "1 added" in done.stderr, (done.stdout, done.stderr)


@pytest.mark.parametrize("planted", ["pipe", "socket", "directory", "link"])
def test_a_bp_directory_is_looked_at_before_its_library_opens_it(tmp_path, planted):
    """The library would wait for a pipe, and read what a link of a stranger leads to."""
    folder = tmp_path / "a.bp"
    folder.mkdir()
    (folder / "md.idx").write_bytes(bytes(64))
    (tmp_path / "private").write_text("private")
    path = folder / "data.0"
    with socket.socket(socket.AF_UNIX) as server:
        match planted:
            case "pipe":
                os.mkfifo(path)
            case "socket":
                server.bind(str(path))
            case "directory":
                path.mkdir()
            case "link":
                path.symlink_to(tmp_path / "private")
        told = ask(folder)
    assert told["error"] == ("link-refused" if planted == "link" else "unknown-format"), told
    assert "data.0" in told["message"]


def test_a_hierarchy_without_bottom_is_refused(tmp_path):
    root = tmp_path / "g.zarr"
    root.mkdir()
    (root / ".zgroup").write_text('{"zarr_format": 2}')
    here = os.open(root, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("a", dir_fd=here)
        inner = os.open("a", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    told = ask(root)
    assert told["error"] == "unsupported", told
    assert "more than 256 levels" in told["message"]
    # Deeper than what removes pytest's directories can go.
    subprocess.run(["/bin/rm", "-rf", str(root)], check=True)


def test_a_reference_set_that_does_not_fit_is_refused(tmp_path):
    references = {".zgroup": '{"zarr_format": 2}', **{f"a/{i}": ["a.bin", i, 1] for i in range(20_000)}}
    path = tmp_path / "set.json"
    path.write_text(json.dumps({"version": 1, "refs": references}))
    assert len(sieva.open(path)) == 0
    with pytest.raises(sieva.errors.MemoryLimit, match="when it is parsed"):
        sieva.open(path, memory="8MiB")
