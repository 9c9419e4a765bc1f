/* A collection as a source: plans, tasks, merges, selections and results of it, as of a file. */
#define _POSIX_C_SOURCE 200809L
#include "stars.h"

#include <fcntl.h>
#include <sys/stat.h>

static const char *const WHERE = "RADEG = 153.17 AND flux BETWEEN 20 AND 40";

/* All hits, counted in C. */
static uint64_t expected_hits(void)
{
    uint64_t n = 0;
    for (int o = 0; o < OBJECTS; o++)
        for (int i = 0; i < LENGTH; i++)
            n += (uint64_t)(is_meant(o) && is_hit(o, i));
    return n;
}

static uint8_t *task_bytes(const sieva_tasks *tasks, uint64_t number, uint64_t *n)
{
    OK(sieva_tasks_bytes(tasks, number, NULL, 0, n));
    uint8_t *bytes = malloc(*n);
    OK(sieva_tasks_bytes(tasks, number, bytes, *n, n));
    return bytes;
}

/* The merge of all tasks of a plan, the last first, each run by `runner`, to which tasks and results go as bytes. */
static sieva_merge *merged(const sieva_source *source, const sieva_source *runner, const sieva_plan *plan, int32_t kind, uint64_t parts)
{
    sieva_tasks *tasks = NULL;
    sieva_merge *all = NULL;
    uint64_t count = 0;
    OK(sieva_plan_tasks(source, plan, kind, parts, &tasks));
    OK(sieva_tasks_count(tasks, &count));
    EXPECT(count > 1 && count <= parts);
    for (uint64_t i = count; i-- > 0;) {
        uint64_t n = 0, m = 0;
        sieva_merge *part = NULL, *read = NULL;
        uint8_t *task = task_bytes(tasks, i, &n);
        OK(sieva_task_run(runner, task, n, NULL, &part));
        task[n / 2] ^= 1;
        EXPECT(sieva_task_run(runner, task, n, NULL, &read) == SIEVA_ERROR_INVALID_VALUE);
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

/* Every hit of a selection has the position and the value of ivar that C computes, object by object. */
static void check_selection(const sieva_selection *selection, uint64_t n)
{
    sieva_object object;
    uint64_t hits = 0, objects = 0, count = 0, at = 0, number = 0, own = 0, last = 0;
    OK(sieva_selection_nhits(selection, &hits));
    EXPECT(hits == n);
    uint64_t *positions = calloc(hits + 1, sizeof *positions);
    float *values = calloc(hits + 1, sizeof *values), *batch = calloc(hits + 1, sizeof *batch);
    OK(sieva_selection_positions(selection, 0, hits, positions, &count));
    EXPECT(count == hits);
    OK(sieva_read(selection, "ivar", SIEVA_F32, values, hits, NULL, &count));
    EXPECT(count == hits);
    for (uint64_t first = 0; first < hits; first += count)
        OK(sieva_read_batch(selection, "ivar", first, SIEVA_F32, batch + first, hits - first < 7 ? hits - first : 7, NULL, &count));
    EXPECT(!memcmp(values, batch, hits * sizeof *values));
    OK(sieva_selection_objects(selection, &objects));
    for (uint64_t k = 0; k < objects; k++) {
        OK(sieva_selection_object(selection, k, &object, &number, &own));
        const int star = number_of(&object);
        EXPECT(is_meant(star) && object.kind == SIEVA_GROUPS && own > 0 && (k == 0 || number > last));
        last = number;
        for (uint64_t i = 0; i < own; i++, at++) {
            EXPECT(at < hits && is_hit(star, (int)positions[at]));
            EXPECT(values[at] == ivar(star, (int)positions[at]));
            EXPECT(i == 0 || positions[at] > positions[at - 1]);
        }
    }
    EXPECT(at == hits);
    EXPECT(sieva_selection_object(selection, objects, &object, NULL, NULL) == SIEVA_ERROR_INVALID_VALUE);
    free(positions), free(values), free(batch);
}

/* Parts of a selection, sent as bytes to a source without a catalog, are the whole one behind the other. */
static void check_parts(const sieva_selection *selection, const sieva_source *elsewhere, const sieva_plan *plan, uint64_t n)
{
    enum { PARTS = 5 };
    sieva_query *query;
    uint64_t count = 0, done = 0, size = 0;
    float *values = calloc(n, sizeof *values), *others = calloc(n, sizeof *others);
    OK(sieva_read(selection, "flux * 2", SIEVA_F32, values, n, NULL, &count));
    OK(sieva_plan_query(elsewhere, plan, NULL, &query));
    for (int k = 0; k < PARTS; k++) {
        sieva_selection *part, *sent;
        uint64_t first = n * (uint64_t)k / PARTS, end = n * (uint64_t)(k + 1) / PARTS;
        OK(sieva_selection_part(selection, first, end - first, &part));
        OK(sieva_selection_bytes(part, NULL, 0, &size));
        uint8_t *bytes = malloc(size);
        OK(sieva_selection_bytes(part, bytes, size, &size));
        sieva_selection_free(part);
        OK(sieva_selection_from_bytes(query, bytes, size, &sent));
        bytes[size / 2] ^= 1;
        EXPECT(sieva_selection_from_bytes(query, bytes, size, &part) == SIEVA_ERROR_CORRUPT_FILE);
        free(bytes);
        OK(sieva_read(sent, "flux * 2", SIEVA_F32, others + done, n - done, NULL, &count));
        EXPECT(count == end - first);
        done += count;
        sieva_selection_free(sent);
    }
    EXPECT(done == n && !memcmp(values, others, n * sizeof *values));
    sieva_query_free(query);
    free(values), free(others);
}

/* The hits in one object are a selection of its file. */
static void check_object(const sieva_selection *selection)
{
    sieva_selection *one;
    sieva_object object;
    uint64_t own = 0, n = 0, shape = 0, coords[LENGTH];
    uint32_t rank = 0;
    char name[16];
    OK(sieva_selection_object(selection, 1, &object, NULL, &own));
    OK(sieva_selection_of_object(selection, 1, &one));
    OK(sieva_selection_nhits(one, &n));
    OK(sieva_selection_shape(one, &rank, &shape, 1));
    OK(sieva_selection_dimension(one, 0, name, sizeof name, NULL));
    EXPECT(n == own && rank == 1 && shape == LENGTH && !strcmp(strrchr(name, '/') ? strrchr(name, '/') + 1 : name, "x"));
    OK(sieva_selection_coords(one, 0, LENGTH, coords, &n));
    for (uint64_t i = 0; i < n; i++)
        EXPECT(is_hit(number_of(&object), (int)coords[i]));
    EXPECT(n == own);
    EXPECT(sieva_selection_objects(one, &n) == SIEVA_ERROR_UNSUPPORTED);
    sieva_selection_free(one);
    EXPECT(sieva_selection_of_object(selection, OBJECTS, &one) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_selection_shape(selection, &rank, NULL, 0) == SIEVA_ERROR_UNSUPPORTED);
    EXPECT(sieva_selection_and(selection, selection, &one) == SIEVA_ERROR_UNSUPPORTED);
}

static void test_rows(const sieva_source *source, const sieva_source *elsewhere)
{
    char sql[128], text[4096];
    sieva_plan *plan, *read;
    sieva_query *query;
    sieva_selection *selection;
    sieva_stats stats = SIEVA_STATS_INIT;
    sieva_price price = SIEVA_PRICE_INIT;
    const uint64_t n = expected_hits();
    uint64_t hits = 0, low = 0, high = 0;
    snprintf(sql, sizeof sql, "SELECT flux WHERE %s", WHERE);
    OK(sieva_plan_sql(source, sql, &plan));
    OK(sieva_plan_json(plan, text, sizeof text, NULL));
    EXPECT(strstr(text, "\"stars\"") && strstr(text, "RADEG"));
    OK(sieva_plan_from_json(text, &read));
    OK(sieva_plan_query(source, read, NULL, &query));
    OK(sieva_query_nhits(query, &hits));
    OK(sieva_query_stats(query, &stats));
    EXPECT(hits == n && stats.bytes_read >= 4 * LENGTH && stats.requests > 0 && stats.evaluations == 1);
    OK(sieva_query_explain(query, text, sizeof text, NULL));
    EXPECT(strstr(text, "collection stars"));
    EXPECT(sieva_query_estimate(query, &low, &high) == SIEVA_ERROR_UNSUPPORTED);
    OK(sieva_query_price(query, &price));
    EXPECT(price.rows[0] <= n && n <= price.rows[2] && price.bytes_read[2] >= 4 * LENGTH);
    OK(sieva_query_selection(query, &selection));
    check_selection(selection, n);
    check_parts(selection, elsewhere, read, n);
    check_object(selection);
    sieva_selection_free(selection);
    sieva_query_free(query);
    sieva_plan_free(read);
    for (int32_t kind = SIEVA_TASK_ANY; kind <= SIEVA_TASK_SELECTION; kind++) {
        sieva_merge *all = merged(source, elsewhere, plan, kind, 5);
        OK(sieva_merge_query(all, source, plan, NULL, &query));
        EXPECT(sieva_merge_query(all, elsewhere, plan, NULL, &(sieva_query *){ NULL }) == SIEVA_ERROR_UNSUPPORTED);
        sieva_merge_free(all);
        OK(sieva_query_nhits(query, &hits));
        EXPECT(hits == n);
        if (kind != SIEVA_TASK_COUNT) {
            OK(sieva_query_selection(query, &selection));
            check_selection(selection, n);
            sieva_selection_free(selection);
        }
        sieva_query_free(query);
    }
    sieva_plan_free(plan);
}

static uint64_t file_of(sieva_result *result, unsigned char *to, uint64_t room)
{
    uint64_t n = 0;
    OK(sieva_result_read(result, 0, to, room, &n));
    sieva_result_free(result);
    return n;
}

static void test_groups(const sieva_source *source, const sieva_source *elsewhere)
{
    static unsigned char a[8192], b[8192], c[8192];
    char sql[256];
    sieva_plan *plan;
    sieva_query *query;
    sieva_result *result;
    sieva_result_options options = SIEVA_RESULT_OPTIONS_INIT;
    uint64_t n = 0, groups = 0;
    options.format = "csv";
    snprintf(sql, sizeof sql, "SELECT fiber, count(*), max(ivar), avg(flux) WHERE %s GROUP BY fiber ORDER BY fiber DESC", WHERE);
    OK(sieva_plan_sql(source, sql, &plan));
    sieva_merge *all = merged(source, elsewhere, plan, SIEVA_TASK_ANY, 4);
    OK(sieva_merge_query(all, source, plan, NULL, &query));
    OK(sieva_query_nhits(query, &groups));
    sieva_query_free(query);
    EXPECT(groups == (OBJECTS + 2) / 3);
    OK(sieva_merge_result(all, source, plan, NULL, &options, &result));
    sieva_merge_free(all);
    n = file_of(result, a, sizeof a);
    OK(sieva_result_of_plan(source, plan, NULL, &options, &result));
    EXPECT(file_of(result, b, sizeof b) == n && n > 60 && !memcmp(a, b, n));
    OK(sieva_result_open(source, sql, NULL, &options, &result));
    EXPECT(file_of(result, c, sizeof c) == n && !memcmp(a, c, n));
    EXPECT(sieva_result_of_plan(source, plan, NULL, NULL, &result) == SIEVA_ERROR_UNSUPPORTED);
    EXPECT(strstr(sieva_error_hint(), "arrow"));
    sieva_plan_free(plan);
    OK(sieva_plan_sql(source, "SELECT histogram(flux, 4)", &plan));
    EXPECT(sieva_plan_tasks(source, plan, SIEVA_TASK_ANY, 2, &(sieva_tasks *){ NULL }) == SIEVA_ERROR_UNSUPPORTED);
    sieva_plan_free(plan);
}

/* What only a file has is refused; so are tasks of the other kind of source. */
static void test_refused(const sieva_source *source, const sieva_source *elsewhere)
{
    char path[600];
    sieva_source *file;
    sieva_plan *plan, *own;
    sieva_tasks *tasks;
    sieva_query *query = NULL;
    sieva_merge *merge = NULL, *other = NULL;
    uint64_t n = 0, m = 0;
    const char *format = NULL;
    EXPECT(sieva_source_count(source, &n, &m) == SIEVA_ERROR_UNSUPPORTED);
    EXPECT(strstr(sieva_error_message(), "is a collection") && strstr(sieva_error_hint(), "sieva_search_query()"));
    EXPECT(sieva_source_format(source, &format) == SIEVA_ERROR_UNSUPPORTED && format == NULL);
    EXPECT(sieva_source_manifest(source, NULL, 0, &n) == SIEVA_ERROR_UNSUPPORTED);
    EXPECT(sieva_query_text(source, "flux > 1", &query) == SIEVA_ERROR_UNSUPPORTED && query == NULL);
    EXPECT(sieva_index_build(source, NULL, SIEVA_INDEX_BITMAP) == SIEVA_ERROR_UNSUPPORTED);
    EXPECT(sieva_plan_sql(source, "SELECT none", &plan) == SIEVA_ERROR_UNKNOWN_ARRAY);
    EXPECT(sieva_plan_sql(source, "SELECT flux FROM collection('others')", &plan) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_plan_sql(elsewhere, "flux > 1", &plan) == SIEVA_ERROR_UNSUPPORTED);
    EXPECT(strstr(sieva_error_message(), "without its catalog"));
    /* A condition alone. */
    OK(sieva_plan_sql(source, WHERE, &plan));
    OK(sieva_plan_query(elsewhere, plan, NULL, &query));
    EXPECT(sieva_query_nhits(query, &n) == SIEVA_ERROR_UNSUPPORTED);
    sieva_query_free(query);
    snprintf(path, sizeof path, "%s/star-03.nc", directory);
    OK(sieva_open(path, NULL, &file));
    OK(sieva_plan_tasks(source, plan, SIEVA_TASK_COUNT, 2, &tasks));
    uint8_t *task = task_bytes(tasks, 0, &n);
    sieva_tasks_free(tasks);
    EXPECT(sieva_task_run(file, task, n, NULL, &merge) == SIEVA_ERROR_INVALID_VALUE && merge == NULL);
    OK(sieva_task_run(source, task, n, NULL, &merge));
    free(task);
    OK(sieva_plan_sql(file, "flux > 20", &own));
    OK(sieva_plan_tasks(file, own, SIEVA_TASK_COUNT, 1, &tasks));
    task = task_bytes(tasks, 0, &n);
    sieva_tasks_free(tasks);
    EXPECT(sieva_task_run(source, task, n, NULL, &other) == SIEVA_ERROR_INVALID_VALUE && other == NULL);
    OK(sieva_task_run(file, task, n, NULL, &other));
    free(task);
    EXPECT(sieva_merge_add(merge, other) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_merge_query(other, source, plan, NULL, &query) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_merge_query(merge, source, plan, NULL, &query) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(strstr(sieva_error_message(), "objects of"));
    sieva_merge_free(merge);
    sieva_merge_free(other);
    sieva_plan_free(own);
    sieva_plan_free(plan);
    sieva_close(file);
}

/* A plan that is made anew asks the catalog anew; what was found before is then of other objects. */
static void test_stale(const sieva_catalog *catalog, const sieva_source *source)
{
    const int64_t large = 1000;
    char path[600];
    sieva_plan *before, *after;
    sieva_query *query = NULL;
    uint64_t n = 0;
    snprintf(path, sizeof path, "%s/star-05.nc", directory);
    OK(sieva_plan_sql(source, "SELECT count(flux) WHERE fiber < 1000", &before));
    sieva_merge *all = merged(source, source, before, SIEVA_TASK_ANY, 3);
    OK(sieva_tag_set(catalog, path, NULL, "fiber", SIEVA_I64, &large));
    OK(sieva_plan_sql(source, "SELECT count(flux) WHERE fiber < 1000", &after));
    EXPECT(sieva_merge_query(all, source, after, NULL, &query) == SIEVA_ERROR_STALE_SOURCE && query == NULL);
    OK(sieva_merge_query(all, source, before, NULL, &query));
    OK(sieva_query_nhits(query, &n));
    EXPECT(n == 1);
    sieva_query_free(query);
    OK(sieva_tag_remove(catalog, path, NULL, "fiber"));
    sieva_merge_free(all);
    sieva_plan_free(before);
    sieva_plan_free(after);
}

static void wait_well(sieva_request *request)
{
    OK(sieva_wait(request, -1));
}

/* Copies the head of a file to `kept` and fills it with zeros, or puts it back; its length and time of modification stay. */
static void clear_head(int object, unsigned char *kept, int is_back)
{
    static const unsigned char zeros[HEAD];
    const struct timespec times[2] = { { 1700000000, 0 }, { 1700000000, 0 } };
    char path[600];
    snprintf(path, sizeof path, "%s/star-%02d.nc", directory, object);
    FILE *file = fopen(path, "r+b");
    EXPECT(file && (is_back || fread(kept, 1, HEAD, file) == HEAD) && fseek(file, 0, SEEK_SET) == 0);
    EXPECT(fwrite(is_back ? kept : zeros, 1, HEAD, file) == HEAD);
    fclose(file);
    EXPECT(utimensat(AT_FDCWD, path, times, 0) == 0);
}

/* Tasks carry what opening their files needs: who runs them reads the values of flux, and no other byte. */
static void test_unread(const sieva_catalog *catalog)
{
    static unsigned char heads[FILES][HEAD];
    char pattern[600];
    const char *path = pattern;
    sieva_source *source, *elsewhere;
    sieva_plan *plan;
    sieva_query *query, *before;
    sieva_selection *selection;
    sieva_stats stats = SIEVA_STATS_INIT;
    uint64_t n = 0, expected = 0, got = 0;
    snprintf(pattern, sizeof pattern, "%s/star-*.nc", directory);
    OK(sieva_catalog_add(catalog, &path, 1, "files", NULL, NULL));
    for (int o = 0; o < FILES; o++)
        clear_head(o, heads[o], 0);
    OK(sieva_collection_open(NULL, catalog, "files", NULL, &source));
    OK(sieva_collection_open(NULL, NULL, "files", NULL, &elsewhere));
    OK(sieva_plan_sql(source, "SELECT ivar WHERE flux BETWEEN 20 AND 40", &plan));
    OK(sieva_plan_query(elsewhere, plan, NULL, &before));
    sieva_merge *all = merged(source, elsewhere, plan, SIEVA_TASK_ANY, 4);
    OK(sieva_query_stats(before, &stats));
    EXPECT(stats.bytes_read == FILES * LENGTH * 4);
    OK(sieva_merge_query(all, source, plan, NULL, &query));
    OK(sieva_query_selection(query, &selection));
    OK(sieva_selection_nhits(selection, &n));
    float *values = calloc(n, sizeof *values);
    OK(sieva_read(selection, "ivar", SIEVA_F32, values, n, NULL, &got));
    for (int o = 0; o < FILES; o++)
        for (int i = 0; i < LENGTH; i++)
            if (is_hit(o, i)) {
                EXPECT(expected < n && values[expected] == ivar(o, i));
                expected++;
            }
    EXPECT(got == n && n == expected && n > 0);
    free(values);
    for (int o = 0; o < FILES; o++)
        clear_head(o, heads[o], 1);
    sieva_selection_free(selection);
    sieva_query_free(query);
    sieva_query_free(before);
    sieva_merge_free(all);
    sieva_plan_free(plan);
    sieva_close(elsewhere);
    sieva_close(source);
}

/* The same in the form that starts calls. */
static void test_gathered_started(const sieva_source *source, const sieva_source *elsewhere)
{
    sieva_plan *plan;
    sieva_request *request;
    sieva_tasks *tasks;
    sieva_merge *all = NULL, *part;
    sieva_query *query;
    sieva_selection *selection;
    uint64_t count = 0, n = 0;
    OK(sieva_plan_sql(source, WHERE, &plan));
    OK(sieva_start_plan_tasks(source, plan, SIEVA_TASK_ANY, 3, &request));
    wait_well(request);
    OK(sieva_request_tasks(request, &tasks));
    sieva_request_free(request);
    OK(sieva_tasks_count(tasks, &count));
    for (uint64_t i = 0; i < count; i++) {
        uint8_t *task = task_bytes(tasks, i, &n);
        OK(sieva_start_task_run(elsewhere, task, n, NULL, &request));
        free(task);
        wait_well(request);
        OK(sieva_request_merge(request, &part));
        sieva_request_free(request);
        if (!all) {
            all = part;
            continue;
        }
        OK(sieva_merge_add(all, part));
        sieva_merge_free(part);
    }
    sieva_tasks_free(tasks);
    OK(sieva_start_merge_query(all, source, plan, NULL, &request));
    wait_well(request);
    OK(sieva_request_query(request, &query));
    sieva_request_free(request);
    OK(sieva_start(query, SIEVA_NHITS, &request));
    wait_well(request);
    OK(sieva_request_count(request, &n));
    EXPECT(n == expected_hits());
    sieva_request_free(request);
    OK(sieva_start(query, SIEVA_SELECTION, &request));
    sieva_query_free(query);
    wait_well(request);
    OK(sieva_request_selection(request, &selection));
    sieva_request_free(request);
    check_selection(selection, n);
    float *values = calloc(n, sizeof *values), *others = calloc(n, sizeof *others);
    OK(sieva_start_read(selection, "ivar", SIEVA_F32, values, n, NULL, &request));
    wait_well(request);
    OK(sieva_request_count(request, &count));
    EXPECT(count == n);
    sieva_request_free(request);
    OK(sieva_read(selection, "ivar", SIEVA_F32, others, n, NULL, &count));
    EXPECT(!memcmp(values, others, n * sizeof *values));
    OK(sieva_start_read(selection, "none", SIEVA_F32, values, n, NULL, &request));
    EXPECT(sieva_wait(request, -1) == SIEVA_ERROR_UNKNOWN_ARRAY);
    sieva_request_free(request);
    free(values), free(others);
    sieva_selection_free(selection);
    /* A stop of the source ends its queries. */
    sieva_stop *stop;
    sieva_options options = SIEVA_OPTIONS_INIT;
    OK(sieva_stop_create(&stop));
    OK(sieva_stop_set(stop));
    options.stop = stop;
    OK(sieva_plan_query(source, plan, &options, &query));
    EXPECT(sieva_query_nhits(query, &n) == SIEVA_ERROR_CANCELLED);
    sieva_query_free(query);
    sieva_stop_free(stop);
    sieva_merge_free(all);
    sieva_plan_free(plan);
}

void test_gathered(const sieva_catalog *catalog)
{
    sieva_source *source = NULL, *elsewhere = NULL;
    sieva_session *session;
    EXPECT(sieva_collection_open(NULL, catalog, "none", NULL, &source) == SIEVA_ERROR_UNKNOWN_ATTRIBUTE && source == NULL);
    EXPECT(sieva_collection_open(NULL, catalog, NULL, NULL, &source) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_collection_open(NULL, catalog, "stars", NULL, NULL) == SIEVA_ERROR_INVALID_VALUE);
    OK(sieva_session_create(NULL, &session));
    OK(sieva_collection_open(session, catalog, "stars", NULL, &source));
    OK(sieva_collection_open(NULL, NULL, "stars", NULL, &elsewhere));
    test_rows(source, elsewhere);
    test_groups(source, elsewhere);
    test_refused(source, elsewhere);
    test_stale(catalog, source);
    test_gathered_started(source, elsewhere);
    test_unread(catalog);
    sieva_close(elsewhere);
    sieva_close(source);
    sieva_session_free(session);
}
