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
    restart
        The file of figure 12 (the paper: 908).
    each
        Consumers of each of its three sites (the paper: 10).
    images
        Of figure 13 (the paper: 10,000).
    transforming
        Producers that transform them (the paper: 1 to 32).
    looking
        Consumers of them (the paper: 1 to 16).
    objects
        Of figure 14.
    reduced
        A variable of figures 15 and 16 (the paper: 64 MB to 1.5 GB).
    runs
        Of each cell of figure 8, and each request of figures 14 to 16.
    merged
        What each of 8 producers uploads in figure 8.
    parts
        Sizes of its objects (the paper: 2 to 256).
    consumers
        Their numbers in figure 11.
    wanted
        Requests of each of them (the paper: 1000).
    """

    variables: tuple[float, ...]
    requests: int = 1000
    budget: float = 20.0
    produced: float = 2.0
    producers: tuple[int, ...] = (1, 2, 4, 8, 16)
    asked: tuple[int, ...] = (1000, 2000, 4000, 8000)
    checked: int = 50
    restart: float = 28.4
    each: int = 10
    images: int = 48
    transforming: tuple[int, ...] = (1, 2, 4)
    looking: tuple[int, ...] = (1, 4, 16)
    objects: tuple[float, ...] = (1, 2, 4, 8, 16, 32, 64, 128)
    reduced: tuple[float, ...] = (8, 16, 32, 64, 128)
    runs: int = 3
    merged: float = 64.0
    parts: tuple[float, ...] = (0.5, 1, 2, 4, 8, 16, 32, 64)
    consumers: tuple[int, ...] = (2, 4, 8, 16, 32, 64)
    wanted: int = 60


SCALES = {
    "tiny": Scale(
        (0.02, 0.04),
        requests=40,
        # Everything is served, however busy the machine is: tests count it.
        budget=3600.0,
        produced=0.02,
        producers=(1, 2),
        asked=(20, 40),
        checked=8,
        restart=0.5,
        each=2,
        images=3,
        transforming=(2,),
        looking=(1, 2),
        objects=(0.1, 0.2),
        reduced=(0.1, 0.2),
        runs=1,
        merged=0.4,
        parts=(0.1, 0.4),
        consumers=(2, 3),
        wanted=8,
    ),
    "small": Scale(
        (0.25, 1.0),
        requests=200,
        budget=5.0,
        produced=0.5,
        producers=(1, 2, 4),
        asked=(100, 200, 400),
        checked=20,
        restart=7.1,
        images=12,
        transforming=(1, 2),
        looking=(1, 4),
        objects=(1, 4, 16),
        reduced=(4, 16),
        runs=3,
        merged=8.0,
        parts=(0.5, 1, 2, 4, 8),
        consumers=(2, 8),
        wanted=40,
    ),
    "medium": Scale((4.0, 16.0, 64.0)),
    "large": Scale(
        (4.0, 16.0, 64.0, 128.0),
        budget=120.0,
        produced=12.75,
        checked=200,
        restart=908.0,
        images=400,
        transforming=(1, 2, 4, 8, 16, 32),
        looking=(1, 2, 4, 8, 16),
        reduced=(64, 128, 256, 512, 1024, 1536),
        merged=256.0,
        parts=(2, 4, 8, 16, 32, 64, 128, 256),
        wanted=1000,
    ),
}
