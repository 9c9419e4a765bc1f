/* Results as files: the values behind one another at the end, any part the same as that part of the whole. */
#include "suite.h"

/* The four bytes of a float as netCDF has them. */
static void put_float(unsigned char *to, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(bits >> (24 - 8 * i));
}

/* The whole file, to be freed. */
static unsigned char *whole(const sieva_result *result, uint64_t *size)
{
    uint64_t n;
    OK(sieva_result_size(result, size));
    unsigned char *bytes = malloc(*size);
    OK(sieva_result_read(result, 0, bytes, *size + 9, &n));
    EXPECT(n == *size);
    return bytes;
}

static void test_values_at_the_end(const sieva_source *source)
{
    sieva_result *result;
    uint64_t size, rows, expected = 0;
    unsigned char *want = malloc(4 * N);
    for (int k = 0; k < N; k++)
        if (ocean.u16[k] >= 40000)
            put_float(want + 4 * expected++, ocean.f32[k]);
    OK(sieva_result_open(source, "SELECT i32, f32 WHERE u16 >= 40000", NULL, NULL, &result));
    OK(sieva_result_rows(result, &rows));
    EXPECT(rows == expected);
    unsigned char *bytes = whole(result, &size);
    EXPECT(!memcmp(bytes, "CDF\002", 4));
    EXPECT(!memcmp(bytes + size - 4 * rows, want, 4 * rows));
    free(bytes);
    free(want);
    sieva_result_free(result);
}

/* Reads in odd steps from the end, and streams, one of them left in the midst. */
static void test_parts(const sieva_source *source, const char *format)
{
    sieva_result_options options = SIEVA_RESULT_OPTIONS_INIT;
    sieva_options run = SIEVA_OPTIONS_INIT;
    sieva_result *result;
    sieva_stream *stream, *left;
    uint64_t size, n, offset, at;
    unsigned char part[4096];
    int32_t ready = 0;
    options.format = format;
    run.threads = 2;
    OK(sieva_result_open(source, "SELECT label, f64, i16 WHERE i32 > 0", &run, &options, &result));
    unsigned char *bytes = whole(result, &size);
    for (uint64_t start = size; start > 997; start -= 997) {
        OK(sieva_result_read(result, start - 5, part, 1001, &n));
        EXPECT(n == (size - start + 5 < 1001 ? size - start + 5 : 1001) && !memcmp(part, bytes + start - 5, n));
    }
    OK(sieva_result_read(result, size + 7, part, sizeof part, &n));
    EXPECT(n == 0);
    OK(sieva_result_stream(result, 0, UINT64_MAX, 100, &left));
    OK(sieva_stream_next(left, part, sizeof part, &offset, &n));
    EXPECT(n == 100 && offset == 0);
    OK(sieva_result_stream(result, 333, size - 600, sizeof part, &stream));
    sieva_result_free(result);
    for (at = 333;; at += n) {
        OK(sieva_stream_next(stream, part, sizeof part, &offset, &n));
        if (n == 0)
            break;
        EXPECT(offset == at && !memcmp(part, bytes + at, n));
    }
    EXPECT(at == size - 600 + 333);
    OK(sieva_stream_ready(stream, &ready));
    EXPECT(ready == 1);
    sieva_stream_free(stream);
    sieva_stream_free(left);
    free(bytes);
}

/* A stop ends what has it: before, while and after a result is made. */
static void test_stops(const sieva_source *source)
{
    sieva_options options = SIEVA_OPTIONS_INIT;
    sieva_stop *stop = NULL;
    sieva_result *result = NULL, *other;
    sieva_stream *stream;
    char part[8];
    uint64_t n, offset;
    OK(sieva_stop_create(&stop));
    options.stop = stop;
    OK(sieva_result_open(source, "SELECT i32, i32 + 1 AS more WHERE i32 > 5", &options, NULL, &result));
    OK(sieva_result_size(result, &n));
    OK(sieva_result_read(result, n - 1, part, 1, &n));
    OK(sieva_stop_set(stop));
    OK(sieva_result_size(result, &n));
    EXPECT(sieva_result_read(result, n - 1, part, 1, &n) == SIEVA_ERROR_CANCELLED);
    OK(sieva_result_stream(result, n - 1, 1, 0, &stream));
    EXPECT(sieva_stream_next(stream, part, sizeof part, &offset, &n) == SIEVA_ERROR_CANCELLED);
    EXPECT(sieva_result_open(source, "i32 > (SELECT min(i32))", &options, NULL, &other) == SIEVA_ERROR_CANCELLED);
    sieva_stop_free(stop);
    EXPECT(sieva_stream_next(stream, part, sizeof part, &offset, &n) == SIEVA_ERROR_CANCELLED);
    sieva_stream_free(stream);
    sieva_result_free(result);
    EXPECT(sieva_stop_create(NULL) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_stop_set(NULL) == SIEVA_ERROR_INVALID_VALUE);
    sieva_stop_free(NULL);
}

static void test_ids(const sieva_source *source)
{
    static const char *const sql[] = { "i32 > 5", "SELECT * WHERE (i32>5)", "i32 > 6" };
    char ids[3][33];
    uint64_t needed;
    for (int i = 0; i < 3; i++) {
        sieva_result *result;
        OK(sieva_result_open(source, sql[i], NULL, NULL, &result));
        OK(sieva_result_id(result, NULL, 0, &needed));
        EXPECT(needed == sizeof ids[i]);
        OK(sieva_result_id(result, ids[i], sizeof ids[i], NULL));
        sieva_result_free(result);
    }
    EXPECT(!strcmp(ids[0], ids[1]) && strcmp(ids[0], ids[2]));
}

static void test_formats(void)
{
    static const struct {
        const char *name, *format;
        int32_t laid_out;
    } known[] = {
        { NULL, "netcdf", 1 }, { "netcdf", "netcdf", 1 }, { "NC", "netcdf", 1 },     { "cdf", "netcdf", 1 },
        { "h5", "hdf5", 1 },   { "feather", "arrow", 0 }, { "Parquet", "parquet", 0 }, { "csv", "csv", 0 },
        { "json", "json", 0 }, { "txt", "table", 0 },
    };
    const char *format = NULL;
    int32_t laid_out = -1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        OK(sieva_result_format(known[i].name, &format, &laid_out));
        EXPECT(!strcmp(format, known[i].format) && laid_out == known[i].laid_out);
        OK(sieva_result_format(known[i].name, &format, NULL));
    }
    EXPECT(sieva_result_format("zarr", &format, &laid_out) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(strstr(sieva_error_message(), "table, csv, json, arrow, parquet, netcdf, hdf5") != NULL);
    EXPECT(sieva_result_format("nc", NULL, NULL) == SIEVA_ERROR_INVALID_VALUE);
}

static void test_refusals(const sieva_source *source)
{
    sieva_result_options options = SIEVA_RESULT_OPTIONS_INIT;
    sieva_result *result = NULL;
    sieva_stream *stream = NULL;
    uint64_t n = 0;
    EXPECT(sieva_result_open(source, "SELECT i32 WHERE i32 >", NULL, NULL, &result) == SIEVA_ERROR_SYNTAX_ERROR);
    EXPECT(strstr(sieva_error_message(), "line 1, column"));
    EXPECT(sieva_result_open(source, "SELECT i32 FROM 'b.nc'", NULL, NULL, &result) == SIEVA_ERROR_SYNTAX_ERROR);
    EXPECT(sieva_result_open(source, "SELECT i3", NULL, NULL, &result) == SIEVA_ERROR_UNKNOWN_ARRAY);
    EXPECT(sieva_result_open(NULL, "i32 > 0", NULL, NULL, &result) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_result_open(source, NULL, NULL, NULL, &result) == SIEVA_ERROR_INVALID_VALUE);
    options.format = "xml";
    EXPECT(sieva_result_open(source, "i32 > 0", NULL, &options, &result) == SIEVA_ERROR_INVALID_VALUE);
    options.format = "csv";
    options.spool_limit = 100;
    EXPECT(sieva_result_open(source, "i32 > 0", NULL, &options, &result) == SIEVA_ERROR_MEMORY_LIMIT);
    EXPECT(!result);
    OK(sieva_result_open(source, "i32 > 0", NULL, NULL, &result));
    EXPECT(sieva_result_size(result, NULL) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_result_rows(NULL, &n) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_result_read(result, 0, NULL, 5, &n) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_result_stream(result, 0, 1, UINT64_MAX, &stream) == SIEVA_ERROR_INVALID_VALUE);
    OK(sieva_result_stream(result, 0, 1, 0, &stream));
    EXPECT(sieva_stream_next(stream, &n, 0, &n, &n) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_stream_ready(NULL, NULL) == SIEVA_ERROR_INVALID_VALUE);
    sieva_stream_free(stream);
    sieva_result_free(result);
    sieva_stream_free(NULL);
    sieva_result_free(NULL);
}

static void test_schema_text(const sieva_source *source)
{
    uint64_t needed;
    OK(sieva_source_schema(source, NULL, 0, &needed));
    char *text = malloc(needed);
    OK(sieva_source_schema(source, text, needed, NULL));
    EXPECT(strlen(text) + 1 == needed && strstr(text, "\"physical\"") && strstr(text, "\"i16\""));
    free(text);
}

/* The same bytes where a worker parses the file; SIEVA_TEST_WORKER is its program. */
static void test_isolated(const sieva_source *source, const char *path)
{
    sieva_options options = SIEVA_OPTIONS_INIT;
    sieva_source *isolated = NULL;
    sieva_result *result;
    uint64_t size, same;
    options.isolated = 1;
    options.worker = getenv("SIEVA_TEST_WORKER");
    if (!options.worker)
        return;
    OK(sieva_open(path, &options, &isolated));
    OK(sieva_result_open(isolated, "u8 > 200", NULL, NULL, &result));
    unsigned char *a = whole(result, &size);
    sieva_result_free(result);
    sieva_close(isolated);
    OK(sieva_result_open(source, "u8 > 200", NULL, NULL, &result));
    unsigned char *b = whole(result, &same);
    EXPECT(size == same && !memcmp(a, b, size));
    free(a);
    free(b);
    sieva_result_free(result);
}

/* A result that was sent as bytes is the file that it was made as. */
static void test_sent(const sieva_source *source)
{
    static const char *const formats[] = { "netcdf", "csv" };
    for (int i = 0; i < 2; i++) {
        sieva_result_options options = SIEVA_RESULT_OPTIONS_INIT;
        sieva_result *made, *read = NULL;
        char id[40], same_id[40];
        uint64_t size, same, n, m = 0, rows, same_rows;
        options.format = formats[i];
        OK(sieva_result_open(source, "SELECT i16, f64 WHERE u8 > 200", NULL, &options, &made));
        OK(sieva_result_bytes(made, NULL, 0, &n));
        uint8_t *bytes = malloc(n);
        EXPECT(sieva_result_bytes(made, bytes, n - 1, &m) == SIEVA_ERROR_INVALID_VALUE && m == n);
        OK(sieva_result_bytes(made, bytes, n, &m));
        EXPECT(m == n);
        OK(sieva_result_from_bytes(bytes, n, NULL, &read));
        bytes[n / 2] ^= 1;
        EXPECT(sieva_result_from_bytes(bytes, n, NULL, &(sieva_result *){ NULL }) == SIEVA_ERROR_CORRUPT_FILE);
        free(bytes);
        OK(sieva_result_rows(made, &rows));
        OK(sieva_result_rows(read, &same_rows));
        OK(sieva_result_id(made, id, sizeof id, NULL));
        OK(sieva_result_id(read, same_id, sizeof same_id, NULL));
        EXPECT(rows > 0 && rows == same_rows && !strcmp(id, same_id));
        unsigned char *a = whole(made, &size), *b = whole(read, &same);
        EXPECT(size == same && !memcmp(a, b, size));
        free(a);
        free(b);
        sieva_result_free(made);
        sieva_result_free(read);
    }
}

void test_results(const sieva_source *source, const char *path)
{
    test_sent(source);
    test_values_at_the_end(source);
    test_parts(source, NULL);
    test_parts(source, "hdf5");
    test_parts(source, "arrow");
    test_parts(source, "csv");
    test_ids(source);
    test_formats();
    test_stops(source);
    test_refusals(source);
    test_schema_text(source);
    test_isolated(source, path);
}
