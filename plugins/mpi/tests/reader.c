/*
 * Counts what reading takes of each rank: a share of the bytes, one evaluation, no metadata; shares that are even.
 *
 *   reader FILE CONDITION ARRAY OUT [shared]
 *
 * ARRAY is of float64. Rank 0 writes all its values at the hits, which it gathers, to OUT. Each rank tells its share, which it asks for
 * before it counts where it is told to (shared).
 */
#include "check.h"

/* What this rank read of its source since `before` was first asked. */
static uint64_t bytes_read(const sieva_query *before)
{
    sieva_stats stats = SIEVA_STATS_INIT;
    OK(sieva_query_stats(before, &stats));
    return stats.bytes_read;
}

static uint64_t evaluations(const sieva_mpi_source *source)
{
    sieva_session_stats stats = SIEVA_SESSION_STATS_INIT;
    OK(sieva_session_did(sieva_mpi_source_session(source), &stats));
    return stats.evaluations;
}

/* The values of all ranks, gathered at rank 0, and written there. */
static void write_values(sieva_mpi_query *query, const char *array, uint64_t hits, const char *path)
{
    uint64_t got = 0;
    double *values = room(here == 0 ? hits : 0, sizeof *values);
    OK(sieva_mpi_read(query, array, 0, SIEVA_F64, here == 0 ? values : NULL, here == 0 ? hits : 0, NULL, &got));
    EXPECT(got == (here == 0 ? hits : 0));
    if (here == 0) {
        FILE *out = fopen(path, "wb");
        EXPECT(out != NULL && fwrite(values, sizeof *values, hits, out) == hits && fclose(out) == 0);
    }
    free(values);
}

int main(int argc, char **argv)
{
    sieva_options options = SIEVA_OPTIONS_INIT;
    sieva_mpi_source *source = NULL;
    sieva_mpi_query *query = NULL;
    sieva_query *before = NULL;
    sieva_selection *selection = NULL;
    uint64_t hits = 0, first = 0, count = 0;
    begin(&argc, &argv);
    if (argc != 5 && argc != 6)
        MPI_Abort(MPI_COMM_WORLD, 2);
    options.no_learning = 1;
    OK(sieva_mpi_open(MPI_COMM_WORLD, argv[1], &options, &source));
    OK(sieva_query_text(sieva_mpi_source_here(source), argv[2], &before));
    uint64_t opening = bytes_read(before);
    OK(sieva_mpi_query_text(source, argv[2], &query));
    if (argc == 5)
        OK(sieva_mpi_query_nhits(query, &hits));
    OK(sieva_mpi_query_share(query, &first, &count));
    OK(sieva_mpi_query_nhits(query, &hits));
    uint64_t scanned = bytes_read(before);
    OK(sieva_mpi_query_selection(query, SIEVA_MPI_SHARED, &selection));
    write_values(query, argv[3], hits, argv[4]);
    uint64_t asked = evaluations(source), most = most_of(asked), all = sum_of(scanned);
    for (int rank = 0; rank < ranks; rank++) {
        if (rank == here)
            printf("rank %d opened with %" PRIu64 " bytes, scanned %" PRIu64 ", first %" PRIu64 ", count %" PRIu64 "\n", rank, opening, scanned, first, count);
        fflush(stdout);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (here == 0)
        printf("all hits %" PRIu64 " scanned %" PRIu64 " evaluations %" PRIu64 "\n", hits, all, most);
    sieva_selection_free(selection);
    sieva_query_free(before);
    sieva_mpi_query_free(query);
    sieva_mpi_close(source);
    return end();
}
