"""Checks that tests and wheel build every dependency with the same features, so that none is compiled twice.

Cargo unifies features over the packages it builds. `cargo test --workspace` sees dev-dependencies that the
wheel does not; a feature that only these ask for compiles the crate, and all above it, once more. The remedy
is to ask for the feature in python/Cargo.toml too. Prints `ok`, or one line for each such crate and exits
with 1.
"""

import subprocess
import sys
from pathlib import Path

WHEEL = ("--package", "sieva-python", "--edges", "normal,build")
TESTS = ("--workspace", "--edges", "normal,build,dev")


def parse_tree(output: str) -> set[tuple[str, str]]:
    """Return the (package, features) pairs of `cargo tree --prefix none --format '{p}|{f}'`."""
    pairs = set()
    for line in output.splitlines():
        package, bar, features = line.removesuffix(" (*)").partition("|")
        if bar:
            pairs.add((package.removesuffix(" (proc-macro)"), features))
    return pairs


def find_faults(wheel: set[tuple[str, str]], tests: set[tuple[str, str]]) -> list[str]:
    """Return one message for each package of the wheel that the tests build with other features."""
    return [
        f"{package}: features in the wheel [{features}], in the tests "
        + " and ".join(f"[{others}]" for name, others in sorted(tests) if name == package)
        for package, features in sorted(wheel - tests)
    ]


def _read_tree(*selection: str) -> set[tuple[str, str]]:
    command = ["cargo", "tree", "--locked", "--prefix", "none", "--format", "{p}|{f}", *selection]
    root = Path(__file__).resolve().parent.parent
    return parse_tree(subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main() -> int:
    """Check the workspace of this checkout."""
    faults = find_faults(_read_tree(*WHEEL), _read_tree(*TESTS))
    print("\n".join(faults) or "ok")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
