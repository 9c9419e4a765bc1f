"""The engine for ADIOS2: what is made of a program's memory, beside numpy on the same values."""

import re
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
import sieva
import sieva.share
from engine_programs import ROOT, config, ended, environment, refused, require, run, start

N = 30
FILL = 1012.0


def odd(step):
    """Return the reals of a step, as ``values.cpp`` has them."""
    lost = [np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, 1e308, -1e308]
    return np.array([lost[(i + step) % 16] if (i + step) % 16 < 8 else 1000.0 * step + i for i in range(N)])


def is_real(table, step):
    """Return whether a table has the reals of a step, to the bit; NaN and the fill value are missing."""
    expected = odd(step)
    there = ~(np.isnan(expected) | (expected == FILL))
    column = table["f64"].combine_chunks()
    found = column.drop_null().to_numpy()
    is_missing = (column.is_null().to_numpy(zero_copy_only=False) == ~there).all()
    return bool(is_missing and (found.view("u8") == expected[there].view("u8")).all())


def whole(dtype, step):
    """Return the integers of a step."""
    info = np.iinfo(dtype)
    plain = (step * 7 + np.arange(N)).astype(dtype)
    return np.where(np.arange(N) % 3 == 0, info.max, np.where(np.arange(N) % 3 == 1, info.min, plain)).astype(
        dtype
    )


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a directory for a group and all that programs write."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def answers(group, name, folder, user="ada"):
    """Follow an ask of Arrow files; return the tables by step, and what answers that are errors say."""
    done = group.follow(name, folder, user=user)
    tables = {}
    for file in sorted(folder.glob("*.arrow")):
        with pa.ipc.open_file(file) as opened:
            tables[int(file.stem.split(".")[-1])] = opened.read_all()
    return tables, done.failures


ASKS = {
    "reals": "SELECT f64",
    "large": "SELECT f64 WHERE f64 > 1e300",
    "floats": "SELECT f32",
    "sums": 'SELECT sum("int/i32") AS s, min("int/i64") AS low, max("int/u64") AS high, count(*) AS n',
    "most": 'SELECT "int/u64" AS u, "int/i8" AS i WHERE "int/u64" = 18446744073709551615',
    "joined": "SELECT joined",
    "single": "SELECT number, name",
    "seldom": "SELECT seldom",
    "wave": "SELECT wave",
    "local": "SELECT local",
}


@pytest.fixture
def written(place):
    """Return the group after five steps, of which number 3 was empty, asked as in ``ASKS``."""
    require("tests/values")
    group = sieva.share.create(place / "group")
    group.ask_many(list(ASKS.items()), format="arrow", user="ada")
    run(place, "tests/values", config(place / "adios2.xml", writer={"Group": place / "group"}), 5)
    return group


def test_answers_from_memory_are_those_of_numpy(written, place):
    reals, failures = answers(written, "reals", place / "reals")
    assert sorted(reals) == [0, 1, 2, 4]
    assert [step for step, _, _ in failures] == ["writer.000003"]
    assert all(is_real(table, step) for step, table in reals.items())
    large, _ = answers(written, "large", place / "large")
    for step, table in large.items():
        assert table["f64"].to_pylist() == odd(step)[odd(step) > 1e300].tolist()
    floats, _ = answers(written, "floats", place / "floats")
    for step, table in floats.items():
        with np.errstate(over="ignore"):
            expected = odd(step).astype("f4")
        assert (table["f32"].to_numpy().view("u4") == expected.view("u4")).all()


def test_integers_to_their_ends_and_blocks_that_follow_one_another(written, place):
    sums, _ = answers(written, "sums", place / "sums")
    for step, table in sums.items():
        i32, i64 = whole("i4", step).astype(object), whole("i8", step)
        row = {"s": sum(i32), "low": int(i64.min()), "high": 2**64 - 1, "n": N}
        assert table.to_pylist() == [row]
    most, _ = answers(written, "most", place / "most")
    for step, table in most.items():
        at = whole("u8", step) == 2**64 - 1
        assert table["u"].to_pylist() == [2**64 - 1] * at.sum()
        assert table["i"].to_pylist() == whole("i1", step)[at].tolist()
    joined, _ = answers(written, "joined", place / "joined")
    for step, table in joined.items():
        i32 = whole("i4", step)
        assert table["joined"].to_pylist() == [*i32[:3].tolist(), *i32[:2].tolist()]
    single, _ = answers(written, "single", place / "single")
    assert {step: table.to_pylist() for step, table in single.items()} == {
        step: [{"number": step, "name": f"step {step} ü"}] for step in (0, 1, 2, 4)
    }


def test_what_a_step_has_not_is_told_to_who_asked(written, place):
    seldom, failures = answers(written, "seldom", place / "seldom")
    assert {step: table["seldom"].to_pylist() for step, table in seldom.items()} == {1: [0.5]}
    assert {(step[-1], code) for step, code, _ in failures} == {(step, "unknown-array") for step in "0234"}
    for name, why in [("wave", "complex numbers"), ("local", "LocalArray: its blocks have no places")]:
        found, failures = answers(written, name, place / name)
        assert not found
        assert {code for _, code, _ in failures} == {"unsupported", "unknown-array"}
        assert all(why in message for _, code, message in failures if code == "unsupported")


def dumped(text):
    """Return the steps that ``dump`` printed: of each its variables and its attributes."""
    steps, last = [], None
    for line in text.splitlines():
        if line.startswith("step "):
            steps.append(({}, {}))
        elif line.startswith("variable "):
            name, kind, shape, value = re.match(r"variable (\S+) (\S+) (\S*) (.*)", line).groups()
            steps[-1][0][name] = (kind, shape, value)
        elif line.startswith("attribute "):
            name, _, value = line.split(" ", 3)[1:]
            steps[-1][1][name] = value
        else:
            last = line
    return steps, last


def reading(place, ask, sql, **more):
    """Return the parameters of a reader."""
    return {"Group": place / "group", "Member": "ada", "Ask": ask, "SQL": sql, "Poll": 0.05, **more}


def test_a_reader_gets_steps_while_they_are_written(place):
    require("tests/dump")
    sieva.share.create(place / "group")
    sql = 'SELECT f32, "int/u64" AS u, idx(dim_30) AS i WHERE "int/u8" < 256'
    xml = config(place / "adios2.xml", writer={"Group": place / "group"}, reader=reading(place, "all", sql))
    reader = start(place, "tests/dump", xml)
    # It asks when it opens; the writer comes later.
    while not sieva.share.open_group(place / "group").status()["asks"]:
        assert reader.poll() is None, reader.communicate()
    run(place, "tests/values", xml, 3)
    code, out, err = ended(reader)
    assert code == 0, err
    steps, last = dumped(out)
    assert (last, len(steps)) == ("end", 3)
    assert "DIFFERENT" not in out
    for step, (variables, attributes) in enumerate(steps):
        with np.errstate(over="ignore"):
            floats = odd(step).astype("f4")
        assert variables["f32"] == ("float", f"{N},", floats.tobytes().hex())
        assert variables["u"] == ("uint64_t", f"{N},", whole("u8", step).tobytes().hex())
        assert attributes["sieva_step"] == f'"writer.00000{step}"'


def test_results_of_any_number_of_rows_and_texts_are_read(place):
    group = sieva.share.create(place / "group")
    group.ask("some", "SELECT f64 WHERE f64 > 1000 AND f64 < 1e9", user="ada")
    group.ask("text", "SELECT name, number", user="ada")
    only = {"Group": place / "group", "Member": "ada"}
    xml = config(place / "w.xml", writer={"Group": place / "group"}, reader={**only, "Ask": "some"})
    run(place, "tests/values", xml, 3)
    steps, _ = dumped(run(place, "tests/dump", xml))
    found = [np.frombuffer(bytes.fromhex(variables["f64"][2])) for variables, _ in steps]
    expected = [values[(values > 1000) & (values < 1e9) & (values != FILL)] for values in map(odd, range(3))]
    assert [len(values) for values in expected] == [0, 14, 16]
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    xml = config(place / "t.xml", reader={**only, "Ask": "text"})
    steps, _ = dumped(run(place, "tests/dump", xml))
    assert [variables["name"][2] for variables, _ in steps] == [f"step {step} ü" for step in range(3)]


def test_a_reader_waits_as_long_as_it_is_told(place):
    sieva.share.create(place / "group")
    xml = config(place / "r.xml", reader=reading(place, "none", "SELECT f64"))
    assert run(place, "tests/dump", xml, 0.2) == "not ready\n"


def test_a_reader_with_a_folder_goes_on_where_the_one_before_it_was(place):
    group = sieva.share.create(place / "group")
    group.ask("all", "SELECT number", user="ada")
    xml = config(place / "w.xml", writer={"Group": place / "group"})
    run(place, "tests/values", xml, 3)
    # A reader that was killed after it had fetched all.
    group.follow("all", place / "folder", user="ada")
    reader = {"Group": place / "group", "Member": "ada", "Ask": "all", "Folder": place / "folder"}
    steps, last = dumped(run(place, "tests/dump", config(place / "r.xml", reader=reader)))
    assert [attributes["sieva_step"] for _, attributes in steps] == [f'"writer.00000{n}"' for n in range(3)]
    assert last == "end"
    assert not list((place / "folder").glob("*.nc"))


@pytest.mark.parametrize("times", range(3))
def test_a_writer_that_is_killed_leaves_nothing_half(place, times):
    group = sieva.share.create(place / "group")
    group.ask_many(list(ASKS.items()), format="arrow", user="ada")
    xml = config(place / "adios2.xml", writer={"Group": place / "group"})
    code, _, _ = ended(start(place, "tests/values", xml, 3 + times, "kill"))
    assert code == -9
    before, _ = answers(group, "reals", place / "reals")
    assert set(range(2 + times)) - {3} <= set(before)
    listed = [path for path in (place / "group" / "data").rglob("*") if path.is_file()]
    assert all(path.suffix == ".arrow" or path.name.startswith(".") for path in listed)
    # A new run of it takes the place of the one that was killed, and is over when it ends.
    run(place, "tests/values", xml, 3 + times)
    after, _ = answers(group, "reals", place / "reals")
    assert set(after) == set(range(3 + times)) - {3}
    assert all(is_real(table, step) for step, table in after.items())


def test_one_line_of_the_xml_decides_between_a_file_and_a_group(place):
    require("examples/heat")
    (place / "shared").mkdir()
    shared = (ROOT / "plugins" / "adios2" / "examples" / "adios2.xml").read_text()
    (place / "adios2.xml").write_text(shared)
    group = sieva.share.create(place / "shared" / "heat")
    group.ask("hot", "SELECT T, idx(y), idx(x) WHERE T > 1980", user="ada")
    group.ask("most", "SELECT max(T) AS most, max(time) AS at", format="arrow", user="bob")
    run(place, "examples/heat", "adios2.xml", 3)
    assert not (place / "heat.bp").exists()
    told = run(place, "examples/watch", "adios2.xml")
    assert [line.split(" of ")[0] for line in told.splitlines()] == [f"step {step}: T" for step in range(3)]
    # Steps hold 0 to 1999, 1000 to 2999, 2000 to 3999.
    assert "step 0: T of 19 from 1981 to 1999" in told
    assert "step 2: T of 2000 from 2000 to 3999" in told
    most, _ = answers(group, "most", place / "most", user="bob")
    assert [table.to_pylist()[0]["most"] for table in most.values()] == [1999, 2999, 3999]

    plain = re.sub(r'<engine type="Plugin">.*?</engine>', '<engine type="BP5"/>', shared, flags=re.DOTALL)
    (place / "adios2.xml").write_text(plain)
    run(place, "examples/heat", "adios2.xml", 3)
    source = sieva.open(place / "heat.bp")
    by_step = source.sql("SELECT max(T) AS most GROUP BY idx(step)").to_pandas()
    assert by_step["most"].tolist() == [1999, 2999, 3999]
    assert "from 2000 to 3999" in run(place, "examples/watch", "adios2.xml")


def test_errors_say_what_was_given_and_what_to_do(place):
    sieva.share.create(place / "group").ask("csv", "SELECT number", format="csv", user="ada")
    group, number = {"Group": place / "group"}, iter(range(100))

    def writer(**given):
        return refused(place, "tests/values", config(place / f"{next(number)}.xml", writer=given), 1)

    def reader(**given):
        return refused(place, "tests/dump", config(place / f"{next(number)}.xml", reader=given), 0)

    assert "the parameter Group is missing" in writer()
    assert "there is no parameter 'Grup': there are Group, Place" in writer(Grup="x")
    assert "the parameter Memory is '1 banana'" in writer(**group, Memory="1 banana")
    assert "AskTime is 'soon'" in writer(**group, AskTime="soon")
    assert "'../x' is no name of a producer" in writer(**group, Producer="../x")
    assert "has 2 dimensions, the parameter Dims names 1" in writer(**group, Dims="f64=y")
    assert "copies of what was put synchronously take" in writer(**group, Memory="16")
    xml = config(place / "puts.xml", writer=group)
    assert "'f64' is put as a span" in refused(place, "tests/values", xml, 1, "span")
    assert "'f64' has a memory selection (ghost cells)" in refused(place, "tests/values", xml, 1, "ghosts")
    (place / "file").write_text("no directory")
    assert "opening the group at" in writer(Group=place / "file" / "group")
    assert "the parameter Member is missing" in reader(**group, Ask="a")
    assert "file-not-found" in reader(Group=place / "none", Member="ada", Ask="a")
    assert "file-not-found" in reader(**group, Member="eve", Ask="a")
    assert "syntax-error" in reader(**group, Member="ada", Ask="a", SQL="SELECT FROM")
    run(place, "tests/values", config(place / "w.xml", writer=group), 1)
    assert "unknown-format" in reader(**group, Member="ada", Ask="csv")
    failing = reading(place, "wave", "SELECT wave")
    run(place, "tests/values", config(place / "w.xml", writer=group, reader=failing), 1)
    sieva.share.open_group(place / "group").ask("wave", "SELECT wave", user="ada")
    run(place, "tests/values", config(place / "w.xml", writer=group, reader=failing), 1)
    told = reader(**{key: value for key, value in failing.items() if key != "SQL"})
    assert "'wave' is of complex numbers" in told


APPENDING = """
import sys
import adios2
adios = adios2.Adios(sys.argv[1])
try:
    adios.declare_io("writer").open("x.bp", adios2.bindings.Mode.Append)
except Exception as e:
    print(e)
"""


def test_steps_are_not_appended(place):
    require("tests/values")
    pytest.importorskip("adios2")
    xml = config(place / "m.xml", writer={"Group": place / "group"})
    command = [sys.executable, "-c", APPENDING, str(xml)]
    done = subprocess.run(command, env=environment(place), capture_output=True, text=True, check=True)
    assert "say the number of the first one by the parameter FirstStep" in done.stdout
    numbered = config(place / "n.xml", writer={"Group": place / "group", "FirstStep": 40})
    group = sieva.share.create(place / "group")
    group.ask("all", ASKS["sums"], format="arrow", user="ada")
    run(place, "tests/values", numbered, 2)
    assert sorted(answers(group, "all", place / "all")[0]) == [40, 41]


@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
def test_the_engine_misuses_no_memory(place):
    sieva.share.create(place / "group").ask("all", ASKS["reals"], user="ada")
    xml = config(
        place / "v.xml",
        writer={"Group": place / "group"},
        reader={"Group": place / "group", "Member": "ada", "Ask": "all"},
    )
    check = ["valgrind", "-q", "--error-exitcode=9"]
    for program in (["tests/values", str(xml), "2"], ["tests/dump", str(xml)]):
        command = [*check, str(require(program[0])), *program[1:]]
        done = subprocess.run(
            command,
            cwd=place,
            env=environment(place),
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr
