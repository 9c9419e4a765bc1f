/* Selections that the program makes, and manifests with which a source is opened a second time. */
#include "suite.h"

/* Reads i32 at a selection and compares it with the array at these positions. */
static void expect_at(sieva_selection *selection, uint64_t n, const uint64_t *positions)
{
    int32_t values[64];
    uint64_t count = 0, found[64];
    OK(sieva_selection_nhits(selection, &count));
    EXPECT(count == n);
    OK(sieva_selection_positions(selection, 0, 64, found, &count));
    EXPECT(count == n && !memcmp(found, positions, n * sizeof *positions));
    OK(sieva_read(selection, "i32", SIEVA_I32, values, 64, NULL, &count));
    EXPECT(count == n);
    for (uint64_t i = 0; i < n; i++)
        EXPECT(values[i] == ocean.i32[positions[i]]);
}

static void test_positions(const sieva_source *source)
{
    sieva_query *rows, *labels;
    sieva_selection *selection = NULL, *again = NULL, *both = NULL;
    const uint64_t positions[] = { 3, 57, 2001, N - 1 }, outside = N;
    const uint64_t backwards[] = { N - 1, 3, 2001, 57, 3 };
    uint64_t coords[12], n = 0;
    OK(sieva_query_all(source, "i32", &rows));
    OK(sieva_selection_from_positions(rows, 5, backwards, &selection));
    expect_at(selection, 4, positions);
    OK(sieva_selection_coords(selection, 0, 4, coords, &n));
    OK(sieva_selection_from_coords(rows, 4, 3, coords, &again));
    expect_at(again, 4, positions);
    OK(sieva_selection_and(selection, again, &both));
    expect_at(both, 4, positions);
    sieva_selection_free(both);
    sieva_selection_free(again);

    /* Two boxes that overlap: y 1..2 and 2..3 of z 1, x 4..6. */
    const uint64_t starts[] = { 1, 1, 4, 1, 2, 4 }, counts[] = { 1, 2, 3, 1, 2, 3 };
    uint64_t expected[9];
    for (int y = 0; y < 3; y++)
        for (int x = 0; x < 3; x++)
            expected[3 * y + x] = (uint64_t)((NY + 1 + y) * NX + 4 + x);
    OK(sieva_selection_from_boxes(rows, 2, 3, starts, counts, &again));
    expect_at(again, 9, expected);
    sieva_selection_free(again);
    OK(sieva_selection_from_positions(rows, 0, NULL, &again));
    expect_at(again, 0, NULL);
    sieva_selection_free(again);

    /* Bytes. */
    OK(sieva_selection_bytes(selection, NULL, 0, &n));
    uint8_t *bytes = malloc(n);
    EXPECT(sieva_selection_bytes(selection, bytes, n - 1, &n) == SIEVA_ERROR_INVALID_VALUE);
    OK(sieva_selection_bytes(selection, bytes, n, &n));
    OK(sieva_selection_from_bytes(rows, bytes, n, &again));
    expect_at(again, 4, positions);
    sieva_selection_free(again);
    again = NULL;
    OK(sieva_query_all(source, "label", &labels));
    EXPECT(sieva_selection_from_bytes(labels, bytes, n, &again) == SIEVA_ERROR_DIMENSION_MISMATCH);
    bytes[n / 2] ^= 4;
    EXPECT(sieva_selection_from_bytes(rows, bytes, n, &again) == SIEVA_ERROR_CORRUPT_FILE);
    free(bytes);
    EXPECT(sieva_selection_from_positions(rows, 1, &outside, &again) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_selection_from_positions(rows, 1, NULL, &again) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_selection_from_positions(NULL, 0, NULL, &again) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_selection_from_coords(rows, 1, 2, coords, &again) == SIEVA_ERROR_DIMENSION_MISMATCH);
    coords[0] = NZ;
    EXPECT(sieva_selection_from_coords(rows, 1, 3, coords, &again) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_selection_from_coords(rows, UINT64_MAX, 3, coords, &again) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_selection_from_boxes(rows, 1, 3, starts, (uint64_t[]){ 1, NY, 1 }, &again) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(again == NULL);
    sieva_selection_free(selection);
    sieva_query_free(labels);
    sieva_query_free(rows);
}

static uint64_t bytes_read(const sieva_query *query)
{
    sieva_stats stats = SIEVA_STATS_INIT;
    OK(sieva_query_stats(query, &stats));
    return stats.bytes_read;
}

/* A source that is opened with a manifest reads values, and nothing before them. */
static void test_manifest(const char *path)
{
    sieva_options options = SIEVA_OPTIONS_INIT;
    sieva_source *source, *other = NULL;
    sieva_query *query;
    uint64_t n = 0, m = 0, expected = 0;
    for (int i = 0; i < N; i++)
        expected += ocean.f64[i] > 30000;
    OK(sieva_open(path, NULL, &source));
    OK(sieva_source_manifest(source, NULL, 0, &n));
    uint8_t *bytes = malloc(n);
    EXPECT(sieva_source_manifest(source, bytes, n - 1, &m) == SIEVA_ERROR_INVALID_VALUE && m == n);
    OK(sieva_source_manifest(source, bytes, n, &m));
    sieva_close(source);
    options.manifest = bytes;
    options.manifest_bytes = n;
    OK(sieva_open(path, &options, &other));
    uint64_t dimensions = 0;
    OK(sieva_source_count(other, &m, &dimensions));
    EXPECT(m == NTYPES + 1 && dimensions >= 3);
    OK(sieva_query_text(other, "f64 > 30000", &query));
    /* Looking at indexes takes the state of the source from the manifest. */
    EXPECT(bytes_read(query) == 0);
    OK(sieva_query_nhits(query, &m));
    EXPECT(m == expected);
    EXPECT(bytes_read(query) == N * sizeof(double));
    sieva_query_free(query);
    sieva_close(other);
    other = NULL;
    for (uint64_t at = 0; at < n; at += 7) {
        bytes[at] ^= 0x20;
        EXPECT(sieva_open(path, &options, &other) == SIEVA_ERROR_CORRUPT_INDEX && !other);
        bytes[at] ^= 0x20;
    }
    options.manifest_bytes = n - 1;
    EXPECT(sieva_open(path, &options, &other) == SIEVA_ERROR_CORRUPT_INDEX && !other);
    options.manifest = NULL;
    EXPECT(sieva_open(path, &options, &other) == SIEVA_ERROR_INVALID_VALUE && !other);
    options.manifest = bytes;
    options.manifest_bytes = n;
    options.dims = "f64=a,b,c";
    EXPECT(sieva_open(path, &options, &other) == SIEVA_ERROR_INVALID_VALUE && !other);
    options.dims = NULL;
    FILE *file = fopen(path, "ab");
    fputc(0, file);
    fclose(file);
    EXPECT(sieva_open(path, &options, &other) == SIEVA_ERROR_STALE_SOURCE && !other);
    EXPECT(strstr(sieva_error_hint(), "manifest") != NULL);
    free(bytes);
}

/* The last test of a file: it is changed. */
void test_made(const char *path)
{
    sieva_source *source;
    OK(sieva_open(path, NULL, &source));
    test_positions(source);
    sieva_close(source);
    test_manifest(path);
}
