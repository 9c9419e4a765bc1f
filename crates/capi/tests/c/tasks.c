/* Tasks: parts that travel as bytes and are merged in any order give the answer of the whole. */
#include "suite.h"

/* The merge of all tasks of a plan, the last first; each goes through bytes. */
static sieva_merge *merged(const sieva_source *source, const sieva_plan *plan, int32_t kind)
{
    sieva_tasks *tasks;
    sieva_merge *all = NULL;
    uint64_t count = 0;
    OK(sieva_plan_tasks(source, plan, kind, 5, &tasks));
    OK(sieva_tasks_count(tasks, &count));
    EXPECT(count == 5);
    for (uint64_t i = count; i-- > 0;) {
        uint64_t n = 0, m = 0;
        sieva_merge *part, *read;
        OK(sieva_tasks_bytes(tasks, i, NULL, 0, &n));
        uint8_t *task = malloc(n);
        EXPECT(sieva_tasks_bytes(tasks, i, task, n - 1, &m) == SIEVA_ERROR_INVALID_VALUE && m == n);
        OK(sieva_tasks_bytes(tasks, i, task, n, &n));
        OK(sieva_task_run(source, task, n, NULL, &part));
        task[n / 2] ^= 1;
        EXPECT(sieva_task_run(source, task, n, NULL, &read) == SIEVA_ERROR_INVALID_VALUE);
        free(task);
        OK(sieva_merge_bytes(part, NULL, 0, &m));
        uint8_t *bytes = malloc(m);
        OK(sieva_merge_bytes(part, bytes, m, &m));
        sieva_merge_free(part);
        OK(sieva_merge_from_bytes(bytes, m, 0, &read));
        free(bytes);
        if (!all) {
            all = read;
            continue;
        }
        OK(sieva_merge_add(all, read));
        EXPECT(sieva_merge_add(all, read) == SIEVA_ERROR_INVALID_VALUE);
        sieva_merge_free(read);
    }
    EXPECT(sieva_tasks_bytes(tasks, count, NULL, 0, &count) == SIEVA_ERROR_INVALID_VALUE);
    sieva_tasks_free(tasks);
    return all;
}

static void test_of_rows(const sieva_source *source)
{
    sieva_plan *plan;
    sieva_query *query;
    uint64_t hits = 0, expected = 0;
    for (int i = 0; i < N; i++)
        expected += ocean.i32[i] > 1000;
    OK(sieva_plan_sql(source, "SELECT i32 WHERE i32 > 1000", &plan));
    for (int32_t kind = SIEVA_TASK_ANY; kind <= SIEVA_TASK_SELECTION; kind++) {
        sieva_merge *all = merged(source, plan, kind);
        OK(sieva_merge_query(all, source, plan, NULL, &query));
        sieva_merge_free(all);
        OK(sieva_query_nhits(query, &hits));
        EXPECT(hits == expected);
        sieva_query_free(query);
    }
    sieva_plan_free(plan);
}

static void test_of_groups(const sieva_source *source)
{
    sieva_plan *plan;
    sieva_query *query;
    sieva_result *whole, *parts;
    sieva_result_options options = SIEVA_RESULT_OPTIONS_INIT;
    uint64_t n = 0, m = 0;
    static unsigned char a[8192], b[8192];
    options.format = "csv";
    OK(sieva_plan_sql(source, "SELECT u8 % 4 AS k, count(*), avg(f64), stddev(f32), max(i64) GROUP BY u8 % 4 HAVING count(*) > 1 ORDER BY k DESC", &plan));
    sieva_merge *all = merged(source, plan, SIEVA_TASK_ANY);
    OK(sieva_merge_result(all, source, plan, NULL, &options, &parts));
    OK(sieva_merge_query(all, source, plan, NULL, &query));
    OK(sieva_query_nhits(query, &n));
    EXPECT(n == 4);
    sieva_query_free(query);
    OK(sieva_result_of_plan(source, plan, NULL, &options, &whole));
    OK(sieva_result_read(parts, 0, a, sizeof a, &n));
    OK(sieva_result_read(whole, 0, b, sizeof b, &m));
    EXPECT(n == m && n > 60 && !memcmp(a, b, n));
    sieva_result_free(parts);
    sieva_result_free(whole);
    sieva_merge_free(all);
    sieva_plan_free(plan);
}

void test_tasks(const sieva_source *source)
{
    sieva_plan *plan;
    sieva_tasks *tasks = NULL;
    sieva_merge *merge = NULL;
    test_of_rows(source);
    test_of_groups(source);
    OK(sieva_plan_sql(source, "SELECT histogram(f64, 4)", &plan));
    EXPECT(sieva_plan_tasks(source, plan, SIEVA_TASK_ANY, 2, &tasks) == SIEVA_ERROR_UNSUPPORTED && !tasks);
    EXPECT(sieva_plan_tasks(source, plan, 4, 2, &tasks) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_merge_from_bytes(NULL, 0, 0, &merge) == SIEVA_ERROR_INVALID_VALUE && !merge);
    EXPECT(sieva_task_run(source, NULL, 0, NULL, &merge) == SIEVA_ERROR_INVALID_VALUE && !merge);
    sieva_plan_free(plan);
    sieva_tasks_free(NULL);
    sieva_merge_free(NULL);
}
