"""The examples and the Fortran modules, compiled with each MPI and run."""

import os
import re
import shutil
import subprocess

import h5py
import netCDF4
import numpy as np
import pytest
import sieva
from mpi_programs import ROOT, require, run
from sieva.generate import write_ocean

VERSION = sieva.__version__


@pytest.fixture
def ocean(tmp_path):
    path = tmp_path / "ocean.nc"
    write_ocean(path, times=3, depths=6, lats=45, lons=60)
    return path


@pytest.fixture
def warm(ocean):
    """Return where it is warm, and the salinity there."""
    with netCDF4.Dataset(ocean) as file:
        temp, salt = (np.ma.filled(file[name][:].astype("f8"), np.nan) for name in ("TEMP", "SALT"))
    found = (temp > 25) & ~np.isnan(salt)
    return found, salt[found]


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("program", ["examples/warm", "examples/warm_f"])
def test_the_examples_run(mpi, ranks, program, ocean, warm):
    done = run(mpi, ranks, program, ocean, 25, tmp_path=ocean.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    found, salt = warm
    told = re.match(r"(\d+) points are warm; their salinity is (\S+)$", done.stdout, re.MULTILINE)
    assert told is not None, done.stdout
    assert int(told[1]) == found.sum()
    assert float(told[2]) == pytest.approx(salt.mean(), abs=1e-5)
    if program.endswith("_f"):
        first = np.argwhere(found)[0][::-1] + 1
        lines = done.stdout.splitlines()
        assert [int(n) for n in lines[1].removeprefix("the first is ").split()] == first.tolist()
        assert [int(n) for n in lines[2].removeprefix("of ").split()] == list(found.shape[::-1])


@pytest.mark.parametrize("program", ["examples/warm", "examples/warm_f"])
def test_the_examples_say_what_is_wrong(mpi, program, tmp_path):
    done = run(mpi, 2, program, tmp_path / "none.nc", 25, tmp_path=tmp_path)
    assert done.returncode != 0
    assert "rank 0: " in done.stderr
    assert "none.nc" in done.stderr


@pytest.mark.parametrize("ranks", [1, 3])
def test_fortran_counts_as_fortran_does(mpi, ranks, tmp_path):
    path = tmp_path / "field.h5"
    draw = np.random.default_rng(5)
    temp = draw.uniform(-2, 32, (7, 8, 9)).astype("f4")
    temp[draw.random(temp.shape) < 0.1] = np.nan
    with h5py.File(path, "w") as file:
        file["TEMP"] = temp
        file["ID"] = draw.permutation(temp.size).reshape(temp.shape).astype("i4")
        for name in ("TEMP", "ID"):
            for axis, dim in enumerate("zyx"):
                file[name].dims[axis].label = dim
    done = run(mpi, ranks, "tests/counts_f", path, tmp_path=tmp_path)
    assert done.stdout == "0 failures\n", done.stdout + done.stderr


@pytest.mark.parametrize("language", ["c", "f90"])
def test_what_is_installed_compiles_the_examples(mpi, language, ocean, warm, tmp_path):
    """As ``make install MPICC=...`` does it, where pkg-config finds it."""
    if not shutil.which("pkg-config"):
        pytest.skip("no pkg-config: `apt-get install pkg-config`")
    require(mpi, "examples/warm")
    at = [f"PREFIX={tmp_path / 'usr'}", f"MPICC={mpi}"]
    for part in ("crates/capi", "plugins/mpi"):
        subprocess.run(["make", "-s", "-C", ROOT / part, *at, "install"], check=True)
    asked = ["pkg-config", "--cflags", "--libs", "sieva_mpi"]
    found = {**os.environ, "PKG_CONFIG_PATH": str(tmp_path / "usr/lib/pkgconfig")}
    flags = subprocess.run(asked, env=found, check=True, capture_output=True, text=True).stdout.split()
    compiler = mpi if language == "c" else mpi.replace("mpicc", "mpifort")
    source = ROOT / f"plugins/mpi/examples/warm.{language}"
    rpath = f"-Wl,-rpath,{tmp_path / 'usr/lib'}"
    subprocess.run([compiler, source, *flags, rpath, "-o", tmp_path / "warm"], cwd=tmp_path, check=True)
    done = run(mpi, 2, tmp_path / "warm", ocean, 25, tmp_path=tmp_path)
    assert done.stdout.startswith(f"{warm[0].sum()} points are warm"), done.stdout + done.stderr
    subprocess.run(["make", "-s", "-C", ROOT / "plugins/mpi", *at, "uninstall"], check=True)
    left = [path.name for path in (tmp_path / "usr").rglob("*") if "mpi" in path.name]
    assert left == []


LISTS = """cmake_minimum_required(VERSION 3.12)
project(warm {languages})
find_package(sieva_mpi {version} REQUIRED)
foreach(target {targets})
    add_executable(${{target}} {source})
    target_link_libraries(${{target}} PRIVATE sieva::${{target}})
endforeach()
"""


@pytest.mark.parametrize("language", ["c", "f90"])
def test_cmake_finds_what_is_installed_and_moved(mpi, language, ocean, warm, tmp_path):
    """The package finds the libraries from where it lies, and the MPI that it was compiled by."""
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("no cmake: `make setup` installs it")
    require(mpi, "examples/warm" if language == "c" else "examples/warm_f")
    for part in ("crates/capi", "plugins/mpi"):
        make = ["make", "-s", "-C", ROOT / part, f"PREFIX={tmp_path / 'first'}", f"MPICC={mpi}", "install"]
        subprocess.run(make, check=True)
    prefix = (tmp_path / "first").rename(tmp_path / "moved")
    targets = ["mpi", "mpi_static"] if language == "c" else ["mpi_fortran"]
    lists = LISTS.format(
        languages="C" if language == "c" else "Fortran",
        version=VERSION,
        targets=" ".join(targets),
        source=ROOT / f"plugins/mpi/examples/warm.{language}",
    )
    (tmp_path / "CMakeLists.txt").write_text(lists, encoding="utf-8")
    at = ["-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}"]
    configured = subprocess.run([cmake, *at], check=False, capture_output=True, text=True)
    assert configured.returncode == 0, configured.stdout + configured.stderr
    subprocess.run([cmake, "--build", tmp_path / "build"], check=True, capture_output=True)
    for target in targets:
        done = run(mpi, 2, tmp_path / "build" / target, ocean, 25, tmp_path=tmp_path)
        assert done.stdout.startswith(f"{warm[0].sum()} points are warm"), done.stdout + done.stderr
    newer = lists.replace(f"sieva_mpi {VERSION}", "sieva_mpi 99")
    (tmp_path / "CMakeLists.txt").write_text(newer, encoding="utf-8")
    at = ["-S", tmp_path, "-B", tmp_path / "newer", f"-DCMAKE_PREFIX_PATH={prefix}"]
    refused = subprocess.run([cmake, *at], check=False, capture_output=True, text=True)
    assert refused.returncode != 0
    assert VERSION in refused.stderr
