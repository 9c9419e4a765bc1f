/* Indexes: built with options, told of, compared with the data, dropped. */
#include "suite.h"

/* The greatest share that was told; guarded by no lock: one job tells. */
static uint64_t told_done, told_total;

static void tell(void *context, uint64_t done, uint64_t total)
{
    *(int *)context += 1;
    told_done = done;
    told_total = total;
}

static int says(const sieva_source *source, const char *what)
{
    uint64_t n = 0;
    OK(sieva_index_status(source, NULL, 0, &n));
    char *text = calloc(1, n + 1);
    OK(sieva_index_status(source, text, n, &n));
    int found = strstr(text, what) != NULL;
    free(text);
    return found;
}

static uint64_t hits(const sieva_source *source, const char *condition, int32_t access)
{
    sieva_options options = SIEVA_OPTIONS_INIT;
    sieva_query *query;
    uint64_t n = 0;
    options.access = access;
    OK(sieva_query_text(source, condition, &query));
    OK(sieva_query_set_options(query, &options));
    OK(sieva_query_nhits(query, &n));
    sieva_query_free(query);
    return n;
}

static void test_built(const sieva_source *source)
{
    sieva_index_options options = SIEVA_INDEX_OPTIONS_INIT;
    sieva_index_report report = SIEVA_INDEX_REPORT_INIT, again = SIEVA_INDEX_REPORT_INIT;
    const char *both[] = { "f64", "i32" }, *sorted = "f32", *none = "none";
    uint64_t expected = 0, n = 0;
    int calls = 0;
    char text[64] = "x";
    for (int i = 0; i < N; i++)
        expected += ocean.f64[i] > 30000;
    EXPECT(sieva_index_verify(source, 1, NULL, NULL, 0, NULL) == SIEVA_ERROR_NO_INDEX);
    options.jobs = 1;
    options.precision = 3;
    options.memory = 64 << 20;
    options.progress = tell;
    options.progress_context = &calls;
    OK(sieva_index_build_with(source, both, 2, SIEVA_INDEX_ZONEMAP | SIEVA_INDEX_BITMAP, &options, &report));
    EXPECT(report.regions_built >= 2 && report.regions_kept == 0 && report.unreadable == 0);
    EXPECT(report.bytes_read == N * (sizeof(double) + sizeof(int32_t)));
    EXPECT(calls > 0 && told_done == told_total && told_total == report.bytes_read);
    OK(sieva_index_build_with(source, both, 2, SIEVA_INDEX_ZONEMAP | SIEVA_INDEX_BITMAP, &options, &again));
    EXPECT(again.regions_built == 0 && again.regions_kept == report.regions_built);
    EXPECT(says(source, "\"path\":\"f64\"") && says(source, "\"exists\":true"));
    EXPECT(hits(source, "f64 > 30000", SIEVA_ACCESS_BITMAP) == expected);

    /* Other regions take the place of those that there are; a program that knows no size of regions asks for none. */
    uint64_t first = report.regions_built;
    options.region_size = 4096;
    OK(sieva_index_build_with(source, both, 2, SIEVA_INDEX_ZONEMAP, &options, &report));
    EXPECT(report.regions_built > first && report.regions_kept == 0);
    /* Whole rows of 50 numbers: ten of doubles, twenty of integers. */
    EXPECT(says(source, "\"region_bytes\":4000"));
    EXPECT(hits(source, "f64 > 30000", SIEVA_ACCESS_BITMAP) == expected);
    options.size = offsetof(sieva_index_options, region_size);
    OK(sieva_index_build_with(source, both, 2, SIEVA_INDEX_ZONEMAP | SIEVA_INDEX_BITMAP, &options, &again));
    EXPECT(again.regions_built == 0 && again.regions_kept == report.regions_built);
    options.size = sizeof options;
    options.region_size = 0;

    /* A replica by f32 that carries i16 alone. */
    options.columns = "i16\n";
    OK(sieva_index_build_with(source, &sorted, 1, SIEVA_INDEX_SORTED, &options, &report));
    EXPECT(report.replicas_built == 1);
    EXPECT(says(source, "\"columns\":[\"f32\",\"i16\"]"));
    OK(sieva_index_verify(source, 1, &report, text, sizeof text, &n));
    EXPECT(report.regions_verified >= 2 && report.rows_verified == N && report.differences == 0);
    EXPECT(n == 1 && text[0] == 0);
    OK(sieva_index_drop_replicas(source, &sorted, 1, &n));
    EXPECT(n == 1 && !says(source, "\"f32\""));

    EXPECT(sieva_index_build_with(source, &none, 1, SIEVA_INDEX_BITMAP, NULL, NULL) == SIEVA_ERROR_UNKNOWN_ARRAY);
    EXPECT(sieva_index_build_with(source, both, 2, 8, NULL, NULL) == SIEVA_ERROR_INVALID_VALUE);
    options.columns = "none";
    EXPECT(sieva_index_build_with(source, &sorted, 1, SIEVA_INDEX_SORTED, &options, NULL) == SIEVA_ERROR_UNKNOWN_ARRAY);
    report.size = 1;
    EXPECT(sieva_index_build_with(source, both, 2, SIEVA_INDEX_BITMAP, NULL, &report) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(strstr(sieva_error_hint(), "SIEVA_INDEX_REPORT_INIT") != NULL);
    EXPECT(sieva_index_drop(source, NULL) == SIEVA_ERROR_INVALID_VALUE);
}

static void test_index_started(const sieva_source *source)
{
    sieva_index_options options = SIEVA_INDEX_OPTIONS_INIT;
    sieva_index_report report = SIEVA_INDEX_REPORT_INIT;
    sieva_request *request = NULL;
    sieva_stop *stop;
    const char *array = "u16";
    uint64_t n = 0;
    OK(sieva_stop_create(&stop));
    OK(sieva_stop_set(stop));
    options.stop = stop;
    OK(sieva_start_index_build_with(source, &array, 1, SIEVA_INDEX_BITMAP, &options, &report, &request));
    EXPECT(sieva_wait(request, -1) == SIEVA_ERROR_CANCELLED);
    sieva_request_free(request);
    sieva_stop_free(stop);
    options.stop = NULL;
    OK(sieva_start_index_build_with(source, &array, 1, SIEVA_INDEX_BITMAP, &options, &report, &request));
    OK(sieva_wait(request, -1));
    OK(sieva_request_count(request, &n));
    EXPECT(n == report.regions_built && n > 0);
    sieva_request_free(request);
    OK(sieva_start_index_verify(source, 1, &report, &request));
    OK(sieva_wait(request, -1));
    OK(sieva_request_text(request, NULL, 0, &n));
    EXPECT(n == 1 && report.differences == 0 && report.regions_verified > 0);
    sieva_request_free(request);
    OK(sieva_start_index_status(source, &request));
    OK(sieva_wait(request, -1));
    char *text = calloc(1, 1 << 16);
    OK(sieva_request_text(request, text, 1 << 16, &n));
    EXPECT(strstr(text, "\"path\":\"u16\"") != NULL);
    free(text);
    sieva_request_free(request);
    OK(sieva_start_index_drop(source, &request));
    OK(sieva_wait(request, -1));
    OK(sieva_request_count(request, &n));
    EXPECT(n == 1);
    sieva_request_free(request);
    OK(sieva_index_drop(source, &n));
    EXPECT(n == 0 && says(source, "\"exists\":false"));
}

/* One stage after the other, the tasks of each from the last to the first, as other processes may run them. */
static void build_in_parts(const sieva_source *source, const char *array, uint32_t kinds, sieva_index_report *report)
{
    sieva_index_job *job;
    sieva_index_result *result;
    uint64_t count = 0, n = 0, m = 0;
    OK(sieva_index_job_open(source, &array, 1, kinds, NULL, &job));
    for (;;) {
        OK(sieva_index_job_tasks(job, 3, &count));
        if (count == 0)
            break;
        EXPECT(sieva_index_job_tasks(job, 3, &n) == SIEVA_ERROR_INVALID_VALUE);
        EXPECT(sieva_index_job_task(job, count, NULL, 0, &n) == SIEVA_ERROR_INVALID_VALUE);
        for (uint64_t i = count; i-- > 0;) {
            OK(sieva_index_job_task(job, i, NULL, 0, &n));
            uint8_t *task = malloc(n);
            OK(sieva_index_job_task(job, i, task, n, &n));
            OK(sieva_index_task_run(source, task, n, NULL, &result));
            free(task);
            OK(sieva_index_result_bytes(result, NULL, 0, &m));
            uint8_t *bytes = malloc(m);
            OK(sieva_index_result_bytes(result, bytes, m, &m));
            OK(sieva_index_job_take(job, i, bytes, m));
            free(bytes);
            sieva_index_result_free(result);
        }
    }
    OK(sieva_index_job_finish(job, report));
    EXPECT(sieva_index_job_finish(job, NULL) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_index_job_tasks(job, 1, &n) == SIEVA_ERROR_INVALID_VALUE);
    sieva_index_job_free(job);
}

static void test_in_parts(const sieva_source *source)
{
    sieva_index_report report = SIEVA_INDEX_REPORT_INIT;
    sieva_index_job *job;
    uint64_t expected = 0, n = 0;
    const char *array = "f64", *none = "none";
    for (int i = 0; i < N; i++)
        expected += ocean.f64[i] > 30000;
    build_in_parts(source, array, SIEVA_INDEX_ZONEMAP | SIEVA_INDEX_BITMAP, &report);
    EXPECT(report.regions_built > 0 && report.bytes_read == N * sizeof(double));
    EXPECT(hits(source, "f64 > 30000", SIEVA_ACCESS_BITMAP) == expected);
    build_in_parts(source, array, SIEVA_INDEX_SORTED, &report);
    EXPECT(report.replicas_built == 1 && report.regions_built == 0);
    EXPECT(hits(source, "f64 > 30000", SIEVA_ACCESS_SORTED) == expected);
    OK(sieva_index_verify(source, 1, &report, NULL, 0, NULL));
    EXPECT(report.differences == 0 && report.rows_verified == N);
    /* All is there: there is nothing to do. */
    build_in_parts(source, array, SIEVA_INDEX_BITMAP | SIEVA_INDEX_SORTED, &report);
    EXPECT(report.replicas_built == 0 && report.regions_built == 0 && report.regions_kept > 0);
    OK(sieva_index_job_open(source, &array, 1, SIEVA_INDEX_BITMAP, NULL, &job));
    OK(sieva_index_job_tasks(job, 1, &n));
    EXPECT(n == 0 && sieva_index_job_take(job, 0, (const uint8_t *)"abc", 3) == SIEVA_ERROR_INVALID_VALUE);
    sieva_index_job_free(job);
    EXPECT(sieva_index_job_open(source, &none, 1, SIEVA_INDEX_BITMAP, NULL, &job) == SIEVA_ERROR_UNKNOWN_ARRAY);
    EXPECT(sieva_index_job_open(source, &array, 1, 0, NULL, &job) == SIEVA_ERROR_INVALID_VALUE);
    OK(sieva_index_drop(source, &n));
}

void test_index(const char *path)
{
    sieva_source *source;
    sieva_options options = SIEVA_OPTIONS_INIT;
    char store[1024];
    uint64_t n = 0;
    snprintf(store, sizeof store, "%s.indexes", path);
    options.store = store;
    options.no_learning = 1;
    OK(sieva_open(path, &options, &source));
    /* A run before this one may have left some. */
    OK(sieva_index_drop(source, &n));
    test_built(source);
    test_index_started(source);
    test_in_parts(source);
    sieva_close(source);
}
