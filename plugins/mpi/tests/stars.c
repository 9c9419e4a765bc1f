/*
 * Asks a collection of all ranks: answers are those of one process, values come in shares or gathered, the other ranks have no catalog.
 *
 *   stars CATALOG COLLECTION ARRAY OUT SELECT...
 *
 * ARRAY is read as float64 at the hits of each SELECT; rank 0 writes what all ranks gave: OUT.N.values and, of groups and rows,
 * OUT.N.csv. Each rank tells what it read.
 */
#include "check.h"

static const sieva_result_options csv = { sizeof(sieva_result_options), "csv", NULL, 0, 0, 0 };

/* What one process asks, on rank 0. */
static sieva_source *alone;

static void write_file(const char *out, int number, const char *suffix, const void *bytes, uint64_t size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.%d.%s", out, number, suffix);
    FILE *file = fopen(path, "wb");
    EXPECT(file != NULL && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

static unsigned char *bytes_of(const sieva_result *result, uint64_t *size)
{
    uint64_t got = 0;
    OK(sieva_result_size(result, size));
    unsigned char *bytes = room(*size, 1);
    OK(sieva_result_read(result, 0, bytes, *size, &got));
    EXPECT(got == *size);
    return bytes;
}

/* Rows or groups as a file: at rank 0, at the last rank, and everywhere the same; and as one process makes it. */
static void check_result(sieva_mpi_query *query, const sieva_plan *plan, const char *out, int number)
{
    const int ats[] = { 0, ranks - 1, SIEVA_MPI_EVERYWHERE };
    uint64_t size = 0, other = 0;
    unsigned char *expected = NULL;
    sieva_result *result = NULL;
    if (here == 0) {
        OK(sieva_result_of_plan(alone, plan, NULL, &csv, &result));
        expected = bytes_of(result, &size);
        write_file(out, number, "csv", expected, size);
        sieva_result_free(result);
    }
    MPI_Bcast(&size, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (here != 0)
        expected = room(size, 1);
    MPI_Bcast(expected, (int)size, MPI_BYTE, 0, MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++) {
        int gets = ats[i] < 0 || ats[i] == here;
        result = NULL;
        OK(sieva_mpi_query_result(query, &csv, ats[i], &result));
        EXPECT((result != NULL) == gets);
        unsigned char *found = result != NULL ? bytes_of(result, &other) : NULL;
        EXPECT(!gets || (other == size && !memcmp(found, expected, size)));
        free(found);
        sieva_result_free(result);
    }
    free(expected);
}

/* Positions of a share are those of one process from its first on, in the same objects. */
static void check_positions(sieva_mpi_query *query, const sieva_query *one, uint64_t n, uint64_t *objects)
{
    sieva_selection *mine = NULL, *all = NULL, *expected = NULL;
    sieva_object object, same;
    uint64_t first = 0, count = 0, got = 0, k = 0;
    OK(sieva_mpi_query_share(query, &first, &count));
    OK(sieva_mpi_query_selection(query, SIEVA_MPI_SHARED, &mine));
    OK(sieva_mpi_query_selection(query, SIEVA_MPI_EVERYWHERE, &all));
    uint64_t *own = room(count, 8), *part = room(count, 8), *whole = room(n, 8), *theirs = room(n, 8);
    OK(sieva_selection_positions(mine, 0, count, own, &got));
    EXPECT(got == count);
    OK(sieva_selection_positions(all, first, count, part, &got));
    EXPECT(got == count && !memcmp(own, part, count * 8));
    OK(sieva_selection_positions(all, 0, n, whole, &got));
    EXPECT(got == n);
    OK(sieva_selection_objects(mine, objects));
    if (one != NULL) {
        uint64_t there = 0, number = 0, same_number = 0, hits = 0, same_hits = 0;
        OK(sieva_query_selection(one, &expected));
        OK(sieva_selection_positions(expected, 0, n, theirs, &got));
        EXPECT(got == n && !memcmp(whole, theirs, n * 8));
        OK(sieva_selection_objects(all, &k));
        OK(sieva_selection_objects(expected, &there));
        EXPECT(k == there);
        for (uint64_t i = 0; i < k; i++) {
            OK(sieva_selection_object(all, i, &object, &number, &hits));
            OK(sieva_selection_object(expected, i, &same, &same_number, &same_hits));
            EXPECT(number == same_number && hits == same_hits && !strcmp(object.path, same.path) && !strcmp(object.source, same.source));
        }
        sieva_selection_free(expected);
    }
    free(own), free(part), free(whole), free(theirs);
    sieva_selection_free(mine);
    sieva_selection_free(all);
}

/* Values in shares, at the last rank and everywhere are the same; rank 0 writes them. */
static void check_values(sieva_mpi_query *query, const char *array, uint64_t n, const char *out, int number)
{
    uint64_t first = 0, count = 0, got = 0;
    int last = ranks - 1;
    OK(sieva_mpi_query_share(query, &first, &count));
    double *own = room(count, 8), *all = room(n, 8), *theirs = room(n, 8);
    uint8_t *marks = room(n, 1), *own_marks = room(count, 1);
    OK(sieva_mpi_read(query, array, SIEVA_MPI_SHARED, SIEVA_F64, own, count, own_marks, &got));
    EXPECT(got == count);
    OK(sieva_mpi_read(query, array, SIEVA_MPI_EVERYWHERE, SIEVA_F64, all, n, marks, &got));
    EXPECT(got == n && !memcmp(own, all + first, count * 8) && !memcmp(own_marks, marks + first, count));
    OK(sieva_mpi_read(query, array, last, SIEVA_F64, here == last ? theirs : NULL, here == last ? n : 0, NULL, &got));
    EXPECT(here != last || (got == n && !memcmp(theirs, all, n * 8)));
    if (here == 0)
        write_file(out, number, "values", all, n * 8);
    free(own), free(all), free(theirs), free(marks), free(own_marks);
}

static void check_histogram(sieva_mpi_query *query, const char *array, uint64_t n)
{
    uint64_t counts[5] = {0}, sum = 0;
    double edges[6] = {0};
    OK(sieva_mpi_query_histogram(query, array, 5, -1000, 1000, counts, edges));
    for (int i = 0; i < 5; i++)
        sum += counts[i];
    EXPECT(edges[0] == -1000 && edges[5] == 1000 && sum <= n);
    if (here == 0)
        printf("histogram %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", counts[0], counts[1], counts[2], counts[3], counts[4]);
}

static void ask(sieva_mpi_source *source, const char *array, const char *out, int number, const char *sql)
{
    sieva_mpi_query *query = NULL;
    sieva_plan *plan = NULL;
    sieva_query *one = NULL;
    uint64_t n = 0, rows = 0, expected = 0, objects = 0, first = 0, count = 0;
    int is_grouped = strstr(sql, "GROUP BY") != NULL;
    OK(sieva_mpi_query_text(source, sql, &query));
    if (!is_grouped)
        OK(sieva_mpi_query_share(query, &first, &count));
    OK(sieva_mpi_query_nhits(query, &rows));
    if (here == 0) {
        OK(sieva_plan_sql(alone, sql, &plan));
        OK(sieva_plan_query(alone, plan, NULL, &one));
        OK(sieva_query_nhits(one, &expected));
        EXPECT(rows == expected);
        printf("rows %" PRIu64 "\n", rows);
    }
    check_result(query, plan, out, number);
    if (!is_grouped) {
        n = sum_of(count);
        EXPECT(most_of(count) == (n + (uint64_t)ranks - 1) / (uint64_t)ranks);
        check_positions(query, one, n, &objects);
        check_values(query, array, n, out, number);
        check_histogram(query, array, n);
    }
    sieva_query_free(one);
    sieva_plan_free(plan);
    sieva_mpi_query_free(query);
}

int main(int argc, char **argv)
{
    sieva_mpi_source *source = NULL;
    sieva_catalog *catalog = NULL;
    begin(&argc, &argv);
    if (argc < 6)
        MPI_Abort(MPI_COMM_WORLD, 2);
    OK(sieva_mpi_collection_open(MPI_COMM_WORLD, here == 0 ? argv[1] : "/nonexistent/catalog.sqlite", argv[2], NULL, &source));
    if (source == NULL)
        return end();
    if (here == 0) {
        OK(sieva_catalog_open(argv[1], 1, &catalog));
        OK(sieva_collection_open(NULL, catalog, argv[2], NULL, &alone));
    }
    for (int i = 5; i < argc; i++) {
        what = argv[i];
        ask(source, argv[3], argv[4], i - 5, argv[i]);
    }
    sieva_close(alone);
    sieva_catalog_close(catalog);
    sieva_mpi_close(source);
    return end();
}
