/*
 * Builds indexes by all ranks, and asks by them.
 *
 *   builder FILE STORE KINDS CONDITION ARRAY...      KINDS: a sum of enum sieva_index
 *   builder FILE STORE fail ARRAY                    the last rank is stopped, which all are told; then all of it is built
 */
#include "check.h"

static uint64_t told;

static void tell(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    (void)total;
    told = done;
}

static sieva_mpi_source *open_with(const char *path, const char *store)
{
    sieva_options options = SIEVA_OPTIONS_INIT;
    sieva_mpi_source *source = NULL;
    options.store = store;
    options.no_learning = 1;
    OK(sieva_mpi_open(MPI_COMM_WORLD, path, &options, &source));
    if (source == NULL)
        MPI_Abort(MPI_COMM_WORLD, 4);
    return source;
}

/* What a query of all ranks finds, with an access path that has to be there. */
static uint64_t hits_by(sieva_mpi_source *source, const char *condition, int32_t access, uint64_t *bytes)
{
    sieva_options options = SIEVA_OPTIONS_INIT;
    sieva_stats stats = SIEVA_STATS_INIT;
    sieva_query *query = NULL;
    uint64_t n = 0;
    options.access = access;
    OK(sieva_query_text(sieva_mpi_source_here(source), condition, &query));
    OK(sieva_query_set_options(query, &options));
    OK(sieva_query_nhits(query, &n));
    OK(sieva_query_stats(query, &stats));
    *bytes = stats.bytes_read;
    sieva_query_free(query);
    return n;
}

static void build(const char *path, const char *store, uint32_t kinds, const char *condition, const char *const *arrays, uint64_t count)
{
    sieva_mpi_source *source = open_with(path, store);
    sieva_index_options options = SIEVA_INDEX_OPTIONS_INIT;
    sieva_index_report report = SIEVA_INDEX_REPORT_INIT, again = SIEVA_INDEX_REPORT_INIT;
    sieva_mpi_query *query = NULL;
    sieva_query *counter = NULL;
    sieva_stats stats = SIEVA_STATS_INIT;
    uint64_t before = 0, after = 0, n = 0, bytes = 0, read = 0;
    options.progress = tell;
    OK(sieva_mpi_query_text(source, condition, &query));
    OK(sieva_mpi_query_nhits(query, &before));
    sieva_mpi_query_free(query);
    OK(sieva_query_text(sieva_mpi_source_here(source), condition, &counter));
    OK(sieva_query_stats(counter, &stats));
    read = stats.bytes_read;
    OK(sieva_mpi_index_build(source, arrays, count, kinds, &options, &report));
    OK(sieva_query_stats(counter, &stats));
    read = stats.bytes_read - read;
    sieva_query_free(counter);
    OK(sieva_mpi_query_text(source, condition, &query));
    OK(sieva_mpi_query_nhits(query, &after));
    sieva_mpi_query_free(query);
    EXPECT(after == before);
    if (kinds & SIEVA_INDEX_BITMAP)
        EXPECT(hits_by(source, condition, SIEVA_ACCESS_BITMAP, &bytes) == before);
    if (kinds & SIEVA_INDEX_SORTED)
        EXPECT(hits_by(source, condition, SIEVA_ACCESS_SORTED, &bytes) == before);
    /* All of it is there. */
    OK(sieva_mpi_index_build(source, arrays, count, kinds, NULL, &again));
    EXPECT(again.regions_built == 0 && again.replicas_built == 0 && again.bytes_read == 0);
    n = sum_of(report.bytes_read);
    EXPECT(n == report.bytes_read * (uint64_t)ranks);
    for (int rank = 0; rank < ranks; rank++) {
        if (rank == here)
            printf("rank %d read %" PRIu64 " bytes, told of %" PRIu64 "\n", rank, read, told);
        fflush(stdout);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (here == 0)
        printf("regions %" PRIu64 " replicas %" PRIu64 " bytes %" PRIu64 " hits %" PRIu64 "\n", report.regions_built, report.replicas_built, report.bytes_read, before);
    sieva_mpi_close(source);
}

/* All ranks got this error, with the words of that rank. */
static void expect(int32_t status, int32_t code, int rank, const char *words)
{
    char begin[32];
    snprintf(begin, sizeof begin, "rank %d: ", rank);
    EXPECT(status == code && sieva_mpi_error_code() == code && sieva_mpi_error_rank() == rank);
    EXPECT(!strncmp(sieva_mpi_error_message(), begin, strlen(begin)) && strstr(sieva_mpi_error_message(), words) != NULL);
    if (here == 0)
        printf("%s: %s\n", sieva_error_name(status), sieva_mpi_error_message());
}

static void fail_once(const char *path, const char *store, const char *array)
{
    sieva_mpi_source *source = open_with(path, store);
    sieva_index_options options = SIEVA_INDEX_OPTIONS_INIT;
    sieva_index_report report = SIEVA_INDEX_REPORT_INIT, small = SIEVA_INDEX_REPORT_INIT;
    sieva_stop *stop;
    const char *none = "none";
    OK(sieva_stop_create(&stop));
    OK(sieva_stop_set(stop));
    int last = ranks - 1;
    expect(sieva_mpi_index_build(source, &none, 1, SIEVA_INDEX_BITMAP, NULL, NULL), SIEVA_ERROR_UNKNOWN_ARRAY, 0, "none");
    expect(sieva_mpi_index_build(source, &array, 1, 0, NULL, NULL), SIEVA_ERROR_INVALID_VALUE, 0, "");
    small.size = here == last ? 1 : small.size;
    expect(sieva_mpi_index_build(source, &array, 1, SIEVA_INDEX_BITMAP, NULL, &small), SIEVA_ERROR_INVALID_VALUE, last, "report");
    EXPECT(sieva_mpi_index_build(NULL, &array, 1, SIEVA_INDEX_BITMAP, NULL, NULL) == SIEVA_ERROR_INVALID_VALUE && sieva_mpi_error_rank() == -1);
    for (uint32_t kind = SIEVA_INDEX_BITMAP; kind <= SIEVA_INDEX_SORTED; kind *= 2) {
        options.stop = here == last ? stop : NULL;
        expect(sieva_mpi_index_build(source, &array, 1, kind, &options, NULL), SIEVA_ERROR_CANCELLED, last, "");
        options.stop = NULL;
        OK(sieva_mpi_index_build(source, &array, 1, kind, &options, &report));
    }
    EXPECT(report.replicas_built == 1);
    sieva_stop_free(stop);
    sieva_mpi_close(source);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    if (argc < 5)
        MPI_Abort(MPI_COMM_WORLD, 2);
    if (!strcmp(argv[3], "fail"))
        fail_once(argv[1], argv[2], argv[4]);
    else
        build(argv[1], argv[2], (uint32_t)atoi(argv[3]), argv[4], (const char *const *)argv + 5, (uint64_t)(argc - 5));
    return end();
}
