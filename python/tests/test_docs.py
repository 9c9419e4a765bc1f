"""The documentation: examples run, lists agree with what they list, links lead somewhere."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
import sieva
from sieva import _native, _output, errors
from sieva.cli import cli
from sieva.generate import write_ocean, write_particles

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
PAGES = [
    path
    for path in [*sorted(ROOT.glob("*.md")), ROOT / "crates" / "README.md", *sorted(DOCS.rglob("*.md"))]
    if path.exists()
]
RUN = [
    ROOT / "README.md",
    *sorted((DOCS / "getting-started").glob("*.md")),
    *sorted((DOCS / "guides").glob("*.md")),
]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: (.+) -->\n\Z")


@dataclass
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int
    reason: str | None
    """Why it is not run, where the page says so."""


def blocks(page):
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        reason = NOT_RUN.search(text[: found.start()])
        line = text.count("\n", 0, found.start(2)) + 1
        yield Block(found[1], found[2], line, reason[1] if reason else None)


def commands(block):
    """Return the commands of a block: of a console, the lines behind ``$`` and the ``>`` that follow."""
    if block.language == "sh":
        return [block.text]
    found = []
    continues = False
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(line[2:])
        elif line.startswith("> ") and continues:
            found[-1] += "\n" + line[2:]
        continues = line.startswith("$ ") or (line.startswith("> ") and continues)
    return found


@pytest.fixture(scope="module")
def demo_files(tmp_path_factory):
    """Return a directory with the files of the demo, smaller."""
    demo = tmp_path_factory.mktemp("docs") / "demo"
    demo.mkdir()
    write_ocean(demo / "ocean.nc", times=3, depths=6, lats=45, lons=60)
    write_particles(demo / "particles.h5", n=40_000)
    return demo


@pytest.fixture
def here(demo_files, tmp_path, monkeypatch):
    """Change to a directory with the files of the demo; commands are those of this Python."""
    shutil.copytree(demo_files, tmp_path / "demo")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SIEVA_JOBS", str(tmp_path / "jobs"))
    return tmp_path


@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(page, here):
    assert any((here / "demo").iterdir())
    namespace = {"__name__": "__main__"}
    ran = skipped = 0
    for block in blocks(page):
        if block.reason is not None:
            skipped += 1
            continue
        if block.language == "python":
            # Padded, so that a traceback has the lines of the page.
            exec(compile("\n" * (block.line - 1) + block.text, page, "exec"), namespace)  # noqa: S102
            ran += 1
        elif block.language in {"console", "sh"}:
            for command in commands(block):
                run = subprocess.run(["/bin/sh", "-ec", command], capture_output=True, text=True, check=False)
                assert run.returncode == 0, f"{page}:{block.line}: {command}\n{run.stderr}"
                ran += 1
    assert ran + skipped > 0, "a page of examples has none"


def test_blocks_say_what_language_they_are():
    nameless = [f"{page}:{block.line}" for page in PAGES for block in blocks(page) if not block.language]
    assert nameless == []


def calls(section):
    """Return the names that the first columns of a section's tables call."""
    names = []
    for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE):
        names += re.findall(r"`(\w+)\(", row)
    return names


def section(text, title):
    """Return a second-level section of a page, its subsections included."""
    found = re.search(rf"^## {title}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[1]


@pytest.fixture(scope="module")
def ocean_source(demo_files):
    return sieva.open(demo_files / "ocean.nc")


def test_the_functions_are_those_of_the_engine(ocean_source):
    with pytest.raises(errors.UnknownFunction) as raised:
        ocean_source.query("no_such_function(TEMP) > 0")
    known, aggregates = raised.value.hint.removeprefix("there are ").split("; and the aggregates ")
    text = (REFERENCE / "sql.md").read_text(encoding="utf-8")
    assert sorted(set(calls(section(text, "Functions")))) == sorted(known.split(", "))
    assert set(aggregates.split(", ")) <= set(calls(section(text, "Aggregates")))


def test_the_aggregates_are_known_to_the_engine(ocean_source):
    text = (REFERENCE / "sql.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", section(text, "Aggregates"), re.MULTILINE)
    named = re.findall(r"`(\w+\([^`]*\))`", "\n".join(rows))
    assert len(named) >= 20
    values = {"x": "TEMP", "bins": "4", "low": "0", "high": "1", "q": "0.5"}
    for call in named:
        name, arguments = call.removesuffix(")").split("(")
        filled = re.sub(r"\b(x|bins|low|high|q)\b", lambda m: values[m[1]], arguments)
        assert ocean_source.sql(f"SELECT {name}({filled}) WHERE TEMP > 5").dtypes


def test_the_error_codes_are_those_of_the_engine():
    rows = re.findall(
        r"^\| `([a-z-]+)` \| `(\w+)` \| `(\w+)` \|",
        (REFERENCE / "error-codes.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert [code for code, _, _ in rows] == _native.error_kinds
    for code, name, builtin in rows:
        kind = getattr(errors, name)
        assert kind.kind == code
        assert builtin in {base.__name__ for base in kind.__mro__}


def format_rows(text, title):
    """Return the cells behind the name of each format in the first table of a section."""
    found = re.search(rf"^##+ {title}$(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    rows = re.findall(r"^\| `(\w+)`[^|]* \| (.*) \|$", found[1], re.MULTILINE)
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in rows}


def test_the_formats_of_results_are_those_of_the_engine():
    rows = format_rows((REFERENCE / "cli.md").read_text(encoding="utf-8"), "Formats")
    assert list(rows) == list(_output.FORMATS)
    for kind, (suffixes, stdout, deflate, layouts) in rows.items():
        assert suffixes.replace("`", "").split() == [s for s, k in _output.SUFFIXES.items() if k == kind]
        assert stdout == ("yes" if kind in _output.STREAMS else "no")
        assert deflate == ("yes" if kind in _output.DEFLATED_FORMATS else "no")
        named = ["grid", "points"] if kind in _output.ARRAY_FORMATS else ["rows"]
        is_both = kind in _output.ARRAY_FORMATS and kind in _output.COLUMN_FORMATS
        assert layouts.replace("`", "").split(", ") == named + ["columns"] * is_both


def test_the_formats_that_servers_send_are_those_of_the_engine():
    text = (REFERENCE.parent / "guides" / "gridftp.md").read_text(encoding="utf-8")
    sent = {
        name: cells[0].replace("`", "").split()
        for name, cells in format_rows(text, "Choose the format").items()
    }
    assert sent == {row["name"]: [f".{s}" for s in row["suffixes"]] for row in _native.formats()}


REMOTE = (REFERENCE.parent / "guides" / "remote.md").read_text(encoding="utf-8")


def test_the_stores_are_those_of_the_engine():
    rows = re.findall(r"^\| (`[^|]*`) \| `(\w+://[^|]*)` \| (.*) \|$", REMOTE, re.MULTILINE)
    wanted = _native.stores()
    assert [schemes.replace("`", "").split() for schemes, _, _ in rows] == [s["schemes"] for s in wanted]
    for (_, form, variables), store in zip(rows, wanted, strict=True):
        assert store["form"].endswith(form.split("://")[1])
        assert re.findall(r"`([A-Z_]+)`", variables) == store["variables"]


def test_the_options_of_remote_storage_are_those_of_the_engine():
    _, _, table = REMOTE.partition("| option | default | what |\n|---|---|---|\n")
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*) \|$", table, re.MULTILINE)
    assert rows == [(o["name"], o["default"], o["means"]) for o in _native.remote_option_rows()]


def test_every_error_has_a_remedy():
    text = (DOCS / "guides" / "troubleshooting.md").read_text(encoding="utf-8")
    kinds = re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE)
    assert kinds[: len(_native.error_kinds)] == _native.error_kinds


def test_every_option_is_in_the_reference():
    text = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    for name, command in cli.commands.items():
        assert f"sieva {name}" in text
        options = [param for param in command.params if isinstance(param, click.Option)]
        missing = [option for param in options for option in param.opts if f"{option}" not in text]
        assert missing == [], name


def test_every_public_name_is_in_the_reference():
    text = (REFERENCE / "python.md").read_text(encoding="utf-8")
    words = set(re.findall(r"\w+", text))
    public = {name for name in sieva.__all__ if name != "errors"}
    for cls in (sieva.Source, sieva.Query, sieva.Array, sieva.Expr, sieva.Selection):
        public |= {name for name in vars(cls) if not name.startswith("_") and name != "NAME"}
    assert public - words == set()


def test_the_plan_that_is_explained_is_the_real_one(tmp_path, monkeypatch):
    """The page takes a plan of the demo's file apart: it has to be what the engine prints."""
    page = DOCS / "understanding" / "how-a-query-runs.md"
    sql, plan = (block.text for block in list(blocks(page))[:2])
    (tmp_path / "demo").mkdir()
    write_ocean(tmp_path / "demo" / "ocean.nc")
    monkeypatch.chdir(tmp_path)
    real = sieva.sql(sql).explain(analyze=True)
    # Bytes depend on the compressor's version, the price on them and on the machine.
    priced = re.compile(r"^price .*\n(?: {11}about .*\n)+", re.MULTILINE)
    assert priced.sub("", plan).split("analyzed")[0] == priced.sub("", real).split("analyzed")[0]
    assert priced.search(plan)
    assert re.findall(r"\d+ rows|\d+ tiles|\d+ chunks", plan) == re.findall(
        r"\d+ rows|\d+ tiles|\d+ chunks", real
    )


def anchor(heading):
    """Return the anchor that GitHub makes of a heading."""
    plain = re.sub(r"[`*]", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path, _, fragment = target.partition("#")
        linked = (page.parent / path) if path else page
        assert linked.exists(), f"{page}: {target}"
        if fragment:
            headings = re.findall(r"^#+ (.+)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            assert fragment in {anchor(heading) for heading in headings}, f"{page}: {target}"


def test_pages_are_listed():
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if path != DOCS / "README.md"]
    assert [page for page in pages if page not in index and not page.startswith("benchmarks/")] == []
