"""PBS, by a stand-in for its commands (`services/pbs_stand_in.py`): there is no PBS to be had here."""

import os
import sys
import threading
from pathlib import Path

import pytest
import sieva
from batch_work import answer, ask_in_parts
from services import pbs_stand_in
from services.slurm import SECONDS, await_that
from sieva import errors
from sieva.cli import main
from sieva.engines.batch.directory import JobDirectory
from sieva.engines.batch.engine import BatchEngine
from sieva.engines.batch.pbs import Pbs
from sieva.engines.batch.system import State


@pytest.fixture(autouse=True)
def jobs(tmp_path, monkeypatch):
    """Put the commands where they are found; return where the directories of jobs are made."""
    for name in ("bin", "pbs"):
        (tmp_path / name).mkdir()
    text = Path(pbs_stand_in.__file__).read_text()
    for name in ("qsub", "qstat", "qselect", "qdel"):
        program = tmp_path / "bin" / name
        program.write_text(f"#!{sys.executable}\n{text}")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PBS_STAND_IN", str(tmp_path / "pbs"))
    monkeypatch.setenv("SIEVA_JOBS", str(tmp_path / "jobs"))
    return tmp_path / "jobs"


@pytest.fixture
def query(ocean_path):
    """Return a query of rows."""
    return sieva.open(ocean_path).query("TEMP > 10")


@pytest.mark.parametrize("tasks", [1, 2])
def test_answers_are_those_of_this_process(query, ocean_path, tasks):
    engine = BatchEngine("pbs", tasks=tasks, partition="workq")
    assert answer(ask_in_parts(query, ocean_path, engine)) == answer(query)


def test_a_task_that_fails_tells_its_last_lines(query, ocean_path):
    engine = BatchEngine("pbs", tasks=2, setup="echo no such module; exit 3")
    with pytest.raises(errors.IoError, match="exit code 3") as found:
        ask_in_parts(query, ocean_path, engine)
    assert found.value.message.endswith("no such module")


def test_what_pbs_refuses_leaves_nothing(query, ocean_path, jobs):
    with pytest.raises(errors.IoError, match="Unknown queue"):
        ask_in_parts(query, ocean_path, BatchEngine("pbs", partition="none"))
    assert list(jobs.iterdir()) == []


def test_a_job_is_cancelled_and_resumed(query, ocean_path, tmp_path, jobs):
    gate = tmp_path / "gate"
    engine = BatchEngine("pbs", tasks=2, setup=f"while [ ! -e {gate} ]; do sleep 0.05; done")
    failed = []

    def ask():
        try:
            ask_in_parts(query, ocean_path, engine)
        except errors.SievaError as error:
            failed.append(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    await_that(lambda: list(jobs.glob("[!.]*/submission/000.id")), "a job")
    (path,) = jobs.glob("[!.]*")
    job = JobDirectory(path)
    assert Pbs().find(job.name) == [job.batch_id(0)]
    assert {s.state for s in Pbs().states(job.batch_id(0), 2).values()} == {State.RUNNING}
    assert main(["jobs", "cancel", job.id]) == 0
    asking.join(SECONDS)
    assert [type(error) for error in failed] == [errors.Cancelled]
    assert {s.state for s in Pbs().states(job.batch_id(0), 2).values()} == {State.CANCELLED}
    gate.touch()
    assert main(["jobs", "resume", job.id]) == 0
    assert job.results() == set(range(job.works))


def test_a_job_that_pbs_has_forgotten(tmp_path):
    del tmp_path
    assert Pbs().states("999[].srv", 3) == {}
