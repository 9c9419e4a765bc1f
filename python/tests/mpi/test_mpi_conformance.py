"""Conformance cases, asked of all ranks by a program in C: the bits are those of one process, and numpy's."""

import re

import pyarrow as pa
import pytest
from mpi_programs import run
from test_conformance import CASES, check_rows, files  # noqa: F401


def write_list(cases, directory, target):
    """Write the list that the program reads, and return where the rows of each case go."""
    rows = {}
    lines = []
    for number, (name, case) in enumerate(cases.items()):
        path = directory / case["file"]
        rows[name] = target / f"{number}.arrow"
        asked = case["where"] if "where" in case else case["sql"].replace("{file}", str(path))
        options = case.get("options", {})
        lines += [f"case {name}", f"file {path}"]
        lines += [f"dims {array}={','.join(dims)}" for array, dims in options.get("dims", {}).items()]
        lines += [option for option in ("valid_range", "cross") if options.get(option)]
        lines += [("where " if "where" in case else "sql ") + asked.replace("\n", " ")]
        lines += [f"read {array}" for array in case.get("values", {})]
        lines += [f"out {rows[name]}", "end"]
    (target / "list").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return rows


class Rows:
    """Rows that the program wrote, as the checks of the suite ask a query for them."""

    def __init__(self, path):
        with pa.OSFile(str(path)) as file:
            self.table = pa.ipc.open_file(file).read_all()

    def to_arrow(self):
        """Return the table."""
        return self.table


def told(output):
    """Return what the program said of each case: a word, and the rest, which may have several lines."""
    names = "|".join(re.escape(name) for name in sorted(CASES, key=len, reverse=True))
    found = re.split(rf"^({names}) (hits|rows|error)(?: |$)", output, flags=re.MULTILINE)
    return {
        name: (word, rest) for name, word, rest in zip(found[1::3], found[2::3], found[3::3], strict=True)
    }


def check(case, word, rest, rows):
    if "error" in case:
        assert word == "error"
        assert rest.startswith(f"{case['error']['kind']} rank ")
        assert case["error"]["message"] in rest
    elif "sql" in case:
        assert word == "rows"
        check_rows(case, Rows(rows))
    else:
        assert word == "hits"
        count, *numbers = (int(number) for number in rest.split()[:4])
        assert count == case["count"]
        assert not count or numbers == [case["first"], case["last"], case["sum"]]


# More ranks than cores wait for one another: they are asked a part of the cases. cases_cut cuts messages.
@pytest.mark.parametrize(
    ("program", "ranks", "every"),
    [("cases", 1, 2), ("cases", 2, 1), ("cases", 4, 3), ("cases", 7, 5), ("cases_cut", 3, 11)],
)
def test_cases(mpi, program, ranks, every, files, tmp_path):  # noqa: F811, PLR0917
    names = list(CASES)[ranks % every :: every]
    cases = {name: CASES[name] for name in names}
    rows = write_list(cases, files, tmp_path)
    done = run(mpi, ranks, f"tests/{program}", tmp_path / "list", tmp_path=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout.splitlines()
    answers = told(done.stdout)
    assert answers.keys() == cases.keys()
    for name, case in cases.items():
        check(case, *answers[name], rows[name])
