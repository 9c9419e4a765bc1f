/* Calls of plans, tasks, merges, results and texts in the form that starts them come to what the calls do. */
#include "suite.h"

/* Waits for a request's end, which has to be a good one, and gives what it counted. */
static uint64_t counted(sieva_request *request)
{
    uint64_t n = 0;
    OK(sieva_wait(request, -1));
    OK(sieva_request_count(request, &n));
    return n;
}

/* The merge of the tasks of a plan, all of which run at once. */
static sieva_merge *run_tasks(const sieva_source *source, const sieva_plan *plan)
{
    enum { PARTS = 4 };
    sieva_request *request = NULL, *running[PARTS] = { 0 };
    sieva_tasks *tasks = NULL, *again = NULL;
    sieva_merge *all = NULL, *part;
    uint64_t n = 0;
    OK(sieva_start_plan_tasks(source, plan, SIEVA_TASK_ANY, PARTS, &request));
    EXPECT(counted(request) == PARTS);
    OK(sieva_request_tasks(request, &tasks));
    OK(sieva_request_tasks(request, &again));
    EXPECT(sieva_request_merge(request, &part) == SIEVA_ERROR_INVALID_VALUE);
    sieva_request_free(request);
    sieva_tasks_free(again);
    for (uint64_t i = 0; i < PARTS; i++) {
        OK(sieva_tasks_bytes(tasks, i, NULL, 0, &n));
        uint8_t *task = malloc(n);
        OK(sieva_tasks_bytes(tasks, i, task, n, &n));
        OK(sieva_start_task_run(source, task, n, NULL, &running[i]));
        /* The request has a copy. */
        memset(task, 0, n);
        free(task);
    }
    sieva_tasks_free(tasks);
    for (int i = 0; i < PARTS; i++) {
        EXPECT(counted(running[i]) == 1);
        OK(sieva_request_merge(running[i], &part));
        sieva_request_free(running[i]);
        if (!all) {
            all = part;
            continue;
        }
        OK(sieva_start_merge_add(all, part, &request));
        sieva_merge_free(part);
        EXPECT(counted(request) == 1);
        sieva_request_free(request);
    }
    return all;
}

static void test_tasks_started(const sieva_source *source)
{
    sieva_plan *plan;
    sieva_query *query;
    sieva_request *request = NULL;
    uint64_t expected = 0, hits = 0;
    for (int i = 0; i < N; i++)
        expected += ocean.i32[i] > 1000;
    OK(sieva_plan_sql(source, "SELECT i32 WHERE i32 > 1000", &plan));
    sieva_merge *all = run_tasks(source, plan);
    /* Rows that are in both stay in once. */
    OK(sieva_start_merge_add(all, all, &request));
    EXPECT(sieva_wait(request, -1) == SIEVA_ERROR_INVALID_VALUE);
    sieva_request_free(request);
    OK(sieva_start_merge_query(all, source, plan, NULL, &request));
    OK(sieva_wait(request, -1));
    OK(sieva_request_query(request, &query));
    /* A request that has ended does not stop what came of it. */
    OK(sieva_cancel(request));
    sieva_request_free(request);
    OK(sieva_query_nhits(query, &hits));
    EXPECT(hits == expected);
    sieva_query_free(query);
    sieva_merge_free(all);
    sieva_plan_free(plan);
    EXPECT(sieva_start_task_run(source, (const uint8_t *)"none", 4, NULL, &request) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_start_plan_tasks(source, NULL, 0, 2, &request) == SIEVA_ERROR_INVALID_VALUE);
}

/* The bytes of the result of a request, which is freed; their number. */
static uint64_t file_of(sieva_request *request, unsigned char *to, uint64_t room)
{
    sieva_result *result = NULL;
    OK(sieva_wait(request, -1));
    OK(sieva_request_result(request, &result));
    sieva_request_free(request);
    OK(sieva_start_result_read(result, 0, to, room, &request));
    sieva_result_free(result);
    uint64_t n = counted(request);
    sieva_request_free(request);
    return n;
}

static void test_results_started(const sieva_source *source)
{
    static unsigned char a[8192], b[8192], c[8192], d[8192];
    const char *sql = "SELECT u8 % 4 AS k, count(*), sum(f64) GROUP BY u8 % 4 ORDER BY k";
    sieva_result_options options = SIEVA_RESULT_OPTIONS_INIT;
    sieva_request *request = NULL;
    sieva_result *result;
    sieva_plan *plan;
    uint64_t n = 0;
    options.format = "csv";
    OK(sieva_plan_sql(source, sql, &plan));
    OK(sieva_result_open(source, sql, NULL, &options, &result));
    OK(sieva_result_read(result, 0, a, sizeof a, &n));
    sieva_result_free(result);
    /* A head and four groups. */
    int lines = 0;
    for (uint64_t i = 0; i < n; i++)
        lines += a[i] == '\n';
    EXPECT(lines == 5);
    OK(sieva_start_result_open(source, sql, NULL, &options, &request));
    EXPECT(file_of(request, b, sizeof b) == n && !memcmp(a, b, n));
    OK(sieva_start_result_of_plan(source, plan, NULL, &options, &request));
    EXPECT(file_of(request, c, sizeof c) == n && !memcmp(a, c, n));
    sieva_merge *all = run_tasks(source, plan);
    OK(sieva_start_merge_result(all, source, plan, NULL, &options, &request));
    EXPECT(file_of(request, d, sizeof d) == n && !memcmp(a, d, n));
    sieva_merge_free(all);
    sieva_plan_free(plan);
    OK(sieva_start_result_open(source, "SELECT none", NULL, &options, &request));
    EXPECT(sieva_wait(request, -1) == SIEVA_ERROR_UNKNOWN_ARRAY);
    EXPECT(sieva_request_result(request, &result) == SIEVA_ERROR_UNKNOWN_ARRAY);
    sieva_request_free(request);
}

static void test_reads_started(const sieva_source *source)
{
    sieva_query *query;
    sieva_selection *selection;
    sieva_request *request = NULL;
    double batch[10], values[10];
    char bytes[NY * LABEL], others[NY * LABEL];
    uint64_t offsets[NY + 1], ends[NY + 1], n = 0;
    OK(sieva_query_text(source, "f64 > 100", &query));
    OK(sieva_query_selection(query, &selection));
    OK(sieva_read_batch(selection, "f64", 7, SIEVA_F64, values, 10, NULL, &n));
    OK(sieva_start_read_batch(selection, "f64", 7, SIEVA_F64, batch, 10, NULL, &request));
    sieva_selection_free(selection);
    EXPECT(counted(request) == n && !memcmp(batch, values, sizeof batch));
    sieva_request_free(request);
    sieva_price own = SIEVA_PRICE_INIT, other = SIEVA_PRICE_INIT;
    OK(sieva_query_price(query, &own));
    OK(sieva_start_query_price(query, &other, &request));
    OK(sieva_wait(request, -1));
    sieva_request_free(request);
    EXPECT(!memcmp(own.rows, other.rows, sizeof own.rows) && own.rows[2] > 0);
    EXPECT(!memcmp(own.bytes_read, other.bytes_read, sizeof own.bytes_read));
    OK(sieva_start_query_explain(query, &request));
    EXPECT(counted(request) > 10);
    char *text = calloc(1, 1 << 16);
    OK(sieva_request_text(request, text, 1 << 16, &n));
    EXPECT(strstr(text, "f64") && strlen(text) + 1 == n);
    EXPECT(sieva_request_text(request, text, 3, &n) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_request_query(request, &query) == SIEVA_ERROR_INVALID_VALUE);
    sieva_request_free(request);
    sieva_query_free(query);
    OK(sieva_start_source_schema(source, &request));
    OK(sieva_wait(request, -1));
    OK(sieva_request_text(request, NULL, 0, &n));
    EXPECT(n > 100);
    sieva_request_free(request);
    free(text);

    OK(sieva_query_all(source, "label", &query));
    OK(sieva_query_selection(query, &selection));
    OK(sieva_read_texts(selection, "label", 0, NY, bytes, sizeof bytes, offsets, &n));
    OK(sieva_start_read_texts(selection, "label", 0, NY, others, sizeof others, ends, &request));
    EXPECT(counted(request) == n && !memcmp(bytes, others, n) && !memcmp(offsets, ends, sizeof ends));
    sieva_request_free(request);
    memset(others, 0, sizeof others);
    OK(sieva_start_read_box_texts(source, "label", 1, NULL, NULL, others, sizeof others, ends, &request));
    EXPECT(counted(request) == n && !memcmp(bytes, others, n) && !memcmp(offsets, ends, sizeof ends));
    sieva_request_free(request);
    sieva_selection_free(selection);
    sieva_query_free(query);
}

/* Freeing or cancelling a request that has ended leaves the program's stop alone, and with it other queries. */
static void test_stop_stays(const char *path)
{
    sieva_options options = SIEVA_OPTIONS_INIT;
    sieva_stop *stop;
    sieva_source *source;
    sieva_query *query;
    sieva_request *request = NULL;
    uint64_t n = 0, m = 0;
    OK(sieva_stop_create(&stop));
    options.stop = stop;
    OK(sieva_open(path, &options, &source));
    OK(sieva_query_text(source, "i16 > 5", &query));
    OK(sieva_start(query, SIEVA_NHITS, &request));
    n = counted(request);
    OK(sieva_cancel(request));
    sieva_request_free(request);
    OK(sieva_query_nhits(query, &m));
    EXPECT(n == m);
    OK(sieva_stop_set(stop));
    OK(sieva_start_result_open(source, "SELECT f64 WHERE f64 > 10", NULL, NULL, &request));
    EXPECT(sieva_wait(request, -1) == SIEVA_ERROR_CANCELLED);
    sieva_request_free(request);
    sieva_query_free(query);
    sieva_close(source);
    sieva_stop_free(stop);
}

void test_all_started(const char *path)
{
    sieva_source *source;
    OK(sieva_open(path, NULL, &source));
    test_tasks_started(source);
    test_results_started(source);
    test_reads_started(source);
    sieva_close(source);
    test_stop_stays(path);
}
