"""Tables as Markdown, and targets that were met or not."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Target:
    """What was wanted, and what was measured.

    Attributes
    ----------
    name
        What of.
    wanted
        As it is printed.
    least
        What `measured` has to reach.
    measured
        A gain, or minus a size that is to be small.
    paper
        What the paper has, on its machine.
    note
        Told beside it.
    """

    name: str
    wanted: str
    least: float
    measured: float
    paper: str = ""
    note: str = ""

    @property
    def is_met(self) -> bool:
        """Whether it was reached."""
        return self.measured >= self.least


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def targets(rows: Iterable[Target]) -> str:
    """Return the table of targets."""
    cells = []
    for row in rows:
        measured = f"{-row.measured:,.0f}" if row.measured < 0 or row.least <= 0 else f"{row.measured:.2f}x"
        verdict = "met" if row.is_met else "**not met**"
        cells.append([row.name, row.wanted, measured, verdict, row.paper, row.note])
    return table(["target", "wanted", "measured", "", "paper", ""], cells)


def ratio(theirs: Sequence[float], ours: Sequence[float]) -> float:
    """Return how many times faster ours are, by medians."""
    return median(theirs) / median(ours)


def range_of(gains: Sequence[float]) -> str:
    """Return the least and the greatest gain."""
    return f"{min(gains):.1f}x to {max(gains):.1f}x"
