/*
 * What the programs of the tests share: checks that tell where and on which rank, and count.
 */
#ifndef SIEVA_MPI_TESTS_CHECK_H
#define SIEVA_MPI_TESTS_CHECK_H

#include <sieva_mpi.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures, here, ranks;
static const char *what = "";

static inline void note(int holds, const char *text, const char *file, int line)
{
    if (holds)
        return;
    failures++;
    printf("%s: %s:%d: rank %d: %s: %s / %s\n", what, file, line, here, text, sieva_mpi_error_message(), sieva_error_message());
}

#define EXPECT(condition) note((condition), #condition, __FILE__, __LINE__)
#define OK(call) note((call) == SIEVA_OK, #call, __FILE__, __LINE__)

static inline void *room(uint64_t count, uint64_t width)
{
    void *memory = calloc(count > 0 ? (size_t)count : 1, (size_t)width);
    if (memory == NULL)
        MPI_Abort(MPI_COMM_WORLD, 3);
    return memory;
}

static inline uint64_t sum_of(uint64_t value)
{
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return value;
}

static inline uint64_t most_of(uint64_t value)
{
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    return value;
}

static inline void begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &here);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

/* Rank 0 tells how many checks of all ranks failed; the status of the program. */
static inline int end(void)
{
    uint64_t all = sum_of((uint64_t)failures);
    if (here == 0)
        printf("%" PRIu64 " failures\n", all);
    fflush(stdout);
    MPI_Finalize();
    return all > 0;
}

#endif
