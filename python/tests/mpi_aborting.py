"""Programs of all ranks that end on all of them where one fails, in place of waiting for it."""

import sys
import traceback

from mpi4py import MPI


def aborting(run, *arguments):
    """Run what all ranks run; one that fails says why and ends the others."""
    try:
        run(*arguments)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)
