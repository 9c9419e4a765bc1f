"""Programs of all ranks that end on all of them where one fails, in place of waiting for it."""

import sys
import time
import traceback

from mpi4py import MPI


def aborting(run, *arguments):
    """Run what all ranks run; one that fails says why and ends the others."""
    try:
        run(*arguments)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        # What MPICH's launcher has not read when the program is aborted it drops.
        time.sleep(1)
        MPI.COMM_WORLD.Abort(1)
