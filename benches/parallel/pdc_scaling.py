"""Figure 6 of PDC: one query of four objects on one and two workers, and a model of more."""

import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pdc_model
import sieva
from pdc_cluster import Cluster, Values, timed
from pdc_series import answer, checksum
from queries import Query
from sieva.engines.dask import DaskEngine

Result = dict[str, Any]
WORKERS = (1, 2)
WAYS = ("scan", "zonemap", "bitmap", "sorted")
# The share of hits of the paper's query.
SHARE = 0.00011
# No particle is as fast: zone maps settle each part, and nothing is left to do but to ask.
NOTHING = "Energy > 1e30"
# Into how many parts what has nothing to do is cut, and what has.
EMPTY_PARTS = (2, 4, 8, 16, 32, 64, 128)
FULL_PARTS = (1, 4, 8, 32)


class Parts(DaskEngine):
    """Dask workers that are given as many parts as is said."""

    def __init__(self, client: Any, parts: int) -> None:  # noqa: ANN401 - a Client
        super().__init__(client)
        self.parts = parts

    # As many parts, whatever they are worth.
    at_once = 0

    @property
    def parts_of_each(self) -> int:
        """Parts for each worker."""
        return max(1, self.parts // self.workers())


def chosen(queries: list[Query], columns: Values) -> Query:
    """Return the query whose share of hits is nearest to the paper's."""
    rows = len(columns["Energy"])
    wanted = np.log(SHARE)
    return min(queries, key=lambda query: abs(np.log((answer(query, columns).hits + 0.5) / rows) - wanted))


@dataclass(frozen=True)
class Asked:
    """What tasks are made of.

    Attributes
    ----------
    path, store
        The file and its indexes.
    text, way
        The condition, and the way of access.
    """

    path: Path
    store: Path
    text: str
    way: str


def alone(asked: Asked, most: int, runs: int) -> tuple[int, list[float]]:
    """Run the tasks of a query one after the other, in the process of a worker.

    Parameters
    ----------
    asked
        The query.
    most
        Into how many parts it is cut at most.
    runs
        How often they are run.

    Returns
    -------
    int, list of float
        How many parts there are, and the seconds that all of them took, of each run.
    """
    session = sieva.Session(threads=1)
    source = session.open(asked.path, store=asked.store, learn=False)
    tasks = source.query(asked.text, access=asked.way)._native.shares(most, "selection")  # noqa: SLF001 - as engines do
    found = []
    for _ in range(runs + 1):
        session.forget()
        found.append(
            timed(lambda: [bytes(source.run_task(t, access=asked.way, threads=1)) for t in tasks])[0]
        )
    session.close()
    return len(tasks), found[1:]


def by_tasks(cluster: Cluster, asked: Asked, most: int, runs: int) -> tuple[int, list[float]]:
    """Return what `alone` found on one worker, while the others have nothing to do."""
    worker = cluster.addresses[0]
    return cluster.client.submit(alone, asked, most, runs, workers=[worker], pure=False).result()


def empty(cluster: Cluster, path: Path, store: Path, runs: int) -> list[Result]:
    """Measure queries without work, in more and more parts; and what these take by themselves."""
    rows = []
    here = sieva.open(path, store=store, learn=False)
    for parts in EMPTY_PARTS:
        source = here.by(Parts(cluster.client, parts))
        seconds = []
        for run in range(runs + 1):
            cluster.forget()
            spent, _ = timed(source.query(NOTHING, access="zonemap").selection)
            seconds += [spent] if run else []
        n, own = by_tasks(cluster, Asked(path, store, NOTHING, "zonemap"), parts, runs)
        rows.append({"parts": n, "seconds": seconds, "own": own})
        if n < parts:
            # The file has no more.
            break
    return rows


def measure(path: Path, store: Path, queries: list[Query], columns: Values, *, options: Result) -> Result:
    """Measure one query on one and two workers by all ways, and what the model is made of.

    Parameters
    ----------
    path, store
        The particles, and indexes of all arrays.
    queries
        Of which the one is taken whose share of hits is the paper's.
    columns
        The arrays that they name, for numpy's answer.
    options
        ``runs`` and ``say``.
    """
    query = chosen(queries, columns)
    want = answer(Query(query.name, query.terms, ()), columns)
    runs = 3 * options["runs"]
    rows: list[Result] = []
    parts: list[Result] = []
    for n in WORKERS:
        with Cluster(n) as cluster:
            source = cluster.open(path, store)
            for way in WAYS:
                seconds = []
                for run in range(runs + 1):
                    cluster.forget()
                    spent, selection = timed(source.query(query.text, access=way).selection)
                    positions = selection.positions()
                    if (len(positions), checksum(positions)) != (want.hits, want.positions):
                        raise SystemExit(f"{query.name} by {way} on {n} workers: not numpy's positions")
                    seconds += [spent] if run else []
                rows.append({"workers": n, "way": way, "seconds": seconds})
                options["say"](f"{n} workers, {way}")
            if n == WORKERS[-1]:
                overheads = empty(cluster, path, store, runs)
                for way in WAYS:
                    for most in FULL_PARTS:
                        asked = Asked(path, store, query.text, way)
                        count, spent = by_tasks(cluster, asked, most, options["runs"])
                        parts.append({"way": way, "parts": count, "seconds": spent})
                options["say"]("parts by themselves")
    about = {"query": query.text, "hits": want.hits, "particles": len(columns["Energy"])}
    return {**about, "rows": rows, "empty": overheads, "parts": parts}


def model(found: Result, way: str) -> pdc_model.Model:
    """Return the model of a way, of what was measured of it by tasks and of queries without work."""
    engine = []
    for row in found["empty"]:
        # What parts take by themselves is shared by the workers.
        own = statistics.median(row["own"]) / WORKERS[-1]
        engine.append((row["parts"], max(1e-6, statistics.median(row["seconds"]) - own)))
    of_way = [row for row in found["parts"] if row["way"] == way]
    work = [(row["parts"], statistics.median(row["seconds"])) for row in of_way]
    return pdc_model.Model(pdc_model.overhead(engine), pdc_model.work(work))
