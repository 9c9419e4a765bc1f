"""What is shared with the other benchmarks, whose directory is put on the path."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))

from machine import machine
from queries import exact_bound
from timing import warm

__all__ = ["exact_bound", "machine", "warm"]
