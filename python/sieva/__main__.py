"""``python -m sieva`` is the command line."""

import sys

from sieva.cli import main

if __name__ == "__main__":
    sys.exit(main())
