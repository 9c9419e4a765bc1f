"""Cancelling a job of a batch system while what finishes it is being submitted."""

import pytest
import sieva
from batch_work import work_of
from sieva import errors
from sieva.engines.batch import jobs as jobs_module
from sieva.engines.batch.directory import JobDirectory
from sieva.engines.batch.finish import finish_later
from sieva.engines.batch.options import BatchOptions
from sieva.engines.batch.system import Needs


@pytest.fixture
def job(tmp_path, ocean_path, monkeypatch):
    """Return the job of a query in parts."""
    monkeypatch.setenv("SIEVA_JOBS", str(tmp_path / "jobs"))
    query = sieva.open(ocean_path).query("TEMP > 10")
    return JobDirectory.of(tmp_path / "jobs", work_of(query, ocean_path, 4), {"engine": "plain"})


class _Noted:
    """A batch system in which what finishes a job waits, whose name was not noted yet."""

    def __init__(self):
        self.cancelled = []

    def find(self, name):
        return ["17"] if name.startswith("end-") else []

    def cancel(self, name):
        self.cancelled.append(name)


def test_what_finishes_a_job_is_stopped_before_its_name_is_noted(job, monkeypatch):
    batch = _Noted()
    monkeypatch.setattr(jobs_module, "system_of", lambda _: batch)
    submission = job.claim([[0]], Needs(1 << 20, 60, 1), -1)
    job.submitted(submission.number, "16")
    jobs_module.cancel(job)
    assert batch.cancelled == ["17", "16"]
    assert job.is_cancelled


def test_who_submits_what_finishes_a_job_that_is_cancelled_takes_it_back(job):
    batch = _Noted()
    batch.submit = lambda _: "18"
    submission = job.claim([[0]], Needs(1 << 20, 60, 1), -1)
    job.submitted(submission.number, "16")
    job.mark("cancelled")
    with pytest.raises(errors.Cancelled, match="was cancelled"):
        finish_later(job, batch, BatchOptions(), submission.needs, ["query"])
    assert batch.cancelled == ["18"]
