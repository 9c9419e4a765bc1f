/*
 * The ranks of a source, and what of its node each of them may take.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "world.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void world_open(struct world *world, MPI_Comm comm)
{
    MPI_Comm_dup(comm, &world->comm);
    /* A rank that is lost cannot be waited for, and nobody could go on without its part. */
    MPI_Comm_set_errhandler(world->comm, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_rank(world->comm, &world->rank);
    MPI_Comm_size(world->comm, &world->size);
}

void world_close(struct world *world)
{
    MPI_Comm_free(&world->comm);
}

void wait_for(MPI_Request *request)
{
    /* As long as a message usually takes the core is kept. Then others have it: a task may take minutes. */
    const double soon = 50e-6;
    const struct timespec a_while = {0, 50 * 1000};
    int is_done = 0;
    MPI_Test(request, &is_done, MPI_STATUS_IGNORE);
    for (double start = MPI_Wtime(); !is_done; MPI_Test(request, &is_done, MPI_STATUS_IGNORE)) {
        if (MPI_Wtime() - start > soon)
            nanosleep(&a_while, NULL);
    }
}

/* How many ranks of a node may run on the very cores that this one may run on, itself counted. */
static int ranks_of_cores(MPI_Comm node, const cpu_set_t *own)
{
    int ranks, same = 0;
    MPI_Comm_size(node, &ranks);
    cpu_set_t *all = calloc((size_t)ranks, sizeof *all);
    int has_room = all != NULL;
    MPI_Allreduce(MPI_IN_PLACE, &has_room, 1, MPI_INT, MPI_MIN, node);
    if (has_room) {
        MPI_Allgather(own, sizeof *own, MPI_BYTE, all, sizeof *all, MPI_BYTE, node);
        for (int r = 0; r < ranks; r++)
            same += CPU_EQUAL(own, &all[r]) != 0;
    }
    free(all);
    return has_room ? same : ranks;
}

struct share share_of_node(const struct world *world)
{
    struct share share = {1, (uint64_t)1 << 30};
    MPI_Comm node;
    cpu_set_t own;
    int ranks;
    MPI_Comm_split_type(world->comm, MPI_COMM_TYPE_SHARED, world->rank, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &ranks);
    CPU_ZERO(&own);
    int cores = sched_getaffinity(0, sizeof own, &own) == 0 ? CPU_COUNT(&own) : 1;
    int threads = cores / ranks_of_cores(node, &own);
    share.threads = threads > 1 ? (uint32_t)threads : 1;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0)
        share.memory = (uint64_t)pages * (uint64_t)page / 2 / (uint64_t)ranks;
    MPI_Comm_free(&node);
    return share;
}
