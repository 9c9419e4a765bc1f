"""Queries by a real Slurm of two nodes on this host: answers, and what happens when something dies.

Skipped where Slurm is not installed: see ``make slurm-packages``. Tasks that a test wants to find running
wait for a file, the gate.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import sieva
from batch_work import answer, ask_in_parts, work_of
from engine_cases import ASKED, CASES, check
from services.slurm import await_that, running_cluster
from sieva import errors
from sieva.cli import main
from sieva.engines.batch.directory import JobDirectory
from sieva.engines.batch.engine import BatchEngine
from sieva.engines.batch.slurm import Slurm
from sieva.engines.batch.system import Needs, Order, State, TaskState
from test_conformance import files  # noqa: F401

SECONDS = 300


@pytest.fixture(scope="module")
def cluster():
    """Return a running cluster."""
    with running_cluster() as found:
        yield found


@pytest.fixture(autouse=True)
def _nothing_left(cluster):
    """Give each test a cluster without the jobs of those before it."""
    yield
    cluster.tidy()


@pytest.fixture(autouse=True)
def jobs(tmp_path, monkeypatch):
    """Return where the directories of jobs are made."""
    # With characters that mean something to a shell, and to Slurm.
    place = tmp_path / "my jobs 5%a"
    monkeypatch.setenv("SIEVA_JOBS", str(place))
    return place


@pytest.fixture
def query(ocean_path):
    """Return a query of rows."""
    return sieva.open(ocean_path).query("TEMP > 10", select=["TEMP", "z_t"])


def engine_of_slurm(**options):
    """Return an engine of two small tasks, and what it told."""
    told = []
    known = {"time_left": SECONDS, "tasks": 2, "memory": "512MiB", "tell": told.append}
    return BatchEngine("slurm", **{**known, **options}), told


class Asking:
    """Asks in a thread."""

    def __init__(self, query, path, engine):
        self.found = None
        self.error = None
        self._thread = threading.Thread(target=self._ask, args=(query, path, engine), daemon=True)
        self._thread.start()

    def _ask(self, *words):
        try:
            self.found = answer(ask_in_parts(*words))
        except errors.SievaError as error:
            self.error = error

    def wait(self):
        """Wait for the end, and return the answer."""
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
        return self.found


def gate(tmp_path):
    """Return a file, and a line of shell that waits for it."""
    path = tmp_path / "gate"
    return path, f"while [ ! -e {path} ]; do sleep 0.1; done"


def only_job():
    """Return the only job that there is."""
    (path,) = Path(os.environ["SIEVA_JOBS"]).glob("[!.]*")
    return JobDirectory(path)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) AS n WHERE TEMP > 10",
        "SELECT z_t, avg(TEMP) AS a, stddev(TEMP) AS s, median(SALT) AS m GROUP BY z_t",
        "SELECT TEMP, SALT WHERE TEMP > 10 AND z_t < 5000 ORDER BY TEMP DESC LIMIT 7",
        "SELECT TEMP WHERE TEMP > 1000",
    ],
)
def test_answers_are_those_of_this_process(cluster, ocean_path, text):
    del cluster
    query = sieva.open(ocean_path).sql(text)
    engine, _ = engine_of_slurm()
    assert answer(ask_in_parts(query, ocean_path, engine)) == answer(query)


def test_a_query_with_an_engine_and_a_command(cluster, ocean_path, capsys):
    del cluster
    text = "SELECT TEMP, SALT WHERE TEMP > 10"
    engine, told = engine_of_slurm()
    source = sieva.open(ocean_path)
    assert answer(source.sql(text, engine=engine)) == answer(source.sql(text))
    assert source.sql(text, engine=engine).count() == source.sql(text).count()
    assert len(told) == 2
    words = ["query", text.replace(" WHERE", f" FROM '{ocean_path}' WHERE")]
    assert main(words) == 0
    alone = capsys.readouterr().out
    options = [f"--batch-option={option}" for option in ("tasks=2", "memory=512MiB", "partition=main")]
    assert main([*words, "--engine", "slurm", *options]) == 0
    assert capsys.readouterr().out == alone


def test_a_command_that_does_not_wait(cluster, ocean_path, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = f"SELECT TEMP FROM '{ocean_path}' WHERE TEMP > 10"
    options = [f"--batch-option={option}" for option in ("tasks=2", "memory=512MiB")]
    assert main(["query", text, "-o", "warm.csv", "--engine", "slurm", "--detach", *options]) == 0
    assert "finishes it when it is done" in capsys.readouterr().err
    await_that((tmp_path / "warm.csv").exists, "the file", cluster.said)
    assert main(["query", text, "-o", "alone.csv"]) == 0
    assert (tmp_path / "warm.csv").read_bytes() == (tmp_path / "alone.csv").read_bytes()


def test_tasks_run_on_both_nodes_and_are_told_of(cluster, query, ocean_path, tmp_path, capsys):
    path, setup = gate(tmp_path)
    engine, told = engine_of_slurm(setup=setup, cpus=4)
    asking = Asking(query, ocean_path, engine)
    await_that(lambda: cluster.running() == 2, "two tasks that run", cluster.said)
    job = only_job()
    batch_id = job.batch_id(0)
    assert f"2 tasks are slurm's {batch_id}" in told[0]
    for asks_json in (True, False):
        slurm = Slurm()
        slurm._asks_json = asks_json
        states = slurm.states(batch_id, 2)
        assert {state.state for state in states.values()} == {State.RUNNING}
        assert {state.node for state in states.values()} == {"n1", "n2"}
    assert Slurm().find(job.name) == [batch_id]
    assert main(["jobs", "show", job.id, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["state"], shown["tasks"], shown["batch_ids"]) == ("running", {"running": 2}, [batch_id])
    path.touch()
    assert asking.wait() == answer(query)
    await_that(lambda: not Slurm().find(job.name), "the end of the tasks")
    for asks_json in (True, False):
        slurm._asks_json = asks_json
        assert slurm.states(batch_id, 2)[0] == TaskState(State.DONE, node="n1", exit_code=0)


def test_what_a_failed_test_leaves_does_not_stop_those_behind_it(cluster, query, ocean_path, tmp_path):
    _, setup = gate(tmp_path)
    engine, _ = engine_of_slurm(setup=setup, cpus=4)
    asking = Asking(query, ocean_path, engine)
    await_that(lambda: cluster.running() == 2, "two tasks that run", cluster.said)
    cluster.kill("n2")
    cluster.tidy()
    assert cluster.idle_nodes() == 2
    assert cluster.running() == 0
    assert asking.wait() is None
    assert "cancel" in str(asking.error)


def test_a_node_that_dies_costs_time_not_the_answer(cluster, query, ocean_path, tmp_path):
    path, setup = gate(tmp_path)
    engine, _ = engine_of_slurm(setup=setup, cpus=3)
    asking = Asking(query, ocean_path, engine)
    await_that(lambda: cluster.running() == 2, "two tasks that run", cluster.said)
    job = only_job()
    cluster.kill_node("n2")
    waiting = ("squeue", "-h", "-r", "-t", "pending", "-o", "%i")
    await_that(lambda: cluster.ask(*waiting), "a task that is queued again", cluster.said)
    # Slurm lets two minutes go by, which need not be waited for here.
    cluster.ask("scontrol", "update", f"JobId={cluster.ask(*waiting).strip()}", "StartTime=now")
    path.touch()
    assert asking.wait() == answer(query)
    assert job.results() == set(range(job.works))
    cluster.start_node("n2")
    await_that(lambda: cluster.idle_nodes() == 2, "two idle nodes", cluster.said)


def test_a_controller_that_is_started_again_is_waited_for(cluster, query, ocean_path, tmp_path):
    path, setup = gate(tmp_path)
    engine, told = engine_of_slurm(setup=setup)
    asking = Asking(query, ocean_path, engine)
    await_that(lambda: cluster.running() == 2, "two tasks that run", cluster.said)
    # As a service is stopped: it keeps its state. What it was told in the last seconds a crash would lose.
    cluster.kill("slurmctld", signal.SIGTERM)
    await_that(
        lambda: any("does not answer" in line for line in told), "the silence to be noticed", cluster.said
    )
    cluster.start_controller()
    await_that(
        lambda: any("answers again" in line for line in told), "the answer to be noticed", cluster.said
    )
    path.touch()
    assert asking.wait() == answer(query)
    assert sum("tasks are slurm's" in line for line in told) == 1


def test_a_controller_that_is_killed_is_waited_for(cluster, query, ocean_path, tmp_path):
    path, setup = gate(tmp_path)
    engine, told = engine_of_slurm(setup=setup)
    asking = Asking(query, ocean_path, engine)
    await_that(lambda: cluster.running() == 2, "two tasks that run", cluster.said)
    # It writes down what it knows every few seconds.
    state, now = cluster.directory / "state" / "job_state", time.time()
    await_that(lambda: state.exists() and state.stat().st_mtime > now, "the state that is kept", cluster.said)
    cluster.kill("slurmctld", signal.SIGKILL)
    await_that(
        lambda: any("does not answer" in line for line in told), "the silence to be noticed", cluster.said
    )
    cluster.start_controller()
    await_that(
        lambda: any("answers again" in line for line in told), "the answer to be noticed", cluster.said
    )
    path.touch()
    assert asking.wait() == answer(query)
    assert asking.error is None


def test_who_asks_may_be_killed_and_ask_again(cluster, query, ocean_path, tmp_path):
    path, setup = gate(tmp_path)
    script = (
        "import sys; sys.path.insert(0, sys.argv[3])\n"
        "import sieva\n"
        "from batch_work import ask_in_parts\n"
        "from sieva.engines.batch.engine import BatchEngine\n"
        "query = sieva.open(sys.argv[1]).query('TEMP > 10', select=['TEMP', 'z_t'])\n"
        "engine = BatchEngine('slurm', tasks=2, memory='512MiB', setup=sys.argv[2])\n"
        "ask_in_parts(query, sys.argv[1], engine)\n"
    )
    words = [sys.executable, "-c", script, str(ocean_path), setup, str(Path(__file__).parent)]
    with subprocess.Popen(words) as asking:
        await_that(lambda: cluster.running() == 2, "two tasks that run", cluster.said)
        await_that(lambda: only_job().batch_id(0), "the name of the array")
        asking.send_signal(signal.SIGKILL)
    path.touch()
    engine, told = engine_of_slurm(setup=setup)
    assert answer(ask_in_parts(query, ocean_path, engine)) == answer(query)
    assert told == []
    assert len(only_job().submissions()) == 1


def test_an_array_whose_name_was_not_kept_is_found(cluster, query, ocean_path, tmp_path, monkeypatch):
    """Who asked was killed between submitting and keeping the name."""
    monkeypatch.setattr("sieva.engines.batch.follow._LATE", 0.0)
    path, setup = gate(tmp_path)
    engine, _ = engine_of_slurm(setup=setup, time_left=1)
    with pytest.raises(errors.Cancelled):
        ask_in_parts(query, ocean_path, engine)
    job = only_job()
    kept = job.batch_id(0)
    (job.path / "submission" / "000.id").unlink()
    again, told = engine_of_slurm(setup=setup)
    asking = Asking(query, ocean_path, again)
    await_that(lambda: job.batch_id(0), "the name of the array", cluster.said)
    path.touch()
    assert asking.wait() == answer(query)
    assert (job.batch_id(0), told) == (kept, [])


def test_a_job_is_cancelled_and_resumed(cluster, query, ocean_path, tmp_path, capsys):
    path, setup = gate(tmp_path)
    engine, _ = engine_of_slurm(setup=setup)
    asking = Asking(query, ocean_path, engine)
    await_that(lambda: cluster.running() == 2, "two tasks that run", cluster.said)
    job = only_job()
    assert main(["jobs", "cancel", job.id]) == 0
    asking.wait()
    assert isinstance(asking.error, errors.Cancelled)
    await_that(lambda: cluster.running() == 0, "no task that runs", cluster.said)
    assert {s.state for s in Slurm().states(job.batch_id(0), 2).values()} == {State.CANCELLED}
    path.touch()
    assert main(["jobs", "resume", job.id]) == 0
    assert f"job {job.id}: done" in capsys.readouterr().err
    again, told = engine_of_slurm(setup=setup)
    assert answer(ask_in_parts(query, ocean_path, again)) == answer(query)
    assert told == []


def test_a_task_that_is_told_to_end_is_submitted_again(cluster, query, ocean_path, tmp_path):
    path, setup = gate(tmp_path)
    engine, told = engine_of_slurm(setup=setup)
    asking = Asking(query, ocean_path, engine)
    await_that(lambda: cluster.running() == 2, "two tasks that run", cluster.said)
    task = f"{only_job().batch_id(0)}_1"

    def is_submitted_again():
        # Once more each time: a signal that comes before the script runs is lost.
        cluster.ask("scancel", "--batch", "--signal=TERM", task)
        return any("again" in line for line in told)

    await_that(is_submitted_again, "a submission of what is left", cluster.said)
    path.touch()
    assert asking.wait() == answer(query)


def test_a_task_that_fails_tells_its_last_lines(cluster, query, ocean_path, capsys):
    del cluster
    engine, _ = engine_of_slurm(setup="echo module: no such thing as python/3.99; exit 3")
    with pytest.raises(errors.IoError, match=r"NonZeroExitCode, exit code 3, on n[12]") as found:
        ask_in_parts(query, ocean_path, engine)
    assert found.value.message.endswith("module: no such thing as python/3.99")
    job = only_job()
    assert main(["jobs", "show", job.id]) == 0
    shown = capsys.readouterr().out
    assert "state       failed" in shown
    assert "    module: no such thing as python/3.99" in shown


def test_a_source_that_was_replaced_fails_the_work(cluster, ocean_path, tmp_path):
    copy = tmp_path / "ocean.nc"
    copy.write_bytes(ocean_path.read_bytes())
    work = work_of(sieva.open(copy).query("TEMP > 10"), copy, 4)
    copy.write_bytes(ocean_path.read_bytes() + b"more")
    engine, _ = engine_of_slurm()
    with pytest.raises(errors.StaleSource, match=r"task [01] of job [0-9a-f]{8} on"):
        list(engine.run(work))
    await_that(lambda: cluster.running() == 0, "no task that runs", cluster.said)


def test_what_slurm_refuses_leaves_nothing(cluster, query, ocean_path, jobs):
    del cluster
    engine, _ = engine_of_slurm(partition="none-such")
    with pytest.raises(errors.IoError, match="invalid partition"):
        ask_in_parts(query, ocean_path, engine)
    assert list(jobs.iterdir()) == []


def test_a_job_waits_for_another_to_end(cluster, tmp_path):
    """``afterany``: what comes then looks how it ended."""

    def order(name, command, after=None):
        (tmp_path / name).mkdir()
        needs = Needs(memory=64 << 20, seconds=60, cpus=1)
        script, output = tmp_path / f"{name}.sh", tmp_path / name
        return Order(name, ["bash", "-c", command, "bash"], 1, needs, script, output, after=after)

    slurm = Slurm()
    good = slurm.submit(order("good", f"echo first >> {tmp_path}/log"))
    bad = slurm.submit(order("bad", f"echo second >> {tmp_path}/log; exit 1", after=good))
    then = slurm.submit(order("then", f"echo third >> {tmp_path}/log", after=bad))
    for job, state in ((bad, State.FAILED), (then, State.DONE)):
        await_that(lambda job=job: slurm.states(job, 1)[0].state.is_over, f"the end of {job}", cluster.said)
        assert slurm.states(job, 1)[0].state is state
    assert (tmp_path / "log").read_text() == "first\nsecond\nthird\n"


def test_conformance_cases(cluster, files):  # noqa: F811
    """A part of the cases, as each waits for a job of its own."""
    del cluster
    engine, _ = engine_of_slurm()
    names = ASKED[::25]
    assert sum(check(CASES[name], files, engine) for name in names) > len(names) * 0.8


def test_an_index_is_built_by_tasks(cluster, tmp_path, particles_path, capsys):
    copy = tmp_path / "particles.h5"
    copy.write_bytes(particles_path.read_bytes())
    words = ["index", str(copy), "--var", "Energy", "--engine", "slurm", "--batch-option", "tasks=2"]
    del cluster
    assert main([*words, "--batch-option", "memory=512MiB"]) == 0
    assert "tasks are slurm's" in capsys.readouterr().err
    source = sieva.open(copy)
    (array,) = source.index_status().arrays
    assert array.with_bitmap == array.regions
    assert source.verify_index(all=True)
    there = source.query("Energy > 1.7", access="bitmap")
    assert there.count() == sieva.open(particles_path).query("Energy > 1.7", access="scan").count()
    # What was built is gone: a job that was done is no answer.
    assert source.drop_index()
    assert main([*words, "--batch-option", "memory=512MiB"]) == 0
    (array,) = sieva.open(copy).index_status().arrays
    assert array.with_bitmap == array.regions


def test_an_index_that_nobody_waits_for_and_a_node_that_dies(cluster, tmp_path):
    copy = tmp_path / "large.h5"
    with h5py.File(copy, "w") as file:
        file["Energy"] = np.random.default_rng(6).normal(size=500_000).astype("f4")
    path, setup = gate(tmp_path)
    options = [f"--batch-option={option}" for option in ("tasks=2", "cpus=3", f"setup={setup}")]
    assert main(["index", str(copy), "--var", "Energy", "--engine", "slurm", "--detach", *options]) == 0
    await_that(lambda: cluster.running() == 2, "two tasks that run", cluster.said)
    cluster.kill_node("n2")
    waiting = ("squeue", "-h", "-r", "-t", "pending", "-n", only_job().name, "-o", "%i")
    await_that(lambda: cluster.ask(*waiting), "a task that is queued again", cluster.said)
    cluster.ask("scontrol", "update", f"JobId={cluster.ask(*waiting).strip()}", "StartTime=now")
    path.touch()
    said = only_job().path / "submission" / "000.end.out" / "0.txt"
    await_that(lambda: said.exists() and "Energy: " in said.read_text(), "the finished index", cluster.said)
    source = sieva.open(copy)
    (array,) = source.index_status().arrays
    assert array.with_bitmap == array.regions
    assert source.verify_index(all=True)
    cluster.start_node("n2")
    await_that(lambda: cluster.idle_nodes() == 2, "two idle nodes", cluster.said)


def test_workers_of_dask_as_jobs_of_slurm(cluster, query, ocean_path, tmp_path, monkeypatch):
    """`SLURMCluster` of dask-jobqueue, as in the guide to Dask."""
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    jobqueue = pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    import sieva.dask  # noqa: PLC0415 - what it needs was looked for

    del cluster
    # Where Slurm puts the output of the workers.
    monkeypatch.chdir(tmp_path)
    how = {"cores": 1, "processes": 1, "memory": "1GB", "walltime": "00:10:00", "interface": "lo"}
    quiet = {"dashboard_address": "127.0.0.1:0"}
    with (
        jobqueue.SLURMCluster(queue="main", python=sys.executable, scheduler_options=quiet, **how) as workers,
        distributed.Client(workers, set_as_default=False) as client,
    ):
        workers.scale(jobs=2)
        client.wait_for_workers(2, timeout=SECONDS)
        source = sieva.dask.open(ocean_path, client)
        found = source.query("TEMP > 10", select=["TEMP", "z_t"])
        assert answer(found) == answer(query)
        assert found.count() == query.count()
