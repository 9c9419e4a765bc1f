"""The process that parses files for another; see `sieva.open` with ``isolated``.

It is run as a file, with the path of the extension module: to import the package, and what that imports,
would take longer than to open most files.
"""

import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec


def main() -> None:
    """Load the extension module alone, and serve until the other side is gone."""
    name, path = "sieva._native", sys.argv[1]
    loader = ExtensionFileLoader(name, path)
    native = loader.create_module(ModuleSpec(name, loader, origin=path))
    loader.exec_module(native)
    # The package is imported for its classes where an error ends the worker, and finds this module there.
    native.__file__ = path
    sys.modules[name] = native
    sys.path.append(path.rsplit("/", 2)[0])
    native.serve_worker()


if __name__ == "__main__":
    main()
