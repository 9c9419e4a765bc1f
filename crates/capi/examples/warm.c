/*
 * Warm water: how many points of an ocean model's TEMP are warmer than a limit, where they are, and what SALT is there.
 *
 *   cc -std=c99 warm.c -Iinclude -Llib -Wl,-rpath,lib -lsieva_c -o warm
 *   ./warm ocean.nc 25
 *
 * The file needs arrays TEMP and SALT (float) of the same three or more dimensions. Everything that sieva answers is
 * compared with a loop over the whole array; the program ends with 1 where they differ.
 */
#include <sieva.h>

#include <stdio.h>
#include <stdlib.h>

/* Ends the program where a call failed. */
static void check(int32_t status, const char *what)
{
    if (status != SIEVA_OK) {
        fprintf(stderr, "%s: %s: %s\n", what, sieva_error_name(status), sieva_error_message());
        exit(1);
    }
}

static void *allocate(uint64_t n, size_t size)
{
    void *memory = calloc(n ? n : 1, size);
    if (!memory) {
        fprintf(stderr, "no memory for %llu values\n", (unsigned long long)n);
        exit(1);
    }
    return memory;
}

/* All values of an array of floats. */
static float *read_all(const sieva_source *source, const char *name, sieva_array *array, uint64_t *n)
{
    uint64_t index, got;
    uint32_t d;
    float *values;
    check(sieva_array_find(source, name, &index), name);
    check(sieva_array_describe(source, index, array), name);
    for (*n = 1, d = 0; d < array->rank; d++)
        *n *= array->shape[d];
    values = allocate(*n, sizeof *values);
    check(sieva_read_box(source, name, array->rank, NULL, NULL, 0, SIEVA_F32, values, *n, NULL, &got), name);
    return values;
}

int main(int argc, char **argv)
{
    sieva_options options = SIEVA_OPTIONS_INIT;
    sieva_source *source;
    sieva_query *warm, *not_hot, *both;
    sieva_selection *selection;
    sieva_request *request;
    sieva_array array;
    uint64_t n, nhits, count, expected = 0, i, first;
    uint64_t start[8] = { 0 }, extent[8];
    uint32_t d;
    float limit, hot, *temp, *salt, *found;
    int failed = 0;

    if (argc != 3) {
        fprintf(stderr, "usage: warm FILE LIMIT\n");
        return 2;
    }
    limit = (float)atof(argv[2]);
    hot = limit + 3;
    options.threads = 2;
    check(sieva_open(argv[1], &options, &source), "open");
    temp = read_all(source, "TEMP", &array, &n);
    salt = read_all(source, "SALT", &array, &n);
    if (array.rank < 3 || array.rank > 8) {
        fprintf(stderr, "SALT has rank %u, 3 to 8 is expected\n", (unsigned)array.rank);
        return 1;
    }

    /* TEMP > limit AND TEMP <= limit + 3, within the last half of the first dimension. */
    check(sieva_query_create(source, "TEMP", SIEVA_GT, SIEVA_F32, &limit, &warm), "create");
    check(sieva_query_create(source, "TEMP", SIEVA_LE, SIEVA_F32, &hot, &not_hot), "create");
    check(sieva_query_and(warm, not_hot, &both), "and");
    for (d = 0; d < array.rank; d++)
        extent[d] = array.shape[d];
    start[0] = array.shape[0] / 2;
    extent[0] = array.shape[0] - start[0];
    check(sieva_query_set_region(both, "TEMP", 1, array.rank, start, extent), "region");

    check(sieva_query_nhits(both, &nhits), "nhits");
    check(sieva_query_selection(both, &selection), "selection");
    found = allocate(nhits, sizeof *found);
    check(sieva_start_read(selection, "SALT", SIEVA_F32, found, nhits, NULL, &request), "start");
    /* ... something else could be done here ... */
    check(sieva_wait(request, -1), "wait");
    check(sieva_request_count(request, &count), "count");
    sieva_request_free(request);

    first = n / array.shape[0] * start[0];
    for (i = first; i < n; i++) {
        if (!(temp[i] > limit && temp[i] <= hot))
            continue;
        if (expected < nhits && found[expected] != salt[i])
            failed = 1;
        expected++;
    }
    printf("%llu of %llu points are warm\n", (unsigned long long)nhits, (unsigned long long)(n - first));
    if (failed || nhits != expected || count != expected) {
        fprintf(stderr, "a loop over the array finds %llu\n", (unsigned long long)expected);
        failed = 1;
    }

    free(found);
    free(temp);
    free(salt);
    sieva_selection_free(selection);
    sieva_query_free(both);
    sieva_query_free(not_hot);
    sieva_query_free(warm);
    sieva_close(source);
    return failed;
}
