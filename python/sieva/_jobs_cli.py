"""``sieva jobs``: what was given to a batch system, and where it is."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from sieva._printable import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sieva.engines.batch.jobs import JobState

# Characters that are shown of what a job was asked, at least.
_LEAST = 10


def _json_option(function: Any) -> Any:  # noqa: ANN401 - any command
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


@click.group()
def jobs() -> None:
    """List, show, cancel, resume and remove what was given to a batch system."""


@jobs.command(name="list")
@_json_option
def list_(as_json: bool) -> None:
    """List the jobs, the newest first."""
    from sieva.engines.batch.jobs import known_jobs, state_of

    states = [state_of(job) for job in known_jobs(lambda error: say(f"sieva: {error}", err=True))]
    if as_json:
        _print_json([vars(state) for state in states])
        return
    rows = [(s.id, s.engine, s.state, f"{s.done}/{s.works}", _date(s.created), s.what) for s in states]
    _print_rows(("job", "engine", "state", "done", "begun", "asked"), rows)


@jobs.command()
@click.argument("name", metavar="ID")
@_json_option
def show(name: str, as_json: bool) -> None:
    """Show where job ID is, and the last lines of what failed."""
    from sieva.engines.batch.jobs import job_of, state_of, unfinished_tasks

    job = job_of(name)
    state = state_of(job)
    ends = [] if state.state in {"done", "unknown", "damaged"} else unfinished_tasks(job)
    if as_json:
        told = [
            {"submission": e.submission, "task": e.task, "state": str(e.state), "last_lines": e.lines}
            for e in ends
        ]
        _print_json({**vars(state), "unfinished": told})
        return
    say(_described(state))
    for end in ends:
        say(f"\ntask {end.task} of submission {end.submission}: {end.state}")
        say("\n".join(f"    {line}" for line in end.lines.splitlines()) or "    it wrote nothing")


@jobs.command()
@click.argument("name", metavar="ID")
def cancel(name: str) -> None:
    """Stop the tasks of job ID; what they did stays, and `resume` goes on from there."""
    from sieva.engines.batch import jobs as batch_jobs

    job = batch_jobs.job_of(name)
    batch_jobs.cancel(job)
    say(f"job {job.id}: cancelled, with {len(job.results())} of {job.works} pieces of work done", err=True)


@jobs.command()
@click.argument("name", metavar="ID")
@click.pass_context
def resume(context: click.Context, name: str) -> None:
    """Go on with job ID and wait for it: what is done is not done again.

    A command is run again in the directory that it was given in, and gives its answer. Of a job that Python
    asked for the work is done: asking again there has the answer at once.
    """
    from sieva.engines.batch import jobs as batch_jobs
    from sieva.engines.batch.finish import without_limit

    job = batch_jobs.job_of(name)
    command = job.about["command"]
    if command is None:
        batch_jobs.resume(job, lambda text: say(text, err=True))
        say(f"job {job.id}: done; ask again in Python for the answer", err=True)
        return
    from sieva.cli import main

    os.chdir(job.about["cwd"])
    context.exit(main(without_limit(command)))


@jobs.command()
@click.argument("names", nargs=-1, required=True, metavar="ID...")
def remove(names: Sequence[str]) -> None:
    """Remove jobs that are over, with their results. Those that are done go by themselves after a week."""
    from sieva.engines.batch import jobs as batch_jobs

    for name in names:
        job = batch_jobs.job_of(name)
        batch_jobs.remove(job)
        say(f"job {job.id}: removed", err=True)


def _described(state: JobState) -> str:
    lines = {
        "job": state.id,
        "asked": state.what,
        "engine": " ".join([state.engine, *state.batch_ids]),
        "begun": _date(state.created),
        "state": f"{state.state}, {state.done} of {state.works} pieces of work done",
        "tasks": ", ".join(f"{n} {name}" for name, n in state.tasks.items()),
        "directory": state.directory,
    }
    told = [f"{name:<11} {text}" for name, text in lines.items() if text]
    return "\n".join(told + [f"failed      {failure}" for failure in state.failures])


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def _print_rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows: aligned for people, the last column as far as there is room; by tabs for programs."""
    if not sys.stdout.isatty():
        for row in rows:
            say("\t".join(row))
        return
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    room = shutil.get_terminal_size().columns - sum(width + 2 for width in widths[:-1])
    widths[-1] = max(_LEAST, room)
    for *cells, last in (head, *rows):
        row = (*cells, _cut(last, widths[-1]))
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _print_json(value: object) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))
