"""The directory of a job, damaged and not, and what a task of it runs."""

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import sieva
from batch_work import work_of
from hypothesis import given
from hypothesis import strategies as st
from sieva import _jobs_cli, errors
from sieva.cli import main
from sieva.engines.batch import jobs as jobs_module
from sieva.engines.batch import worker
from sieva.engines.batch.directory import JobDirectory
from sieva.engines.batch.engine import forget_old
from sieva.engines.batch.files import packed, unpacked
from sieva.engines.batch.follow import Follower
from sieva.engines.batch.jobs import job_of, known_jobs
from sieva.engines.batch.options import BatchOptions
from sieva.engines.batch.system import UNFINISHED, Needs

GIB = 1 << 30


@pytest.fixture(autouse=True)
def _own_jobs(tmp_path, monkeypatch):
    monkeypatch.setenv("SIEVA_JOBS", str(tmp_path / "jobs"))


# The directory of a job.


@pytest.fixture
def job(tmp_path, ocean_path):
    """Return the job of a query in parts."""
    query = sieva.open(ocean_path).query("TEMP > 10")
    return JobDirectory.of(tmp_path / "jobs", work_of(query, ocean_path, 4), {"engine": "plain"})


def test_a_job_is_found_by_its_work(job, tmp_path, ocean_path):
    source = sieva.open(ocean_path)
    same = work_of(source.query("10 < TEMP"), ocean_path, 4)
    other = work_of(source.query("TEMP > 11"), ocean_path, 4)
    assert JobDirectory.of(tmp_path / "jobs", same, {"engine": "plain"}).path == job.path
    assert JobDirectory.of(tmp_path / "jobs", other, {"engine": "plain"}).path != job.path
    assert JobDirectory.of(tmp_path / "jobs", same, {"engine": "slurm"}).path != job.path
    assert [job.work(n) for n in range(job.works)] == same


def test_others_cannot_read_a_job(job):
    assert stat.S_IMODE(job.path.stat().st_mode) == 0o700


def test_only_one_may_submit(job):
    needs = Needs(1, 60, 1)
    first = job.claim([[0], [1]], needs, -1)
    assert first.number == 0
    # Two that have seen the same: one is first.
    assert job.claim([[1]], needs, 0).number == 1
    assert job.claim([[1]], needs, 0) is None
    assert [s.tasks for s in job.submissions()] == [((0,), (1,)), ((1,),)]
    # One that was refused leaves a gap; numbers still say which is which.
    third = job.claim([[0, 1]], needs, 1)
    job.take_back(1)
    assert [s.number for s in job.submissions()] == [0, 2]
    assert job.submission(2) == third
    assert job.claim([[0]], needs, 2).number == 3
    with pytest.raises(errors.FileNotFound, match="no submission 1"):
        job.submission(1)


def test_a_damaged_result_is_none(job):
    job.publish(0, b"result")
    assert job.has_result(0)
    path = job.path / "result" / "000000"
    path.write_bytes(path.read_bytes()[:-1] + b"X")
    assert not job.has_result(0)
    with pytest.raises(errors.CorruptFile, match="000000 is damaged"):
        job.result(0)
    job.take_up_again()
    assert job.results() == set()


@given(st.binary(max_size=200), st.data())
def test_changed_bytes_are_not_believed(data, draw):
    whole = packed(data)
    assert unpacked(whole, "x") == data
    at = draw.draw(st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    changed[at] ^= draw.draw(st.integers(1, 255))
    for wrong in (bytes(changed), whole[:at]):
        with pytest.raises(errors.CorruptFile):
            unpacked(wrong, "x")


def test_jobs_that_were_done_long_ago_are_forgotten(job):
    job.mark("done")
    forget_old(job.path.parent)
    assert job.path.exists()
    os.utime(job.path / "done", (0, 0))
    forget_old(job.path.parent)
    assert not job.path.exists()


def test_only_jobs_are_forgotten(job):
    # What else lies in the directory is not ours, however it is called.
    foreign = job.path.parent / "results"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("x")
    copied = job.path.parent / "copied"
    job.mark("done")
    copied.mkdir()
    (copied / "job.json").write_bytes((job.path / "job.json").read_bytes())
    for folder in (foreign, copied):
        (folder / "done").touch()
        os.utime(folder / "done", (0, 0))
    forget_old(job.path.parent)
    assert (foreign / "thesis.txt").read_text() == "x"
    assert copied.exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "no JSON"),
        (b"{}", "no version"),
        (b"[]", "no JSON object"),
        (b"\xff", "no JSON"),
        (None, "no regular"),
    ],
)
def test_a_damaged_job_is_named_and_hides_no_other(job, text, said):
    odd = job.path.parent / "odd"
    odd.mkdir()
    if text is None:
        os.mkfifo(odd / "job.json")
    else:
        (odd / "job.json").write_bytes(text)
    with pytest.raises(errors.CorruptFile, match=f"odd.*{said}"):
        JobDirectory(odd)
    assert [known.id for known in known_jobs()] == [job.id]
    with pytest.raises(errors.CorruptFile, match="odd"):
        job_of("odd")


def test_a_job_of_another_number_of_works_is_damaged(job):
    """Who followed it would wait for ever, or for less than there is."""
    about = json.loads((job.path / "job.json").read_text())
    for works in (job.works - 1, job.works + 1):
        (job.path / "job.json").write_text(json.dumps(about | {"works": works}))
        with pytest.raises(
            errors.CorruptFile, match=f"has {works} pieces of work, and {job.works} are there"
        ):
            JobDirectory(job.path)


def test_a_job_of_an_earlier_version_says_less(job):
    about = json.loads((job.path / "job.json").read_text())
    known = ("version", "id", "engine", "works", "created")
    (job.path / "job.json").write_text(json.dumps({name: about[name] for name in known}))
    old = JobDirectory(job.path)
    assert (old.about["kind"], old.about["command"], old.about["options"]) == ("query", None, {})
    assert jobs_module.state_of(old).state == "unfinished"
    (job.path / "job.json").write_text(json.dumps(about | {"command": "rm -r ."}))
    with pytest.raises(errors.CorruptFile, match=r"job\.json has as command"):
        JobDirectory(job.path)


WHOLE = {"tasks": [[0], [1]], "needs": {"memory": GIB, "seconds": 60, "cpus": 1}, "at": 1.5}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        json.dumps(WHOLE | {"tasks": [[0, 9999]]}),
        json.dumps(WHOLE | {"tasks": [[0], []]}),
        json.dumps(WHOLE | {"tasks": [["0"]]}),
        json.dumps(WHOLE | {"tasks": [[True]]}),
        json.dumps(WHOLE | {"needs": {"memory": GIB}}),
        json.dumps(WHOLE | {"needs": WHOLE["needs"] | {"cpus": 0}}),
        json.dumps(WHOLE | {"at": "today"}),
    ],
)
def test_a_damaged_submission_is_named(job, text, capsys):
    path = job.path / "submission" / "000.json"
    path.write_text(json.dumps(WHOLE))
    assert job.submissions()[0].tasks == ((0,), (1,))
    path.write_text(text)
    with pytest.raises(errors.CorruptFile, match=r"submission/000\.json"):
        job.submissions()
    follower = Follower(job, None, options=BatchOptions(), needs=Needs(GIB, 60, 1), tell=print)
    with pytest.raises(errors.CorruptFile, match=r"submission/000\.json"):
        next(follower.results(1))
    # It hides no other in the list, is shown, and may be removed.
    assert main(["jobs", "list"]) == main(["jobs", "show", job.id]) == 0
    assert "damaged" in capsys.readouterr().out
    assert main(["jobs", "remove", job.id]) == 0
    assert not job.path.exists()


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_the_list_of_jobs_is_as_wide_as_the_terminal(columns, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    asked = "SELECT " + ", ".join(f"avg(TEMP{i})" for i in range(20))
    _jobs_cli._print_rows(("job", "engine", "asked"), [("0123456789ab", "slurm", asked), ("1", "pbs", "x")])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) == columns
    assert [line.split()[0] for line in lines] == ["job", "0123456789ab", "1"]
    assert lines[1].endswith("...")
    assert lines[2].endswith(" x")


def test_a_worker_tells_of_a_damaged_job(job):
    job.claim([[0]], Needs(GIB, 60, 1), -1)
    (job.path / "submission" / "000.json").write_text("{}")
    words = [sys.executable, "-m", "sieva.engines.batch.worker", str(job.path), "0", "0"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert "corrupt-file: the job in" in done.stdout


def test_damaged_work_is_written_anew_by_who_asks_again(job, tmp_path, ocean_path):
    path = job.path / "work" / "000001"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"X")
    with pytest.raises(errors.CorruptFile, match="000001 is damaged") as found:
        job.work(1)
    assert found.value.hint == "ask again as before: it is written anew"
    same = work_of(sieva.open(ocean_path).query("TEMP > 10"), ocean_path, 4)
    assert JobDirectory.of(tmp_path / "jobs", same, {"engine": "plain"}).work(1) == same[1]
    assert path.read_bytes() == whole


def test_jobs_of_somebody_else_are_not_believed(job, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(errors.PermissionDenied, match="is of somebody else"):
        JobDirectory(Path(job.path))


# What a task runs.


def run_worker(job, *words, **how):
    """Run the first task of a new submission of all work."""
    submission = job.claim([list(range(job.works))], Needs(GIB, 600, 1), len(job.submissions()) - 1)
    command = [
        sys.executable,
        "-m",
        "sieva.engines.batch.worker",
        *words,
        job.path,
        str(submission.number),
        "0",
    ]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **how)


def test_a_task_does_its_work_and_skips_what_is_done(job):
    assert run_worker(job).returncode == 0
    assert job.results() == set(range(job.works))
    again = run_worker(job)
    assert again.returncode == 0
    assert again.stdout.count("has its result") == job.works


def test_a_task_without_time_left_ends_with_what_it_did(job):
    found = run_worker(job, "--time-left", "0")
    assert (found.returncode, job.results()) == (UNFINISHED, {0})
    assert "work 1: left" in found.stdout


def test_a_task_that_cannot_keep_its_result_says_so(job, monkeypatch, capsys):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "result/000000")

    job.claim([[0]], Needs(GIB, 60, 1), -1)
    monkeypatch.setattr("sieva.engines.batch.directory.write_whole", full)
    monkeypatch.setattr(worker.signal, "signal", lambda *_: None)
    monkeypatch.setattr(worker, "configure", lambda **_: None)
    assert worker.main([str(job.path), "0", "0"]) == 1
    told = capsys.readouterr().out
    assert "work 0: io-error: the result cannot be kept: [Errno 28] No space left on device" in told
    assert "this could not be noted either" in told


def test_a_task_says_why_it_failed(job):
    (job.path / "work" / "000001").write_bytes(b"nonsense")
    assert run_worker(job).returncode == 1
    assert job.results() == {0}
    assert job.failures()[1]["kind"] == "corrupt-file"


def test_a_number_that_was_taken_back_is_seen_when_another_takes_it(job):
    class Refusing:
        name = "plain"

        def submit(self, _order):
            raise errors.IoError("no queue")

    needs = Needs(GIB, 600, 1)
    job.claim([[0]], needs, -1)
    follower = Follower(job, Refusing(), options=BatchOptions(), needs=needs, tell=lambda _: None)
    follower._seen = 0
    mine = job.claim([[1]], needs, follower._seen)
    follower._seen = mine.number
    follower._submit(mine)
    assert (mine.number, follower._seen) == (1, 0)
    assert job.claim([[1]], needs, 0).number == 1


@pytest.mark.parametrize("name", ["result/000000", "work/000000"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(job, name):
    path = job.path / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    read = job.result if name.startswith("result") else job.work
    with pytest.raises(errors.CorruptFile, match="no regular file"):
        read(0)


def test_what_is_longer_than_any_result_is_not_read(job):
    path = job.path / "result" / "000000"
    with path.open("wb") as file:
        file.truncate((1 << 30) + 1)
    with pytest.raises(errors.CorruptFile, match="longer than"):
        job.result(0)


@pytest.mark.parametrize("name", ["submission", "result", "failed"])
def test_a_file_in_the_place_of_a_directory_hides_no_other_job(job, name, capsys):
    other = job.path.parent / "ffffffff"
    shutil.copytree(job.path, other)
    about = json.loads((other / "job.json").read_text())
    (other / "job.json").write_text(json.dumps({**about, "id": "ffffffff"}))
    shutil.rmtree(other / name)
    (other / name).write_text("")
    assert main(["jobs", "list"]) == 0
    out = capsys.readouterr().out
    assert job.id in out
    assert any("ffffffff" in line and "damaged" in line for line in out.splitlines())


def test_a_job_that_says_too_much_is_named_and_hides_no_other(job, capsys):
    other = job.path.parent / "ffffffff"
    shutil.copytree(job.path, other)
    with (other / "job.json").open("r+b") as file:
        file.truncate((16 << 20) + 1)
    assert main(["jobs", "list"]) == 0
    out, err = capsys.readouterr()
    assert job.id in out
    assert "ffffffff" in err
    assert "longer than" in err
