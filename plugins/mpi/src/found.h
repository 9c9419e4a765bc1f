/*
 * What all ranks find together: dealt out, run, merged.
 */
#ifndef SIEVA_MPI_FOUND_H
#define SIEVA_MPI_FOUND_H

#include "handles.h"

/* Collective: what tasks of a kind find, all of it known to rank 0; at once where it was found before. */
int32_t find(sieva_mpi_query *query, int32_t kind, struct found *found);

/* Forgets it. */
void found_free(struct found *found);

#endif
