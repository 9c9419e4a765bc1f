"""Writes the files of the conformance corpus into a directory.

Usage: generate.py [DIRECTORY]      (default: $SIEVA_CONFORMANCE_DIR, else target/conformance)
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from corpus import FILES

_ROOT = Path(__file__).resolve().parent.parent


def directory() -> Path:
    """Return where the files are kept."""
    return Path(os.environ.get("SIEVA_CONFORMANCE_DIR") or _ROOT / "target" / "conformance")


def generate(target: Path) -> None:
    """Write every file that is missing in ``target``, each in one step: runs side by side do no harm."""
    target.mkdir(parents=True, exist_ok=True)
    for name, write in FILES.items():
        path = target / name
        if not path.exists():
            partial = path.with_name(f".{os.getpid()}.{name}")
            write(partial)
            partial.replace(path)


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else directory())
