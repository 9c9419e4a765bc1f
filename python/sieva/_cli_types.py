"""Values of options of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from sieva import _native
from sieva._memory import memory_bytes
from sieva._printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable


class MemoryType(click.ParamType[int]):
    """A size such as 512MiB."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401
        """Return the size in bytes."""
        try:
            return memory_bytes(value) or 0
        except (ValueError, KeyError) as error:
            self.fail(str(error), param, ctx)


class TextType(click.ParamType[str]):
    """Text; a name of a file may be none."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401
        """Return the text."""
        try:
            str(value).encode()
        except UnicodeEncodeError:
            self.fail(f"{printable(value)!r} is no text in UTF-8", param, ctx)
        return str(value)


class SpillType(MemoryType):
    """A size such as 100GiB, or 0."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401
        """Return the size in bytes."""
        return 0 if value in {0, "0"} else super().convert(value, param, ctx)


class DimsType(click.ParamType[tuple[str, list[str]]]):
    """Names of an array's dimensions, such as exchange/theta=angle."""

    name = "array=dims"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - as click has it
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, list[str]]:
        """Return the array and the names."""
        if isinstance(value, tuple):
            return value
        array, found, names = value.rpartition("=")
        dims = [name.strip() for name in names.split(",")]
        if not found or not array or not all(dims):
            self.fail(f"{value!r} is not of the form array=name,name", param, ctx)
        return array, dims


class FunctionType(click.ParamType[tuple[str, bytes]]):
    """A function of SQL and the file of its code, such as fahrenheit=fahrenheit.c."""

    name = "name=file"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - as click has it
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, bytes]:
        """Return the name and the code."""
        if isinstance(value, tuple):
            return value
        name, found, path = value.partition("=")
        if not found or not name or not path:
            self.fail(f"{value!r} is not of the form name=file", param, ctx)
        try:
            return name, Path(path).read_bytes()
        except OSError as error:
            self.fail(f"cannot read {printable(path)!r}: {error.strerror}", param, ctx)


class StorageOptionType(click.ParamType[tuple[str, Any]]):
    """One of the options of remote storage, such as retries=3 or cache_bytes=1GiB."""

    name = "name=value"
    _KINDS: ClassVar[dict[str, Callable[[str], Any]]] = {
        "count": int,
        "seconds": float,
        "bytes": memory_bytes,
        "directory": str,
        "flag": lambda text: {"true": True, "false": False}[text],
    }
    _OPTIONS: ClassVar[dict[str, str]] = {row["name"]: row["kind"] for row in _native.remote_option_rows()}

    def convert(
        self,
        value: Any,  # noqa: ANN401 - as click has it
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, Any]:
        """Return the name and the value in its type."""
        if isinstance(value, tuple):
            return value
        name, _, text = value.partition("=")
        if name not in self._OPTIONS or not text:
            known = ", ".join(self._OPTIONS)
            self.fail(f"{value!r} is not of the form name=value, with one of the names {known}", param, ctx)
        try:
            return name, self._KINDS[self._OPTIONS[name]](text)
        except ValueError as error:
            self.fail(f"{name}: {error}", param, ctx)
        except KeyError:
            self.fail(f"{name}: expected true or false, got {text!r}", param, ctx)
