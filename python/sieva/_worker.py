"""The process that parses files for another; see `sieva.open` with ``isolated``."""

from sieva import _native

if __name__ == "__main__":
    _native.serve_worker()
