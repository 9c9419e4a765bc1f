"""A worker that opens files and reads all of each, for tests that must survive what a file does to it.

It reads one line of JSON on stdin for each file, ``{"path": ..., "dtypes": {array: type}}``, and answers with
one: the shape of each array that was asked for, and the sha1 of its values in that type (little-endian, C
order), or the error that it gave. All other arrays are read as well. Its memory is limited.
"""

import hashlib
import json
import math
import resource
import sys
import warnings

import numpy as np
import sieva

ADDRESS_SPACE = 6 << 30
# What the reference left out; nothing of that size is needed to find a wrong value.
LARGEST = 64 << 20


def describe_error(error):
    """Return what an error says, as the parent compares it."""
    return {"error": error.kind, "message": str(error)}


def describe_array(source, path, dtype):
    """Return shape and digest of an array, or its error."""
    info = source._native.info(path)
    shape = list(info["shape"])
    if math.prod(shape) * 8 > LARGEST:
        return {"skipped": True}
    try:
        values = source._native.read(path, [0] * len(shape), shape, raw=True)
    except sieva.SievaError as error:
        return describe_error(error)
    if dtype is None or values.dtype == object:
        return {"shape": shape}
    stored = np.ascontiguousarray(values.astype(np.dtype(dtype).newbyteorder("<")))
    packed = info["decoded_dtype"] != info["dtype"]
    return {
        "shape": shape,
        "packed": packed,
        "sha1_le": hashlib.sha1(stored.tobytes(), usedforsecurity=False).hexdigest(),
    }


def describe(request):
    """Return the arrays of a file, or the error of opening it."""
    try:
        source = sieva.open(request["path"])
        str(source.schema())
        arrays = {
            path: describe_array(source, path, None)
            for path in source.arrays
            if path not in request["dtypes"]
        }
        for name, dtype in request["dtypes"].items():
            try:
                arrays[name] = describe_array(source, source._native.resolve(name), dtype)
            except sieva.SievaError as error:
                arrays[name] = describe_error(error)
    except sieva.SievaError as error:
        return describe_error(error)
    return {"format": source.format, "arrays": arrays, "warnings": source.warnings}


def main():
    """Answer until stdin ends."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    for line in sys.stdin:
        print(json.dumps(describe(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
