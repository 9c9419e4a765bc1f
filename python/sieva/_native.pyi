"""The native module: the engine's types for Python.

Thin wrappers; the package's classes of the same names add what Python expects of them. All work runs with
the GIL released and stops within a second of Ctrl-C. Every failure is raised as a class of `sieva.errors`.
Long because the native module is one, and a stub describes one.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO, Literal, NotRequired, TypedDict

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sieva import errors
from sieva._foreign import Description, Reader

_List = list  # within a class that has a method of that name
Access = Literal["auto", "scan", "zonemap", "bitmap", "sorted"]

__version__: str
error_kinds: list[str]
"""The codes of all kinds of errors."""

_Table = tuple[list[str | None], list[int], list[int], list[bytes | None]]
_Notes = tuple[list[tuple[str, str]], list[str]]

def references_json(source: Source, url: str) -> tuple[str, _Notes]:
    """Return the reference set of a source as JSON, and what is not in it."""

def references_tables(source: Source, url: str) -> tuple[tuple[dict[str, str], dict[str, _Table]], _Notes]:
    """Return the reference set of a source as metadata and columns, and what is not in it."""

def open_tables(
    name: str,
    metadata: dict[str, str],
    arrays: dict[str, _Table],
    options: Mapping[str, Any] | None = None,
) -> Source:
    """Open the source that the metadata and columns of a reference set describe."""

class OptionRow(TypedDict):
    """An option of opening or running: a row of the engine's table."""

    name: str
    stage: Literal["opening", "running"]
    kind: str
    """``"flag"``, ``"word"``, ``"bytes"``, ``"number"``, ``"text"``, ``"directory"``, ``"places"`` ..."""
    words: list[str]
    """The values of a word."""
    zero: bool
    """Whether bytes may be 0."""
    default: str
    """What holds where it is not given, in words."""
    means: str
    python: list[str]
    command_line: list[str]
    c: list[str]
    """What it is called there; none: ``no_...`` says why."""
    no_python: NotRequired[str]
    no_command_line: NotRequired[str]
    no_c: NotRequired[str]
    calls: list[str]
    """What takes it in Python."""
    not_of: dict[str, str]
    """What does not, and why."""

def options() -> list[OptionRow]:
    """Return the options of opening and of running."""

def check_options(call: str, names: Sequence[str]) -> None:
    """Raise `TypeError` for a name that is no option of a call, with the nearest that is one."""

def size_bytes(size: int | str, zero: bool = False) -> int:
    """Return the bytes of a size; 0 only where `zero` allows it. See `sieva._memory.memory_bytes`."""

def serve_worker() -> None:
    """Parse files for the process that started this one, until it is gone."""

def check_allowed(path: str, allow: list[str]) -> None:
    """Refuse a path or URL that lies below none of these places, whether there is something or not."""

def is_open_database(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file is a catalog that this process has open, or one beside it.

    Closing it would give up the locks on it.
    """

def redacted_database(address: str) -> str:
    """Return the address or path of a catalog without user, password and query, however it is spelt."""

def redacted(location: str) -> str:
    """Return an address without user, password and query; a path as it is."""

def without_secrets(location: str) -> str:
    """Return an address without user, password, signatures and keys, as it may be kept; a path as it is."""

def check_name(name: str, what: str) -> None:
    """Refuse an empty name, and one with a NUL."""

def from_clause(sql: str) -> str | None:
    """Return the text of a SELECT's FROM clause, None where it has none.

    Raises
    ------
    SyntaxError_
        The text is no SELECT.
    """

class Objects:
    """Objects that are written under one root: a directory, ``s3://bucket/prefix``, ``swift://container/prefix``.

    Keys have ``/`` between parts of letters, digits, ``-``, ``.`` and ``_``. A reader sees an object as it
    was before or after a put, never half of it.
    """

    def __init__(self, root: str, storage_options: Mapping[str, Any] | None = None) -> None: ...
    @property
    def name(self) -> str:
        """The root, as messages name it."""

    def put(self, key: str, data: bytes) -> None:
        """Put an object in place of what is there."""

    def create(self, key: str, data: bytes) -> bool:
        """Put an object where there is none; return whether there was none."""

    def get(self, key: str, most: int = ...) -> bytes | None:
        """Return the bytes of an object as they are now, None where there is none; more are refused."""

    def get_range(self, key: str, offset: int, n: int) -> bytes | None:
        """Return ``n`` bytes of an object, None where there is no such object."""

    def delete(self, key: str) -> None:
        """Delete an object; one that is not there is deleted already."""

    def list(self, prefix: str = "") -> _List[tuple[str, int]]:
        """Return keys and sizes of the objects whose keys begin with a prefix, in order of the keys."""

    def tidy(self, prefix: str = "") -> None:
        """Remove what writers that were killed left."""

    def location(self, key: str) -> str:
        """Return the path or address of an object, by which it is opened as a source."""

def advise(
    prefix: str = "",
    *,
    catalog: str | None = None,
    budget: int | None = None,
    store: str | None = None,
    jobs: int | None = None,
) -> Advised:
    """Return which augmentations would have saved what; see `sieva.advise`."""

class Advised:
    """Advice that can be shown and done; see `sieva.Advice`."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""

    def to_json(self) -> str:
        """Return it as JSON text."""

    def apply(
        self, *, memory: int | None = None, told: Callable[[str, str, str, str], None] | None = None
    ) -> list[str]:
        """Do it; return what was done as JSON texts. An exception that ``told`` raises stops it."""

def advise_rule(
    rule: str, pinned: bool | None, *, catalog: str | None = None, store: str | None = None
) -> tuple[str, str, str, bool]:
    """Pin, forbid or free ``SOURCE:ARRAY=KIND``; return location, path, kind and whether it is pinned."""

def advise_rules(prefix: str = "", *, catalog: str | None = None) -> list[tuple[str, str, str, bool]]:
    """Return what is pinned and forbidden."""

def flush_usage(timeout: float = 1.0) -> bool:
    """Wait until what queries asked is in the catalog; return whether that came in time."""

def default_catalog() -> str:
    """Return the URL of the catalog that is meant where none is named; its directory is made."""

def catalog_location(path: str) -> str:
    """Return the name of a path in the catalog: absolute, the links of its directory followed."""

class Catalog:
    """A catalog; see `sieva.Catalog`."""

    @staticmethod
    def open(url: str, read_only: bool = False) -> Catalog: ...
    @property
    def read_only(self) -> bool: ...
    def add(
        self,
        names: list[str],
        *,
        collections: list[str] = ...,
        jobs: int | None = None,
        statistics: bool = False,
        store: str | None = None,
        isolated: list[str] = ...,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, Any]: ...
    def vanished(self, directory: str) -> list[str]: ...
    def list(
        self, prefix: str = "", limit: int = 1000, after: str | None = None
    ) -> _List[dict[str, Any]]: ...
    def show(self, location: str) -> tuple[dict[str, Any], _List[dict[str, Any]]] | None: ...
    def set_tags(
        self, location: str, path: str, tags: _List[tuple[str, int | float | str | bool | None]]
    ) -> int: ...
    def find(
        self,
        text: str,
        *,
        kind: str | None = None,
        name: str | None = None,
        collection: str | None = None,
        limit: int | None = None,
        after: int | None = None,
    ) -> _List[tuple[str, str, str, int]]: ...
    def count(
        self,
        text: str,
        *,
        kind: str | None = None,
        name: str | None = None,
        collection: str | None = None,
    ) -> int: ...
    def forget(self, location: str) -> bool: ...
    def forget_prefix(self, prefix: str) -> int: ...
    def collections(self) -> _List[dict[str, Any]]: ...
    def create_collection(self, name: str, description: str) -> None: ...
    def remove_collection(self, name: str) -> bool: ...
    def collect(self, name: str, locations: _List[str]) -> int: ...
    def collect_prefix(self, name: str, prefix: str) -> int: ...
    def could_contain(
        self,
        name: str,
        lower: float | None = None,
        upper: float | None = None,
        collection: str | None = None,
    ) -> _List[str]: ...
    def augmentations(
        self, prefix: str = "", look: bool = False, store: str | None = None
    ) -> _List[dict[str, Any]]: ...

def printable(text: str, lines: bool) -> str:
    """Return a text with what commands a terminal escaped; ``lines`` keeps line feeds and tabs."""

def build_index(
    source: Source,
    arrays: list[str],
    kinds: list[str],
    *,
    jobs: int | None = None,
    memory: int | None = None,
    precision: int = 2,
    region_size: int | None = None,
    columns: list[str] | None = None,
    lock_timeout: timedelta | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Build augmentations; see `sieva.Source.build_index`. An exception that ``progress`` raises stops it."""

def calibrate_store(
    place: str, sizes: list[int] | None = None, threads: list[int] | None = None
) -> dict[str, Any]:
    """See `sieva.share.calibrate`."""

class Group:
    """See `sieva.share.Group`."""

    @staticmethod
    def create(
        place: str,
        sources: list[str],
        expires: int | None = None,
        strict_code: bool = False,
        key: str | None = None,
        makes_key: bool = False,
    ) -> Group:
        """Make a group, or take the one that is there, if these can be what a producer has."""

    @staticmethod
    def open(place: str, key: str | None = None) -> Group:
        """Open the group at a place."""

    def register(self, producer: str, sources: list[str]) -> None:
        """Say what a producer has."""

    def join(self, user: str) -> None:
        """Make a user a member."""

    def leave(self, user: str) -> None:
        """End a membership."""

    def ask(
        self,
        user: str,
        name: str,
        sql: str,
        format: str,  # noqa: A002
        only_new: bool,
        code: bytes | None = None,
    ) -> str:
        """Ask for something of every step; returns the ask as JSON."""

    def ask_many(
        self,
        user: str,
        asks: list[tuple[str, str]],
        format: str,  # noqa: A002
        only_new: bool,
    ) -> str:
        """Ask for many things at once; returns the asks as JSON."""

    def ask_document(
        self,
        user: str,
        document: str,
        is_toml: bool,
        format: str,  # noqa: A002
        only_new: bool,
    ) -> str:
        """Ask for all that a document asks for; returns the asks as JSON."""

    def document(self, producer: str, is_toml: bool) -> str:
        """Return what a producer has as a document."""

    def withdraw(self, user: str, name: str) -> None:
        """Ask for something no longer."""

    def asks(self, user: str) -> str:
        """Return what a user asks for, as JSON."""

    def producers(self) -> list[str]:
        """Return the names of the producers."""

    def schema(self, producer: str) -> str | None:
        """Return what a producer's newest step holds, as JSON."""

    def status(self) -> str:
        """Return what there is in the group, as JSON."""

    def plan(self, producer: str, options: dict[str, Any]) -> list[dict[str, Any]]:
        """Return what a pass would make; options are seconds to settle, memory, threads, and the spool."""

    def produce(
        self, producer: str, options: dict[str, Any], progress: Callable[[int, int], None] | None = None
    ) -> dict[str, Any]:
        """Make and put what is asked for."""

    def follow(
        self,
        user: str,
        ask: str,
        folder: str,
        convert: tuple[str, Callable[[Path, Path], None]] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, Any]:
        """Fetch what is new into a folder; `convert` makes something else of a file that came."""

    def follow_many(self, user: str, folders: _List[tuple[str, str]]) -> _List[dict[str, Any]]:
        """Fetch what is new of several asks, each into a folder."""

def publish_file(
    group: Group, user: str, name: str, path: str, keep: int | None = None, zone_maps: bool = True
) -> str:
    """Publish a file; returns what was published as JSON."""

def publish_query(
    group: Group,
    user: str,
    name: str,
    query: Query,
    kind: str,
    spool: str,
    keep: int | None = None,
    zone_maps: bool = True,
) -> str:
    """Publish the result of a query; returns what was published as JSON."""

def unpublish_named(group: Group, user: str, name: str) -> None:
    """Delete what a user published."""

def list_published(group: Group) -> str:
    """Return what is published as JSON."""

def fetch_named(
    group: Group,
    name: str,
    path: str | os.PathLike[str],
    progress: Callable[[int, int], None] | None = None,
) -> tuple[int, int]:
    """Put what a name leads to into a file; returns its bytes, and how many came."""

def link_named(group: Group, name: str, expires: float) -> tuple[str, bool]:
    """Return an address that takes no key, and whether it expires."""

class IndexJob:
    """See `sieva.IndexJob`."""

    @staticmethod
    def of(
        source: Source,
        arrays: list[str],
        kinds: list[str],
        *,
        memory: int | None = None,
        precision: int = 2,
        region_size: int | None = None,
        columns: list[str] | None = None,
        lock_timeout: timedelta | None = None,
    ) -> IndexJob:
        """Return the job; nothing is built yet."""

    def tasks(self, n: int) -> list[IndexTask]:
        """Return tasks that may run now."""

    def take(self, done: list[bytes]) -> None:
        """Take what they gave."""

    def price(self) -> dict[str, Any]:
        """Return what is left takes, and the states of the sources; see `sieva.BuildPrice`."""

    def finish(self) -> dict[str, Any]:
        """Return what was done; see `sieva.BuildReport`."""

class IndexTask:
    """A part of the work of an `IndexJob`: what is to be built, of which state of a source.

    Made by `IndexJob.tasks`, run by `Source.run_index_task` in any process that can open the source.
    ``bytes(task)`` gives it as bytes; tasks can be compared and pickled.
    """

    @staticmethod
    def from_bytes(data: bytes) -> IndexTask:
        """Return the task that `bytes` gave.

        Raises
        ------
        InvalidValue
            These are no bytes of a task, or were changed or cut off.
        """

    @property
    def source(self) -> str:
        """The path of the source, as it was opened where the job was made."""

    def __bytes__(self) -> bytes: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...

def run_index_task(
    source: Source,
    task: IndexTask,
    *,
    jobs: int | None = None,
    memory: int | None = None,
    lock_timeout: timedelta | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> bytes:
    """Run a task of a job; see `sieva.Source.run_index_task`."""

def index_status(source: Source) -> dict[str, Any]:
    """Return what a source's store holds; see `sieva.IndexStatus`."""

def verify_index(
    source: Source,
    all: bool = False,  # noqa: A002
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Compare augmentations with the data; see `sieva.VerifyReport`."""

def drop_index(source: Source) -> bool:
    """Remove a source's store; return whether there was one."""

def drop_replicas(source: Source, arrays: list[str]) -> int:
    """Remove the sorted replicas of these arrays (none: all); return their number."""

def calibrate(source: Source) -> tuple[list[tuple[str, float, int]], str]:
    """Return costs (name, nanoseconds, observations) and the file that keeps them."""

def save_learnt(source: Source) -> None:
    """Write what scans learnt to the source's store."""

def index_notes(source: Source) -> list[str]:
    """Return why augmentations that exist are not used."""

class Histogram:
    """The histogram of an array, from its augmentations; see `sieva.Histogram`."""

    @staticmethod
    def of(source: Source, array: str) -> Histogram:
        """Return that of a whole array."""

    def merged(self, other: Histogram) -> Histogram:
        """Return both together."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """Numbers of values by bin."""

    @property
    def edges(self) -> NDArray[np.float64]:
        """Bounds of the bins, decoded."""

    @property
    def whole_edges(self) -> list[int] | None:
        """Bounds of the bins exactly, of integers that are not packed."""

    @property
    def whole_range(self) -> tuple[int, int] | None:
        """Least and greatest value exactly, of integers that are not packed."""

    @property
    def infinities(self) -> tuple[int, int]:
        """Values of minus and plus infinity."""

    @property
    def missing(self) -> int:
        """Missing values, NaN included."""

    @property
    def rows(self) -> int:
        """All values."""

    @property
    def range(self) -> tuple[float, float] | None:
        """Least and greatest value."""

def rank_pieces(
    source: Source,
    path: str,
    boxes: list[tuple[int, list[int], list[int]]],
    *,
    array: int,
    width: int,
    most: int,
) -> bytes:
    """Cut boxes of an array by servers, stripes and blocks of at most `most` bytes.

    A box is the number of its request, start and shape. The rows that come back are what ranks tell one
    another for a `RankPlan`; `array` is the number of the array there, `width` the bytes of a value.
    """

class RankPlan:
    """Which rank reads which piece of what all of them ask for, and when; the same on all ranks.

    Parameters
    ----------
    arrays
        Of each array its shape, and whether its blocks are chunks.
    told
        What `rank_pieces` gave each rank.
    most
        Bytes that a rank sends in a wave, unless a unit is more.
    """

    def __init__(self, arrays: list[tuple[tuple[int, ...], bool]], told: list[bytes], most: int) -> None: ...
    @property
    def waves(self) -> int:
        """How many waves there are."""

    @property
    def units(self) -> int:
        """How many units there are: what is read together, by one rank."""

    def pieces(self) -> bytes:
        """Return the pieces in the order in which they are read, as rows of seven 64-bit integers.

        Array, request, who asks, who reads, wave, unit, bytes.
        """

    def piece(self, number: int) -> tuple[list[int], list[int]]:
        """Return start and shape of a piece."""

    def run(self, unit: int) -> tuple[int, int] | None:
        """Return first position and number of elements that a unit's reader reads, where they are one run."""

    def reads(self, unit: int) -> list[tuple[list[int], list[int]]]:
        """Return start and shape of the boxes that the reader of a unit reads: all of it, nothing twice."""

def read_many(
    source: Source,
    requests: list[tuple[str, tuple[list[int], list[int], list[int] | None] | Selection]],
    raw: bool,
) -> list[Any]:
    """Read boxes (start, shape, steps) and selections together; of each an array, or its exception."""

class Source:
    """An open file."""

    def refreshed(self) -> Source | None:
        """Return the source as it is now; None where that is what it was."""

    @staticmethod
    def open(
        paths: list[str],
        options: Mapping[str, Any] | None = None,
        *,
        limits: tuple[int, int] | None = None,
        session: Session | None = None,
    ) -> Source:
        """Open files as one source; their formats are told by their first bytes.

        Parameters
        ----------
        paths
            Paths and globs.
        options
            As of `sieva.open`, but ``isolated`` is the command of a worker, ``learn`` may be the share of its
            time that a scan may spend on leaving statistics and the least size of arrays that it does so for,
            and ``catalog`` is one that is open.
        limits
            Bytes of memory and seconds that such a worker may take.

        Raises
        ------
        FileNotFound, PermissionDenied, UnknownFormat, CorruptFile
            The file cannot be opened.
        """

    @staticmethod
    def of_foreign(
        path: str,
        description: Description,
        reader: Reader,
        options: Mapping[str, Any] | None = None,
    ) -> Source:
        """Return a source that Python code describes and reads; see `sieva._foreign`.

        Parameters
        ----------
        path
            What messages call it.
        description, reader
            Its schema as plain data, and what reads boxes of its arrays.
        options
            As in `open`, as far as they are of such a source.

        Raises
        ------
        InvalidValue
            The description contradicts itself.
        """

    def manifest(self) -> bytes: ...
    def files(self) -> list[str]:
        """Return the files that it is made of."""

    def traffic(self) -> dict[str, int]:
        """Return what was read since it was opened, metadata included: bytes, requests, chunks decoded.

        ``plan_nanoseconds`` is the time that batches of reads took until it was known what is read for whom.
        """

    @property
    def path(self) -> str:
        """The path as it was given."""

    @property
    def format(self) -> str:
        """``"HDF5"``, ``"netCDF-4"``, ``"netCDF-3 classic"`` ..."""

    @property
    def warnings(self) -> list[str]:
        """What could not be understood and was left out or read otherwise."""

    def arrays(self) -> list[str]:
        """Return the paths of all arrays, in the order of the file."""

    def dims(self) -> list[dict[str, Any]]:
        """Return the dimensions: ``name``, ``path``, ``length``, ``unlimited``, ``named``, ``coordinate``."""

    def groups(self) -> list[str]:
        """Return the paths of all groups, the root (empty) first."""

    def attrs(self, group: str = "") -> dict[str, Any]:
        """Return the attributes of a group: text, lists of text, numpy scalars and 1-D arrays."""

    def resolve(self, name: str) -> str:
        """Return the path of the array that a name means.

        Raises
        ------
        UnknownArray, AmbiguousName
            With the names that are near, or the paths that it could mean.
        """

    def meant(self, name: str) -> list[str]:
        """Return the paths of the arrays that are indexed by a name: one, or those of all groups.

        Raises
        ------
        UnknownArray, AmbiguousName
            None has the name, or none that has it can be indexed.
        """

    def info(self, path: str) -> dict[str, Any]:
        """Return what is known of the array of exactly this path, without reading its data."""

    def read_masked(
        self, path: str, start: list[int], shape: list[int]
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return the values of a box in their own type, and where they are missing."""

    def read_run_masked(self, path: str, start: int, n: int) -> tuple[NDArray[Any], NDArray[np.bool_]] | None:
        """Return what `read_run` does in their own type, and where they are missing."""

    def read_run(self, path: str, start: int, n: int) -> NDArray[Any] | None:
        """Return elements that follow one another in C order, decoded; None where they do not lie so."""

    def read(
        self,
        path: str,
        start: list[int],
        shape: list[int],
        raw: bool = True,
        steps: list[int] | None = None,
    ) -> NDArray[Any]:
        """Return the values of the box ``start``, ``shape`` of an array, all or in ``steps``.

        Returns
        -------
        ndarray
            Of shape ``shape``, divided by the steps and rounded up where there are some, in the machine's
            byte order. ``raw``: the stored values, texts as an object array of str. Otherwise decoded values,
            where missing ones are NaN.

        Raises
        ------
        InvalidValue
            The box does not lie within the array.
        """

    def schema(self) -> str:
        """Return the three descriptors of the source as JSON text."""

    def query(
        self,
        condition: str | Expr | None,
        select: Sequence[str | Expr] | None,
        options: Mapping[str, Any] | None = None,
    ) -> Query:
        """Return the query of a condition (None: all positions) for expressions; see `sieva.Source`."""

    def sql(
        self,
        text: str,
        options: Mapping[str, Any] | None = None,
    ) -> Query:
        """Return the query of a SELECT over this source; its FROM is not looked at."""

    def query_plan(
        self,
        plan: Plan,
        options: Mapping[str, Any] | None = None,
    ) -> Query:
        """Return the query that a plan of this source stands for."""

    def run_task(
        self,
        task: Task,
        options: Mapping[str, Any] | None = None,
    ) -> Partial:
        """Run a part of the work of a query of this source."""

    def query_of(
        self,
        task: Task,
        options: Mapping[str, Any] | None = None,
        *,
        alone: bool = False,
    ) -> Query:
        """Return the query that a task is a part of, or (``alone``) that of the task's rows."""

    def state(self) -> tuple[int, int, int]:
        """Return what tells its state from others: length, and hashes of its version and content."""

class Expr:
    """An expression of the query language as a tree; ``str()`` prints it. Never changed."""

    @staticmethod
    def parse(text: str) -> Expr: ...
    @staticmethod
    def name(path: str) -> Expr:
        """Return a name that is taken literally."""

    @staticmethod
    def boolean(value: bool) -> Expr: ...
    @staticmethod
    def integer(value: int) -> Expr: ...
    @staticmethod
    def number(value: float) -> Expr: ...
    @staticmethod
    def text(value: str) -> Expr: ...
    @staticmethod
    def date(value: str) -> Expr: ...
    @staticmethod
    def call(function: str, arguments: list[Expr]) -> Expr: ...
    def binary(self, symbol: str, right: Expr) -> Expr:
        """Return an operation: one of ``+ - * / // % ^``."""

    def compare(self, symbol: str, right: Expr) -> Expr:
        """Return a comparison: one of ``= <> < <= > >=``."""

    def both(self, other: Expr) -> Expr:
        """Return the conjunction, in constant time."""

    def either(self, other: Expr) -> Expr:
        """Return the disjunction, in constant time."""

    def opposite(self) -> Expr: ...
    def negative(self) -> Expr: ...
    def one_of(self, values: list[Expr]) -> Expr: ...
    def between(self, low: Expr, high: Expr) -> Expr: ...
    def is_null(self, negated: bool) -> Expr: ...

def select_text(items: Sequence[str | Expr] | None, condition: str | Expr | None) -> str:
    """Return a SELECT without FROM as text; None are all columns."""

def without_from(sql: str) -> str:
    """Return a SELECT without its FROM; what cannot be read comes back as it is."""

class Session:
    """What queries share: memory, threads, and what was found before."""

    def __init__(
        self,
        *,
        memory: int | None = None,
        cache: int | None = None,
        threads: int | None = None,
        queries: int | None = None,
    ) -> None: ...
    @staticmethod
    def shared() -> Session:
        """Return the session of the process."""

    def stats(self) -> dict[str, int]:
        """Return what it did and holds."""

    def run(
        self, queries: Sequence[Query], *, memory: int | None = None, threads: int | None = None
    ) -> tuple[list[errors.SievaError | None], dict[str, int]]:
        """Evaluate queries together; return what each failed with, and what was done."""

    def cancel(self) -> None:
        """Stop the queries that run."""

    def forget(self) -> None:
        """Drop what is kept."""

    def close(self) -> None:
        """Stop its queries, and let no more run."""

    @property
    def closed(self) -> bool:
        """Whether it was closed."""

class Plan:
    """A logical plan: a question about a source as data, to be sent, compared, kept and asked elsewhere.

    Made by `Query.plan`. Equal questions have equal plans, however they were worded: the parts of a condition
    have one order, names are paths, and dates are numbers of the file's calendar. ``bytes(plan)`` gives it as
    bytes; plans can be compared, pickled, and used as keys.

    Examples
    --------
    >>> plan = src.sql("SELECT max(TEMP) WHERE z_t < 500").plan()  # doctest: +SKIP
    >>> plan == src.sql("select max(TEMP) where 500 > z_t and true").plan()  # doctest: +SKIP
    True
    >>> src.query(sieva.Plan.from_bytes(bytes(plan))).read("max(TEMP)")  # doctest: +SKIP
    """

    @staticmethod
    def from_bytes(data: bytes) -> Plan:
        """Return the plan that `bytes` gave.

        Raises
        ------
        InvalidValue
            These are no bytes of a plan, or were changed or cut off.
        """

    @staticmethod
    def from_json(text: str) -> Plan:
        """Return the plan that `to_json` gave, or somebody wrote by hand.

        Raises
        ------
        InvalidValue
            It is no plan; the error names the place.
        """

    @property
    def id(self) -> str:
        """The name of the question: 32 hexadecimal digits of the SHA-256 of its bytes."""

    @property
    def source(self) -> str | None:
        """The path of the source, where the plan names one."""

    def unnamed(self) -> Plan:
        """Return the same plan of whatever source it is asked of."""

    def to_json(self) -> str:
        """Return it as JSON."""

    def sql(self) -> str:
        """Return it as the text of a SELECT, which gives the same plan again."""

    def __bytes__(self) -> bytes: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

class Task:
    """A part of the work of a query: what is asked, of which rows, of which state of a source.

    Made by `Query.tasks`, run by `Source.run_task` in any process that can open the source. ``bytes(task)``
    gives it as bytes; tasks can be compared and pickled.

    Examples
    --------
    >>> task = sieva.Task.from_bytes(data)  # doctest: +SKIP
    >>> part = sieva.open(task.source).run_task(task)  # doctest: +SKIP
    """

    @staticmethod
    def from_bytes(data: bytes) -> Task:
        """Return the task that `bytes` gave.

        Raises
        ------
        InvalidValue
            These are no bytes of a task, or were changed or cut off.
        """

    @property
    def kind(self) -> str:
        """What it gives: ``"count"``, ``"selection"`` or ``"groups"``."""

    @property
    def source(self) -> str | None:
        """The path of the source, as it was opened where the task was made."""

    @property
    def plan(self) -> Plan:
        """What is asked, of all rows."""

    @property
    def start(self) -> list[int]:
        """The first position of its rows along each dimension."""

    @property
    def shape(self) -> list[int]:
        """How many positions of each dimension its rows have."""

    @property
    def number(self) -> tuple[int, int] | None:
        """Its number and how many there are, where it is a part by values of an array, not by a box."""

    def __bytes__(self) -> bytes: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

class Partial:
    """What one task of a query found, or several; made by `Source.run_task`, taken by `Query.finish`.

    ``bytes(partial)`` gives it as bytes; it can be pickled.
    """

    @staticmethod
    def from_bytes(data: bytes, memory: int | str | None = None) -> Partial:
        """Return what `bytes` gave.

        Parameters
        ----------
        data
            The bytes.
        memory
            What it, and what is merged with it, may take: bytes, or text (``"512MiB"``); by default 1 GiB.

        Raises
        ------
        InvalidValue
            These are no bytes of a partial result, or were changed or cut off.
        MemoryLimit
            It takes more memory than allowed.
        """

    @property
    def kind(self) -> str:
        """What was asked for: ``"count"``, ``"selection"`` or ``"groups"``."""

    @property
    def looked_at(self) -> tuple[int, int]:
        """How many rows were looked at, and how many there are."""

    @staticmethod
    def merged(parts: Sequence[bytes]) -> Partial:
        """Return what several found, by their bytes; they are read one after the other.

        Raises
        ------
        InvalidValue
            As `from_bytes` and `merge`.
        MemoryLimit
            It takes more than 1 GiB.
        """

    def merge(self, other: Partial) -> Partial:
        """Return what both found; in any order, the answer is the same.

        Raises
        ------
        InvalidValue
            They are of different queries or states of a source, or looked at the same rows.
        """

    def __bytes__(self) -> bytes: ...

class Query:
    """A bound query. Its condition is evaluated at most once, whatever is asked."""

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Names and types of the columns: numpy's name, ``"str"``, ``"datetime"``, ``"histogram"``."""

    @property
    def rows(self) -> list[tuple[str, int]]:
        """Names and lengths of the row space's dimensions."""

    @property
    def grouped(self) -> bool:
        """Whether rows are groups."""

    def cancel(self) -> None:
        """Stop it, from any thread."""

    def again(self) -> Query:
        """Return the same query, to be cancelled by itself: what either finds of the condition, both know."""

    def count(self) -> int:
        """Return the number of rows that come back."""

    def plan(self) -> Plan:
        """Return the query as a logical plan; nothing is read or run."""

    def tasks(
        self, n: int, kind: str | None = None, boxes: Sequence[tuple[list[int], list[int]]] | None = None
    ) -> list[Task]:
        """Return the work in parts: at most ``n``, or of boxes of the rows."""

    def shares(self, n: int, kind: str | None = None) -> list[Task]:
        """Return the work in about ``n`` parts, by values of a replica's key where it gives the rows."""

    def effort(self, kind: str | None = None) -> float:
        """Return about how many seconds of one thread finding that takes."""

    def at(self, selection: Selection | None) -> Query:
        """Return the query at positions that were found elsewhere; None: at no position."""

    def finish(self, parts: Sequence[Partial]) -> Query:
        """Return the query that knows its answer by what all its tasks found."""

    def finish_bytes(self, parts: Sequence[bytes]) -> Query:
        """Return the same by the bytes of what they found."""

    def estimate(self) -> tuple[int, int]:
        """Return bounds of the number of hits; reads coordinates at most."""

    def price(self) -> dict[str, tuple[Any, Any, Any]]:
        """Return least, expected and greatest value of each quantity; reads nothing."""

    def selection(self) -> Selection:
        """Return the positions that satisfy the condition."""

    def read(self, name: str | Expr | None = None) -> NDArray[Any]:
        """Return the values of an array or expression at the hits, 1-D, in C order."""

    def with_columns(self, more: Sequence[str | Expr]) -> Query | None:
        """Return the same query with more columns behind its own; None of DISTINCT."""

    def of_its_rows(self, values: Sequence[str | Expr]) -> Query:
        """Return a query of the same condition for other expressions, aggregates among them."""

    def histogram(self, name: str | Expr, bins: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return counts ``(bins,)`` and edges ``(bins + 1,)``, as `numpy.histogram` of the values."""

    def explain(self, analyze: bool = False) -> str:
        """Return the plan as text; ``analyze`` runs the query and adds what happened."""

    def explain_json(self, analyze: bool = False) -> str:
        """Return the plan as JSON text."""

    def explain_layout(self) -> str:
        """Return which servers and stripes are touched, as text."""

    def explain_layout_json(self) -> str:
        """Return which servers and stripes are touched, as JSON text."""

    def stream(self, batch_size: int = 65536) -> Stream:
        """Return the result as an Arrow stream of batches of at most ``batch_size`` rows."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def raise_failure(self) -> None:
        """Raise, once, the error that ended a stream of this query; Arrow hands on its words only."""

    def stats(self) -> dict[str, Any]:
        """Return what the query did so far: counters, and seconds by phase."""

class Encoded:
    """The rows of a query as the bytes of a file, whose layout is known before a value is read.

    Parameters
    ----------
    query
        Evaluated now.
    kind
        The name of one of `formats`.
    spool
        Directory for what is written before its length is known: all but netCDF and HDF5.
    spool_limit
        Bytes that this may take there; 8 GiB by default.
    deflate
        Level of netCDF and HDF5 up to 9; 0 is not compressed. Then the length is known last.
    """

    def __init__(
        self,
        query: Query,
        kind: str,
        *,
        spool: str | os.PathLike[str] | None = None,
        spool_limit: int | None = None,
        deflate: int = 0,
    ) -> None: ...
    @property
    def nbytes(self) -> int:
        """Length of the file."""

    @property
    def rows(self) -> int:
        """Rows of the result."""

    @property
    def id(self) -> str:
        """A name of the bytes: 32 hexadecimal digits."""

    def read(self, offset: int, n: int) -> bytes:
        """Return ``n`` bytes from ``offset`` on, fewer at the end."""

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write all bytes to a file."""

    def blocks(self, start: int, stop: int, block: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield offsets and bytes of the blocks of a range, made ahead by threads; 0: of 256 KiB."""

    def blocks_any_order(self, block: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield all blocks: of a deflated result as they are made, its head last."""

    def split(self, n: int) -> list[tuple[int, int]]:
        """Return ``n`` ranges of the file, or fewer, of about the same length."""

class RemoteOptionRow(TypedDict):
    """An option of remote storage."""

    name: str
    kind: Literal["seconds", "count", "bytes", "directory", "flag"]
    default: str
    """What holds where it is not given, in words."""
    means: str

def remote_option_rows() -> list[RemoteOptionRow]:
    """Return the options of remote storage, in the order in which they are listed."""

class StoreRow(TypedDict):
    """A place where bytes are kept, known by the schemes of its addresses."""

    schemes: list[str]
    form: str
    """Its addresses, as messages show them."""
    variables: list[str]
    """Variables of the environment that say where it is and who asks; none: the address says it."""

def stores() -> list[StoreRow]:
    """Return the stores, in the order in which messages list them."""

class FormatRow(TypedDict):
    """A format of results: a row of the engine's list."""

    name: str
    suffixes: list[str]
    """What names of its files end with, without the point; the usual one first."""
    laid_out: bool
    """Whether the place of each value is known before one is read; else it is written row by row."""
    deflatable: bool
    for_pipes: bool
    """Whether it can be written to a pipe."""

def formats() -> list[FormatRow]:
    """Return the formats of results, in the order in which they are listed."""

def row_texts(batch: pa.RecordBatch) -> list[list[str]]:
    """Return the rows of a batch as texts: as in CSV, but without quotes; missing values are empty."""

class RowWriter:
    """A file of rows that is written batch after batch into a binary stream.

    It holds a batch at most, of Parquet a row group. Exceptions of the stream are raised as they are.

    Parameters
    ----------
    kind
        A format that is written row by row.
    schema
        Of all batches: what has ``__arrow_c_schema__``.
    out
        Bytes are given to its ``write``.
    is_pipe
        Whether it is a pipe: Arrow has a form of its own for those.

    Raises
    ------
    InvalidValue
        There is no such format.
    Unsupported
        The format is laid out as a whole (`Encoded` writes it), or has no type for a column.

    Examples
    --------
    >>> sink = RowWriter("csv", schema, sys.stdout.buffer)  # doctest: +SKIP
    >>> for batch in batches:  # doctest: +SKIP
    ...     sink.write(batch)
    >>> sink.finish()  # doctest: +SKIP
    """

    def __init__(self, kind: str, schema: pa.Schema, out: BinaryIO, *, is_pipe: bool = False) -> None: ...
    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch."""

    def finish(self, stats: str | None = None) -> None:
        """Write what comes behind the last row; of JSON what the query did, as a JSON object, too."""

class Stream:
    """An Arrow stream, for one use."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

class Selection:
    """The positions that satisfy a condition, kept compressed.

    Selections of the same dimensions are combined by ``&``, ``|``, ``-``, ``^`` and ``~``.

    Examples
    --------
    >>> warm = src.query("TEMP > 20").selection()  # doctest: +SKIP
    >>> salty = src.query("SALT > 36").selection()  # doctest: +SKIP
    >>> len(warm & ~salty)  # doctest: +SKIP
    """

    @property
    def dims(self) -> list[str]:
        """Names of the dimensions."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the dimensions."""

    @property
    def nbytes(self) -> int:
        """Bytes that it takes in memory."""

    def __len__(self) -> int: ...
    def coords(self) -> NDArray[np.int64]:
        """Return the positions as an array of shape ``(len(self), len(self.dims))``, in C order."""

    def mask(self) -> NDArray[np.bool_]:
        """Return an array of shape ``self.shape`` that is true at the positions.

        Raises
        ------
        MemoryLimit
            It would not fit into memory.
        """

    def bounding_box(self) -> tuple[list[int], list[int]] | None:
        """Return start and shape of the smallest box around all positions, None where there are none."""

    def rank(self, position: int) -> int:
        """Return how many of them stand before a position of the rows, counted in C order."""

    def part(self, start: int, stop: int) -> Selection:
        """Return those of rank `start` up to `stop`, in C order."""

    def __bytes__(self) -> bytes:
        """Return what `save` writes; selections can be pickled."""

    @staticmethod
    def from_bytes(data: bytes) -> Selection:
        """Return the selection that `bytes` gave.

        Raises
        ------
        CorruptFile
            These are no bytes of a selection, or were changed or cut off.
        """

    def save(self, path: str) -> None:
        """Write the selection to a file."""

    @staticmethod
    def load(path: str) -> Selection:
        """Read a selection from a file that `save` wrote."""

    @staticmethod
    def from_positions(
        positions: NDArray[np.integer[Any]] | Sequence[int], dims: Sequence[str], shape: Sequence[int]
    ) -> Selection:
        """Return the selection of given positions.

        Parameters
        ----------
        positions
            Whole numbers from 0 on, best uint64: of shape ``(n,)``, linear in C order; or ``(n, len(dims))``,
            coordinates as `coords` gives them. Best in increasing order; repeated ones count once.
        dims, shape
            Names and lengths of the dimensions.

        Raises
        ------
        InvalidValue
            A position does not lie in the shape.
        DimensionMismatch
            Positions of another rank, or not as many names as lengths.

        Examples
        --------
        >>> import numpy as np
        >>> s = sieva.Selection.from_positions(np.array([[0, 2], [1, 1]], np.uint64), ["y", "x"], [2, 3])
        >>> s.positions()
        array([2, 4])
        """

    @staticmethod
    def from_boxes(
        boxes: Sequence[tuple[Sequence[int], Sequence[int]]], dims: Sequence[str], shape: Sequence[int]
    ) -> Selection:
        """Return the selection of all positions that lie in any of these boxes.

        Parameters
        ----------
        boxes
            Of each its first position and its lengths along the dimensions, as `bounding_box` gives them.
        dims, shape
            Names and lengths of the dimensions.

        Raises
        ------
        InvalidValue
            A box does not lie in the shape.
        DimensionMismatch
            A box of another rank, or not as many names as lengths.

        Examples
        --------
        >>> s = sieva.Selection.from_boxes([([0, 1], [2, 2])], ["y", "x"], [2, 3])
        >>> s.positions()
        array([1, 2, 4, 5])
        """

    def positions(self) -> NDArray[np.int64]:
        """Return the positions, ascending and linear in C order, as an array of shape ``(len(self),)``."""

    def __and__(self, other: Selection) -> Selection: ...
    def __or__(self, other: Selection) -> Selection: ...
    def __sub__(self, other: Selection) -> Selection: ...
    def __xor__(self, other: Selection) -> Selection: ...
    def __invert__(self) -> Selection: ...
    def __eq__(self, other: object) -> bool: ...

def collection_clause(sql: str) -> str | None:
    """Return the name in ``FROM collection('name')``; None for another FROM, or none."""

class Collection:
    @staticmethod
    def open(
        url: str,
        name: str,
        options: Mapping[str, Any] | None = None,
    ) -> Collection: ...
    @property
    def name(self) -> str: ...
    def traffic(self) -> dict[str, int]:
        """Return how many sources its queries opened so far, and what they read of them."""

    def sql(
        self,
        text: str,
        options: Mapping[str, Any] | None = None,
    ) -> CollectionQuery: ...
    def query_plan(
        self,
        plan: Plan,
        options: Mapping[str, Any] | None = None,
    ) -> CollectionQuery: ...
    def run_task(
        self,
        task: CollectionTask,
        options: Mapping[str, Any] | None = None,
    ) -> CollectionPartial: ...

class CollectionTask:
    """A part of the work of a query of a collection: what is asked, of which objects in which state.

    Made by `CollectionQuery.tasks`, run by `Collection.run_task` in any process that can open the catalog and
    these sources. ``bytes(task)`` gives it as bytes; tasks can be compared and pickled.

    Examples
    --------
    >>> task = sieva.CollectionTask.from_bytes(data)  # doctest: +SKIP
    >>> part = sieva.collection("h5boss", catalog="boss.sqlite").run_task(task)  # doctest: +SKIP
    """

    @staticmethod
    def from_bytes(data: bytes) -> CollectionTask:
        """Return the task that `bytes` gave.

        Raises
        ------
        InvalidValue
            These are no bytes of a task of a collection, or were changed or cut off.
        """

    @property
    def kind(self) -> str:
        """What it gives: ``"count"``, ``"selection"`` or ``"groups"``."""

    @property
    def plan(self) -> Plan:
        """What is asked, of all objects."""

    @property
    def sources(self) -> list[str]:
        """Locations of the sources that it opens."""

    @property
    def objects(self) -> tuple[int, int]:
        """The number of its first object among all of the query, and how many objects it has."""

    @property
    def object_count(self) -> int:
        """How many objects the query has."""

    def __bytes__(self) -> bytes: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

class CollectionPartial:
    """What one task of a collection found, or several; made by `Collection.run_task`.

    `CollectionQuery.finish` takes it. ``bytes(partial)`` gives it as bytes; it can be pickled.
    """

    @staticmethod
    def from_bytes(data: bytes, memory: int | str | None = None) -> CollectionPartial:
        """Return what `bytes` gave.

        Parameters
        ----------
        data
            The bytes.
        memory
            What it, and what is merged with it, may take: bytes, or text (``"512MiB"``); by default 1 GiB.

        Raises
        ------
        InvalidValue
            These are no bytes of a partial result of a collection, or were changed or cut off.
        MemoryLimit
            It takes more memory than allowed.
        """

    @property
    def kind(self) -> str:
        """What was asked for: ``"count"``, ``"selection"`` or ``"groups"``."""

    @property
    def looked_at(self) -> tuple[int, int]:
        """How many objects were looked at, and of how many."""

    def merge(self, other: CollectionPartial) -> CollectionPartial:
        """Return what both found; neither is changed.

        Raises
        ------
        InvalidValue
            They are of different questions, or looked at the same objects.
        MemoryLimit
            Together they take more memory than allowed.
        """

    def __bytes__(self) -> bytes: ...

class CollectionQuery:
    def plan(self) -> Plan: ...
    def tasks(
        self,
        n: int = 1,
        kind: str | None = None,
        objects: list[tuple[int, int]] | None = None,
    ) -> list[CollectionTask]: ...
    def finish(self, parts: list[CollectionPartial]) -> CollectionQuery: ...
    def listing(self) -> bytes | None:
        """Return the states of the sources, which are opened for it; None where tasks list for themselves."""

    def take_listing(self, listing: bytes) -> None:
        """Take over what `listing` gave another process that asks the same."""

    @property
    def columns(self) -> list[tuple[str, str]]: ...
    @property
    def grouped(self) -> bool: ...
    def sources(self) -> list[str]: ...
    def count(self) -> int: ...
    def price(self) -> dict[str, tuple[Any, Any, Any]]: ...
    def explain(self, analyze: bool = False) -> str: ...
    def stream(self, batch_size: int = 65536) -> Stream: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def stats(self) -> dict[str, Any]: ...
    def raise_failure(self) -> None: ...
    def cancel(self) -> None: ...
