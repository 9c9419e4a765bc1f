"""Checks what neither compiler nor linter does: module docs, leftovers, file length and machine paths.

Reads every file that git knows or would add; prints `ok`, or one line for each fault and exits with 1.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

MAX_LINES = 600
# A longer file says so in its head: "Long because ...".
REASON = re.compile(r"\blong because\b", re.IGNORECASE)
HEAD_LINES = 10

# The words are put together here, or this file would find them in itself.
LEFTOVERS = re.compile("|".join((r"\bto" + r"do!", r"\bdb" + r"g!\(", r"\bFIX" + r"ME\b", r"\bTO" + r"DO\b")))
HOMES = ("home", "root", "work", "Users")
MACHINE_PATH = re.compile(rf"(?<![\w.~$}})>\]/-])/(?:{'|'.join(HOMES)})/\w")
CODE = {".rs", ".py", ".pyi"}
TEXT = CODE | {".c", ".h", ".js", ".json", ".md", ".sh", ".toml", ".yaml", ".yml", ""}


def find_faults(path: str, text: str) -> list[str]:
    """Return one message, with the line where there is one, for each fault in the text of a file."""
    lines = text.splitlines()
    faults = [
        f"{path}:{number}: absolute path of a machine"
        for number, line in enumerate(lines, 1)
        if MACHINE_PATH.search(line)
    ]
    if Path(path).suffix not in CODE:
        return faults
    for number, line in enumerate(lines, 1):
        if found := LEFTOVERS.search(line):
            faults.append(f"{path}:{number}: {found.group()} left over")
    if not _has_module_doc(path, text):
        faults.append(f"{path}:1: no module doc: say first what the file is for")
    if len(lines) > MAX_LINES and not REASON.search("\n".join(lines[:HEAD_LINES])):
        advice = f"split it, or say in its first {HEAD_LINES} lines `Long because ...`"
        faults.append(f"{path}: {len(lines)} lines, more than {MAX_LINES}: {advice}")
    return faults


def _has_module_doc(path: str, text: str) -> bool:
    if path.endswith(".rs"):
        return text.startswith("//!")
    try:
        return ast.get_docstring(ast.parse(text)) is not None
    except SyntaxError:
        return False


def _files(root: Path) -> list[str]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.split("\0")
    present = (name for name in names if name and (root / name).is_file())
    return sorted(name for name in present if Path(name).suffix in TEXT)


def main() -> int:
    """Check this checkout."""
    root = Path(__file__).resolve().parent.parent
    faults = []
    for name in _files(root):
        try:
            text = (root / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # not text, whatever its name says
        faults += find_faults(name, text)
    print("\n".join(faults) or "ok")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
