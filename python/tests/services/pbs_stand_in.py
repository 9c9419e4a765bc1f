"""Stands in for qsub, qstat, qselect and qdel: no server, only what their manual says of what is used.

Installed under each of these names. An array's tasks are processes of this machine. It refuses what PBS
refuses: an array of one, and directives that are none of `KNOWN`.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(os.environ.get("PBS_STAND_IN", "."))
KNOWN = {"-N", "-J", "-l", "-r", "-j", "-o", "-V", "-q", "-A", "-W"}
QUEUES = ("workq",)


def qsub(script):
    """Start the tasks of a script; print the name of the job."""
    told = {}
    for line in Path(script).read_text().splitlines():
        if line.startswith("#PBS "):
            option, _, value = line.removeprefix("#PBS ").partition(" ")
            if option not in KNOWN:
                sys.exit(f"qsub: invalid option {option}")
            told.setdefault(option, []).append(value)
    if told.get("-q", ["workq"])[0] not in QUEUES:
        sys.exit("qsub: Unknown queue")
    first, last = map(int, told.get("-J", ["0-0"])[0].split("-"))
    if "-J" in told and first == last:
        sys.exit("qsub: illegal -J value")
    number = sum(1 for _ in HERE.glob("*.job")) + 1
    name = f"{number}[].srv" if "-J" in told else f"{number}.srv"
    tasks = {}
    for index in range(first, last + 1):
        environment = dict(os.environ) | ({"PBS_ARRAY_INDEX": str(index)} if "-J" in told else {})
        end = HERE / f"{number}.{index}.end"
        command = ["/bin/sh", "-c", f'/bin/bash "$0"; echo $? > "{end}.new"; mv "{end}.new" "{end}"', script]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(command, env=environment, start_new_session=True, **quiet)
        tasks[index] = process.pid
    known = {"name": name, "N": told["-N"][0], "tasks": tasks, "is_array": "-J" in told}
    (HERE / f"{number}.job").write_text(json.dumps(known))
    print(name)


def _job(name):
    path = HERE / f"{re.match(r'[0-9]*', name)[0]}.job"
    if not path.exists():
        sys.exit(f"qstat: Unknown Job Id {name}")
    return json.loads(path.read_text())


def _entry(number, index):
    try:
        return {"job_state": "X", "Exit_status": int((HERE / f"{number}.{index}.end").read_text())}
    except FileNotFoundError:
        return {"job_state": "R", "exec_host": "node1/0"}


def qstat(*words):
    """Print the tasks of a job as JSON."""
    if list(words[:5]) != ["-x", "-t", "-f", "-F", "json"]:
        sys.exit(f"qstat: illegal option: {words}")
    job = _job(words[5])
    number = words[5].partition("[")[0].partition(".")[0]
    found = {index: _entry(number, index) for index in job["tasks"]}
    if job["is_array"]:
        names = {f"{number}[{index}].srv": entry for index, entry in found.items()}
        names[job["name"]] = {"job_state": "B"}
    else:
        names = {job["name"]: found["0"] | ({"job_state": "F"} if "Exit_status" in found["0"] else {})}
    print(json.dumps({"timestamp": int(time.time()), "Jobs": names}))


def qselect(*words):
    """Print the jobs of a name that are not over."""
    name = words[words.index("-N") + 1]
    for path in HERE.glob("*.job"):
        job = json.loads(path.read_text())
        is_over = all("Exit_status" in _entry(path.stem, index) for index in job["tasks"])
        if job["N"] == name and not is_over:
            print(job["name"])


def qdel(name):
    """End the tasks of a job."""
    job = _job(name)
    number = name.partition("[")[0].partition(".")[0]
    for index, pid in job["tasks"].items():
        if "Exit_status" not in _entry(number, index):
            os.killpg(pid, signal.SIGTERM)
            (HERE / f"{number}.{index}.end").write_text("271")


if __name__ == "__main__":
    {f.__name__: f for f in (qsub, qstat, qselect, qdel)}[Path(sys.argv[0]).name](*sys.argv[1:])
