"""The engine for ADIOS2 with a group in an object store: Swift, by its own protocol and by S3, and moto."""

import sieva.share
from engine_programs import config, run


def test_programs_write_to_a_store_and_read_from_it(place, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    group = sieva.share.create(place.root)
    group.ask("numbers", "SELECT number", user="ada")
    reader = {"Group": place.root, "Member": "ada", "Ask": "numbers"}
    xml = config(tmp_path / "adios2.xml", writer={"Group": place.root}, reader=reader)
    run(tmp_path, "tests/values", xml, 3)
    held, unfinished = place.held()
    assert (sum(key.startswith("data/") for key in held), unfinished) == (3, 0)
    told = run(tmp_path, "tests/dump", xml).splitlines()
    numbers = [line.split()[-1] for line in told if line.startswith("variable number ")]
    assert numbers == [f"{number:02x}" + 14 * "0" for number in range(3)]
    assert told[-1] == "end"
