"""A server with the plug-in, files that it serves, and the same server with the File DSI alone."""

import shutil
import tempfile
from pathlib import Path

import netCDF4
import numpy as np
import pytest
from gridftp_server import Server, require_plugin
from sieva.generate import write_ocean

# Of the ocean: few rows, many, and none.
FEW = "SELECT TEMP, z_t WHERE TEMP > 20"
MANY = "SELECT TEMP, SALT WHERE TEMP > 0"
NONE = "SELECT TEMP WHERE TEMP > 1000"


@pytest.fixture(scope="session")
def _plugin():
    require_plugin()


@pytest.fixture(scope="session")
def share(_plugin):
    """Return a directory that the server's sessions, which may be those of nobody, can read and write."""
    directory = Path(tempfile.mkdtemp(prefix="sieva-gridftp-"))
    directory.chmod(0o777)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def ocean_file(share):
    """Return a file of an ocean, (4, 10, 60, 80): about 1.5 MB of temperatures."""
    path = share / "ocean.nc"
    write_ocean(path, times=4, depths=10, lats=60, lons=80)
    path.chmod(0o644)
    return path


@pytest.fixture(scope="session")
def ocean_values(ocean_file):
    """Return TEMP, SALT and z_t of the ocean as netCDF4 reads them, with NaN for missing values."""
    with netCDF4.Dataset(ocean_file) as file:
        fields = {name: np.ma.filled(file[name][:].astype("f4"), np.nan) for name in ("TEMP", "SALT")}
        fields["z_t"] = np.asarray(file["z_t"][:])
    return fields


@pytest.fixture(scope="session")
def server(share):
    """Return a server with the plug-in."""
    with Server(share) as running:
        yield running


@pytest.fixture(scope="session")
def file_server(share):
    """Return a server with the File DSI: what the plug-in must do with files."""
    with Server(share, dsi="file") as running:
        yield running


@pytest.fixture
def session(server):
    """Return a session of Python's client."""
    client = server.session()
    yield client
    client.close()


@pytest.fixture
def target(tmp_path):
    """Return where a client may put a file."""
    return tmp_path / "result"
