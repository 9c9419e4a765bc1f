/*
 * The ranks of a source, and what of its node each of them may take.
 */
#ifndef SIEVA_MPI_WORLD_H
#define SIEVA_MPI_WORLD_H

#include <mpi.h>
#include <stdint.h>

/* The library's own communicator: its messages meet nobody else's. */
struct world {
    MPI_Comm comm;
    int rank;
    int size;
};

/* Collective: makes a world of a communicator. MPI has to be initialised. */
void world_open(struct world *world, MPI_Comm comm);

/* Collective: frees it. */
void world_close(struct world *world);

/* Waits for what was begun. A rank that waits leaves its core to those that work: to threads of queries, and to other ranks where
 * there are more than cores. */
void wait_for(MPI_Request *request);

/* What a rank may take of its node. */
struct share {
    uint32_t threads;
    uint64_t memory; /* bytes */
};

/* Collective: the cores that a rank may run on, shared out among the ranks that may run on the same; half of the memory of the node,
 * shared out among its ranks. */
struct share share_of_node(const struct world *world);

#endif
