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
    """Ask for all of it."""
    for user in dict.fromkeys(one.user for one in asks):
        group.join(user)
    _each(asks, lambda a: group.ask(a.name, a.asked.sql, format=a.asked.format, user=a.user))


def produce(group: sieva.share.Group, producer: str, spool: Path) -> sieva.share.Produced:
    """Make a pass, which has to answer everything.

    Raises
    ------
    SystemExit
        Something could not be answered.
    """
    done = group.produce(producer, settle=0, spool=spool)
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

    def one_user(mine: Sequence[Ask]) -> None:
        nonlocal fetched
        for one, done in _each(mine, lambda a: (a, _followed(group, a, folder))):
            files[one] = done.files[0]
            fetched += done.bytes

    with ThreadPoolExecutor(len(by_user)) as pool:
        list(pool.map(one_user, by_user.values()))
    return files, fetched


def _followed(group: sieva.share.Group, one: Ask, folder: Path) -> sieva.share.Followed:
    done = group.follow(one.name, folder / one.user / one.name, user=one.user)
    if len(done.files) != 1 or done.failures or done.troubles:
        raise SystemExit(f"{one}: {done}")
    return done


def _each(things: Sequence[Ask], work: Callable[[Ask], T]) -> list[T]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(work, things))


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
