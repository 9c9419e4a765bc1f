"""Value queries over scientific files, answered in place."""

from sieva._native import __version__

__all__ = ["__version__"]
