/* A condition is evaluated once, whatever is asked of a query and in which order. */
#define _DEFAULT_SOURCE /* utime */
#include "suite.h"

#include <utime.h>

static sieva_stats stats_of(const sieva_query *query)
{
    sieva_stats stats = SIEVA_STATS_INIT;
    OK(sieva_query_stats(query, &stats));
    return stats;
}

/* The first question to a source looks at its indexes, which reads some of it. */
static void begin(const sieva_source *source)
{
    sieva_query *query;
    uint64_t n;
    OK(sieva_query_text(source, "u8 > 250", &query));
    OK(sieva_query_nhits(query, &n));
    sieva_query_free(query);
}

/* Counts, selects and reads in the order of the bits of `order`; a request asks in the place of a call where `later`. */
static void ask(const sieva_source *source, int order, int later, uint64_t expected)
{
    sieva_query *query;
    sieva_request *request;
    OK(sieva_query_text(source, "f64 > 30000", &query));
    for (int step = 0; step < 3; step++) {
        uint64_t n = 0;
        if ((order >> step) % 2 && later) {
            OK(sieva_start(query, SIEVA_NHITS, &request));
            OK(sieva_wait(request, -1));
            OK(sieva_request_count(request, &n));
            sieva_request_free(request);
        } else if ((order >> step) % 2) {
            OK(sieva_query_nhits(query, &n));
        } else if (later) {
            OK(sieva_start(query, SIEVA_SELECTION, &request));
            OK(sieva_wait(request, -1));
            OK(sieva_request_count(request, &n));
            sieva_request_free(request);
        } else {
            sieva_selection *selection;
            OK(sieva_query_selection(query, &selection));
            OK(sieva_selection_nhits(selection, &n));
            sieva_selection_free(selection);
        }
        EXPECT(n == expected);
    }
    sieva_stats stats = stats_of(query);
    /* The array lies plainly: one pass over it is its bytes. */
    EXPECT(stats.bytes_read == N * sizeof(double));
    if (!later)
        EXPECT(stats.evaluations == 1);
    sieva_selection *selection;
    double *values = malloc(expected * sizeof *values);
    uint64_t count = 0;
    OK(sieva_query_selection(query, &selection));
    OK(sieva_read(selection, "f64", SIEVA_F64, values, expected, NULL, &count));
    EXPECT(count == expected);
    for (uint64_t i = 0; i < count; i++)
        EXPECT(values[i] > 30000);
    EXPECT(stats_of(query).bytes_read <= 2 * N * sizeof(double));
    EXPECT(stats_of(query).evaluations == stats.evaluations);
    free(values);
    sieva_selection_free(selection);
    sieva_query_free(query);
}

/* Asks for hits, a selection and its values; returns the bytes that it took. */
static uint64_t bytes_for(const sieva_source *source, const char *condition, uint64_t expected, double *values)
{
    sieva_query *query;
    sieva_selection *selection;
    uint64_t n = 0, count = 0;
    OK(sieva_query_text(source, condition, &query));
    OK(sieva_query_nhits(query, &n));
    OK(sieva_query_selection(query, &selection));
    OK(sieva_read(selection, "f64", SIEVA_F64, values, expected, NULL, &count));
    EXPECT(n == expected && count == expected);
    uint64_t bytes = stats_of(query).bytes_read;
    sieva_selection_free(selection);
    sieva_query_free(query);
    return bytes;
}

/* What can be started besides hits and values comes to what the call does. */
void test_started(const char *path)
{
    sieva_request *request;
    sieva_source *source = NULL;
    sieva_query *query;
    const uint64_t start[] = { 1, 2, 3 }, extent[] = { 2, 3, 4 };
    uint64_t counts[7], others[7], n = 0;
    double edges[8], ends[8], values[24], box[24];
    OK(sieva_start_open(NULL, path, NULL, &request));
    OK(sieva_wait(request, -1));
    OK(sieva_request_source(request, &source));
    sieva_request_free(request);
    OK(sieva_start_read_box(source, "f64", 3, start, extent, 0, SIEVA_F64, values, 24, NULL, &request));
    OK(sieva_wait(request, -1));
    OK(sieva_request_count(request, &n));
    EXPECT(n == 24);
    sieva_selection *selection;
    EXPECT(sieva_request_selection(request, &selection) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_request_source(request, &source) == SIEVA_ERROR_INVALID_VALUE);
    sieva_request_free(request);
    OK(sieva_read_box(source, "f64", 3, start, extent, 0, SIEVA_F64, box, 24, NULL, &n));
    EXPECT(memcmp(values, box, sizeof box) == 0);
    OK(sieva_query_text(source, "f64 > 0 AND f64 < 100000", &query));
    OK(sieva_start_histogram(query, "f64", 7, counts, edges, &request));
    OK(sieva_wait(request, -1));
    OK(sieva_request_count(request, &n));
    sieva_request_free(request);
    OK(sieva_query_histogram(query, "f64", 7, others, ends));
    EXPECT(memcmp(counts, others, sizeof counts) == 0 && memcmp(edges, ends, sizeof edges) == 0);
    for (int i = 0; i < 7; i++)
        n -= counts[i];
    EXPECT(n == 0);
    OK(sieva_start_index_build(source, "u8", SIEVA_INDEX_ZONEMAP, &request));
    OK(sieva_wait(request, -1));
    sieva_request_free(request);
    EXPECT(sieva_start_index_build(source, "none", SIEVA_INDEX_ZONEMAP, &request) == SIEVA_ERROR_UNKNOWN_ARRAY);
    OK(sieva_start_open(NULL, "/nonexistent/file.nc", NULL, &request));
    EXPECT(sieva_wait(request, -1) == SIEVA_ERROR_FILE_NOT_FOUND);
    sieva_request_free(request);
    sieva_query_free(query);
    sieva_close(source);
}

/* Several queries at once: each has the answer that it has by itself, and is not evaluated again. */
static void test_run(const sieva_session *session, const sieva_source *source)
{
    const char *conditions[] = { "f64 > 30000", "f64 > 100 AND f64 < 20000", "NOT f64 > 100" };
    sieva_query *queries[3];
    sieva_request *request;
    int32_t codes[3] = { 7, 7, 7 };
    uint64_t expected[3] = { 0, 0, 0 }, n;
    for (int i = 0; i < N; i++) {
        expected[0] += ocean.f64[i] > 30000;
        expected[1] += ocean.f64[i] > 100 && ocean.f64[i] < 20000;
        expected[2] += ocean.f64[i] <= 100;
    }
    for (int form = 0; form < 3; form++) {
        for (int i = 0; i < 3; i++)
            OK(sieva_query_text(source, conditions[i], &queries[i]));
        if (form == 0) {
            OK(sieva_session_run(session, (const sieva_query *const *)queries, 3, 0, codes));
        } else if (form == 1) {
            OK(sieva_session_run(NULL, (const sieva_query *const *)queries, 3, 16 << 20, NULL));
        } else {
            OK(sieva_start_run(session, (const sieva_query *const *)queries, 3, 0, codes, &request));
            OK(sieva_wait(request, -1));
            OK(sieva_request_count(request, &n));
            EXPECT(n == 0);
            sieva_request_free(request);
        }
        sieva_session_stats before = SIEVA_SESSION_STATS_INIT, after = SIEVA_SESSION_STATS_INIT;
        OK(sieva_session_did(session, &before));
        for (int i = 0; i < 3; i++) {
            OK(sieva_query_nhits(queries[i], &n));
            EXPECT(n == expected[i] && codes[i] == SIEVA_OK);
            sieva_query_free(queries[i]);
        }
        OK(sieva_session_did(session, &after));
        EXPECT(before.evaluations == after.evaluations);
    }
    EXPECT(sieva_session_run(session, NULL, 2, 0, codes) == SIEVA_ERROR_INVALID_VALUE);
    queries[0] = NULL;
    EXPECT(sieva_session_run(session, (const sieva_query *const *)queries, 1, 0, codes) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(strstr(sieva_error_message(), "queries[0] is NULL") != NULL);
    OK(sieva_session_run(session, NULL, 0, 0, NULL));
}

void test_session(const char *path)
{
    sieva_session_options options = SIEVA_SESSION_INIT;
    sieva_session_stats stats = SIEVA_SESSION_STATS_INIT;
    sieva_session *session;
    sieva_source *first, *second;
    sieva_query *query;
    uint64_t expected = 0, n = 0;
    options.memory = 64 << 20;
    options.queries = 2;
    for (int i = 0; i < N; i++)
        expected += ocean.f64[i] > 30000;
    double *read = malloc(expected * sizeof *read), *known = malloc(expected * sizeof *known);
    /* What changed just now may change again without its time telling, and is not kept. */
    EXPECT(utime(path, &(struct utimbuf){ 1000000000, 1000000000 }) == 0);
    OK(sieva_session_create(&options, &session));
    OK(sieva_session_open(session, path, NULL, &first));
    OK(sieva_session_open(session, path, NULL, &second));
    begin(first);
    begin(second);
    EXPECT(bytes_for(first, "f64 > 30000", expected, read) > 0);
    /* Another query of another handle of the same file. */
    EXPECT(bytes_for(second, "f64 > 30000", expected, known) == 0);
    EXPECT(memcmp(read, known, expected * sizeof *read) == 0);
    OK(sieva_session_did(session, &stats));
    EXPECT(stats.evaluations == 2 && stats.selections_reused == 2 && stats.queries == 4);
    EXPECT(stats.cache_bytes > 0 && stats.reserved == 0 && stats.running == 0);
    EXPECT(stats.peak_reserved > 0 && stats.peak_reserved < stats.memory && stats.memory == options.memory);
    OK(sieva_session_forget(session));
    EXPECT(bytes_for(second, "f64 > 30000", expected, known) > 0);
    EXPECT(memcmp(read, known, expected * sizeof *read) == 0);
    test_run(session, first);
    OK(sieva_session_cancel(session));
    /* More than there is. */
    sieva_options greedy = SIEVA_OPTIONS_INIT;
    greedy.memory = UINT64_C(1) << 30;
    OK(sieva_query_text(first, "f64 > 1", &query));
    OK(sieva_query_set_options(query, &greedy));
    EXPECT(sieva_query_nhits(query, &n) == SIEVA_ERROR_MEMORY_LIMIT);
    sieva_query_free(query);
    OK(sieva_query_text(first, "f64 > 2", &query));
    sieva_session_free(session);
    EXPECT(sieva_query_nhits(query, &n) == SIEVA_ERROR_CANCELLED);
    EXPECT(strstr(sieva_error_message(), "closed") != NULL);
    sieva_query_free(query);
    sieva_close(first);
    sieva_close(second);
    EXPECT(sieva_session_open(NULL, path, NULL, &first) == SIEVA_ERROR_INVALID_VALUE);
    options.cache = options.memory;
    EXPECT(sieva_session_create(&options, &session) == SIEVA_ERROR_INVALID_VALUE);
    free(read);
    free(known);
}

void test_once(const char *path)
{
    sieva_source *source;
    sieva_options options = SIEVA_OPTIONS_INIT;
    uint64_t expected = 0;
    for (int i = 0; i < N; i++)
        expected += ocean.f64[i] > 30000;
    OK(sieva_open(path, &options, &source));
    begin(source);
    for (int order = 0; order < 8; order++) {
        ask(source, order, 0, expected);
        ask(source, order, 1, expected);
    }
    sieva_close(source);
}
