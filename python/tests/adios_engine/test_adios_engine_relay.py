"""The relay: steps of a stream that is still written come into a group, each once and when it is complete."""

import time

import numpy as np
import pyarrow as pa
import pytest
import sieva.share
from engine_programs import DEADLINE, config, ended, refused, require, run, start

adios2 = pytest.importorskip("adios2")


class Writer:
    """A program that writes step after step."""

    def __init__(self, path, engine):
        # It has to live as long as what it hands out.
        self.adios = adios2.Adios()
        io = self.adios.declare_io("writer")
        io.set_engine(engine)
        self.values = io.define_variable("g/T", np.zeros(1), [4, 5], [0, 0], [4, 5])
        self.mesh = io.define_variable("mesh", np.zeros(1, "i4"), [3], [0], [3])
        self.name = io.define_variable("name", "text")
        self.waves = io.define_variable("wave", np.zeros(1, "c16"), [2], [0], [2])
        # Of the first step alone, where BP5 keeps them.
        io.define_attribute("g/T/units", "K")
        io.define_attribute("g/T/_FillValue", np.array([207.0]))
        self.engine = io.open(str(path), adios2.bindings.Mode.Write)
        self.number = 0

    def step(self):
        """Write a step in two blocks; the mesh is in the first step alone."""
        self.engine.begin_step()
        values = values_of(self.number)
        for rows in (slice(0, 1), slice(1, 4)):
            self.values.set_selection([[rows.start, 0], [rows.stop - rows.start, 5]])
            self.engine.put(self.values, np.array(values[rows]), adios2.bindings.Mode.Sync)
        if self.number == 0:
            self.engine.put(self.mesh, np.arange(3, dtype="i4"), adios2.bindings.Mode.Sync)
        self.engine.put(self.name, f"step {self.number}")
        self.engine.put(self.waves, np.zeros(2, "c16"), adios2.bindings.Mode.Sync)
        self.engine.end_step()
        self.number += 1


def values_of(number):
    values = np.arange(20.0).reshape(4, 5) + 100 * number
    values[0, :4] = [np.nan, np.inf, -0.0, 5e-324]
    return values


def come(group, name, folder, count):
    """Follow an ask until so many steps have come; return their rows."""
    until = time.monotonic() + DEADLINE
    while True:
        group.follow(name, folder, user="ada")
        files = sorted(folder.glob("*.arrow"))
        if len(files) >= count:
            break
        assert time.monotonic() < until
        time.sleep(0.05)
    found = {}
    for file in files:
        with pa.ipc.open_file(file) as opened:
            found[int(file.stem.split(".")[-1])] = opened.read_all().to_pydict()
    return found


ASKS = {
    "all": 'SELECT "g/T" AS T, name',
    "count": 'SELECT count("g/T") AS n',
    "mesh": "SELECT mesh",
    "wave": "SELECT wave",
}


@pytest.mark.parametrize("engine", ["BP5", "BP4", "SST"])
def test_steps_come_while_more_are_written(tmp_path, monkeypatch, engine):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    require("sieva-adios2-relay")
    group = sieva.share.create(tmp_path / "group")
    group.ask_many(list(ASKS.items()), format="arrow", user="ada")
    stream = {"engine": engine, "OpenTimeoutSecs": 60, "BeginStepPollingFrequencySecs": 0.05}
    xml = config(
        tmp_path / "r.xml", **{"in": stream, "out": {"Group": tmp_path / "group", "Producer": "heat"}}
    )
    relay = start(tmp_path, "sieva-adios2-relay", xml, "heat.bp")
    while not group.producers():
        assert relay.poll() is None, relay.communicate()
    writer = Writer(tmp_path / "heat.bp", engine)
    for number in range(3):
        writer.step()
        # The next one is not written before this one has come.
        rows = come(group, "all", tmp_path / "all", number + 1)[number]
        expected = values_of(number).ravel()
        missing = np.isnan(expected) | (expected == 207)
        assert [value is None for value in rows["T"]] == missing.tolist()
        there = np.array([value for value in rows["T"] if value is not None])
        assert (there.view("u8") == expected[~missing].view("u8")).all()
        assert set(rows["name"]) == {f"step {number}"}
    writer.engine.close()
    code, _, err = ended(relay)
    assert code == 0, err
    counts = come(group, "count", tmp_path / "count", 3)
    assert {step: rows["n"] for step, rows in counts.items()} == {0: [19], 1: [19], 2: [18]}
    assert sorted(come(group, "mesh", tmp_path / "mesh", 1)) == [0]
    failures = group.follow("wave", tmp_path / "wave", user="ada").failures
    assert [(step, code) for step, code, _ in failures] == [
        (f"heat.00000{number}", "unsupported") for number in range(3)
    ]
    if engine == "SST":
        return
    # Of a file: started again, it goes on behind what was handed on.
    group.ask("again", 'SELECT "g/T" AS T', format="arrow", user="ada")
    run(tmp_path, "sieva-adios2-relay", xml, "heat.bp", 2)
    assert sorted(come(group, "again", tmp_path / "again", 1)) == [2]


def test_a_stream_that_is_not_there_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    stream = {"engine": "BP5", "OpenTimeoutSecs": 0.1}
    xml = config(tmp_path / "r.xml", **{"in": stream, "out": {"Group": tmp_path / "group"}})
    assert "none.bp" in refused(tmp_path, "sieva-adios2-relay", xml, "none.bp")
    code, _, err = ended(start(tmp_path, "sieva-adios2-relay", xml, "none.bp", "-1"))
    assert (code, err) == (2, "usage: sieva-adios2-relay CONFIG NAME [SKIP]\n")
