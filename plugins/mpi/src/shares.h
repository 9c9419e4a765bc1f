/*
 * The hits, shared out evenly: positions are sent, no condition is evaluated again.
 */
#ifndef SIEVA_MPI_SHARES_H
#define SIEVA_MPI_SHARES_H

#include "handles.h"

/* The share of a rank of so many hits: the number of its first, and how many it has. */
void share_of_rank(uint64_t hits, int ranks, int rank, uint64_t *first, uint64_t *count);

/* Collective: finds the hits and gives each rank its share (query->mine, first, count, total), unless that was done. */
int32_t share_out(sieva_mpi_query *query);

/* Rank 0 sends count hits from number first on to another, which gets a selection of its own source; where rank 0 fails, none. */
int32_t send_part(const sieva_mpi_query *query, int to, uint64_t first, uint64_t count);
int32_t receive_part(const sieva_mpi_query *query, sieva_selection **selection);

/* Collective: all ranks get all hits; agreed upon. */
int32_t broadcast_all(const sieva_mpi_query *query, sieva_selection **selection);

/* That at says who gets a result. */
int32_t check_at(const struct world *world, int32_t at, int may_be_shared);

#endif
