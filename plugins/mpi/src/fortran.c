/*
 * What the Fortran module `sieva_mpi` needs besides the functions of sieva_mpi.h: communicators as Fortran has them, and an end
 * of the program for errors that nobody looks at.
 */
#include "sieva_mpi.h"

#include <stdio.h>

int32_t sieva_mpi_open_f(MPI_Fint comm, const char *path, const sieva_options *options, sieva_mpi_source **source)
{
    return sieva_mpi_open(MPI_Comm_f2c(comm), path, options, source);
}

int32_t sieva_mpi_collection_open_f(MPI_Fint comm, const char *catalog, const char *collection, const sieva_options *options, sieva_mpi_source **source)
{
    return sieva_mpi_collection_open(MPI_Comm_f2c(comm), catalog, collection, options, source);
}

void sieva_mpi_end_f(void)
{
    int rank = 0, told_by = sieva_mpi_error_rank();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    /* All ranks have the words; one says them. */
    if (rank == 0 || told_by < 0)
        fprintf(stderr, "sieva: %s\n", sieva_mpi_error_message());
    fflush(NULL);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
