"""The conformance corpus: files made by reference libraries, and what queries over them must answer.

Each module is a topic. It registers files (functions that write one) and cases (a query, and the same
question put to numpy over what h5py or netCDF4 read). ``generate.py`` writes the files, ``complete.py`` the
answers.
"""

import os

# netCDF4 leads HDF5 to its own plug-ins, also in the processes that it starts: those do not go with h5py.
os.environ.pop("HDF5_PLUGIN_PATH", None)

# First of all: these must find the HDF5 library of h5py before netCDF4 loads its own.
import h5py  # noqa: F401
import hdf5plugin  # noqa: F401

from corpus import (
    aggregates,
    compounds,
    coordinates,
    decoding,
    dimensions,
    errors,
    expressions,
    filters,
    groups,
    layouts,
    netcdf3,
    numbers,
    results,
    strings,
    times,
)
from corpus.registry import CASES, FILES

__all__ = [
    "CASES",
    "FILES",
    "aggregates",
    "compounds",
    "coordinates",
    "decoding",
    "dimensions",
    "errors",
    "expressions",
    "filters",
    "groups",
    "layouts",
    "netcdf3",
    "numbers",
    "results",
    "strings",
    "times",
]
