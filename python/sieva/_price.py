"""The price of a query, told before it is run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


@dataclass(frozen=True)
class Expected:
    """A quantity that is not known yet.

    Attributes
    ----------
    low, high
        Bounds that hold; ``high`` is None where there is none.
    expected
        About what it will be.
    """

    low: float
    expected: float
    high: float | None

    def __contains__(self, value: float) -> bool:
        return self.low <= value and (self.high is None or value <= self.high)


@dataclass(frozen=True)
class Price:
    """What giving back all rows of a query takes; made by `Query.price`.

    Attributes
    ----------
    rows
        Rows that come back.
    bytes_read, requests
        Of the source, in the words of `Query.stats`; those of indexes are not counted.
    bytes_returned
        Bytes of the values that come back.
    seconds
        An estimate by learnt costs, its bounds too.
    """

    rows: Expected
    bytes_read: Expected
    bytes_returned: Expected
    requests: Expected
    seconds: Expected

    @classmethod
    def of(cls, known: Mapping[str, tuple[Any, Any, Any]]) -> Price:
        """Return the price with these numbers."""
        return cls(**{name: Expected(*bounds) for name, bounds in known.items()})
