/*
 * Counts what asking a collection takes of each rank: a share of the bytes, no metadata; and what errors of one rank come to.
 *
 *   star_reader CATALOG COLLECTION ARRAY            the values at all hits of ARRAY > 0, and the bytes that each rank read
 *   star_reader CATALOG COLLECTION ARRAY FILE       FILE, the last of the collection, is changed after its hits were found
 */
#include "check.h"

static void expect(int32_t status, int32_t code, int rank, const char *words)
{
    char begin[32];
    snprintf(begin, sizeof begin, "rank %d: ", rank);
    const char *said = sieva_mpi_error_message();
    EXPECT(status == code && sieva_mpi_error_code() == code && sieva_mpi_error_rank() == rank);
    EXPECT(!strncmp(said, begin, strlen(begin)) && strstr(said, words) != NULL);
    if (here == 0)
        printf("%s: %s\n", sieva_error_name(status), said);
}

/* What this rank read of its files since `before` was made. */
static uint64_t bytes_read(const sieva_query *before)
{
    sieva_stats stats = SIEVA_STATS_INIT;
    OK(sieva_query_stats(before, &stats));
    return stats.bytes_read;
}

/* A query that is never asked; it counts from now on. */
static sieva_query *counter(const sieva_source *own, const char *collection, const char *array)
{
    char json[1024];
    sieva_plan *plan = NULL;
    sieva_query *query = NULL;
    snprintf(json, sizeof json, "{\"sieva_plan\": 1, \"source\": {\"collection\": \"%s\"}, \"rows\": [], \"cross\": false,"
             " \"columns\": [{\"id\": 0, \"path\": \"%s\", \"kind\": \"value\", \"type\": \"any\", \"dims\": []}],"
             " \"steps\": [{\"project\": [{\"name\": \"x\", \"value\": {\"column\": 0}}]}]}", collection, array);
    OK(sieva_plan_from_json(json, &plan));
    OK(sieva_plan_query(own, plan, NULL, &query));
    sieva_plan_free(plan);
    return query;
}

static void test_opening(const char *catalog, const char *collection)
{
    sieva_mpi_source *source = NULL;
    expect(sieva_mpi_collection_open(MPI_COMM_WORLD, "/nonexistent/c.sqlite", collection, NULL, &source), SIEVA_ERROR_FILE_NOT_FOUND, 0, "c.sqlite");
    expect(sieva_mpi_collection_open(MPI_COMM_WORLD, catalog, "none", NULL, &source), SIEVA_ERROR_UNKNOWN_ATTRIBUTE, 0, "none");
    EXPECT(sieva_mpi_collection_open(MPI_COMM_WORLD, catalog, NULL, NULL, &source) == SIEVA_ERROR_INVALID_VALUE && source == NULL);
}

static void test_questions(sieva_mpi_source *source, const char *array)
{
    char sql[256];
    sieva_mpi_query *query = NULL;
    uint64_t first = 0, count = 0, got = 0;
    int last = ranks - 1;
    expect(sieva_mpi_query_text(source, "SELECT none", &query), SIEVA_ERROR_UNKNOWN_ARRAY, 0, "none");
    expect(sieva_mpi_query_text(source, "flux >", &query), SIEVA_ERROR_SYNTAX_ERROR, 0, "");
    EXPECT(query == NULL);
    snprintf(sql, sizeof sql, "SELECT %s WHERE %s > 0", array, array);
    OK(sieva_mpi_query_text(source, sql, &query));
    OK(sieva_mpi_query_share(query, &first, &count));
    double *values = room(count, sizeof *values);
    expect(sieva_mpi_read(query, "none", SIEVA_MPI_SHARED, SIEVA_F64, values, count, NULL, &got), SIEVA_ERROR_UNKNOWN_ARRAY, 0, "none");
    expect(sieva_mpi_read(query, array, SIEVA_MPI_SHARED, SIEVA_F64, values, here == last ? count - 1 : count, NULL, &got),
           SIEVA_ERROR_INVALID_VALUE, last, "are needed");
    OK(sieva_mpi_read(query, array, SIEVA_MPI_SHARED, SIEVA_F64, values, count, NULL, &got));
    free(values);
    sieva_mpi_query_free(query);
}

static void count_bytes(sieva_mpi_source *source, const char *collection, const char *array)
{
    char sql[256];
    sieva_mpi_query *query = NULL;
    uint64_t hits = 0, first = 0, count = 0, got = 0;
    sieva_query *before = counter(sieva_mpi_source_here(source), collection, array);
    snprintf(sql, sizeof sql, "SELECT %s WHERE %s > 0", array, array);
    OK(sieva_mpi_query_text(source, sql, &query));
    uint64_t opening = bytes_read(before);
    OK(sieva_mpi_query_share(query, &first, &count));
    OK(sieva_mpi_query_nhits(query, &hits));
    uint64_t scanned = bytes_read(before);
    double *values = room(count, sizeof *values), sum = 0;
    OK(sieva_mpi_read(query, array, SIEVA_MPI_SHARED, SIEVA_F64, values, count, NULL, &got));
    for (uint64_t i = 0; i < got; i++)
        sum += values[i];
    for (int rank = 0; rank < ranks; rank++) {
        if (rank == here)
            printf("rank %d opened with %" PRIu64 " bytes, scanned %" PRIu64 ", count %" PRIu64 " of %" PRIu64 ", sum %.17g\n", rank, opening,
                   scanned - opening, count, hits, sum);
        fflush(stdout);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    free(values);
    sieva_query_free(before);
    sieva_mpi_query_free(query);
}

/* A file that is changed meanwhile is told by who reads it: the last rank has the last hits. */
static void test_changed(sieva_mpi_source *source, const char *array, const char *path)
{
    char sql[256];
    sieva_mpi_query *query = NULL;
    uint64_t first = 0, count = 0, got = 0;
    snprintf(sql, sizeof sql, "SELECT %s WHERE %s > 0", array, array);
    OK(sieva_mpi_query_text(source, sql, &query));
    OK(sieva_mpi_query_share(query, &first, &count));
    if (here == 0) {
        FILE *file = fopen(path, "ab");
        EXPECT(file != NULL && fputc(0, file) == 0 && fclose(file) == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double *values = room(count, sizeof *values);
    expect(sieva_mpi_read(query, array, SIEVA_MPI_SHARED, SIEVA_F64, values, count, NULL, &got), SIEVA_ERROR_STALE_SOURCE, ranks - 1, path);
    free(values);
    sieva_mpi_query_free(query);
}

int main(int argc, char **argv)
{
    sieva_mpi_source *source = NULL;
    begin(&argc, &argv);
    if (argc != 4 && argc != 5)
        MPI_Abort(MPI_COMM_WORLD, 2);
    if (argc == 4)
        test_opening(argv[1], argv[2]);
    OK(sieva_mpi_collection_open(MPI_COMM_WORLD, here == 0 ? argv[1] : "/nonexistent/c.sqlite", argv[2], NULL, &source));
    if (source == NULL)
        return end();
    if (argc == 5) {
        test_changed(source, argv[3], argv[4]);
    } else {
        count_bytes(source, argv[2], argv[3]);
        test_questions(source, argv[3]);
    }
    sieva_mpi_close(source);
    return end();
}
