/* Requests that run at once, and calls that must fail without harm. */
#include "suite.h"

enum { REQUESTS = 8 };

void test_requests(const sieva_source *source)
{
    sieva_query *queries[REQUESTS];
    sieva_request *requests[REQUESTS];
    for (int i = 0; i < REQUESTS; i++) {
        uint16_t limit = (uint16_t)(8000 * i);
        OK(sieva_query_create(source, "u16", SIEVA_GE, SIEVA_U16, &limit, &queries[i]));
        OK(sieva_start(queries[i], i % 2 ? SIEVA_SELECTION : SIEVA_NHITS, &requests[i]));
        sieva_query_free(queries[i]);
    }
    for (int i = REQUESTS - 1; i >= 0; i--) {
        uint64_t expected = 0, n = 0;
        int32_t done = 0, status;
        for (int k = 0; k < N; k++)
            expected += ocean.u16[k] >= 8000 * i;
        while ((status = sieva_wait(requests[i], 1)) == SIEVA_PENDING)
            OK(sieva_test(requests[i], &done));
        EXPECT(status == SIEVA_OK);
        OK(sieva_test(requests[i], &done));
        EXPECT(done == 1);
        OK(sieva_request_count(requests[i], &n));
        EXPECT(n == expected);
        sieva_selection *selection = NULL;
        if (i % 2) {
            sieva_request *reading;
            uint16_t *values = malloc(n * sizeof *values);
            uint64_t got;
            OK(sieva_request_selection(requests[i], &selection));
            OK(sieva_start_read(selection, "u16", SIEVA_U16, values, n, NULL, &reading));
            sieva_selection_free(selection);
            OK(sieva_wait(reading, -1));
            OK(sieva_request_count(reading, &got));
            EXPECT(got == n);
            for (int k = 0, at = 0; k < N; k++)
                if (ocean.u16[k] >= 8000 * i)
                    EXPECT(values[at++] == ocean.u16[k]);
            sieva_request_free(reading);
            free(values);
        } else {
            EXPECT(sieva_request_selection(requests[i], &selection) == SIEVA_ERROR_INVALID_VALUE);
        }
        sieva_request_free(requests[i]);
    }

    /* One that is cancelled ends, well or as cancelled, and leaves its query as it was. */
    sieva_query *query;
    sieva_request *request;
    uint64_t n;
    OK(sieva_query_text(source, "sqrt(f64 * f64) > 3", &query));
    OK(sieva_start(query, SIEVA_NHITS, &request));
    OK(sieva_cancel(request));
    int32_t status = sieva_wait(request, -1);
    EXPECT(status == SIEVA_OK || status == SIEVA_ERROR_CANCELLED);
    sieva_request_free(request);
    OK(sieva_query_nhits(query, &n));
    OK(sieva_start(query, SIEVA_SELECTION, &request));
    sieva_request_free(request);
    sieva_query_free(query);
}

#define FAILS(code, call) EXPECT((call) == (code))
#define INVALID(call) FAILS(SIEVA_ERROR_INVALID_VALUE, call)

static void test_null(const sieva_source *source, sieva_query *query, sieva_selection *selection)
{
    uint64_t n = 0;
    uint32_t rank;
    int32_t one = 1;
    void *none = NULL;
    sieva_query *made = NULL;
    sieva_selection *found = NULL;
    sieva_request *request = NULL;
    INVALID(sieva_source_count(NULL, &n, &n));
    INVALID(sieva_source_count(source, NULL, &n));
    INVALID(sieva_array_find(source, NULL, &n));
    INVALID(sieva_array_describe(source, 99, NULL));
    INVALID(sieva_query_create(NULL, "i32", SIEVA_GT, SIEVA_I32, &one, &made));
    INVALID(sieva_query_create(source, "i32", SIEVA_GT, SIEVA_I32, NULL, &made));
    INVALID(sieva_query_create(source, "i32", SIEVA_GT, SIEVA_I32, &one, NULL));
    INVALID(sieva_query_create(source, "i32", 7, SIEVA_I32, &one, &made));
    INVALID(sieva_query_create(source, "i32", SIEVA_GT, 0, &one, &made));
    INVALID(sieva_query_and(query, NULL, &made));
    INVALID(sieva_query_or(NULL, query, &made));
    INVALID(sieva_query_not(query, NULL));
    INVALID(sieva_query_nhits(query, NULL));
    INVALID(sieva_query_nhits(NULL, &n));
    INVALID(sieva_query_selection(NULL, &found));
    INVALID(sieva_selection_nhits(NULL, &n));
    INVALID(sieva_selection_shape(selection, NULL, NULL, 0));
    OK(sieva_selection_shape(selection, &rank, NULL, 0));
    INVALID(sieva_read(selection, NULL, SIEVA_I32, &one, 1, NULL, &n));
    INVALID(sieva_read(selection, "i32", SIEVA_I32, none, UINT64_MAX, NULL, &n));
    INVALID(sieva_start(query, 3, &request));
    INVALID(sieva_start(NULL, SIEVA_NHITS, &request));
    INVALID(sieva_wait(NULL, 0));
    INVALID(sieva_cancel(NULL));
    EXPECT(!made && !found && !request);
    sieva_close(NULL);
    sieva_query_free(NULL);
    sieva_selection_free(NULL);
    sieva_request_free(NULL);
}

/* Buffers that are too small stay as they were. */
static void test_room(const sieva_source *source, const sieva_selection *selection)
{
    int32_t values[4] = { 11, 12, 13, 14 };
    uint64_t n = 77, needed;
    char text[4] = "abc";
    INVALID(sieva_read(selection, "i32", SIEVA_I32, values, 4, NULL, &n));
    EXPECT(strstr(sieva_error_message(), "are needed") != NULL && n == 77);
    INVALID(sieva_read_box(source, "i32", 3, NULL, NULL, 0, SIEVA_I32, values, 4, NULL, &n));
    INVALID(sieva_selection_shape(selection, (uint32_t[]){ 0 }, (uint64_t[]){ 1 }, 1));
    EXPECT(values[0] == 11 && values[3] == 14 && n == 77);
    sieva_query *query;
    OK(sieva_query_text(source, "i32 > 0", &query));
    INVALID(sieva_query_explain(query, text, sizeof text, &needed));
    EXPECT(needed > sizeof text && !strcmp(text, "abc"));
    char *plan = malloc(needed);
    OK(sieva_query_explain(query, plan, needed, NULL));
    EXPECT(strlen(plan) + 1 == needed);
    free(plan);
    sieva_price price = SIEVA_PRICE_INIT;
    OK(sieva_query_price(query, &price));
    OK(sieva_query_nhits(query, &n));
    EXPECT(price.rows[0] <= n && n <= price.rows[2]);
    EXPECT(price.bytes_read[0] <= price.bytes_read[1] && price.bytes_read[1] <= price.bytes_read[2]);
    price.size = 1;
    INVALID(sieva_query_price(query, &price));
    INVALID(sieva_query_price(query, NULL));
    sieva_query_free(query);
}

void test_misuse(const sieva_source *source, const char *path)
{
    sieva_source *other, *unopened = NULL;
    sieva_query *query, *elsewhere, *made = NULL;
    sieva_selection *selection, *of_label;
    int32_t limit = 10;
    uint64_t n;
    int8_t narrow[N];
    uint8_t missing[N];
    OK(sieva_query_create(source, "i32", SIEVA_LT, SIEVA_I32, &limit, &query));
    OK(sieva_query_selection(query, &selection));
    test_null(source, query, selection);
    test_room(source, selection);

    FAILS(SIEVA_ERROR_FILE_NOT_FOUND, sieva_open("nowhere.nc", NULL, &unopened));
    EXPECT(sieva_error_code() == SIEVA_ERROR_FILE_NOT_FOUND && strstr(sieva_error_message(), "nowhere.nc"));
    EXPECT(!strcmp(sieva_error_name(sieva_error_code()), "file-not-found"));
    FAILS(SIEVA_ERROR_UNKNOWN_ARRAY, sieva_query_create(source, "i3", SIEVA_GT, SIEVA_I32, &limit, &made));
    EXPECT(strstr(sieva_error_message(), "hint: did you mean 'i32'") && strstr(sieva_error_hint(), "'i32'"));
    FAILS(SIEVA_ERROR_SYNTAX_ERROR, sieva_query_text(source, "i32 >", &made));
    INVALID(sieva_query_text(source, "i32 > '\xff'", &made));
    FAILS(SIEVA_ERROR_UNKNOWN_ATTRIBUTE, sieva_attribute_read(source, "i16", "unit", SIEVA_F64, &n, 1, &n));

    /* Boxes that do not lie in the array, one of them beyond 2^64. */
    const uint64_t start[] = { UINT64_MAX, 0, 0 }, count[] = { 1, 1, 1 };
    INVALID(sieva_query_set_region(query, "i32", 1, 3, start, count));
    INVALID(sieva_read_box(source, "i32", 3, start, count, 0, SIEVA_I8, narrow, N, NULL, &n));
    INVALID(sieva_query_set_region(query, "i32", UINT64_MAX, 3, start, count));
    FAILS(SIEVA_ERROR_DIMENSION_MISMATCH, sieva_query_set_region(query, "i32", 1, 2, start, count));

    /* Values that do not fit, are missing, are text, or vary along other dimensions. */
    FAILS(SIEVA_ERROR_TYPE_MISMATCH, sieva_read(selection, "i32", SIEVA_I8, narrow, N, NULL, &n));
    FAILS(SIEVA_ERROR_TYPE_MISMATCH, sieva_read(selection, "f32", SIEVA_I8, narrow, N, missing, &n));
    FAILS(SIEVA_ERROR_TYPE_MISMATCH, sieva_read(selection, "label", SIEVA_STR, narrow, N, NULL, &n));
    int16_t *shorts = malloc(N * sizeof *shorts);
    INVALID(sieva_read(selection, "i16", SIEVA_I16, shorts, N, NULL, &n));
    free(shorts);
    OK(sieva_query_text(source, "label = 'L1'", &made));
    OK(sieva_query_selection(made, &of_label));
    FAILS(SIEVA_ERROR_DIMENSION_MISMATCH, sieva_read(of_label, "i8", SIEVA_I8, narrow, N, NULL, &n));
    EXPECT(strstr(sieva_error_hint(), "sieva_query_set_region"));
    FAILS(SIEVA_ERROR_DIMENSION_MISMATCH, sieva_selection_and(of_label, selection, &of_label));
    /* A region of the larger array makes it readable there. */
    OK(sieva_query_set_region(made, "i8", 1, 3, (uint64_t[]){ 0, 0, 0 }, (uint64_t[]){ NZ, NY, NX }));
    sieva_selection_free(of_label);
    OK(sieva_query_selection(made, &of_label));
    OK(sieva_read(of_label, "i8", SIEVA_I8, narrow, N, NULL, &n));
    EXPECT(n == NZ * NX && narrow[NX] == ocean.i8[NY * NX + NX]);
    sieva_selection_free(of_label);
    sieva_query_free(made);

    /* Queries of two sources; a query that outlives its source. */
    sieva_options options = SIEVA_OPTIONS_INIT;
    options.threads = 1;
    options.access = SIEVA_ACCESS_SCAN;
    OK(sieva_open(path, &options, &other));
    OK(sieva_query_create(other, "i32", SIEVA_LT, SIEVA_I32, &limit, &elsewhere));
    INVALID(sieva_query_and(query, elsewhere, &made));
    sieva_close(other);
    uint64_t a, b;
    OK(sieva_query_nhits(query, &a));
    OK(sieva_query_nhits(elsewhere, &b));
    EXPECT(a == b);
    options.fetch = 3;
    INVALID(sieva_query_set_options(elsewhere, &options));
    options.fetch = SIEVA_FETCH_BLOCK;
    OK(sieva_query_set_options(elsewhere, &options));
    OK(sieva_query_nhits(elsewhere, &b));
    EXPECT(a == b);
    options.access = 9;
    INVALID(sieva_query_set_options(elsewhere, &options));
    options.access = SIEVA_ACCESS_SORTED;
    OK(sieva_query_set_options(elsewhere, &options));
    FAILS(SIEVA_ERROR_NO_INDEX, sieva_query_nhits(elsewhere, &b));

    /* A newer program's options: a field that is not known here counts only if it is set. */
    struct { sieva_options known; uint64_t more; } newer = { SIEVA_OPTIONS_INIT, 0 };
    newer.known.size = sizeof newer;
    OK(sieva_query_set_options(elsewhere, &newer.known));
    newer.more = 1;
    INVALID(sieva_query_set_options(elsewhere, &newer.known));
    newer.known.size = 0;
    INVALID(sieva_query_set_options(elsewhere, &newer.known));
    sieva_query_free(elsewhere);
    sieva_selection_free(selection);
    sieva_query_free(query);
}
