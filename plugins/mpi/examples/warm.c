/*
 * Warm water, by all ranks: how many points of an ocean model's TEMP are warmer than a limit, and what SALT is there on average.
 *
 *   mpicc warm.c $(pkg-config --cflags --libs sieva_mpi) -o warm
 *   mpirun -n 4 ./warm ocean.nc 25
 *
 * The hits are shared out evenly: each rank reads the salt at its share, wherever they were found.
 */
#include <sieva_mpi.h>

#include <stdio.h>
#include <stdlib.h>

/* Ends the program where a call failed: on all ranks alike, as all have its error. */
static void check(int32_t status)
{
    int rank;
    if (status == SIEVA_OK)
        return;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        fprintf(stderr, "%s: %s\n", sieva_error_name(status), sieva_mpi_error_message());
    MPI_Finalize();
    exit(1);
}

int main(int argc, char **argv)
{
    sieva_mpi_source *source;
    sieva_mpi_query *warm;
    uint64_t hits, first, mine, i;
    double sum = 0, total = 0;
    char condition[64];
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 3) {
        fprintf(stderr, "usage: warm FILE LIMIT\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    snprintf(condition, sizeof condition, "TEMP > %.9g AND SALT IS NOT NULL", atof(argv[2]));
    check(sieva_mpi_open(MPI_COMM_WORLD, argv[1], NULL, &source));
    check(sieva_mpi_query_text(source, condition, &warm));
    check(sieva_mpi_query_nhits(warm, &hits));
    check(sieva_mpi_query_share(warm, &first, &mine));

    double *salt = calloc(mine > 0 ? mine : 1, sizeof *salt);
    if (salt == NULL)
        MPI_Abort(MPI_COMM_WORLD, 3);
    check(sieva_mpi_read(warm, "SALT", SIEVA_MPI_SHARED, SIEVA_F64, salt, mine, NULL, &mine));
    for (i = 0; i < mine; i++)
        sum += salt[i];
    MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%llu points are warm; their salinity is %.6f\n", (unsigned long long)hits, hits > 0 ? total / (double)hits : 0.0);

    free(salt);
    sieva_mpi_query_free(warm);
    sieva_mpi_close(source);
    MPI_Finalize();
    return 0;
}
