"""A group that answers requests: asking, a pass of the producer, and the consumers' folders."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import sieva.share
from scibox_workload import Asked, Columns

# Requests of one client to the store at a time.
AT_ONCE = 8
T = TypeVar("T")


@dataclass(frozen=True)
class Ask:
    """A request of a user, by the name that the group has it."""

    user: str
    name: str
    asked: Asked


def dealt(requests: Sequence[Asked], users: int) -> list[Ask]:
    """Return who asks for what: the requests in turn."""
    return [Ask(f"u{at % users}", f"r{at // users}", asked) for at, asked in enumerate(requests)]


def ask(group: sieva.share.Group, asks: Sequence[Ask]) -> None:
    """Ask for all of it, each user by one put for each format."""
    for user in dict.fromkeys(one.user for one in asks):
        for kind in ("json", "arrow"):
            mine = [one for one in asks if one.user == user and one.asked.format == kind]
            if mine:
                group.ask_many([(one.name, one.asked.sql) for one in mine], format=kind, user=user)


def produce(group: sieva.share.Group, producer: str, spool: Path) -> sieva.share.Produced:
    """Make a pass, which has to answer everything.

    Raises
    ------
    SystemExit
        Something could not be answered.
    """
    done = group.produce(producer, settle=0, spool=spool, objects="partial")
    if done.failed or done.troubles:
        raise SystemExit(f"{done.failed} asks failed, {done.troubles}")
    return done


def follow(group: sieva.share.Group, asks: Sequence[Ask], folder: Path) -> tuple[dict[Ask, Path], int]:
    """Fetch all answers, users side by side; return the file of each and the bytes that were fetched.

    Raises
    ------
    SystemExit
        There is not one answer for each.
    """
    by_user = {user: [a for a in asks if a.user == user] for user in {a.user for a in asks}}
    files: dict[Ask, Path] = {}
    fetched = 0

    def one_user(user: str) -> None:
        nonlocal fetched
        mine = by_user[user]
        done = group.follow_many({one.name: folder / user / one.name for one in mine}, user=user)
        for one in mine:
            told = done[one.name]
            if len(told.files) != 1 or told.failures or told.troubles:
                raise SystemExit(f"{one}: {told}")
            files[one] = told.files[0]
            fetched += told.bytes

    with ThreadPoolExecutor(len(by_user)) as pool:
        list(pool.map(one_user, by_user))
    return files, fetched


def check(files: dict[Ask, Path], columns: Columns) -> None:
    """Compare every consumer's file with numpy's answer.

    Raises
    ------
    SystemExit
        One differs.
    """
    known: dict[Asked, object] = {}
    for one, path in files.items():
        expected = known.setdefault(one.asked, one.asked.answer(columns))
        if not one.asked.is_answered_by(path, expected):
            raise SystemExit(f"{path}: other values than numpy's for {one.asked.sql}")


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """Return what a call returns, and its seconds."""
    start = time.perf_counter()
    return work(), time.perf_counter() - start
