"""BP files of ADIOS2, which the library of the server asks the C library of ADIOS2 for."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from gridftp_server import ROOT, Server, fetch

adios2 = pytest.importorskip("adios2", reason="adios2 is not installed")
DATA = ROOT / "crates" / "format-bp" / "tests" / "data"


@pytest.mark.parametrize("name", ["bp4.bp", "bp5.bp", "bp3.bp"])
def test_a_file_is_asked_as_any(share, target, name):
    path = share / name
    (shutil.copytree if (DATA / name).is_dir() else shutil.copy)(DATA / name, path)
    if (DATA / f"{name}.dir").exists():
        shutil.copytree(DATA / f"{name}.dir", share / f"{name}.dir")
    with Server(share, settings={"SIEVA_ADIOS2": str(Path(adios2.__file__).parent)}) as server:
        fetch(server.url(path, ';sql=SELECT "g/T" WHERE "g/T" > 110;format=json'), target)
    # As make_bp.py wrote them: the first row of each step holds NaN, both infinities and -0.0.
    values = np.arange(24.0) + 100 * np.arange(3.0)[:, None]
    values[:, :4] = np.nan, np.inf, -np.inf, -0.0
    rows = json.loads(target.read_text(encoding="utf-8"))["rows"]
    found = [float(row[0]) if row[0] is not None else np.nan for row in rows]
    np.testing.assert_array_equal(found, values[values > 110])
