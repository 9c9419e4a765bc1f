"""Plain processes of this machine as a batch system: they go on when who asked has gone.

For trying out what a cluster will do, and for a machine without one. A process of its own (``python -m
sieva.engines.batch.plain DIRECTORY``) starts the tasks, as many at a time as there are cores for, and keeps
what became of each in a file. It knows of time, not of memory.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sieva import errors
from sieva.engines.batch.files import MOST_TOLD, read_regular, write_whole
from sieva.engines.batch.system import State, TaskState, run

if TYPE_CHECKING:
    from sieva.engines.batch.system import Order

_PAUSE = 0.05
# Between the signal to end and the one that ends.
_GRACE = 30.0
_RUNNER = "runner.json"


class Plain:
    """The `Batch` of detached processes. An array's name is the directory of what is known of it."""

    name = "plain"

    def submit(self, order: Order) -> str:
        """Start the process that runs the tasks."""
        number = '"$1"'
        order.script.write_text(f"#!/bin/bash\n{order.body(number)}")
        directory = order.script.with_suffix(".run")
        directory.mkdir(exist_ok=True)
        cores = len(os.sched_getaffinity(0))
        settings = {
            "script": str(order.script),
            "tasks": order.tasks,
            "output": str(order.output),
            "seconds": order.needs.seconds,
            "at_once": order.at_once or max(1, cores // order.needs.cpus),
            "after": order.after,
        }
        write_whole(directory / "order.json", json.dumps(settings).encode())
        # It leaves at once, and its child goes on.
        run(sys.executable, "-m", "sieva.engines.batch.plain", str(directory))
        return str(directory)

    def find(self, name: str) -> list[str]:
        """Return nothing: a name is not kept. What was started twice finds the results of the other."""
        del name
        return []

    def states(self, job: str, tasks: int) -> dict[int, TaskState]:
        """Return where the tasks are, by the files that are kept of them."""
        directory = Path(job)
        is_alive = _runs(_runner(directory))
        found: dict[int, TaskState] = {}
        for task in range(tasks):
            with suppress(FileNotFoundError):
                found[task] = _ended(json.loads(read_regular(directory / f"{task}.end", MOST_TOLD)))
                continue
            if not is_alive:
                # A task may have ended between the two looks.
                found[task] = TaskState(State.LOST, reason="its runner has ended")
            elif (directory / f"{task}.begun").exists():
                found[task] = TaskState(State.RUNNING, node=socket.gethostname())
            else:
                found[task] = TaskState(State.WAITING)
        return found

    def cancel(self, job: str) -> None:
        """End the process that runs the tasks, which ends them."""
        runner = _runner(Path(job))
        if _runs(runner):
            with suppress(ProcessLookupError):
                os.kill(runner["pid"], signal.SIGTERM)


def _ended(told: dict[str, Any]) -> TaskState:
    code = told["exit_code"]
    if told["why"]:
        return TaskState(State(told["why"]), node=told["node"], exit_code=code)
    return TaskState(State.DONE if code == 0 else State.FAILED, node=told["node"], exit_code=code)


def _runner(directory: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(read_regular(directory / _RUNNER, MOST_TOLD))
    except FileNotFoundError as error:
        raise errors.IoError(f"{directory} has no {_RUNNER}: it was not started") from error
    if found["host"] != socket.gethostname():
        raise errors.IoError(
            f"the tasks of {directory} are processes of {found['host']}, this is {socket.gethostname()}",
            f"ask on {found['host']}",
        )
    return found


def _runs(runner: dict[str, Any]) -> bool:
    return bool(_start_of(runner["pid"]) == runner["start"])


def _start_of(pid: int) -> str | None:
    """Return when a process began, which tells it from a later one of its number; None: it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


class _Runner:
    """Runs the tasks of a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.order = json.loads((directory / "order.json").read_text())
        self.running: dict[int, tuple[subprocess.Popen[bytes], float]] = {}
        self.is_stopped = False
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)

    def _stop(self, *_: object) -> None:
        self.is_stopped = True

    def run(self) -> None:
        """Run them all, or until it is told to stop."""
        waiting = list(range(self.order["tasks"]))
        if not self._awaited(waiting):
            return
        while (waiting or self.running) and not self.is_stopped:
            while waiting and len(self.running) < self.order["at_once"]:
                self._begin(waiting.pop(0))
            self._look()
            time.sleep(_PAUSE)
        for task in waiting:
            self._note(task, None, State.CANCELLED)
        self._end(list(self.running), State.CANCELLED)

    def _awaited(self, waiting: list[int]) -> bool:
        """Wait for the array that has to end before; return whether it did."""
        if self.order["after"] is None:
            return True
        before = Path(self.order["after"])
        tasks = json.loads((before / "order.json").read_text())["tasks"]
        while not self.is_stopped:
            states = [task.state for task in Plain().states(str(before), tasks).values()]
            if all(state.is_over for state in states):
                return True
            time.sleep(_PAUSE)
        for task in waiting:
            self._note(task, None, State.CANCELLED)
        return False

    def _begin(self, task: int) -> None:
        with (Path(self.order["output"]) / f"{task}.txt").open("ab") as output:
            process = subprocess.Popen(  # noqa: S603 - the script that was submitted
                ["/bin/bash", self.order["script"], str(task)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        (self.directory / f"{task}.begun").touch()
        self.running[task] = (process, time.monotonic() + self.order["seconds"])

    def _look(self) -> None:
        late = [task for task, (_, until) in self.running.items() if time.monotonic() > until]
        self._end(late, State.OUT_OF_TIME)
        for task, (process, _) in list(self.running.items()):
            if process.poll() is not None:
                del self.running[task]
                self._note(task, process.returncode, None)

    def _end(self, tasks: list[int], why: State) -> None:
        """End tasks: they are asked to, and made to after a while."""
        for task in tasks:
            _signal(self.running[task][0], signal.SIGTERM)
        until = time.monotonic() + _GRACE
        for task in tasks:
            process, _ = self.running.pop(task)
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL)
                process.wait()
            self._note(task, process.returncode, why)

    def _note(self, task: int, code: int | None, why: State | None) -> None:
        # A process that a signal ended has a negative code; shells add 128 to its number.
        exit_code = 128 - code if code is not None and code < 0 else code
        told = {"exit_code": exit_code, "why": why.value if why else None, "node": socket.gethostname()}
        write_whole(self.directory / f"{task}.end", json.dumps(told).encode())


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """Signal a task and what it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def main(directory: Path) -> None:
    """Detach from who asks, and run the tasks of a directory."""
    if child := os.fork():
        told = {"host": socket.gethostname(), "pid": child, "start": _start_of(child)}
        write_whole(directory / _RUNNER, json.dumps(told).encode())
        return
    os.setsid()
    log = os.open(directory / "runner.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    for here, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(here, target)
    _Runner(directory).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
