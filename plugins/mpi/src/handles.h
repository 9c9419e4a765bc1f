/*
 * What the handles of sieva_mpi.h hold.
 */
#ifndef SIEVA_MPI_HANDLES_H
#define SIEVA_MPI_HANDLES_H

#include "sieva_mpi.h"
#include "world.h"

struct sieva_mpi_source {
    struct world world;
    sieva_session *session;
    sieva_source *here; /* this rank's own */
    int is_collection;  /* rank 0 has the catalog, the others none */
    uint64_t memory;    /* bytes that what ranks found may take when it is merged */
    uint64_t building;  /* bytes that building indexes may take, unless it is said */
};

/* What all ranks found together, of one kind of task. */
struct found {
    int is_there;       /* on all ranks, or on none */
    int is_uncut;       /* no tasks can be made of it: whoever gets the answer asks for it alone */
    sieva_query *whole; /* of rank 0: knows the answer; NULL on others */
    sieva_merge *merge; /* of rank 0, unless it is uncut: what was found; NULL on others */
};

struct sieva_mpi_query {
    sieva_mpi_source *source;
    sieva_plan *plan; /* on all ranks */
    int is_counted;
    uint64_t nhits;        /* rows, once they are counted */
    struct found answer;   /* what answers all that may be asked */
    struct found hits;     /* the positions of its condition */
    sieva_selection *all;  /* of rank 0: all of them, once they are shared out; NULL on others */
    sieva_selection *mine; /* this rank's share of them */
    uint64_t first;        /* its first hit's number */
    uint64_t count;        /* how many it has */
    uint64_t total;        /* how many all have */
};

/* Whether this rank gets what is asked for. */
static inline int is_receiver(const struct world *world, int32_t at)
{
    return at < 0 || at == world->rank;
}

#endif
