/*
 * The calls by PnetCDF: independent, two-phase collective, or nonblocking collective.
 *
 *   pnetcdf MODE CALLS STEP RECORDS GROUPS RUNS FILE
 *
 * As
 * batches.py has it: calls are dealt out to groups, whose processes divide each call along latitude. Of each run rank
 * 0 prints the seconds from a barrier to the end of the last rank, after opening the file. Values are compared with
 * their formula after each run: a difference ends the program with 1.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <pnetcdf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check(int status, const char *what)
{
    if (status != NC_NOERR) {
        fprintf(stderr, "%s: %s\n", what, ncmpi_strerror(status));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* What the kernel keeps of the file on this node is dropped. */
static void forget(const char *path)
{
    int file = open(path, O_RDONLY);
    if (file >= 0) {
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
        close(file);
    }
}

static float value(uint64_t number)
{
    return (float)(((uint32_t)number * UINT32_C(2654435761)) >> 8);
}

/* Whether a box has the values of its places. */
static int is_right(const float *found, const MPI_Offset *start, const MPI_Offset *count, const MPI_Offset *shape)
{
    for (MPI_Offset t = 0; t < count[0]; t++)
        for (MPI_Offset z = 0; z < count[1]; z++)
            for (MPI_Offset y = 0; y < count[2]; y++)
                for (MPI_Offset x = 0; x < count[3]; x++) {
                    uint64_t number = (((start[0] + t) * shape[1] + start[1] + z) * shape[2] + start[2] + y) * shape[3] + start[3] + x;
                    if (*found++ != value(number))
                        return 0;
                }
    return 1;
}

int main(int argc, char **argv)
{
    int rank, size, id, variable;
    if (argc < 8) {
        fprintf(stderr, "pnetcdf MODE CALLS STEP RECORDS GROUPS RUNS FILE\n");
        return 2;
    }
    const char *mode = argv[1];
    int calls = atoi(argv[2]), step = atoi(argv[3]), records = atoi(argv[4]), groups = atoi(argv[5]), runs = atoi(argv[6]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *path = argv[7];
    int each = size / groups, group = rank / each, place = rank % each, is_waiting = strcmp(mode, "nonblocking") == 0;
    /* Waiting for all calls is one collective operation of all processes; else each group is by itself. */
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, is_waiting ? 0 : group, rank, &comm);
    check(ncmpi_open(comm, path, NC_NOWRITE, MPI_INFO_NULL, &id), path);
    check(ncmpi_inq_varid(id, "T", &variable), "T");
    int dims[4];
    MPI_Offset shape[4];
    check(ncmpi_inq_vardimid(id, variable, dims), "dimensions");
    for (int d = 0; d < 4; d++)
        check(ncmpi_inq_dimlen(id, dims[d], &shape[d]), "a dimension");
    if (strcmp(mode, "independent") == 0)
        check(ncmpi_begin_indep_data(id), "independent");
    MPI_Offset low = shape[2] * place / each, high = shape[2] * (place + 1) / each;
    MPI_Offset count[4] = {records, shape[1], high - low, shape[3]};
    int mine = 0;
    size_t one = (size_t)(count[0] * count[1] * count[2] * count[3]);
    for (int call = group; call < calls; call += groups)
        mine++;
    float *found = malloc((mine ? mine : 1) * one * sizeof *found);
    int *requests = malloc((mine ? mine : 1) * sizeof *requests);
    int *statuses = malloc((mine ? mine : 1) * sizeof *statuses);
    for (int run = 0; run < runs; run++) {
        memset(found, 0xff, mine * one * sizeof *found);
        forget(path);
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        for (int i = 0; i < mine; i++) {
            MPI_Offset start[4] = {(MPI_Offset)(group + i * groups) * step % (shape[0] - records + 1), 0, low, 0};
            float *at = found + i * one;
            if (is_waiting)
                check(ncmpi_iget_vara_float(id, variable, start, count, at, &requests[i]), "iget");
            else if (strcmp(mode, "collective") == 0)
                check(ncmpi_get_vara_float_all(id, variable, start, count, at), "get_all");
            else
                check(ncmpi_get_vara_float(id, variable, start, count, at), "get");
        }
        if (is_waiting)
            check(ncmpi_wait_all(id, mine, requests, statuses), "wait_all");
        MPI_Barrier(MPI_COMM_WORLD);
        double seconds = MPI_Wtime() - begin;
        int right = 1;
        for (int i = 0; i < mine; i++) {
            MPI_Offset start[4] = {(MPI_Offset)(group + i * groups) * step % (shape[0] - records + 1), 0, low, 0};
            right &= is_right(found + i * one, start, count, shape);
        }
        MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        if (!right) {
            fprintf(stderr, "rank %d: other values than were written\n", rank);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        if (rank == 0)
            printf("%.6f\n", seconds);
        fflush(stdout);
    }
    if (strcmp(mode, "independent") == 0)
        check(ncmpi_end_indep_data(id), "independent");
    check(ncmpi_close(id), "close");
    free(found);
    free(requests);
    free(statuses);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
