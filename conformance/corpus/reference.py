"""What the files hold, as h5py and netCDF4 read it, decoded by numpy alone."""

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import h5py
import hdf5plugin  # noqa: F401 -- registers the filters with h5py
import netCDF4
import numpy as np

Array = np.ndarray[Any, Any]


class Reference:
    """A file of the corpus.

    Parameters
    ----------
    path
        An HDF5 file (``.h5``, read by h5py) or a netCDF file (``.nc``, read by netCDF4).
    """

    def __init__(self, path: Path) -> None:
        self._hdf5 = h5py.File(path) if path.suffix == ".h5" else None
        self._netcdf = None if self._hdf5 else netCDF4.Dataset(path)
        if self._netcdf:
            self._netcdf.set_auto_maskandscale(False)
            self._netcdf.set_auto_chartostring(False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        (self._hdf5 or self._netcdf).close()

    def raw(self, name: str) -> Array:
        """Return the stored values of an array, in the machine's byte order."""
        variable = self._variable(name)
        stored = np.asarray(variable[()] if self._hdf5 else variable[...])
        if stored.dtype.kind in "iuf":
            return stored.astype(stored.dtype.newbyteorder("="))
        return stored

    def stored(self, name: str) -> Array:
        """Return the stored values with the sign that the attribute _Unsigned gives them."""
        stored = self.raw(name)
        unsigned = str(self._attrs(name).get("_Unsigned", "")).lower()
        if unsigned in {"true", "false"} and stored.dtype.kind in "iu":
            return stored.view(f"{'u' if unsigned == 'true' else 'i'}{stored.dtype.itemsize}")
        return stored

    def texts(self, name: str) -> Array:
        """Return texts as Python strings: trailing NULs of fixed ones dropped, as h5py and netCDF4 do."""
        stored = self.raw(name)
        if stored.dtype == "S1" and self._netcdf:
            stored = netCDF4.chartostring(stored, encoding="utf-8")
            return np.char.rstrip(stored, "\0").astype(object)
        texts = [t.decode() if isinstance(t, bytes) else t for t in stored.ravel().tolist()]
        return np.array(texts, object).reshape(stored.shape)

    def __call__(self, name: str) -> Array:
        """Return decoded numbers: floats widened to float64, missing ones NaN, other integers as they are."""
        stored = self.stored(name)
        if stored.dtype.kind not in "iuf":
            return stored
        attrs = self._attrs(name)
        missing = np.zeros(stored.shape, bool)
        for key in ("_FillValue", "missing_value"):
            for value in np.atleast_1d(attrs.get(key, ())):
                missing |= stored == np.asarray(value).astype(stored.dtype)
        is_packed = "scale_factor" in attrs or "add_offset" in attrs
        if not is_packed and not missing.any() and stored.dtype.kind in "iu":
            return stored
        values = stored.astype("f8")
        if is_packed:
            values = values * float(attrs.get("scale_factor", 1.0)) + float(attrs.get("add_offset", 0.0))
        values[missing] = np.nan
        return values

    def _variable(self, name: str) -> Any:  # noqa: ANN401 -- of either library
        return (self._hdf5 or self._netcdf)[name]

    def _attrs(self, name: str) -> dict[str, Any]:
        variable = self._variable(name)
        if self._hdf5:
            return dict(variable.attrs)
        return {key: variable.getncattr(key) for key in variable.ncattrs()}
