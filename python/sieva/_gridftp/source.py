"""A file on a server as a source: its queries run there."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

from sieva import _native, errors
from sieva._expr import Expr, asked, col
from sieva._gridftp.address import SCHEMA, Address
from sieva._gridftp.query import RemoteQuery
from sieva._gridftp.transfer import download
from sieva._schema import Schema
from sieva._source import Source, _condition

if TYPE_CHECKING:
    from types import TracebackType

# Names that mean the same with and without quotes: no question to the server is needed.
_PLAIN = re.compile(r"[^\W\d]\w*(/\w+)*")


class RemoteSource:
    """A file on a GridFTP server that has the plug-in; made by `sieva.open` of ``gsiftp://`` and ``ftp://``.

    Queries run at the server; what comes here is their result. Nothing of the file is asked before a query or
    `schema` is.
    """

    def __init__(self, url: str, streams: int = 1) -> None:
        self._address = Address.parse(url)
        self._streams = streams
        self._schema: Schema | None = None

    @property
    def path(self) -> str:
        """The URL, without a password."""
        return str(self._address)

    @property
    def format(self) -> str:
        """What the file is: ``"HDF5"``, ``"netCDF-4"`` ..."""
        return str(self.schema()["source"]["format"])

    def schema(self) -> Schema:
        """Return what is known of the file: storage, layout, and values; asked of the server once."""
        if self._schema is None:
            with tempfile.TemporaryDirectory(prefix="sieva-") as folder:
                target = Path(folder, "schema.json")
                download(self._address, SCHEMA, target)
                self._schema = Schema(target.read_text(encoding="utf-8"))
        return self._schema

    def __iter__(self) -> Iterator[str]:
        return iter([str(array["path"]) for array in self.schema()["logical"]["arrays"]])

    def __len__(self) -> int:
        return len(self.schema()["logical"]["arrays"])

    def __contains__(self, name: object) -> bool:
        return any(name == path for path in self)

    def __getitem__(self, name: str) -> Expr:
        """Return an array as an expression for conditions; that there is one is the server's to say."""
        return col(name)

    def query(
        self,
        condition: str | Expr | None = None,
        select: Sequence[str | Expr] | None = None,
        **how: Any,  # noqa: ANN401 - as of Source.query
    ) -> RemoteQuery:
        """Return the query for the points that satisfy a condition; see `Source.query`."""
        _refuse_ways(how)
        where = _condition(condition)
        items = None if select is None else [self._item(item) for item in select]
        return RemoteQuery(self, _native.select_text(items, where), [where])

    def sql(self, text: str, **how: Any) -> RemoteQuery:  # noqa: ANN401 - as of Source.sql
        """Return the query of a SELECT over this source; see `Source.sql`."""
        _refuse_ways(how)
        return RemoteQuery(self, _native.without_from(text))

    def close(self) -> None:
        """Do nothing: no connection stays open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _item(self, item: str | Expr) -> str | _native.Expr:
        """Return an item of select; a path is taken as one, whatever characters it has."""
        if not isinstance(item, str) or _PLAIN.fullmatch(item) or item not in self:
            return asked(item)
        return _native.Expr.name(item)

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse what a `Source` can do here alone: the file is the server's."""
        if name.startswith("_") or not (name == "arrays" or hasattr(Source, name)):
            raise AttributeError(f"'RemoteSource' has no attribute {name!r}")
        raise errors.Unsupported(
            f"{name} of '{self.path}', a file on a server", "ask for it where the file lies"
        )

    def __repr__(self) -> str:
        return f"<sieva.RemoteSource {self.path}>"


def _refuse_ways(how: dict[str, Any]) -> None:
    """Raise for ways of running a query: they are the server's, as memory and threads are."""
    _native.check_options("query", list(how))
    for key in ("access", "fetch"):
        if how.get(key, "auto") != "auto":
            raise errors.Unsupported(
                f"{key}={how[key]!r} of a query that a server answers", f"leave {key} out"
            )


def open_remote(url: str, options: dict[str, Any]) -> RemoteSource:
    """Return the source of a URL; ``options`` are those of `sieva.open`, which say how a file is opened here.

    Raises
    ------
    Unsupported
        One of them is set: the file is opened at the server.
    """
    options = {name: value for name, value in options.items() if name not in {"allow", "learn"}}
    streams = int((options.pop("storage_options", None) or {}).get("streams", 1))
    for key, value in options.items():
        if value:
            raise errors.Unsupported(f"{key}= of a file that a server opens", f"leave {key} out")
    return RemoteSource(url, streams)
