/*
 * One rank fails, all are told, and go on; one rank is lost, and the run ends.
 *
 *   faults FILE            each error is the same on all ranks, and nothing waits
 *   faults FILE lost       the last rank ends by SIGKILL while the others are at work
 *   faults FILE changed    the file is changed after it was opened
 */
#include "check.h"

#include <signal.h>

static int last;

/* All ranks got this error, with the words of that rank. */
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

static void test_opening(const char *path)
{
    sieva_mpi_source *source = NULL;
    expect(sieva_mpi_open(MPI_COMM_WORLD, "/nonexistent/file.h5", NULL, &source), SIEVA_ERROR_FILE_NOT_FOUND, 0, "/nonexistent/file.h5");
    EXPECT(source == NULL);
    expect(sieva_mpi_open(MPI_COMM_WORLD, here == last ? "/nonexistent/here.h5" : path, NULL, &source), SIEVA_ERROR_FILE_NOT_FOUND, last,
           "/nonexistent/here.h5");
    EXPECT(source == NULL);
}

static void test_questions(sieva_mpi_source *source)
{
    sieva_mpi_query *query = NULL;
    expect(sieva_mpi_query_text(source, "v >", &query), SIEVA_ERROR_SYNTAX_ERROR, 0, "");
    expect(sieva_mpi_query_text(source, "none > 1", &query), SIEVA_ERROR_UNKNOWN_ARRAY, 0, "none");
    expect(sieva_mpi_query_plan(source, NULL, &query), SIEVA_ERROR_INVALID_VALUE, 0, "plan is NULL");
    EXPECT(query == NULL);
    EXPECT(sieva_mpi_query_nhits(NULL, NULL) == SIEVA_ERROR_INVALID_VALUE && sieva_mpi_error_rank() == -1);
}

/* Of what is given on one rank alone. */
static void test_reading(sieva_mpi_source *source)
{
    sieva_mpi_query *query = NULL;
    sieva_selection *selection = NULL;
    sieva_result *result = NULL;
    uint64_t hits = 0, got = 0, first, count;
    OK(sieva_mpi_query_text(source, "v > 0", &query));
    expect(sieva_mpi_query_nhits(query, here == last ? NULL : &hits), SIEVA_ERROR_INVALID_VALUE, last, "nhits");
    OK(sieva_mpi_query_nhits(query, &hits));
    OK(sieva_mpi_query_share(query, &first, &count));
    double *values = room(hits, sizeof *values);
    expect(sieva_mpi_read(query, "v", SIEVA_MPI_SHARED, SIEVA_F64, values, here == last ? count - 1 : count, NULL, &got),
           SIEVA_ERROR_INVALID_VALUE, last, "are needed");
    expect(sieva_mpi_read(query, "none", SIEVA_MPI_EVERYWHERE, SIEVA_F64, values, hits, NULL, &got), SIEVA_ERROR_UNKNOWN_ARRAY, 0, "none");
    expect(sieva_mpi_read(query, "v", SIEVA_MPI_EVERYWHERE, SIEVA_I8, values, hits, NULL, &got), SIEVA_ERROR_TYPE_MISMATCH, 0, "");
    expect(sieva_mpi_read(query, "v", SIEVA_MPI_EVERYWHERE, 99, values, hits, NULL, &got), SIEVA_ERROR_INVALID_VALUE, 0, "type is 99");
    expect(sieva_mpi_read(query, "v", ranks, SIEVA_F64, values, hits, NULL, &got), SIEVA_ERROR_INVALID_VALUE, 0, "at is");
    expect(sieva_mpi_query_selection(query, -3, &selection), SIEVA_ERROR_INVALID_VALUE, 0, "at is -3");
    expect(sieva_mpi_query_result(query, NULL, SIEVA_MPI_SHARED, &result), SIEVA_ERROR_INVALID_VALUE, 0, "at is -2");
    EXPECT(selection == NULL && result == NULL);
    OK(sieva_mpi_read(query, "v", SIEVA_MPI_EVERYWHERE, SIEVA_F64, values, hits, NULL, &got));
    EXPECT(got == hits);
    free(values);
    sieva_mpi_query_free(query);
}

/* Rank 0 changes the file; whoever looks next is told. */
static void test_changed(sieva_mpi_source *source, const char *path)
{
    sieva_mpi_query *query = NULL;
    uint64_t hits = 0;
    OK(sieva_mpi_query_text(source, "v > 0", &query));
    if (here == 0) {
        FILE *file = fopen(path, "ab");
        EXPECT(file != NULL && fputc(0, file) == 0 && fclose(file) == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    expect(sieva_mpi_query_nhits(query, &hits), SIEVA_ERROR_STALE_SOURCE, 0, path);
    sieva_mpi_query_free(query);
}

/* The last rank is lost, and the others ask on. */
static void lose_one(sieva_mpi_source *source)
{
    sieva_mpi_query *query = NULL;
    uint64_t hits = 0;
    OK(sieva_mpi_query_text(source, "v > 0", &query));
    if (here == last)
        raise(SIGKILL);
    sieva_mpi_query_nhits(query, &hits);
    printf("rank %d counted without rank %d\n", here, last);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    sieva_mpi_source *source = NULL;
    begin(&argc, &argv);
    last = ranks - 1;
    if (argc < 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    if (argc == 2)
        test_opening(argv[1]);
    OK(sieva_mpi_open(MPI_COMM_WORLD, argv[1], NULL, &source));
    if (argc == 2) {
        test_questions(source);
        test_reading(source);
    } else if (!strcmp(argv[2], "changed")) {
        test_changed(source, argv[1]);
    } else {
        lose_one(source);
    }
    sieva_mpi_close(source);
    return end();
}
