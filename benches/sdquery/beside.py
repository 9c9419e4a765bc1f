"""What is shared with the other benchmarks, whose directory is put on the path."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))

from machine import machine  # noqa: E402 -- found there
from queries import exact_bound  # noqa: E402 -- the same

__all__ = ["exact_bound", "machine"]
