"""Optional packages: loaded where they are needed, with an error that says how to get them."""

from __future__ import annotations

import importlib
from typing import Any

from sieva._interrupt import uninterrupted


def required(module: str, what: str, extra: str | None = None) -> Any:  # noqa: ANN401 - a module
    """Return an optional module.

    Raises
    ------
    ImportError
        It is not installed; the message has the command that installs it.
    """
    try:
        with uninterrupted():
            return importlib.import_module(module)
    except ImportError as error:
        name = extra or {"h5netcdf": "netcdf"}.get(module, module)
        raise ImportError(f"{what} needs the package {module}: pip install 'sieva[{name}]'") from error
