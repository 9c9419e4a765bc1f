"""The bytes of a result as the C library makes them here, without a server: what a server must send."""

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int32, c_uint32, c_uint64, c_void_p

from gridftp_server import LIBRARY


class _Options(ctypes.Structure):
    _fields_ = (
        ("size", c_uint64),
        ("format", c_char_p),
        ("spool", c_char_p),
        ("spool_limit", c_uint64),
        ("deflate", c_uint32),
        ("reserved", c_uint32),
    )


def _library():
    library = ctypes.CDLL(str(LIBRARY))
    library.sieva_error_message.restype = c_char_p
    library.sieva_open.argtypes = c_char_p, c_void_p, POINTER(c_void_p)
    library.sieva_result_open.argtypes = c_void_p, c_char_p, c_void_p, POINTER(_Options), POINTER(c_void_p)
    library.sieva_result_size.argtypes = c_void_p, POINTER(c_uint64)
    library.sieva_result_read.argtypes = c_void_p, c_uint64, c_void_p, c_uint64, POINTER(c_uint64)
    library.sieva_result_free.argtypes = (c_void_p,)
    library.sieva_close.argtypes = (c_void_p,)
    for name in ("open", "result_open", "result_size", "result_read"):
        getattr(library, f"sieva_{name}").restype = c_int32
    return library


def local_result(path, sql, form="netcdf", deflate=0):
    """Return the bytes of a query's result."""
    library, source, result = _library(), c_void_p(), c_void_p()

    def check(status):
        if status != 0:
            raise ValueError(library.sieva_error_message().decode())

    check(library.sieva_open(str(path).encode(), None, byref(source)))
    try:
        options = _Options(ctypes.sizeof(_Options), form.encode(), None, 0, deflate, 0)
        check(library.sieva_result_open(source, sql.encode(), None, byref(options), byref(result)))
        size, count = c_uint64(), c_uint64()
        check(library.sieva_result_size(result, byref(size)))
        buffer = ctypes.create_string_buffer(max(size.value, 1))
        check(library.sieva_result_read(result, 0, buffer, size.value, byref(count)))
        assert count.value == size.value
        return buffer.raw[: size.value]
    finally:
        library.sieva_result_free(result)
        library.sieva_close(source)
