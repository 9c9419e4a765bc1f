"""What the commands of ``sieva share`` take."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from sieva.share import Group

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Duration(click.ParamType[float]):
    """Seconds, or a number with s, m, h or d."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401
        """Return the seconds."""
        text = str(value).strip().lower()
        number, unit = (text[:-1], text[-1]) if text and text[-1] in _UNITS else (text, "s")
        try:
            seconds = float(number) * _UNITS[unit]
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds < 1e10:
            self.fail(f"{str(value)!r} is no duration: write 30s, 10m, 12h or 7d", param, ctx)
        return seconds


_KEY = "sieva.share.key"


def place_argument(function: Any) -> Any:  # noqa: ANN401 - any command
    """Add the place of a group, and its key."""
    key = click.option(
        "--key",
        metavar="FILE",
        expose_value=False,
        callback=_keep_key,
        help="The key of an encrypted group; by default what SIEVA_SHARE_KEY says.",
    )
    return click.argument("place", metavar="URL/GROUP")(key(function))


def _keep_key(context: click.Context, _: click.Parameter, path: str | None) -> None:
    context.meta[_KEY] = path


def given_key() -> str | None:
    """Return the file of the key that the command was given."""
    path: str | None = click.get_current_context().meta.get(_KEY)
    return path


def has_key() -> bool:
    """Return whether a key is given: that of an encrypted group, as groups without encryption take none."""
    return bool(given_key() or os.environ.get("SIEVA_SHARE_KEY"))


def command(name: str, place: str, *words: str, **options: str | None) -> str:
    """Return a command of ``sieva share`` for a message, with the key that this one was given.

    Parameters
    ----------
    name, place, *words
        The command, and its arguments; of words that are placeholders the capitals.
    **options
        Options that are repeated where they were given: ``user=None`` is not.
    """
    given = [(option, value) for option, value in {**options, "key": given_key()}.items() if value]
    said = [word for option, value in given for word in (f"--{option.rstrip('_')}", shlex.quote(value))]
    return " ".join(["sieva share", name, shlex.quote(place), *words, *said])


def group_of(place: str) -> Group:
    """Open the group at a place."""
    from sieva.share import open_group

    return open_group(place, key=given_key())
