"""Value queries over scientific files, answered in place.

>>> import sieva
>>> src = sieva.open("pop.nc")  # doctest: +SKIP
>>> q = src.query((src["TEMP"] > 5) & (src["z_t"] < 5000))  # doctest: +SKIP
>>> q.count(), q.read("SALT")  # doctest: +SKIP
"""

from sieva import errors
from sieva._advise import Advice, AdviceItem, advise
from sieva._array import Array
from sieva._catalog import Catalog, ObjectRef
from sieva._collection import Collection, collection
from sieva._expr import Expr, col, fn, idx
from sieva._histogram import Histogram
from sieva._index import BuildReport, Calibration, IndexStatus, VerifyReport
from sieva._index_job import BuildPrice, IndexJob
from sieva._native import (
    CollectionPartial,
    CollectionTask,
    IndexTask,
    Partial,
    Plan,
    Selection,
    Task,
    __version__,
)
from sieva._open import open, sql  # noqa: A004 - sieva.open is the name that is fixed
from sieva._query import Query
from sieva._run import Ran
from sieva._schema import Schema
from sieva._session import Session
from sieva._source import Source
from sieva.errors import SievaError

__all__ = [
    "Advice",
    "AdviceItem",
    "Array",
    "BuildPrice",
    "BuildReport",
    "Calibration",
    "Catalog",
    "Collection",
    "CollectionPartial",
    "CollectionTask",
    "Expr",
    "Histogram",
    "IndexJob",
    "IndexStatus",
    "IndexTask",
    "ObjectRef",
    "Partial",
    "Plan",
    "Query",
    "Ran",
    "Schema",
    "Selection",
    "Session",
    "SievaError",
    "Source",
    "Task",
    "VerifyReport",
    "__version__",
    "advise",
    "col",
    "collection",
    "errors",
    "fn",
    "idx",
    "open",
    "sql",
]


def __getattr__(name: str) -> object:
    """Import the engines where they are first asked for: most programs need none."""
    if name in ("dask", "engines", "mpi"):
        import importlib

        return importlib.import_module(f"sieva.{name}")
    raise AttributeError(f"module 'sieva' has no attribute {name!r}")
