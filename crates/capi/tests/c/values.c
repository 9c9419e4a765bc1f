/* What the source says of itself; values, texts, boxes, histograms; against what was written. */
#include "suite.h"

#include <math.h>

/* Whether two values are the same number; any NaN is the same as any other. */
static int same(const struct column *column, const void *a, const void *b)
{
    if (column->type == SIEVA_F32 || column->type == SIEVA_F64) {
        double x, y;
        float f, g;
        if (column->type == SIEVA_F32) {
            memcpy(&f, a, 4);
            memcpy(&g, b, 4);
            x = f, y = g;
        } else {
            memcpy(&x, a, 8);
            memcpy(&y, b, 8);
        }
        if (isnan(x) || isnan(y))
            return isnan(x) && isnan(y);
    }
    return !memcmp(a, b, column->size);
}

void test_schema(const sieva_source *source)
{
    uint64_t arrays, dims, index, n;
    const char *format, *text;
    sieva_array array;
    sieva_dimension dim;
    sieva_attribute attribute;
    OK(sieva_source_count(source, &arrays, &dims));
    EXPECT(arrays == NTYPES + 1);
    OK(sieva_source_format(source, &format));
    EXPECT(strstr(format, "netCDF-3") != NULL);
    for (int c = 0; c < NTYPES; c++) {
        OK(sieva_array_find(source, columns[c].name, &index));
        OK(sieva_array_describe(source, index, &array));
        EXPECT(!strcmp(array.path, columns[c].name) && array.rank == 3);
        EXPECT(array.value_type == columns[c].type && array.stored_type == columns[c].type);
        EXPECT(array.shape[0] == NZ && array.shape[1] == NY && array.shape[2] == NX);
        EXPECT(!strcmp(array.dims[0], "z") && !strcmp(array.dims[2], "x"));
    }
    OK(sieva_dimension_describe(source, 1, &dim));
    EXPECT(!strcmp(dim.path, "y") && dim.length == NY && !dim.unlimited);
    OK(sieva_attribute_count(source, "i16", &n));
    EXPECT(n == 3);
    OK(sieva_attribute_describe(source, "i16", 1, &attribute));
    EXPECT(!strcmp(attribute.name, "_FillValue") && attribute.type == SIEVA_I16 && attribute.count == 1);
    OK(sieva_attribute_text(source, "i16", "units", 0, &text));
    EXPECT(!strcmp(text, "degC"));
    OK(sieva_attribute_text(source, NULL, "title", 0, &text));
    EXPECT(!strcmp(text, "an ocean"));
    int16_t fill = 0;
    uint64_t limits[2];
    OK(sieva_attribute_read(source, "i16", "_FillValue", SIEVA_I16, &fill, 1, &n));
    EXPECT(fill == 7 && n == 1);
    OK(sieva_attribute_read(source, "i16", "limits", SIEVA_U64, limits, 2, &n));
    EXPECT(limits[0] == 3 && limits[1] == UINT64_MAX && n == 2);
    double wide[2];
    EXPECT(sieva_attribute_read(source, "i16", "limits", SIEVA_F64, wide, 2, &n) == SIEVA_ERROR_TYPE_MISMATCH);
}

/* The hits of `u8 < 100` of every array, whole and in batches. */
static void read_hits(const sieva_selection *selection, uint64_t nhits)
{
    for (int c = 0; c < NTYPES; c++) {
        const struct column *column = &columns[c];
        char *values = malloc(nhits * column->size), *batch = malloc(1000 * column->size);
        uint8_t *missing = malloc(nhits);
        uint64_t n, first = 0, at = 0;
        OK(sieva_read(selection, column->name, column->type, values, nhits, missing, &n));
        EXPECT(n == nhits);
        for (uint64_t i = 0; i < N; i++) {
            if (ocean.u8[i] >= 100)
                continue;
            const char *expected = (const char *)column->values + i * column->size;
            double x = column->type == SIEVA_F32 ? ocean.f32[i] : column->type == SIEVA_F64 ? ocean.f64[i] : 0;
            int absent = isnan(x) || (column->type == SIEVA_I16 && ocean.i16[i] == 7);
            EXPECT(missing[at] == absent);
            if (!absent || isnan(x))
                EXPECT(same(column, values + at * column->size, expected));
            at++;
        }
        EXPECT(at == nhits);
        for (;;) {
            uint8_t *flags = column->type == SIEVA_I16 ? missing : NULL;
            OK(sieva_read_batch(selection, column->name, first, column->type, batch, 1000, flags, &n));
            if (n == 0)
                break;
            for (uint64_t i = 0; i < n; i++)
                EXPECT(same(column, batch + i * column->size, values + (first + i) * column->size));
            first += n;
        }
        EXPECT(first == nhits);
        free(values);
        free(batch);
        free(missing);
    }
}

/* Boxes that overlap, a selection and a part that fails, read as one. */
static void read_parts(const sieva_source *source, const sieva_selection *hits, uint64_t nhits)
{
    enum { BOX = 2 * 20 * 40 };
    static double boxes[2][BOX], picked[N];
    static uint8_t few[4];
    const uint64_t starts[2][3] = { { 0, 2, 0 }, { 1, 0, 0 } }, count[] = { 2, 20, 40 };
    sieva_part parts[4] = { { 0 } };
    for (int i = 0; i < 2; i++)
        parts[i] = (sieva_part){ .array = "u8", .start = starts[i], .count = count, .rank = 3, .type = SIEVA_F64,
                                 .values = boxes[i], .capacity = BOX };
    parts[2] = (sieva_part){ .array = "u8", .selection = hits, .type = SIEVA_F64, .values = picked, .capacity = N };
    parts[3] = (sieva_part){ .array = "u8", .rank = 3, .type = SIEVA_U8, .values = few, .capacity = sizeof few };
    EXPECT(sieva_read_many(source, parts, 4) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(parts[3].code == SIEVA_ERROR_INVALID_VALUE && parts[3].read == 0);
    for (int i = 0; i < 2; i++) {
        EXPECT(parts[i].code == SIEVA_OK && parts[i].read == BOX);
        for (uint64_t k = 0; k < BOX; k++) {
            uint64_t at = ((starts[i][0] + k / 800) * NY + starts[i][1] + k / 40 % 20) * NX + k % 40;
            EXPECT(boxes[i][k] == ocean.u8[at]);
        }
    }
    EXPECT(parts[2].code == SIEVA_OK && parts[2].read == nhits);
    uint64_t *positions = malloc(nhits * sizeof *positions), got;
    OK(sieva_selection_positions(hits, 0, nhits, positions, &got));
    for (uint64_t i = 0; i < nhits; i++)
        EXPECT(picked[i] == ocean.u8[positions[i]]);
    free(positions);
    /* The same in a thread of its own, without the part that fails. */
    sieva_request *request = NULL;
    memset(boxes, 0, sizeof boxes);
    OK(sieva_start_read_many(source, parts, 3, &request));
    OK(sieva_wait(request, -1));
    OK(sieva_request_count(request, &got));
    EXPECT(got == 2 * BOX + nhits && boxes[1][7] == ocean.u8[NY * NX + 7]);
    sieva_request_free(request);
    OK(sieva_read_many(source, NULL, 0));
    EXPECT(sieva_read_many(source, NULL, 1) == SIEVA_ERROR_INVALID_VALUE);
}

static void read_boxes(const sieva_source *source)
{
    const uint64_t start[] = { 1, 2, 3 }, count[] = { 3, 20, 40 }, n = 3 * 20 * 40;
    for (int c = 0; c < NTYPES; c++) {
        const struct column *column = &columns[c];
        char *values = malloc(n * column->size);
        uint8_t *missing = malloc(n);
        uint64_t got;
        OK(sieva_read_box(source, column->name, 3, start, count, 1, column->type, values, n, missing, &got));
        EXPECT(got == n);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t at = ((1 + i / 800) * NY + 2 + i / 40 % 20) * NX + 3 + i % 40;
            EXPECT(same(column, values + i * column->size, (const char *)column->values + at * column->size));
        }
        free(values);
        free(missing);
    }
    char bytes[NY * LABEL];
    uint64_t offsets[NY + 1], needed;
    OK(sieva_read_box_texts(source, "label", 1, NULL, NULL, NULL, 0, NULL, &needed));
    EXPECT(needed > 0 && needed <= sizeof bytes);
    OK(sieva_read_box_texts(source, "label", 1, NULL, NULL, bytes, needed, offsets, &needed));
    for (int y = 0; y < NY; y++) {
        EXPECT(offsets[y + 1] - offsets[y] == strlen(ocean.label[y]));
        EXPECT(!memcmp(bytes + offsets[y], ocean.label[y], strlen(ocean.label[y])));
    }
}

/* Values in C order that begin and end within rows. */
static void read_runs(const sieva_source *source)
{
    static const uint64_t first = NY * NX + 2 * NX + 7, n = 3 * NX + 5;
    uint64_t got;
    for (int c = 0; c < NTYPES; c++) {
        const struct column *column = &columns[c];
        char *values = malloc(n * column->size);
        uint8_t *missing = malloc(n);
        OK(sieva_read_run(source, column->name, first, n, column->type, values, n, missing, &got));
        EXPECT(got == n);
        for (uint64_t i = 0; i < got; i++)
            EXPECT(missing[i] || same(column, values + i * column->size, (const char *)column->values + (first + i) * column->size));
        EXPECT(sieva_read_run(source, column->name, first, n, column->type, values, n - 1, missing, &got) == SIEVA_ERROR_INVALID_VALUE);
        EXPECT(sieva_read_run(source, column->name, N - 1, 2, column->type, values, n, missing, &got) == SIEVA_ERROR_INVALID_VALUE);
        free(values);
        free(missing);
    }
    EXPECT(sieva_read_run(source, "nothing", 0, 1, SIEVA_F32, NULL, 0, NULL, &got) == SIEVA_ERROR_UNKNOWN_ARRAY);
}

/* Parts of a box: each element of it in one of them, and no part in two blocks. */
static void box_parts(const sieva_source *source)
{
    const uint64_t start[] = { 1, 2, 3 }, count[] = { 3, 20, 40 }, most = 1600;
    uint64_t needed, got, marks[3 * 20 * 40] = { 0 };
    const char *name = columns[0].name;
    OK(sieva_box_parts(source, name, 3, start, count, most, NULL, 0, &needed));
    EXPECT(needed > 0);
    uint64_t *parts = malloc(needed * 9 * sizeof *parts);
    EXPECT(sieva_box_parts(source, name, 3, start, count, most, parts, needed - 1, &got) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(got == needed);
    OK(sieva_box_parts(source, name, 3, start, count, most, parts, needed, &got));
    for (uint64_t p = 0; p < got; p++) {
        const uint64_t *part = parts + p * 9;
        EXPECT(p == 0 || part[2] > part[-7]);
        for (uint64_t t = 0; t < part[6]; t++)
            for (uint64_t y = 0; y < part[7]; y++)
                for (uint64_t x = 0; x < part[8]; x++)
                    marks[((part[3] + t - 1) * 20 + part[4] + y - 2) * 40 + part[5] + x - 3]++;
    }
    for (int i = 0; i < 3 * 20 * 40; i++)
        EXPECT(marks[i] == 1);
    free(parts);
    EXPECT(sieva_box_parts(source, name, 2, start, count, most, NULL, 0, &needed) == SIEVA_ERROR_DIMENSION_MISMATCH);
}

/* Two processes ask for overlapping boxes of an array, a third for nothing: each unit has one reader. */
static void deal_parts(const sieva_source *source)
{
    uint64_t array = 0, needed = 0, got = 0, dealt[2 * 7], united[4 * 4];
    OK(sieva_array_find(source, columns[0].name, &array));
    const uint64_t counts[] = { 13, 0, 13 };
    uint64_t numbers[] = { array, 0, 8, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, array, 0, 8, 5, 0, 0, 0, 0, 1, 1, 2, 2, 2 };
    OK(sieva_deal_parts(source, 3, counts, numbers, 1000, NULL, 0, &needed));
    EXPECT(needed == 2);
    EXPECT(sieva_deal_parts(source, 3, counts, numbers, 1000, dealt, 1, &got) == SIEVA_ERROR_INVALID_VALUE && got == 2);
    OK(sieva_deal_parts(source, 3, counts, numbers, 1000, dealt, 2, &needed));
    EXPECT(dealt[0] == 0 && dealt[7] == 1);
    EXPECT(dealt[1] == dealt[8] && dealt[2] == dealt[9] && dealt[2] < 3 && dealt[3] == 0 && dealt[10] == 0);
    EXPECT(dealt[5] == dealt[12] && dealt[6] == dealt[13]);
    EXPECT(sieva_deal_parts(source, 2, counts, numbers, 1000, dealt, 2, &needed) == SIEVA_OK && needed == 1);
    numbers[10] = 1u << 30;
    EXPECT(sieva_deal_parts(source, 3, counts, numbers, 1000, dealt, 2, &needed) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_deal_parts(source, 3, NULL, numbers, 1000, dealt, 2, &needed) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_deal_parts(source, 3, counts, numbers, 1000, dealt, 2, NULL) == SIEVA_ERROR_INVALID_VALUE);
    const uint64_t boxes[] = { 0, 0, 2, 3, 1, 0, 3, 3, 9, 9, 1, 1 };
    OK(sieva_unite_boxes(2, 3, boxes, 0, united, 4, &needed));
    EXPECT(needed == 2 && united[0] == 0 && united[2] == 4 && united[3] == 3 && united[4] == 9);
    EXPECT(sieva_unite_boxes(2, 3, boxes, 0, united, 1, &needed) == SIEVA_ERROR_INVALID_VALUE && needed == 2);
    EXPECT(sieva_unite_boxes(2, 3, NULL, 0, united, 1, &needed) == SIEVA_ERROR_INVALID_VALUE);
    const uint64_t nothing[] = { 0, 0, 0, 3 };
    EXPECT(sieva_unite_boxes(2, 1, nothing, 0, united, 4, &needed) == SIEVA_ERROR_INVALID_VALUE);
}

static void read_texts(const sieva_source *source)
{
    sieva_query *query;
    sieva_selection *selection;
    char bytes[64];
    uint64_t n, offsets[12], needed;
    OK(sieva_query_text(source, "label LIKE 'L10_'", &query));
    OK(sieva_query_nhits(query, &n));
    EXPECT(n == 10);
    OK(sieva_query_selection(query, &selection));
    EXPECT(sieva_read_texts(selection, "label", 2, 5, bytes, 3, offsets, &needed) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(needed == 20);
    OK(sieva_read_texts(selection, "label", 2, 5, bytes, sizeof bytes, offsets, &needed));
    EXPECT(offsets[5] == 20 && !memcmp(bytes, "L102L103L104L105L106", 20));
    sieva_selection_free(selection);
    sieva_query_free(query);
}

static void histograms(const sieva_source *source)
{
    uint64_t counts[10], expected[10] = { 0 }, bins;
    double edges[11];
    int32_t limit = 0, low = INT32_MAX, high = INT32_MIN;
    sieva_query *query;
    OK(sieva_query_create(source, "i32", SIEVA_GT, SIEVA_I32, &limit, &query));
    OK(sieva_query_histogram(query, "i32", 10, counts, edges));
    for (int i = 0; i < N; i++) {
        if (ocean.i32[i] > 0) {
            low = ocean.i32[i] < low ? ocean.i32[i] : low;
            high = ocean.i32[i] > high ? ocean.i32[i] : high;
        }
    }
    EXPECT(edges[0] == low && edges[10] == high);
    for (int i = 0; i < N; i++) {
        int bin = 0;
        if (ocean.i32[i] <= 0)
            continue;
        while (bin < 9 && ocean.i32[i] >= edges[bin + 1])
            bin++;
        expected[bin]++;
    }
    EXPECT(!memcmp(counts, expected, sizeof counts));
    sieva_query_free(query);

    /* Of a whole array: nothing is known of it before an index is built. */
    EXPECT(sieva_histogram(source, "u16", 0, NULL, NULL, &bins) == SIEVA_ERROR_NO_INDEX);
    OK(sieva_index_build(source, "u16", SIEVA_INDEX_ZONEMAP | SIEVA_INDEX_BITMAP));
    OK(sieva_histogram(source, "u16", 0, NULL, NULL, &bins));
    EXPECT(bins > 1);
    uint64_t *all = malloc(bins * sizeof *all);
    double *bounds = malloc((bins + 1) * sizeof *bounds);
    EXPECT(sieva_histogram(source, "u16", bins - 1, all, bounds, &bins) == SIEVA_ERROR_INVALID_VALUE);
    OK(sieva_histogram(source, "u16", bins, all, bounds, &bins));
    for (uint64_t b = 0; b < bins; b++) {
        uint64_t n = 0;
        for (int i = 0; i < N; i++)
            n += ocean.u16[i] >= bounds[b] && ocean.u16[i] < bounds[b + 1];
        EXPECT(n == all[b]);
    }
    free(all);
    free(bounds);
}

void test_values(const sieva_source *source)
{
    sieva_query *few, *more;
    sieva_selection *a, *b, *both, *either, *rest;
    uint8_t limit = 100, other = 50;
    uint64_t n, of_both, of_either, of_rest, shape[3];
    uint32_t rank;
    char name[8];
    OK(sieva_query_create(source, "u8", SIEVA_LT, SIEVA_U8, &limit, &few));
    OK(sieva_query_create(source, "u8", SIEVA_GT, SIEVA_U8, &other, &more));
    OK(sieva_query_selection(few, &a));
    OK(sieva_query_selection(more, &b));
    OK(sieva_selection_nhits(a, &n));
    read_hits(a, n);
    read_parts(source, a, n);
    OK(sieva_selection_and(a, b, &both));
    OK(sieva_selection_or(a, b, &either));
    OK(sieva_selection_minus(a, b, &rest));
    OK(sieva_selection_nhits(both, &of_both));
    OK(sieva_selection_nhits(either, &of_either));
    OK(sieva_selection_nhits(rest, &of_rest));
    uint64_t between = 0;
    for (int i = 0; i < N; i++)
        between += ocean.u8[i] > 50 && ocean.u8[i] < 100;
    EXPECT(of_both == between && of_either == N && of_rest == n - between);
    /* Parts, one behind the other, are the whole. */
    sieva_selection *part = NULL;
    uint64_t whole[8], of_part[8], got;
    OK(sieva_selection_positions(a, n - 8, 8, whole, &got));
    OK(sieva_selection_part(a, n - 8, 5, &part));
    OK(sieva_selection_positions(part, 0, 8, of_part, &got));
    EXPECT(got == 5 && !memcmp(whole, of_part, sizeof(uint64_t) * 5));
    sieva_selection_free(part);
    OK(sieva_selection_part(a, n - 3, 100, &part));
    OK(sieva_selection_nhits(part, &got));
    EXPECT(got == 3);
    sieva_selection_free(part);
    OK(sieva_selection_part(a, n, 1, &part));
    OK(sieva_selection_nhits(part, &got));
    EXPECT(got == 0);
    sieva_selection_free(part);
    EXPECT(sieva_selection_part(a, n + 1, 1, &part) == SIEVA_ERROR_INVALID_VALUE);
    /* A combined selection outlives what it was made of, and can be read. */
    sieva_selection_free(a);
    sieva_selection_free(b);
    sieva_query_free(few);
    double *values = malloc(of_both * sizeof *values);
    OK(sieva_read(both, "u8 * 2", SIEVA_F64, values, of_both, NULL, &n));
    uint64_t at = 0;
    for (int i = 0; i < N; i++)
        if (ocean.u8[i] > 50 && ocean.u8[i] < 100)
            EXPECT(values[at++] == 2.0 * ocean.u8[i]);
    EXPECT(at == n);
    free(values);
    OK(sieva_selection_shape(both, &rank, shape, 3));
    EXPECT(rank == 3 && shape[0] == NZ && shape[1] == NY && shape[2] == NX);
    OK(sieva_selection_dimension(both, 2, name, sizeof name, NULL));
    EXPECT(!strcmp(name, "x"));
    sieva_selection_free(both);
    sieva_selection_free(either);
    sieva_selection_free(rest);
    sieva_query_free(more);
    read_boxes(source);
    box_parts(source);
    read_runs(source);
    deal_parts(source);
    read_texts(source);
    histograms(source);
}
