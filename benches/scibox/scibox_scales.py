"""How much is measured: the paper's volumes are of a cluster, these of a machine with two cores and less."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Sizes in megabytes of 10^6 bytes, and how long the stock system may take for each cell.

    Attributes
    ----------
    variables
        Sizes of a variable for figures 6 and 7 (the paper: up to 64 MB and more).
    requests
        Of all consumers together.
    budget
        Seconds of the stock system in one cell. What it did not do by then is reckoned from what it did: it
        serves every request by itself, so that its time is in proportion.
    produced
        A variable of figures 9 and 10.
    producers
        Their numbers in figure 9.
    asked
        Requests of each of 4 producers in figure 10.
    checked
        Answers of each producer that are compared with numpy's there; all of figure 6 are.
    """

    variables: tuple[float, ...]
    requests: int
    budget: float
    produced: float
    producers: tuple[int, ...]
    asked: tuple[int, ...]
    checked: int


SCALES = {
    "tiny": Scale((0.02, 0.04), 40, 1.0, 0.02, (1, 2), (20, 40), 8),
    "small": Scale((0.25, 1.0), 200, 5.0, 0.5, (1, 2, 4), (100, 200, 400), 20),
    "medium": Scale((1.0, 4.0, 16.0), 1000, 20.0, 2.0, (1, 2, 4, 8, 16), (1000, 2000, 4000, 8000), 50),
    "large": Scale((4.0, 16.0, 64.0), 1000, 120.0, 12.75, (1, 2, 4, 8, 16), (1000, 2000, 4000, 8000), 200),
}
