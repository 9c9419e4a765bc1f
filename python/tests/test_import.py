"""What importing and starting costs."""

import subprocess
import sys

HEAVY = {"asyncio", "xarray", "pandas", "pyarrow", "click", "numpy", "rich", "h5py", "zarr", "polars"}


def loaded_after(code):
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_loads_nothing_heavy():
    assert loaded_after("import sieva") & HEAVY == set()


def test_making_conditions_loads_nothing_heavy():
    assert loaded_after("import sieva\n(sieva.col('a') > 5) & (sieva.idx('b') < 3)") & HEAVY == set()


def test_the_command_line_loads_click_alone():
    assert loaded_after("import sieva.cli") & HEAVY == {"click"}
