"""ADIOS2 BP files, read by the adios2 package: BP4 and BP5 directories, BP3 files."""

from __future__ import annotations

import os
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sieva import _adios_limits, _native, errors
from sieva._adios_variable import Variable
from sieva._foreign import ArrayEntry, Description, Dim, Group, Limit, open_foreign
from sieva._interrupt import uninterrupted
from sieva._local import is_directory
from sieva._source import Source

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sieva._options import OpeningForeign

# A BP3 file ends in a tag of 24 bytes, 4 bytes of the writer's version, and an index of 28 bytes.
_TAG, _TAG_FROM_END = b"ADIOS-BP v", 56
_KEPT = re.compile(r"(md\.idx|m?md\.\d+|data\.\d+)\Z")
"""Files of a BP directory that the library opens."""


def is_adios(path: str) -> bool:
    """Tell whether there is a BP file: a BP4 or BP5 directory, or a BP3 file."""
    if os.path.isdir(path):  # noqa: PTH112 - a path is text here
        return os.path.isfile(os.path.join(path, "md.idx"))  # noqa: PTH113, PTH118 - as above
    if not os.path.isfile(path):  # noqa: PTH113 - as above
        return False  # a pipe would be waited for
    if _native.is_open_database(path):
        return False  # closing it would give up its locks
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            file.seek(-_TAG_FROM_END, os.SEEK_END)
            return file.read(len(_TAG)) == _TAG
    except (OSError, ValueError):
        return False


def open_adios(path: str, *, isolated: bool = False, options: OpeningForeign | None = None) -> Source:
    """Open a BP file.

    Variables are arrays by their names; those that are written in several steps have these as their first
    dimension. ``variable/attribute`` is an attribute of the variable, ``group/attribute`` of the group.

    Parameters
    ----------
    path, isolated, options
        As in `sieva.open`.

    Raises
    ------
    Unsupported
        The package adios2 is not installed.
    CorruptFile
        It cannot read the file; isolated, also where the process that reads it crashes or runs over a limit.
    LinkRefused, UnknownFormat
        A file of the directory is a link that leads out of it, or a pipe, which would be waited for.
    """
    from sieva._adios_isolated import IsolatedFile

    _check_directory(path)
    file = IsolatedFile(path, _files(path)) if isolated else _File(path)
    return open_foreign(path, file.description, file, **(options or {}))


class _File:
    """An open file. The library is not made for threads: one at a time uses it."""

    def __init__(self, path: str) -> None:
        self._adios = _library(path)
        self._lock = threading.Lock()
        self._path = path
        with uninterrupted(), _explained(path):
            self._reader = self._adios.FileReader(path)
            self._steps = int(self._reader.num_steps())
            self._variables: dict[str, Variable] = {}
            self._warnings: list[str] = []
            self.description = self._describe()

    def _describe(self) -> Description:
        left_out: list[tuple[str, str]] = []
        for name in self._reader.available_variables():
            path = name.strip("/")
            variable = Variable(path, name, self._reader.inquire_variable(name), self._steps)
            if path in self._variables or not path:
                left_out.append((path, f"is the name of two variables, '{name}' is one"))
            elif (why := variable.fault()) is not None:
                left_out.append((path, why))
            else:
                self._variables[path] = variable
        of_arrays, of_groups = self._attributes()
        dims: dict[str, Dim] = {}
        arrays: list[ArrayEntry] = []
        for path, variable in self._variables.items():
            names = variable.name_dims(dims)
            entry = ArrayEntry(
                path=path,
                dtype=variable.dtype,
                dims=names,
                attrs=of_arrays.get(path, {}),
                block=self._block(variable),
            )
            arrays.append(entry)
        return Description(
            format="ADIOS2 BP",
            how="read by adios2",
            files=_files(self._path),
            version="",
            groups=[Group(path=path, attrs=of_groups[path]) for path in sorted(of_groups)],
            dims=list(dims.values()),
            arrays=arrays,
            left_out=left_out,
            warnings=[f"'{path}' {why}: it is left out" for path, why in left_out] + self._warnings,
        )

    def _attributes(self) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        """Return the attributes of arrays, and those of groups; the root has those that belong to neither."""
        of_arrays: dict[str, dict[str, Any]] = {}
        of_groups: dict[str, dict[str, Any]] = {group: {} for group in _groups(self._variables)}
        for name in self._attribute_names():
            try:
                value = self._reader.read_attribute(name)
            except (RuntimeError, ValueError, TypeError) as error:
                value = f"cannot be read ({_plain(error)})"
            path = name.strip("/")
            owner = path.rpartition("/")[0]
            while owner not in self._variables and owner not in of_groups:
                owner = owner.rpartition("/")[0]
            of = of_arrays.setdefault(owner, {}) if owner in self._variables else of_groups[owner]
            of[path[len(owner) :].lstrip("/")] = value
        return of_arrays, of_groups

    def _attribute_names(self) -> list[str]:
        """Return the names of all attributes that the library can tell.

        It hands values out with the names, as UTF-8: one that is none hides all that are asked for with it.
        """
        try:
            return list(self._reader.available_attributes())
        except UnicodeDecodeError:
            self._warnings.append("attributes that are not UTF-8 hide those of the file and of groups")
        names = []
        for variable in self._variables.values():
            try:
                found = self._reader.available_attributes(variable.name)
            except UnicodeDecodeError:
                self._warnings.append(f"attributes of '{variable.path}' that are not UTF-8 hide its others")
            else:
                names += [f"{variable.name}/{name}" for name in found]
        return names

    def _block(self, variable: Variable) -> Sequence[int] | None:
        """Return the shape of the blocks that most of an array is written in."""
        if not variable.shape or variable.dtype == "str":
            return None
        try:
            infos = self._reader._engine.blocks_info(variable.name, 0)
        except UnicodeDecodeError:
            return None  # the extremes of bytes are told as characters, which may be none
        counts = Counter(_adios_limits.numbers(info["Count"]) for info in infos or ())
        if not counts:
            return None
        block, _ = counts.most_common(1)[0]
        if len(block) != len(variable.shape) or 0 in block:
            return None
        return (*(1 for _ in variable.lead), *block)

    def read(self, path: str, start: tuple[int, ...], shape: tuple[int, ...]) -> Any:  # noqa: ANN401 - see Reader
        """Return a box of an array."""
        import numpy as np

        variable = self._variables[path]
        first, count = (start[0], shape[0]) if variable.lead else (0, 1)
        with self._lock, _explained(self._path, path):
            if variable.dtype == "str":
                # Asked for several texts at once, the library ends the process.
                return [self._text(variable.name, first + step) for step in range(count)]
            # What no block covers is left as it is: zero, here as for all who read with this package.
            out = np.zeros(shape, variable.dtype)
            if not variable.shape:
                self._get(variable, (first, count), out.reshape(-1))
                return out
            lead = len(variable.lead)
            box = [list(start[lead:]), list(shape[lead:])]
            # Of blocks that overlap, which one is read depends on how many steps are asked for: one it is.
            for step, part in enumerate(out if lead else [out]):
                self._get(variable, (first + step, 1), part, box)
            return out

    def _get(
        self,
        variable: Variable,
        steps: tuple[int, int],
        out: NDArray[Any],
        box: list[list[int]] | None = None,
    ) -> None:
        found = self._reader.inquire_variable(variable.name)
        found.set_step_selection(list(steps))
        if box is not None:
            found.set_selection(box)
        self._reader._engine.get(found, out, self._adios.bindings.Mode.Sync)

    def _text(self, name: str, step: int) -> str:
        found = self._reader.inquire_variable(name)
        found.set_step_selection([step, 1])
        return str(self._reader._engine.get(found))

    def limits(self, path: str) -> list[Limit] | None:
        """Return what the writers noted of their blocks, as far as it can be believed."""
        variable = self._variables[path]
        # Of variables that are not in every step, engines count steps differently.
        if not variable.shape or variable.steps != self._steps:
            return None
        if not _adios_limits.believed(self._adios, variable.dtype):
            return None
        with self._lock, _explained(self._path, path):
            steps = [
                self._reader._engine.blocks_info(variable.name, step) or () for step in range(variable.steps)
            ]
        limits: list[Limit] = []
        for step, infos in enumerate(steps):
            found = _adios_limits.of_step(infos, variable.shape, variable.dtype)
            if found is None:
                return None
            lead = (step,) if variable.lead else ()
            one = (1,) if variable.lead else ()
            limits += [((*lead, *start), (*one, *count), low, high) for start, count, low, high in found]
        return limits


def _groups(paths: Mapping[str, object]) -> Iterator[str]:
    """Yield the groups that names imply, the root among them."""
    yield ""
    for path in paths:
        parts = path.split("/")[:-1]
        for depth in range(len(parts)):
            yield "/".join(parts[: depth + 1])


def _files(path: str) -> list[str]:
    """Return the files that hold data and metadata; others of the directory tell how it was written."""
    if not is_directory(path):
        return [path]
    return sorted(str(file) for file in Path(path).iterdir() if _KEPT.match(file.name) and file.is_file())


def _check_directory(path: str) -> None:
    """Refuse what the library would wait for, and links out of the directory."""
    folder = Path(path)
    if not is_directory(folder):
        return
    inside = folder.resolve()
    for file in folder.iterdir():
        real = file.resolve()
        if not real.is_relative_to(inside):
            message = (
                f"'{file}' is a link that leads out of the BP directory: it is outside of what may be opened"
            )
            raise errors.LinkRefused(message, "put a copy in its place if you trust it")
        if _KEPT.match(file.name) and real.exists() and not real.is_file():
            raise errors.UnknownFormat(
                f"'{file}' is not a regular file", "a pipe or device is not waited for"
            )


def _library(path: str) -> Any:  # noqa: ANN401 - a module
    try:
        with uninterrupted():
            import adios2
    except ImportError as error:
        message = f"'{path}' is an ADIOS2 BP file: reading it needs the package adios2 ({error})"
        raise errors.Unsupported(message, "pip install 'sieva[adios]'") from error
    return adios2


@contextmanager
def _explained(path: str, array: str | None = None) -> Iterator[None]:
    """Give errors of the library a place, and say them in a line of words."""
    try:
        yield
    except (RuntimeError, ValueError, TypeError, IndexError, KeyError) as error:
        place = f"'{path}'" + (f": array '{array}'" if array else "")
        hint = "is it whole, and is nothing writing it? bpls, of ADIOS2, reads it the same way"
        raise errors.CorruptFile(f"{place}: adios2 cannot read it: {_plain(error)}", hint) from error


def _plain(error: BaseException) -> str:
    """Return the words of an error of the library, without colours, its date and its functions."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    text = re.sub(r"\[\w{3} \w{3} +\d+ [\d:]+ \d{4}\]|\[ADIOS2 \w+\]|<[\w:]+>", "", text)
    return " ".join(text.split()).strip(" :") or type(error).__name__
