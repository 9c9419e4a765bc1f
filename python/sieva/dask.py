"""Queries on a Dask cluster: a `distributed.Client` runs their parts.

>>> from distributed import Client
>>> import sieva.dask
>>> client = Client("tcp://10.0.0.1:8786")  # doctest: +SKIP
>>> src = sieva.dask.open("pop.nc", client)  # doctest: +SKIP
>>> src.query("TEMP > 25").count()  # doctest: +SKIP
>>> src.sql("SELECT z_t, avg(TEMP) GROUP BY z_t").to_pandas()  # doctest: +SKIP
>>> src.build_index("TEMP")  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from sieva import _open
from sieva._options import takes
from sieva.engines.dask import counters as _counters

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from sieva._options import Asking, Opening
    from sieva._query import Query
    from sieva._source import Source

__all__ = ["counters", "open", "sql"]


@takes("open")
def open(  # noqa: A001 - as sieva.open
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    client: Any,  # noqa: ANN401 - a Client
    **options: Unpack[Opening],
) -> Source:
    """Open a source whose queries and indexes the workers of a cluster make.

    Parameters
    ----------
    path
        As of `sieva.open`; the workers open the same, by its absolute name.
    client
        A `distributed.Client`.
    **options
        As of `sieva.open`.

    Returns
    -------
    Source
        The same region is looked at by the same worker, which keeps what it decoded and found.
    """
    return _open.open(path, **options).by(client)


@takes("query", "open")
def sql(text: str, client: Any, **options: Unpack[Asking]) -> Query:  # noqa: ANN401 - a Client
    """Return the query of a SELECT whose FROM names the file, as `sieva.sql`, run by a cluster."""
    return _open.sql(text, engine=client, **options)


def counters(client: Any) -> dict[str, dict[str, int]]:  # noqa: ANN401 - a Client
    """Return what each worker read and did for sieva so far, by its address.

    Returns
    -------
    dict of str to dict
        ``bytes_read``, ``requests``, ``chunks_decoded``, and what `sieva.Session.stats` tells.
    """
    found: dict[str, dict[str, int]] = client.run(_counters)
    return found
