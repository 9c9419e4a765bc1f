"""What a pass of a producer would make, and what of it is for whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sieva._price import Price

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sieva import errors


@dataclass(frozen=True)
class PlannedResult:
    """A result that a pass would make, or a value that one needs.

    Attributes
    ----------
    sql
        The question.
    stage
        The scan in which it is evaluated, from 0: those of later ones need values of earlier ones.
    given
        Its formats, and who gets it in each: users and the names of their asks. None where its value is
        needed alone.
    price
        What it takes by itself.
    """

    sql: str
    stage: int
    given: list[tuple[str, list[tuple[str, str]]]]
    price: Price


@dataclass(frozen=True)
class PlannedStep:
    """What a pass would make of a file.

    Attributes
    ----------
    step, size
        The file's name and its bytes.
    results
        What would be made.
    refused
        What cannot be asked of it: user, name of the ask, and why.
    """

    step: str
    size: int
    results: list[PlannedResult]
    refused: list[tuple[str, str, errors.SievaError]]

    @classmethod
    def _of(cls, known: dict[str, Any]) -> PlannedStep:
        results = [
            PlannedResult(unit["sql"], unit["stage"], unit["given"], Price.of(unit["price"]))
            for unit in known["results"]
        ]
        return cls(known["step"], known["size"], results, known["refused"])


@dataclass(frozen=True)
class PlannedConsumer:
    """What a pass would do for one consumer, by what is expected of each result.

    Attributes
    ----------
    user
        Who asks.
    results
        Answers that the consumer would get.
    bytes_read
        Of the source, for each question by itself: a pass reads once what several need.
    seconds
        For evaluating them by themselves.
    bytes_stored
        Of the values that are kept, shared out among all who get the same.
    bytes_sent
        Of the values that the consumer fetches.
    """

    user: str
    results: int
    bytes_read: float
    seconds: float
    bytes_stored: float
    bytes_sent: float


def consumers_of(planned: Iterable[PlannedStep]) -> list[PlannedConsumer]:
    """Return what a plan would do for each consumer, in order of their names."""
    sums: dict[str, list[float]] = {}
    for result in (result for step in planned for result in step.results):
        price = result.price
        for _, consumers in result.given:
            for user, _ask in consumers:
                size = price.bytes_returned.expected
                of_result = (
                    1,
                    price.bytes_read.expected,
                    price.seconds.expected,
                    size / len(consumers),
                    size,
                )
                known = sums.setdefault(user, [0] * len(of_result))
                sums[user] = [a + b for a, b in zip(known, of_result, strict=True)]
    return [
        PlannedConsumer(user, int(results), *numbers) for user, (results, *numbers) in sorted(sums.items())
    ]
