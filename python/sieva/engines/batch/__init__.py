"""Engines over a batch system: work lies in files of a job's directory, an array of tasks answers it there.

`system.py` is the small interface that Slurm, PBS and plain processes of this machine have in common,
`directory.py` what a job is on disk, `follow.py` what the asking side does, `worker.py` what a task does.
Nothing here schedules: which task runs where and when is the batch system's.
"""
