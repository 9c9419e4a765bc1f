"""Answers a query into a netCDF file before anything is sent: the Non-overlapping way of section 5.3.

Usage: retrieve.py FILE SQL TARGET
"""

import sys
from pathlib import Path

import netCDF4
import sieva


def retrieve(path: Path, sql: str, target: Path) -> None:
    """Write each selected array along `obs`, in netCDF-3 as the plug-in sends it."""
    columns, condition = sql.removeprefix("SELECT ").split(" WHERE ", 1)
    names = columns.split(", ")
    query = sieva.open(path).query(condition, select=names)
    with netCDF4.Dataset(target, "w", format="NETCDF3_64BIT_OFFSET") as f:
        f.set_fill_off()
        f.createDimension("obs", query.count())
        variables = [f.createVariable(name, "f4", ("obs",)) for name in names]
        for variable in variables:
            variable[:] = query.read(variable.name)


if __name__ == "__main__":
    source, text, received = sys.argv[1:]
    retrieve(Path(source), text, Path(received))
