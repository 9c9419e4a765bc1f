"""Checks that every crate imports crates of lower levels only.

The levels are those of ARCHITECTURE.md. Reads `cargo metadata`; prints `ok`, or one line for each forbidden
edge and exits with 1.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LEVELS: dict[str, float] = {
    "sieva-types": 0,
    "sieva-store": 1,
    "sieva-format": 2,
    "sieva-index": 2,
    "sieva-catalog": 2,
    "sieva-plan": 2,
    "sieva-usercode": 2,
    "sieva-format-hdf5": 3,
    "sieva-format-netcdf3": 3,
    "sieva-format-zarr": 3,
    "sieva-format-fits": 3,
    "sieva-format-bp": 3,
    "sieva-query": 3,
    "sieva-reduce": 3,
    # Between: it imports no format, but its tests do; the engine opens sources with it.
    "sieva-isolate": 3.5,
    "sieva": 4,
    # Between: the engine needs no file that it writes, and all bindings hand the same files out.
    "sieva-encode": 4.5,
    # Between: programs hand it out, too.
    "sieva-share": 4.7,
    "sieva-python": 5,
    "sieva-capi": 5,
    "sieva-server": 5,
}
# Generators, oracles and faulty stores: for tests of any level, so outside of the levels.
TESTING = "sieva-testing"


def find_faults(metadata: Mapping[str, Any]) -> list[str]:
    """Return one message for each crate without a level and each edge that does not lead downwards."""
    names = {package["name"] for package in metadata["packages"]}
    faults = []
    for package in sorted(metadata["packages"], key=lambda package: str(package["name"])):
        name = package["name"]
        if name not in LEVELS and name != TESTING:
            faults.append(f"{name}: has no level: add it to LEVELS in tools/check_layers.py")
            continue
        for dependency in package["dependencies"]:
            # A path without a member of that name is not ours to judge, nor are crates of the registry.
            if dependency.get("path") and dependency["name"] in names:
                faults += _judge_edge(name, dependency["name"], dependency["kind"] or "normal")
    return faults


def _judge_edge(name: str, dependency: str, kind: str) -> list[str]:
    if dependency == TESTING:
        return [] if kind == "dev" else [f"{name} -> {dependency}: for dev-dependencies only, not {kind}"]
    # The testing crate may import all but the level of programs; a crate unknown here is named by itself.
    level = LEVELS.get(name, 5)
    below = LEVELS.get(dependency)
    if below is None or below < level:
        return []
    return [f"{name} (level {level}) -> {dependency} (level {below}): a crate imports lower levels only"]


def main() -> int:
    """Check the workspace of this checkout."""
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
    root = Path(__file__).resolve().parent.parent
    output = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    faults = find_faults(json.loads(output))
    print("\n".join(faults) or "ok")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
