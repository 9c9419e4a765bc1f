"""The queries of the papers, as text for sieva and as bounds that are exact in float32 for the others."""

from dataclasses import dataclass

import numpy as np

Term = tuple[str, str, str]
SDS = "SDS"
AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Query:
    """A conjunction of conditions on float32 arrays, and the arrays that are fetched.

    Attributes
    ----------
    name
        As in the paper.
    terms
        ``(array, operator, literal)``.
    fetch
        The arrays whose values are wanted.
    """

    name: str
    terms: tuple[Term, ...]
    fetch: tuple[str, ...]

    @property
    def text(self) -> str:
        """The condition as it is asked of sieva."""
        return " AND ".join(f"{array} {operator} {literal}" for array, operator, literal in self.terms)

    @property
    def arrays(self) -> tuple[str, ...]:
        """All arrays that it names, each once."""
        return tuple(dict.fromkeys([*(array for array, _, _ in self.terms), *self.fetch]))

    @property
    def exact(self) -> list[tuple[str, str, float]]:
        """The terms with bounds in float32 that select the same values as the real numbers do."""
        return [(array, *exact_bound(operator, literal)) for array, operator, literal in self.terms]

    def job(self) -> dict[str, object]:
        """Return the query as the peers' scripts take it."""
        return {"name": self.name, "terms": self.exact, "fetch": list(self.fetch)}


def exact_bound(operator: str, literal: str) -> tuple[str, float]:
    """Return operator and float32 that hold for the same float32 values as the literal does.

    The nearest float32 of a literal lies beside it; on the side that is selected, it is selected too.
    """
    real = float(literal)
    bound = float(np.float32(literal))
    if operator in {">", ">="}:
        return (">=" if bound > real else ">" if bound < real else operator), bound
    return ("<=" if bound < real else "<" if bound > real else operator), bound


def _between(array: str, low: float, high: float) -> tuple[Term, Term]:
    return (array, ">", f"{low:g}"), (array, "<", f"{high:g}")


def sds() -> list[Query]:
    """Return the three queries of SDS (CLUSTER 2014), Table I; x, y, z are fetched."""
    q1: tuple[Term, ...] = (("Energy", ">", "1.7"),)
    q2 = (("Energy", "<", "1.3"), *_between("x", 308, 309), *_between("y", 149, 150))
    q3 = (("Energy", ">", "1.3"), *_between("x", 300, 310), *_between("y", 140, 150))
    return [Query(f"SDS Q{i}", terms, AXES) for i, terms in enumerate((q1, q2, q3), 1)]


def pdc_single() -> list[Query]:
    """Return the 15 queries of PDC (IPDPS 2020, section V) on one object, the most hits first."""
    lows = [round(2.1 + i / 10, 1) for i in range(15)]
    return [
        Query(f"PDC {low:g} < E < {low + 0.1:g}", _between("Energy", low, low + 0.1), ("Energy",))
        for low in lows
    ]


def pdc_multi() -> list[Query]:
    """Return 6 queries of PDC on four objects: the paper prints the first and last, we go evenly between."""
    queries = []
    for i in range(6):
        energy, x, y = 2.0 - 0.14 * i, 200 - 12 * i, -90 - 2 * i
        terms = (
            ("Energy", ">", f"{energy:g}"),
            *_between("x", 100, x),
            *_between("y", y, 0),
            *_between("z", 0, 66),
        )
        queries.append(Query(f"PDC multi {i + 1} (E > {energy:g})", terms, ("Energy", *AXES)))
    return queries
