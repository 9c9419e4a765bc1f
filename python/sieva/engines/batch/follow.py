"""Following a job: submits what has neither a result nor a task, and hands results on as they appear.

All that it knows it reads from the job's directory and asks of the batch system, so that it may end and be
started again at any moment, and be there twice.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from sieva import errors
from sieva.engines.batch.needs import raised
from sieva.engines.batch.slurm import TOLD_BEFORE
from sieva.engines.batch.system import UNFINISHED, Order, State, TaskState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sieva.engines.batch.directory import JobDirectory
    from sieva.engines.batch.options import BatchOptions
    from sieva.engines.batch.submission import Submission
    from sieva.engines.batch.system import Batch, Needs

    _End = tuple[Submission, int, TaskState]

# Seconds between two looks at the results, and between two questions to the batch system, whose controller
# serves everybody: at first, and at most.
_LOOKS = (0.1, 5.0)
_QUESTIONS = (1.0, 30.0)
_SLOWER = 1.3
# A network file system may show what another node wrote so much later.
_LATE = 90.0
_HARDLY_LATE = 3.0
# A controller that is down is waited for.
_PATIENCE = 3600.0
# Exit code of a shell whose program was ended by SIGTERM, before it could listen.
_TERMINATED = 143


class Follower:
    """Follows a job.

    Parameters
    ----------
    job, batch
        The job, and the system that runs it.
    options, needs
        What tasks are asked for with.
    tell
        Called with a line for people where something happened.
    until
        Time of `time.monotonic` at which following ends. None: never.
    """

    def __init__(
        self,
        job: JobDirectory,
        batch: Batch,
        *,
        options: BatchOptions,
        needs: Needs,
        tell: Callable[[str], None],
        until: float | None = None,
    ) -> None:
        self.job = job
        self.batch = batch
        # The number of the last submission that was looked at.
        self._seen = -1
        self.options = options
        self.needs = needs
        self.tell = tell
        self.until = until
        # Submissions whose end matters; those that were over before do not.
        self._watched: set[int] = set()
        # Of these, those that were cancelled before this began: their work is to be done again.
        self._cancelled_before: set[int] = set()
        # Work whose result is not merely late.
        self._damaged: set[int] = set()
        self._over_since: dict[tuple[int, int], float] = {}
        self._silent_since: float | None = None
        self._attempts = 0
        self._done_at_submission = -1

    def start(self, tasks: int) -> bool:
        """Submit what nobody is at; return whether there is work without a result."""
        self._begin()
        done = self.job.results()
        if len(done) < self.job.works:
            self._look(done, tasks)
        return len(done) < self.job.works

    def carry_on(self, tasks: int) -> bool:
        """As `start`, of who comes when an array has ended: how that ended counts.

        Raises
        ------
        SievaError
            As `results`: it was cancelled, failed, or came to nothing often enough.
        """
        if self.job.is_cancelled:
            raise self._cancelled()
        self._raise_failure()
        self._remember(self.job.submissions())
        until = time.monotonic() + 2 * _LATE
        while len(done := self.job.results()) < self.job.works:
            before = self._seen
            self._look(done, tasks)
            if self._seen > before or time.monotonic() > until:
                return True
            time.sleep(_QUESTIONS[0])
        return False

    def _remember(self, submissions: Sequence[Submission]) -> None:
        """Take up what another process knew that followed before: the last array, and what came of those."""
        for submission in submissions:
            stuck = self._done_at_submission == submission.done
            self._attempts = self._attempts + 1 if stuck else 0
            self._done_at_submission = submission.done
            self._seen, self.needs = submission.number, submission.needs
        self._watched = {submission.number for submission in submissions[-1:]}

    def results(self, tasks: int) -> Iterator[tuple[int, bytes]]:
        """Yield the number of each piece of work and its result, as they appear.

        Parameters
        ----------
        tasks
            Tasks that work is shared out to.

        Raises
        ------
        SievaError
            What a piece of work failed by, once the other tasks were stopped; `IoError` where a task ended
            otherwise, with its last lines; `Cancelled` where it was cancelled, or time is up.
        """
        self._begin()
        given: set[int] = set()
        looks, questions = _Pauses(*_LOOKS), _Pauses(*_QUESTIONS)
        while True:
            fresh = sorted(self.job.results() - given)
            for number in fresh:
                given.add(number)
                yield number, self.job.result(number)
            if len(given) == self.job.works:
                self.job.mark("done")
                return
            self._raise_failure()
            if questions.is_due():
                is_steady = self._look(given, tasks)
                questions.begin(afresh=not is_steady)
            looks.begin(afresh=bool(fresh))
            self._sleep(looks.pause)

    def _sleep(self, seconds: float) -> None:
        if self.until is not None and time.monotonic() + seconds > self.until:
            raise errors.Cancelled(
                f"time is up; job {self.job.id} goes on: {len(self.job.results())} of {self.job.works} done",
                f"ask again, or `sieva jobs resume {self.job.id}`",
            )
        time.sleep(seconds)

    def _begin(self) -> None:
        """Take up what is under way, and forget how it ended before."""
        self._damaged = self.job.take_up_again()
        for submission in self.job.submissions():
            self._seen = submission.number
            if self._is_under_way(submission):
                self._watched.add(submission.number)
                if self.job.was_cancelled(submission.number):
                    self._cancelled_before.add(submission.number)

    def _is_under_way(self, submission: Submission) -> bool:
        name = self.job.batch_id(submission.number)
        if name is None:
            return True
        states = self._asked(submission, name)
        # A controller that does not answer now may still have it.
        return states is None or any(not task.state.is_over for task in states.values())

    # What became of it.

    def _look(self, given: set[int], tasks: int) -> bool:
        """Ask the batch system, and submit what nobody is at any more; return whether nothing happened."""
        if self.job.is_cancelled:
            # One may have been submitted at the same time.
            self._stop_others()
            raise self._cancelled()
        under_way: set[int] = set()
        # Of each piece of work without a result the last task that had it, and how that ended.
        ends: dict[int, _End] = {}
        for submission in self.job.submissions():
            if submission.number > self._seen:
                # By somebody else who follows it.
                self._seen = submission.number
                self._watched.add(submission.number)
            if submission.number not in self._watched:
                continue
            states = self._states(submission)
            if states is None:
                return True
            for task, numbers in enumerate(submission.tasks):
                missing = set(numbers) - given
                if missing - self._damaged and self._may_come(submission, task, states[task]):
                    under_way |= missing
                ends |= dict.fromkeys(missing, (submission, task, states[task]))
        left = sorted(set(range(self.job.works)) - under_way - self.job.results())
        self._damaged = set()
        blamed = {(end[0].number, end[1]): end for number, end in ends.items() if number in left}
        for submission, task, state in blamed.values():
            self._judge(submission, task, state)
        if left:
            self._submit_again(left, tasks, [state for _, _, state in blamed.values()])
        return not any(state.state.is_over for _, _, state in ends.values())

    def _states(self, submission: Submission) -> dict[int, TaskState] | None:
        """Return the state of each task; None: the batch system does not answer now."""
        name = self.job.batch_id(submission.number) or self._adopted(submission)
        states = None if name is None else self._asked(submission, name)
        if states is None:
            return None
        return {n: states.get(n, TaskState(State.UNKNOWN)) for n in range(len(submission.tasks))}

    def _asked(self, submission: Submission, name: str) -> dict[int, TaskState] | None:
        try:
            states = self.batch.states(name, len(submission.tasks))
        except errors.IoError as error:
            self._be_patient(error)
            return None
        if self._silent_since is not None:
            self.tell(f"{self.batch.name} answers again")
            self._silent_since = None
        return states

    def _be_patient(self, error: errors.IoError) -> None:
        now = time.monotonic()
        if self._silent_since is None:
            self._silent_since = now
            self.tell(f"{self.batch.name} does not answer, which is waited for: {error}")
        if now - self._silent_since > _PATIENCE:
            raise errors.IoError(
                f"{self.batch.name} did not answer for {_PATIENCE / 60:.0f} minutes: {error}",
                f"job {self.job.id} may go on: ask again, or `sieva jobs resume {self.job.id}`",
            ) from error

    def _adopted(self, submission: Submission) -> str | None:
        """Return the name of a submission that does not have it yet: who submits it is at it, or died."""
        if time.time() - submission.at < _LATE:
            return None
        known = {self.job.batch_id(other.number) for other in self.job.submissions()}
        try:
            names = [name for name in self.batch.find(self.job.name) if name not in known]
        except errors.IoError as error:
            self._be_patient(error)
            return None
        if names:
            self.job.submitted(submission.number, names[-1])
            return names[-1]
        self._submit(submission)
        return self.job.batch_id(submission.number)

    def _may_come(self, submission: Submission, task: int, state: TaskState) -> bool:
        """Whether results of a task may still appear."""
        if not state.state.is_over:
            return True
        since = self._over_since.setdefault((submission.number, task), time.monotonic())
        # What a task did may be seen late, and so may why it failed; that it left work is sure.
        late = _LATE if state.state in {State.DONE, State.UNKNOWN} else _HARDLY_LATE
        late = 0.0 if state.exit_code == UNFINISHED else late
        return time.monotonic() - since < late

    def _judge(self, submission: Submission, task: int, state: TaskState) -> None:
        """Raise where trying again is of no use."""
        self._raise_failure()
        if submission.number in self._cancelled_before:
            return
        if state.state is State.CANCELLED:
            self._stop_others()
            raise self._cancelled()
        if state.state is State.FAILED and state.exit_code not in {UNFINISHED, _TERMINATED}:
            self._stop_others()
            raise errors.IoError(
                self._told(submission, task, state), f"`sieva jobs show {self.job.id}` tells more"
            )

    def _cancelled(self) -> errors.Cancelled:
        return errors.Cancelled(
            f"job {self.job.id} was cancelled", f"`sieva jobs resume {self.job.id}` goes on with it"
        )

    def _told(self, submission: Submission, task: int, state: TaskState) -> str:
        lines = self.job.last_lines(submission.number, task)
        file = self.job.output(submission.number) / f"{task}.txt"
        told = f"task {task} of job {self.job.id}: {state}"
        return f"{told}; it wrote nothing to {file}" if not lines else f"{told}; the end of {file}:\n{lines}"

    def _raise_failure(self) -> None:
        try:
            raise_failure(self.job)
        except errors.SievaError:
            self._stop_others()
            raise

    def _stop_others(self) -> None:
        for submission in self.job.submissions():
            name = self.job.batch_id(submission.number)
            if submission.number in self._watched and name is not None:
                # Who goes on while its tasks are still ending takes their end for no news.
                self.job.cancel(submission.number)
                try:
                    self.batch.cancel(name)
                except errors.SievaError as error:
                    self.tell(f"{name} could not be cancelled: {error}")

    # What is submitted.

    def _submit_again(self, left: Sequence[int], tasks: int, ends: Sequence[TaskState]) -> None:
        done = len(self.job.results())
        stuck = done == self._done_at_submission
        self._attempts = self._attempts + 1 if stuck else 0
        if self._attempts >= self.options.attempts:
            told = ", ".join(sorted({str(state) for state in ends}))
            raise errors.IoError(
                f"{len(left)} of {self.job.works} pieces of work of job {self.job.id} have no result after "
                f"{self._attempts + 1} submissions: {told}",
                f"see `sieva jobs show {self.job.id}`; `sieva jobs resume {self.job.id}` tries again",
            )
        states = {end.state for end in ends}
        # Told to end without having done anything: it had too little time.
        cut_off = stuck and any(end.exit_code == UNFINISHED for end in ends)
        self.needs = raised(
            self.needs, time=State.OUT_OF_TIME in states or cut_off, memory=State.OUT_OF_MEMORY in states
        )
        submission = self.job.claim(shares(left, tasks), self.needs, self._seen)
        if submission is None:
            # Somebody else follows it, too, and its submission is seen at the next look.
            return
        self._seen = submission.number
        if ends:
            told = ", ".join(sorted({str(state) for state in ends}))
            self.tell(f"job {self.job.id}: {len(left)} of {self.job.works} pieces of work again: {told}")
        self._submit(submission)
        self._done_at_submission = done

    def _submit(self, submission: Submission) -> None:
        try:
            name = self.batch.submit(self.order(submission))
        except errors.SievaError as error:
            self.job.take_back(submission.number)
            # The number is free again: who takes it next is somebody to be seen.
            self._seen = submission.number - 1
            if not isinstance(error, errors.IoError) or submission.number == 0:
                raise
            self._be_patient(error)
            return
        self.job.submitted(submission.number, name)
        self._watched.add(submission.number)
        self.tell(f"job {self.job.id}: {len(submission.tasks)} tasks are {self.batch.name}'s {name}")

    def order(self, submission: Submission) -> Order:
        """Return what the batch system is asked for."""
        time_left = max(30, submission.needs.seconds - TOLD_BEFORE)
        worker = [sys.executable, "-m", "sieva.engines.batch.worker", "--time-left", str(time_left)]
        return Order(
            name=self.job.name,
            command=[*worker, str(self.job.path), str(submission.number)],
            tasks=len(submission.tasks),
            needs=submission.needs,
            script=self.job.script(submission.number),
            output=self.job.output(submission.number),
            partition=self.options.partition,
            account=self.options.account,
            directives=self.options.directives,
            setup=self.options.setup,
        )


class _Pauses:
    """Pauses that get longer while nothing happens."""

    def __init__(self, first: float, longest: float) -> None:
        self.first, self.longest = first, longest
        self.pause = first
        self._since = float("-inf")

    def is_due(self) -> bool:
        return time.monotonic() - self._since >= self.pause

    def begin(self, *, afresh: bool) -> None:
        self.pause = self.first if afresh else min(self.longest, self.pause * _SLOWER)
        self._since = time.monotonic()


def raise_failure(job: JobDirectory) -> None:
    """Raise why nothing came of a piece of work, if that is so."""
    for number, failure in job.failures().items():
        if number not in job.results():
            where = f"task {failure['task']} of job {job.id} on {failure['host']}"
            raise errors.make(failure["kind"], f"{failure['message']} ({where})", failure["hint"])


def shares(numbers: Sequence[int], tasks: int) -> list[list[int]]:
    """Return numbers in runs, as even as can be: what lies side by side in a file is done by one task.

    >>> shares([0, 1, 2, 3, 4], 2)
    [[0, 1, 2], [3, 4]]
    """
    tasks = min(tasks, len(numbers))
    each, more = divmod(len(numbers), tasks)
    found, at = [], 0
    for task in range(tasks):
        end = at + each + (task < more)
        found.append(list(numbers[at:end]))
        at = end
    return found
