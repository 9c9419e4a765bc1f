"""Feeds mutants of real files to sieva, and notes what takes too long, too much memory, or the process.

Run as ``python fuzz/mutants.py --count 200000 DIR...`` in the project's environment. Each mutant (see
`mutate`) is opened, described, counted with a condition on each array and read at a box, with 64 MiB of
memory (see `asked`). The same seed, files and number give the same mutant.

A process that is forked does it for one after the other, and this one watches: it says which mutant, and
which question, a crash, a hang or a peak of memory belongs to. Those are kept in ``--keep``, with the
place in the stack where the debugger can tell.
"""

import argparse
import collections
import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from asked import MEMORY, Now, ask, ask_each, most_held
from mutate import Original, originals
from sieva import _open

# What a query may take in all: its limit, a quarter more, and what is not counted.
MOST_MEMORY = MEMORY * 5 // 4 + (64 << 20)
MOST_SECONDS = 20
# A process is given up that computed so long for one mutant, or did nothing at all for so long.
GIVEN_UP, PATIENCE = MOST_SECONDS + 5, 300
# A process that holds so much before it is asked (45 MiB are the program's), or had a worker that held so
# much, is replaced: what a mutant left behind is not the next one's.
MOST_RETAINED, MOST_WORKER = 72 << 20, 96 << 20


class Run(NamedTuple):
    """What is fed, and how."""

    files: list[Original]
    seed: str
    isolated: bool
    until: float = float("inf")

    def mutants(self, numbers: range, directory: Path) -> Iterator[tuple[int, Path]]:
        """Write one mutant after the other."""
        for number in numbers:
            yield number, self.mutant(number, directory)

    def original(self, number: int) -> Original:
        """Return of which file a mutant is one."""
        return self.files[number % len(self.files)]

    def mutant(self, number: int, directory: Path) -> Path:
        """Write a mutant."""
        return self.original(number).mutant(f"{self.seed} {number}", directory)


class Report:
    """What became of the mutants."""

    def __init__(self) -> None:
        self.outcomes: collections.Counter[str] = collections.Counter()
        self.errors: collections.Counter[str] = collections.Counter()
        self.bad: list[dict[str, Any]] = []
        self.worst: dict[str, tuple[float, int]] = {"seconds": (0.0, -1), "peak": (0, -1)}
        self.processes = 0

    def note(self, end: dict[str, Any]) -> None:
        """Take what is said of a mutant."""
        number = end["end"]
        self.outcomes[end["outcome"]] += 1
        self.errors.update(end["errors"])
        for what in self.worst:
            self.worst[what] = max(self.worst[what], (end[what], number))
        if (number + 1) % 10_000 == 0:
            print(f"{number + 1}, {len(self.bad)} findings", file=sys.stderr)
        if end["peak"] > MOST_MEMORY:
            self.add(number, f"memory {end['peak'] >> 20} MiB")
        if end["seconds"] > MOST_SECONDS:
            self.add(number, f"time {end['seconds']:.0f} s")

    def lose(self, what: str, number: int, asked: str) -> None:
        """Take that a process was lost."""
        self.outcomes[what] += 1
        self.add(number, what, asked)

    def add(self, number: int, what: str, asked: str = "") -> None:
        """Add a finding."""
        self.bad.append({"number": number, "what": what, "asked": asked})
        print(f"mutant {number}: {what} {asked}", file=sys.stderr)

    def summary(self) -> dict[str, Any]:
        """Return it as plain values."""
        (seconds, slowest), (peak, largest) = self.worst["seconds"], self.worst["peak"]
        return {
            "mutants": sum(self.outcomes.values()),
            "outcomes": dict(self.outcomes.most_common()),
            "errors of arrays, by mutant": dict(self.errors.most_common()),
            "worst seconds": [round(seconds, 2), slowest],
            "worst MiB": [int(peak) >> 20, largest],
            "processes": self.processes,
            "findings": self.bad,
        }


class Child:
    """A process that asks mutants by their numbers."""

    def __init__(self, run: Run, numbers: range, now: Now) -> None:
        self.now = now
        self.lines, theirs = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            # Else it would not notice that nobody reads.
            os.close(self.lines)
            os._exit(work(run, numbers, theirs, now))
        os.close(theirs)

    def said(self) -> Iterator[dict[str, Any]]:
        """Yield what it says, or why it is to be given up. A busy machine may let it wait long."""
        with selectors.DefaultSelector() as selector, os.fdopen(self.lines, "rb") as lines:
            selector.register(lines, selectors.EVENT_READ)
            alive, begun = time.time(), self.computed()
            computed = begun
            while True:
                if selector.select(1):
                    line = lines.readline()
                    if not line:
                        return
                    yield json.loads(line)
                    alive, begun = time.time(), self.computed()
                    computed = begun
                elif (now := self.computed()) != computed:
                    alive, computed = time.time(), now
                # What it said while this process had to wait comes first.
                if selector.select(0):
                    continue
                if computed - begun > GIVEN_UP:
                    yield {"lost": f"over {GIVEN_UP} s"}
                if time.time() - alive > PATIENCE:
                    yield {"lost": "hang"}

    def computed(self) -> float:
        """Return its seconds of the processor, and those of its workers that have ended."""
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
            return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        return 0.0

    def end(self) -> int:
        """Kill it where it runs, and return how it ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def wait(self) -> int:
        """Wait for its end."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def work(run: Run, numbers: range, lines: int, now: Now) -> int:
    """Ask mutants, as the process that was forked."""
    try:
        with tempfile.TemporaryDirectory() as directory:
            ask_each(run.mutants(numbers, Path(directory)), run.isolated, lines, now)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def feed(run: Run, numbers: range) -> Report:
    """Feed mutants, by a new process after each that was lost."""
    report, number, now = Report(), numbers.start, Now()
    while number < numbers.stop and time.time() < run.until:
        # Where it was killed its own directory is left.
        with tempfile.TemporaryDirectory() as directory:
            tempfile.tempdir = directory
            number = feed_one_child(run, range(number, numbers.stop), report, now)
            tempfile.tempdir = None
        report.processes += 1
    return report


def feed_one_child(run: Run, numbers: range, report: Report, now: Now) -> int:
    """Feed one process until it is lost; return the number of the next mutant."""
    child, number = Child(run, numbers, now), numbers.start
    for said in child.said():
        if "lost" in said:
            child.end()
            report.lose(said["lost"], number, now.said())
            return number + 1
        report.note(said)
        number = said["end"] + 1
        if time.time() > run.until or said["before"] > MOST_RETAINED or said["workers"] > MOST_WORKER:
            child.end()
            return number
    if (code := child.wait()) and number < numbers.stop:
        report.lose(f"crash {-code}" if code < 0 else "an exception", number, now.said())
        return number + 1
    return numbers.stop


def locate(finding: dict[str, Any], run: Run, keep: Path) -> None:
    """Keep the mutant of a finding, and ask the debugger where it crashes."""
    number = finding["number"]
    finding["file"] = str(run.original(number).path)
    with tempfile.TemporaryDirectory() as directory:
        path = run.mutant(number, Path(directory))
        kept = keep / f"{run.seed}-{number}{path.suffix}"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.move(path, kept)
    finding["kept"] = str(kept)
    if "crash" in finding["what"] and shutil.which("gdb"):
        program = [sys.executable, __file__, "--one", str(kept), str(int(run.isolated))]
        command = ["gdb", "-q", "-batch", "-ex", "run", "-ex", "bt 12", "--args", *program]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        frames = [line for line in done.stdout.splitlines() if line.startswith("#")]
        finding["stack"] = [line.split(" in ")[-1].split(" (")[0] for line in frames]


def main() -> int:
    """Feed mutants, or ask one file again."""
    if sys.argv[1:2] == ["--one"]:
        print(*ask(Path(sys.argv[2]), sys.argv[3:4] == ["1"], Now()), [n >> 20 for n in most_held()])
        return 0
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", default="sieva")
    parser.add_argument("--isolated", action="store_true", help="parse in a process of its own")
    parser.add_argument("--worker", help="the program of that process, such as target/release/sieva-worker")
    parser.add_argument("--minutes", type=float, default=600, help="end after so long")
    parser.add_argument("--keep", type=Path, help="a directory for the mutants that are findings")
    arguments = parser.parse_args()
    if arguments.worker:
        _open.WORKER[:] = [arguments.worker]
    files = [Original(path) for path in originals(arguments.directories)]
    run = Run(files, arguments.seed, arguments.isolated, time.time() + 60 * arguments.minutes)
    report = feed(run, range(arguments.first, arguments.first + arguments.count))
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
        for finding in report.bad:
            locate(finding, run, arguments.keep)
    print(json.dumps({"files": len(files)} | report.summary(), indent=1))
    return 1 if report.bad else 0


if __name__ == "__main__":
    sys.exit(main())
