"""A query that a server answers: its rows are brought when they are asked for."""

from __future__ import annotations

import json
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from sieva import _native, errors
from sieva._gridftp.address import asked
from sieva._gridftp.transfer import download
from sieva._output import COLUMN_FORMATS, DIRECTORIES
from sieva._query import BATCH_ROWS, Query

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from sieva._expr import Expr
    from sieva._gridftp.source import RemoteSource
    from sieva._native import Selection
    from sieva._query import Layout

    Condition = str | _native.Expr | None


class RemoteQuery(Query):
    """Rows that a server selects. They are brought when they are first asked for, as a file of Arrow.

    netCDF, HDF5 and Parquet files are made by the server. What needs the file itself is refused: selections,
    estimates, plans.

    Parameters
    ----------
    source, text
        Whose query, as a SELECT without FROM.
    where
        Its condition in a list (None: none), where other arrays may be asked at the same points.
    """

    source: RemoteSource  # type: ignore[assignment] # a file elsewhere is what is asked

    def __init__(self, source: RemoteSource, text: str, where: list[Condition] | None = None) -> None:
        # There is no native query: every method of it that can be asked is replaced here.
        super().__init__(None, source, text)  # type: ignore[arg-type]
        self._where = where
        self._folder: Path | None = None

    def _file(self) -> Path:
        """Return the file of Arrow, brought once."""
        if self._folder is not None:
            return self._folder / "rows.arrow"
        folder = Path(tempfile.mkdtemp(prefix="sieva-"))
        target = folder / "rows.arrow"
        try:
            download(self.source._address, asked(self.text, "arrow"), target, streams=self.source._streams)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        # It goes with the query. A TemporaryDirectory would warn that nobody closed it.
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._folder = folder
        return target

    def _opened(self) -> pa.RecordBatchFileReader:
        import pyarrow as pa

        try:
            return pa.ipc.open_file(pa.memory_map(str(self._file())))
        except pa.ArrowInvalid as error:
            raise errors.IoError(f"'{self.source.path}': the answer is no Arrow file: {error}") from error

    @property
    def columns(self) -> list[str]:
        """Names of what comes back."""
        return list(self._opened().schema.names)

    @property
    def dtypes(self) -> dict[str, str]:
        """Type of each column: numpy's name of it, ``"str"`` or ``"datetime"``."""
        return {field.name: _dtype(field.type) for field in self._opened().schema}

    @property
    def rows(self) -> dict[str, int]:
        """No dimensions: they are the server's."""
        return {}

    def count(self) -> int:
        """Return the number of rows that come back; of rows that are not here yet the server tells it."""
        if self._folder is not None:
            reader = self._opened()
            return sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))
        return int(self.describe()["rows"])

    def describe(self) -> dict[str, Any]:
        """Return what the server says of the answer: its ``id``, ``format``, ``bytes`` and ``rows``."""
        with tempfile.TemporaryDirectory(prefix="sieva-") as folder:
            target = Path(folder, "answer.json")
            download(self.source._address, asked(self.text, "arrow") + ";describe", target)
            found: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
            return found

    def read(self, name: str | Expr | None = None) -> NDArray[Any]:
        """Return the values of a column, or of another array or expression at the points of a condition.

        Parameters
        ----------
        name
            None is the only column. What is not selected is asked of the server.

        Returns
        -------
        (n,) ndarray
            As of `Query.read`: integers with missing values as float64 with NaN, times as the numbers of the
            file.
        """
        columns = self.columns
        if name is None and len(columns) != 1:
            raise errors.InvalidValue(f"read() without a name of a query of {len(columns)} columns")
        key = columns[0] if name is None else str(name).strip('"')
        if key not in columns:
            return self._other(name).read()
        # Dates of calendars that Arrow does not have are texts there.
        if self.dtypes[key] in ("datetime", "str"):
            return self._stored(key)
        values: NDArray[np.generic] = self.to_arrow().column(key).to_numpy()
        return values

    def _other(self, name: str | Expr | None) -> RemoteQuery:
        """Return the query of something else at the same points."""
        if self._where is None or name is None:
            raise errors.UnknownArray(
                f"the answer has no column '{name}': it has {', '.join(self.columns)}", "name it in SELECT"
            )
        return RemoteQuery(self.source, _native.select_text([self.source._item(name)], self._where[0]))

    def _with_columns(self, more: object) -> None:
        """Add nothing: the server lays out what it sends."""
        del more

    def _stored(self, key: str) -> NDArray[Any]:
        """Return what an HDF5 file of the same rows has: times as numbers, which Arrow has as dates."""
        from sieva._open import open as open_source

        target = self._file().with_name("rows.h5")
        if not target.exists():
            self.send_to(target, "hdf5")
        with open_source(target) as source:
            values: NDArray[Any] = source[key][...]
            return values

    def _reader(self, size: int = BATCH_ROWS) -> pa.RecordBatchReader:
        import pyarrow as pa

        opened = self._opened()

        def batches() -> Iterator[pa.RecordBatch]:
            for i in range(opened.num_record_batches):
                batch = opened.get_batch(i)
                for start in range(0, batch.num_rows, size):
                    yield batch.slice(start, size)

        return pa.RecordBatchReader.from_batches(opened.schema, batches())

    def _open(self, size: int = BATCH_ROWS) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        reader = self._reader(size)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in reader:
                yield batch
                if self._on_rows is not None:
                    self._on_rows(batch.num_rows)

        return reader.schema, batches()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as an Arrow stream."""
        return self._reader().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table; missing values are null."""
        return self._reader().read_all()

    def stats(self) -> dict[str, Any]:
        """Return what came over the network: bytes."""
        return {"bytes_received": self._file().stat().st_size}

    def is_sent(self, kind: str, layout: Layout | None) -> bool:
        """Return whether the server makes such a file, in columns; raise where there can be none."""
        if kind in DIRECTORIES:
            self._refuse(f"the format {kind}", f"servers send {', '.join(COLUMN_FORMATS)}")
        if layout not in (None, "columns"):
            self._refuse(f"the layout {layout}", "rows come as a list along obs; name idx(dim) in SELECT")
        return layout == "columns" or kind in ("netcdf", "hdf5")

    def send_to(self, target: Path, kind: str, deflate: int = 0) -> None:
        """Have the server make a file of one of its formats, and bring it."""
        question = asked(self.text, kind, deflate)
        download(self.source._address, question, target, streams=self.source._streams)

    def estimate(self) -> NoReturn:
        """Refuse: it is the server that knows the file."""
        self._refuse("estimate()", "count() asks the server")

    def selection(self) -> Selection:
        """Refuse: positions are those of the file, which is elsewhere."""
        self._refuse("selection()", "name idx(dim) in SELECT to have positions")

    def explain(self, analyze: bool = False) -> NoReturn:
        """Refuse: plans are made at the server."""
        del analyze
        self._refuse("explain()", "its log has what a query cost")

    def explain_json(self, analyze: bool = False) -> NoReturn:
        """Refuse: plans are made at the server."""
        self.explain(analyze)

    def histogram(self, name: object, bins: int = 64) -> NoReturn:
        """Refuse: it is a query of its own."""
        self._refuse("histogram()", f"SELECT histogram({name}, {bins})")

    def to_xarray(self, layout: Layout | None = None) -> NoReturn:
        """Refuse: rows come as a list."""
        del layout
        self._refuse("to_xarray()", "take to_netcdf() and open it, or to_pandas()")

    def _refuse(self, what: str, hint: str) -> NoReturn:
        raise errors.Unsupported(f"{what} of a query that a server answers", hint)

    def __repr__(self) -> str:
        return f"<sieva.RemoteQuery of {self.source.path}; {self.text}>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(repr(self))}</pre>"


def _dtype(kind: pa.DataType) -> str:
    import pyarrow as pa

    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "str"
    if pa.types.is_timestamp(kind):
        return "datetime"
    if pa.types.is_nested(kind):
        return "histogram"
    return str(kind.to_pandas_dtype().__name__).rstrip("_")
