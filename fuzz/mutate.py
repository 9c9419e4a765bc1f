"""Mutants of real files: bytes, lengths and counts changed, or a part cut off.

Of HDF5 most changes are made where metadata are, and in every other mutant their checksums are made to
fit. Of a Zarr hierarchy one object is changed.
"""

import random
import shutil
import struct
from pathlib import Path

from checksums import Structures, occurrences, repair

# Larger files are left out: most of their bytes are data.
LARGEST = 512 << 10
# What lengths and counts are set to: by number of bytes.
EXTREMES = (0, 1, -1, -2, "half", "less", 0xFFFF, 1 << 20, 1 << 31, 1 << 32, 1 << 40, (1 << 63) - 1)
ZARR = (".zgroup", ".zarray", "zarr.json")
SIGNATURES = (
    b"TREE",
    b"SNOD",
    b"HEAP",
    b"GCOL",
    b"OHDR",
    b"OCHK",
    b"BTHD",
    b"BTIN",
    b"BTLF",
    b"FRHP",
    b"FHIB",
)
SIGNATURES += (b"FHDB", b"FAHD", b"FADB", b"EAHD", b"EAIB", b"EASB", b"EADB", b"SMTB", b"SMLI", b"\x89HDF")


class Original:
    """A file, or a hierarchy of files of which one is changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.members = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        content = path.read_bytes() if path.is_file() else b""
        self.is_hdf5 = any(content[at : at + 4] == b"\x89HDF" for at in (0, 512, 1024, 2048))
        self.spans = Structures(content).spans if self.is_hdf5 else []
        self.places = places(content) if self.is_hdf5 else []
        self.changed = ""

    def mutant(self, seed: str, directory: Path) -> Path:
        """Write the mutant of a seed over what is there of this file, and return its path."""
        chance = random.Random(f"{seed} {self.path.name}")
        if self.path.is_dir():
            return self._changed_tree(chance, directory)
        changed = bytearray(self.path.read_bytes())
        change(changed, chance, self.places)
        if chance.random() < 0.5:
            repair(changed, self.spans)
        target = directory / f"mutant{self.path.suffix}"
        target.write_bytes(changed)
        return target

    def _changed_tree(self, chance: random.Random, directory: Path) -> Path:
        """Change one object of a copy, which stays for the next mutant."""
        target = directory / str(self.path.absolute()).lstrip("/")
        if not target.exists():
            shutil.copytree(self.path, target)
        elif self.changed:
            shutil.copyfile(self.path / self.changed, target / self.changed)
        member = chance.choice(self.members)
        self.changed = str(member.relative_to(self.path))
        changed = bytearray(member.read_bytes())
        change(changed, chance, [])
        (target / self.changed).write_bytes(changed)
        return target


def places(content: bytes) -> list[tuple[int, int]]:
    """Return where HDF5's metadata begin, and about how long they are."""
    found = [(at, 160) for signature in SIGNATURES for at in occurrences(content, signature)]
    # Headers of the first version have no signature: version, number of messages, references, length.
    for at in range(0, len(content) - 16, 8):
        version, zero, messages, references, length = struct.unpack_from("<BBHII", content, at)
        if (version, zero) == (1, 0) and 0 < messages < 200 and 0 < references < 9 and 8 <= length < 1 << 14:
            found.append((at, 16 + length))
    return found


def change(content: bytearray, chance: random.Random, near: list[tuple[int, int]]) -> None:
    """Make some changes, most of them where metadata are."""
    if chance.random() < 0.07:
        del content[chance.randrange(len(content) + 1) :]
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 5))):
        if not content:
            return
        if near and chance.random() < 0.85:
            start, length = chance.choice(near)
            at = min(start + chance.randrange(length), len(content) - 1)
        elif chance.random() < 0.5:
            at = chance.randrange(min(len(content), 2048))
        else:
            at = chance.randrange(len(content))
        change_at(content, at, chance)


def change_at(content: bytearray, at: int, chance: random.Random) -> None:
    """Make one change."""
    way = chance.random()
    if way < 0.25:
        content[at] ^= 1 << chance.randrange(8)
    elif way < 0.45:
        content[at] = chance.randrange(256)
    elif way < 0.9:
        width = chance.choice((1, 2, 2, 4, 4, 8, 8))
        extreme = chance.choice(EXTREMES)
        number = {"half": 1 << (8 * width - 1), "less": (1 << (8 * width - 1)) - 1}.get(extreme, extreme)
        order = "big" if chance.random() < 0.25 else "little"
        put(content, at, (int(number) % (1 << 8 * width)).to_bytes(width, order))
    else:
        start = chance.randrange(len(content))
        put(content, at, bytes(content[start : start + chance.randrange(1, 64)]))


def put(content: bytearray, at: int, new: bytes) -> None:
    """Overwrite what is there; the length stays."""
    end = min(at + len(new), len(content))
    content[at:end] = new[: end - at]


def originals(directories: list[Path]) -> list[Path]:
    """Return the files of all formats below some directories, ordered by name."""
    found: list[Path] = []
    for directory in directories:
        for path in sorted(directory.rglob("*")):
            if any(tree in path.parents for tree in found[-50:]):
                continue
            is_tree = path.is_dir() and any(
                (path / name).exists() for name in (".zgroup", ".zarray", "zarr.json")
            )
            if (is_tree and sum(p.stat().st_size for p in path.rglob("*")) < LARGEST) or (
                path.is_file() and 0 < path.stat().st_size <= LARGEST and is_known(path)
            ):
                found.append(path)
    return found


def is_known(path: Path) -> bool:
    """Return whether a file is of one of the formats, by its first bytes."""
    with path.open("rb") as file:
        head = file.read(2052)
    hdf5 = any(head[at : at + 4] == b"\x89HDF" for at in (0, 512, 1024, 2048))
    return hdf5 or head.startswith((b"CDF", b"SIMPLE", b"SVMF"))
