"""A figure: what is promised, what was measured, and what the paper has."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from timing import Times


@dataclass
class Figure:
    """One promise and what was measured; without a target it is only told, and ``is_met`` is None.

    Attributes
    ----------
    limit
        What keeps the figure from being better, or why it was lost.
    paper
        The figure of the paper that the question is from, on its machine.
    group
        Of figures, as `run.py --only` names it.
    told
        Which of the times a reader's table has; empty for all.
    """

    name: str
    target: str
    measured: float
    unit: str
    is_met: bool | None
    limit: str
    times: dict[str, Times] = field(default_factory=dict)
    notes: dict[str, object] = field(default_factory=dict)
    paper: str = ""
    group: str = ""
    told: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """Whether the target was reached, as a word."""
        return "" if self.is_met is None else "met" if self.is_met else "NOT met"


def same(answers: Mapping[str, object]) -> None:
    """Refuse to compare what does not give the same answer."""
    if len({str(answer) for answer in answers.values()}) != 1:
        raise SystemExit(f"the answers differ: {answers}")


def at_least(
    name: str, target: float, ratio: float, limit: str, times: dict[str, Times], **notes: object
) -> Figure:
    """Return a figure that is a speed-up."""
    return Figure(name, f">= {target:g}x", ratio, "x", ratio >= target, limit, times, notes)


def faster(name: str, target: float | None, ours: str, rival: str, times: Mapping[str, Times]) -> Figure:
    """Return how many times faster one of the times is than another; None promises nothing."""
    ratio = times[rival].median / times[ours].median
    shown = {ours: times[ours], rival: times[rival]}
    if target is None:
        return Figure(name, "", ratio, "x", None, "", shown)
    return at_least(name, target, ratio, "", shown)


def bounded(name: str, target: str, measured: float, unit: str, **more: str) -> Figure:
    """Return a figure whose target is a relation and a number: ``< 10``, ``>= 95``, or empty."""
    relations: dict[str, Callable[[float, float], bool]] = {
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }
    if not target:
        return Figure(name, "", measured, unit, None, "", **more)  # type: ignore[arg-type]
    relation, number = target.split()
    is_met = relations[relation](measured, float(number))
    return Figure(name, f"{target} {unit}", measured, unit, is_met, "", **more)  # type: ignore[arg-type]
