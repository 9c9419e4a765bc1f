/*
 * What the Fortran module `sieva_mpi` needs besides the functions of sieva_mpi.h: communicators as Fortran has them, and an end
 * of the program for errors that nobody looks at.
 */
#define _POSIX_C_SOURCE 199309L /* nanosleep */

#include "error.h"
#include "sieva_mpi.h"

#include <stdio.h>
#include <time.h>

int32_t sieva_mpi_open_f(MPI_Fint comm, const char *path, const sieva_options *options, sieva_mpi_source **source)
{
    return sieva_mpi_open(MPI_Comm_f2c(comm), path, options, source);
}

int32_t sieva_mpi_collection_open_f(MPI_Fint comm, const char *catalog, const char *collection, const sieva_options *options, sieva_mpi_source **source)
{
    return sieva_mpi_collection_open(MPI_Comm_f2c(comm), catalog, collection, options, source);
}

/*
 * All ranks of the communicator have the words; its first says them, and the others give it the time: MPI_Abort of any rank ends
 * all at once. Launchers lose what they have not read by then (MPICH's does), so that the first waits a moment, too.
 */
void sieva_mpi_end_f(void)
{
    const struct timespec read = {0, 200000000}, said = {2, 0};
    if (error_speaks()) {
        fprintf(stderr, "sieva: %s\n", sieva_mpi_error_message());
        fflush(NULL);
        nanosleep(&read, NULL);
    } else {
        fflush(NULL);
        nanosleep(&said, NULL);
    }
    MPI_Abort(MPI_COMM_WORLD, 1);
}
