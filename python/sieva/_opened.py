"""How a source was opened, as data: so that another process opens it in the same way."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sieva import errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sieva import _native
    from sieva._source import Source

# Options that name places of the file system.
_PLACES = ("store",)
_LISTS_OF_PLACES = ("external", "allow")


@dataclass(frozen=True)
class Opened:
    """Names and options of `sieva.open`, absolute and plain.

    Attributes
    ----------
    names
        Paths, globs and URLs.
    options
        What was given of the options of opening; `json` can write them.
    """

    names: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(names: Sequence[str], options: Mapping[str, Any]) -> Opened:
        """Return what was given to `sieva.open`, for other directories than the current one."""
        # A manifest is what opening gave, and may be large: who opens it again reads for itself.
        given = {name: value for name, value in options.items() if name != "manifest" and value is not None}
        plain = {name: _plain(name, value) for name, value in given.items()}
        return Opened(tuple(_absolute(name) for name in names), plain)

    def to_json(self) -> str:
        """Return it as text, the same for the same."""
        return json.dumps({"names": self.names, "options": self.options}, sort_keys=True)

    @staticmethod
    def from_json(text: str) -> Opened:
        """Return what `to_json` gave.

        Raises
        ------
        InvalidValue
            The text is nothing that `to_json` gives.
        """
        try:
            found = json.loads(text)
            return Opened(tuple(map(str, found["names"])), dict(found["options"]))
        except (ValueError, KeyError, TypeError) as error:
            raise errors.InvalidValue(f"no description of an open source: {text[:80]!r}") from error

    def open(self, session: _native.Session | None = None) -> Source:
        """Open it again, in a session or that of the process."""
        from sieva._open import open_in

        return open_in(session, list(self.names), self.options)  # type: ignore[arg-type] # once given so


def reopen(text: str, state: tuple[int, int, int]) -> Source:
    """Open a source that was pickled.

    Raises
    ------
    StaleSource
        It is not in the state in which it was.
    """
    source = Opened.from_json(text).open()
    if source._native.state() != tuple(state):
        raise errors.StaleSource(
            f"{source.path!r} is not in the state in which it was pickled", "open it anew, and pickle that"
        )
    return source


def _absolute(name: str) -> str:
    return name if "://" in name else os.path.abspath(name)  # noqa: PTH100 - a glob is no path


def _plain(name: str, value: Any) -> Any:  # noqa: ANN401 - any option
    """Return an option as JSON has it."""
    if name in _PLACES:
        return _absolute(os.fspath(value))
    if name in _LISTS_OF_PLACES:
        places = [value] if isinstance(value, str | os.PathLike) else value
        return [_absolute(os.fspath(place)) for place in places]
    if name == "catalog" and not isinstance(value, bool):
        url = getattr(value, "url", None) or value
        # What is no catalog is refused where it is opened.
        return os.fspath(url) if isinstance(url, str | os.PathLike) else url
    if name == "dims":
        return {array: list(names) for array, names in value.items()}
    return dict(value) if name == "storage_options" else value
