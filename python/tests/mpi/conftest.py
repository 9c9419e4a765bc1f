"""Each test runs with every MPI that is installed."""

import pytest
from mpi_programs import MPIS


def pytest_generate_tests(metafunc):
    if "mpi" in metafunc.fixturenames:
        missing = pytest.mark.skip("no mpicc: `make mpi-packages` installs Open MPI and MPICH")
        metafunc.parametrize("mpi", MPIS or [pytest.param("mpicc", marks=missing)])
