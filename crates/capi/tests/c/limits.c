/* Options of a source that decide what is refused: products of dimensions, and memory. */
#include "suite.h"

enum { NP = 3, NQ = 4, LONG = 1 << 18 };

static void put(FILE *file, uint32_t word)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        fputc((int)(word >> shift & 0xff), file);
}

/* A name of one letter, padded to four bytes. */
static void put_letter(FILE *file, char letter)
{
    put(file, 1);
    put(file, (uint32_t)letter << 24);
}

static void put_variable(FILE *file, char name, uint32_t dim, uint32_t nc_type, uint32_t size, uint32_t begin)
{
    put_letter(file, name);
    put(file, 1);
    put(file, dim);
    put(file, 0);
    put(file, 0);
    put(file, nc_type);
    put(file, size);
    put(file, begin);
}

/* A netCDF-3 file of p(a) = 10, 11, 12, q(b) = 9, 10, 11, 12, and w(n) of zeros, of double. */
static void write_apart(const char *path)
{
    static const uint32_t lengths[] = { NP, NQ, LONG };
    /* The head: three dimensions of 12 bytes, three variables of 36, and what is around them. */
    const uint32_t head = 8 + 8 + 3 * 12 + 8 + 8 + 3 * 36;
    FILE *file = fopen(path, "wb");
    fwrite("CDF\001", 1, 4, file);
    put(file, 0);
    put(file, 0x0a);
    put(file, 3);
    for (int d = 0; d < 3; d++) {
        put_letter(file, "abn"[d]);
        put(file, lengths[d]);
    }
    put(file, 0);
    put(file, 0);
    put(file, 0x0b);
    put(file, 3);
    put_variable(file, 'p', 0, 4, 4 * NP, head);
    put_variable(file, 'q', 1, 4, 4 * NQ, head + 4 * NP);
    put_variable(file, 'w', 2, 6, 8 * LONG, head + 4 * NP + 4 * NQ);
    EXPECT(ftell(file) == (long)head);
    for (uint32_t i = 0; i < NP; i++)
        put(file, 10 + i);
    for (uint32_t i = 0; i < NQ; i++)
        put(file, 9 + i);
    for (uint32_t i = 0; i < 2 * LONG; i++)
        put(file, 0);
    fclose(file);
}

static void test_cross(const char *path)
{
    sieva_options options = SIEVA_OPTIONS_INIT;
    sieva_source *source;
    sieva_query *query = NULL;
    uint64_t n = 0, expected = 0;
    OK(sieva_open(path, NULL, &source));
    int32_t status = sieva_query_text(source, "p < q", &query);
    if (status == SIEVA_OK)
        status = sieva_query_nhits(query, &n);
    EXPECT(status == SIEVA_ERROR_UNALIGNED_DIMENSIONS && sieva_error_code() == status);
    EXPECT(!strcmp(sieva_error_name(status), "unaligned-dimensions"));
    sieva_query_free(query);
    sieva_close(source);

    options.cross = 1;
    OK(sieva_open(path, &options, &source));
    OK(sieva_query_text(source, "p < q", &query));
    OK(sieva_query_nhits(query, &n));
    for (int a = 0; a < NP; a++)
        for (int b = 0; b < NQ; b++)
            expected += 10 + a < 9 + b;
    EXPECT(n == expected && n == 3);
    sieva_selection *selection;
    uint32_t rank = 0;
    uint64_t shape[2], coords[6], got;
    OK(sieva_query_selection(query, &selection));
    OK(sieva_selection_shape(selection, &rank, shape, 2));
    EXPECT(rank == 2 && shape[0] * shape[1] == NP * NQ);
    OK(sieva_selection_coords(selection, 0, 3, coords, &got));
    EXPECT(got == 3);
    for (int i = 0; i < 3; i++) {
        uint64_t a = coords[2 * i + (shape[0] != NP)], b = coords[2 * i + (shape[0] == NP)];
        EXPECT(10 + a < 9 + b);
    }
    sieva_selection_free(selection);
    sieva_query_free(query);
    sieva_close(source);
}

/* What a box takes while it is decoded is held against the memory of its source. */
static void test_memory(const char *path)
{
    static double values[LONG];
    const uint64_t start[] = { 5 }, some[] = { LONG / 8 }, all[] = { LONG };
    sieva_options options = SIEVA_OPTIONS_INIT;
    sieva_source *source;
    uint64_t n = 77;
    options.memory = 1 << 20;
    OK(sieva_open(path, &options, &source));
    values[0] = 5;
    EXPECT(sieva_read_box(source, "w", 1, NULL, all, 0, SIEVA_F64, values, LONG, NULL, &n)
           == SIEVA_ERROR_MEMORY_LIMIT);
    EXPECT(!strcmp(sieva_error_name(sieva_error_code()), "memory-limit") && n == 77 && values[0] == 5);
    OK(sieva_read_box(source, "w", 1, start, some, 0, SIEVA_F64, values, LONG, NULL, &n));
    EXPECT(n == LONG / 8 && values[0] == 0);
    sieva_close(source);
    options.memory = 16 << 20;
    OK(sieva_open(path, &options, &source));
    OK(sieva_read_box(source, "w", 1, NULL, all, 0, SIEVA_F64, values, LONG, NULL, &n));
    EXPECT(n == LONG);
    sieva_close(source);
}

/* Rows that do not fit are sorted on disk where the options say how much of it. */
static void test_spill(const char *path)
{
    sieva_options options = SIEVA_OPTIONS_INIT;
    sieva_source *source;
    sieva_result *result = NULL;
    uint64_t bytes = 0;
    OK(sieva_open(path, NULL, &source));
    options.memory = 2 << 20;
    for (options.spill = 0; options.spill <= 64 << 20; options.spill += 64 << 20) {
        int32_t status =
            sieva_result_open(source, "SELECT w, idx(n) AS i ORDER BY w, i DESC", &options, NULL, &result);
        if (status == SIEVA_OK)
            status = sieva_result_size(result, &bytes);
        EXPECT(status == (options.spill ? SIEVA_OK : SIEVA_ERROR_MEMORY_LIMIT));
        sieva_result_free(result);
        result = NULL;
    }
    EXPECT(bytes > 2 * 8 * LONG);
    sieva_close(source);
}

void test_limits(const char *path)
{
    char apart[4096];
    snprintf(apart, sizeof apart, "%s.apart.nc", path);
    write_apart(apart);
    test_cross(apart);
    test_memory(apart);
    test_spill(apart);
}
