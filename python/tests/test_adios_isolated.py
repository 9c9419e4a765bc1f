"""BP files that a process of its own reads: the same answers, and crashes that are errors."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import sieva
from sieva import _adios_isolated, _adios_worker, errors

adios2 = pytest.importorskip("adios2")


@pytest.fixture(scope="module", params=["BP4", "BP5"])
def path(request, tmp_path_factory):
    """Return a file of three steps with numbers, texts and attributes."""
    path = str(tmp_path_factory.mktemp("bp") / f"{request.param}.bp")
    io = adios2.Adios().declare_io("writer")
    io.set_engine(request.param)
    rng = np.random.default_rng(1)
    with adios2.Stream(io, path, "w") as file:
        file.write_attribute("title", "a test")
        file.write_attribute("sizes", np.array([1, 2**64 - 1], "u8"))
        file.write_attribute("names", ["one", "two"])
        for _ in file.steps(3):
            values = rng.random((40, 50))
            values[0, :3] = np.nan, np.inf, -0.0
            file.write("T", values, [40, 50], [0, 0], [40, 50])
            numbers = rng.integers(-(2**62), 2**62, (40, 50))
            file.write("n", numbers, [40, 50], [0, 0], [40, 50])
            file.write("label", f"step {file.current_step()}")
    return path


@pytest.fixture
def worker(monkeypatch):
    """Return a function that has a script of Python stand in for the worker."""

    def put(script):
        monkeypatch.setattr(_adios_isolated, "_WORKER", [sys.executable, "-c", script])

    return put


def test_answers_are_those_of_this_process(path):
    here, there = sieva.open(path), sieva.open(path, isolated=True)
    for name in ("T", "n", "label"):
        assert there[name].attrs == here[name].attrs
        ours, theirs = np.asarray(here[name][...]), np.asarray(there[name][...])
        assert (theirs.dtype, theirs.shape) == (ours.dtype, ours.shape)
        # Texts are objects, whose bytes are addresses.
        same = (
            theirs.tolist() == ours.tolist() if ours.dtype == object else theirs.tobytes() == ours.tobytes()
        )
        assert same
    mine, yours = json.loads(here.schema().to_json()), json.loads(there.schema().to_json())
    assert mine["logical"] == yours["logical"]
    for condition in ("T > 0.9", "n > 4000000000000000000", "label = 'step 1'", "n < 0 AND T < 0.5"):
        assert there.query(condition).count() == here.query(condition).count() > 0
    # An index that was built by one is used by the other.
    here.build_index("T")
    assert sieva.open(path, isolated=True).index_status().exists
    assert not sieva.open(path, isolated=True).index_status().stale
    here.drop_index()
    with ThreadPoolExecutor(4) as pool:
        counts = set(pool.map(lambda n: there.query(f"T > 0.{n} OR n > 0").count() > 0, range(16)))
    assert counts == {True}
    with pytest.raises(errors.UnknownArray):
        there["absent"]


def test_a_crash_is_an_error_and_the_next_request_starts_another(path):
    source = sieva.open(path, isolated=True)
    file = _adios_isolated.IsolatedFile(path, [path])
    first = file._process
    first.send_signal(signal.SIGSEGV)
    first.wait()
    with pytest.raises(errors.CorruptFile, match=r"the process that reads it by adios2 ended by SIGSEGV"):
        file.read("T", (0, 0, 0), (1, 2, 2))
    assert file.read("T", (0, 0, 0), (1, 2, 2)).shape == (1, 2, 2)
    assert file._process.pid != first.pid
    second = file._process
    del file
    deadline = time.monotonic() + 30
    while second.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert second.poll() is not None
    assert source.query("T > 0.5").count() > 0


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("import os; os.kill(os.getpid(), 11)", "ended by SIGSEGV"),
        ("raise SystemExit(3)", "ended by status 3"),
        ("import os; os.write(1, b'x' * 100); input()", "an answer that makes no sense"),
        (
            "import os, struct; os.write(1, struct.pack('>IQ', 2, 1 << 60) + b'{}'); input()",
            "an answer that makes no sense",
        ),
        (
            (
                'import os, struct; b = b\'{"description": {"groups": 3}}\';'
                "os.write(1, struct.pack('>IQ', len(b), 0) + b); input()"
            ),
            "an answer that makes no sense",
        ),
    ],
)
def test_a_worker_that_lies_or_ends_is_an_error(path, worker, script, message):
    worker(script)
    with pytest.raises(errors.CorruptFile, match=message):
        sieva.open(path, isolated=True)


def test_a_worker_that_does_not_answer_is_ended(path, worker, monkeypatch):
    worker("input(); input()")
    monkeypatch.setattr(_adios_isolated, "WALL", 0.5)
    with pytest.raises(errors.CorruptFile, match=r"took more than 0\.5 s for one request"):
        sieva.open(path, isolated=True)


def test_the_worker_gave_up_what_it_does_not_need(path):
    file = _adios_isolated.IsolatedFile(path, [path])
    with Path(f"/proc/{file._process.pid}/limits").open() as limits:
        told = {line[:26].strip(): line[26:].split()[0] for line in limits}
    assert told["Max address space"] == str(_adios_worker.MEMORY)
    assert told["Max file size"] == told["Max core file size"] == "0"
    assert "NoNewPrivs:\t1" in Path(f"/proc/{file._process.pid}/status").read_text()


def test_a_lower_limit_of_the_user_stays(path):
    program = "import sieva, sys; print(len(sieva.open(sys.argv[1], isolated=True)))"
    limited = f"ulimit -t {_adios_worker.SECONDS}; exec '{sys.executable}' -c '{program}' '{path}'"
    done = subprocess.run(["/bin/sh", "-c", limited], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_secrets_of_the_environment_are_not_the_workers(path, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    file = _adios_isolated.IsolatedFile(path, [path])
    if os.geteuid() != 0:
        pytest.skip("only root looks into a process that gave up being looked into")
    assert b"secret" not in Path(f"/proc/{file._process.pid}/environ").read_bytes()


SCRIPT = """
import sys, sieva
for path in sys.argv[1:]:
    try:
        source = sieva.open(path, isolated=True)
        for name in source.arrays:
            source[name][...]
        print("read")
    except sieva.SievaError as error:
        print(error.kind)
"""


def test_no_damage_ends_the_process_that_asks(path, tmp_path):
    rng = np.random.default_rng(7)
    copies = []
    for number in range(12):
        copy = tmp_path / f"{number}.bp"
        shutil.copytree(path, copy)
        name = copy / ("md.idx", "md.0", "mmd.0", "data.0")[number % 4]
        if not name.exists():
            continue
        data = np.frombuffer(name.read_bytes(), "u1").copy()
        data[rng.integers(0, len(data), 20)] = rng.integers(0, 256, 20)
        name.write_bytes(data.tobytes())
        copies.append(str(copy))
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT, *copies], capture_output=True, text=True, timeout=500, check=False
    )
    assert told.returncode == 0, told.stderr
    assert len(told.stdout.split()) == len(copies)
    assert set(told.stdout.split()) <= {"read", "corrupt-file", "unsupported", "memory-limit", "io-error"}
