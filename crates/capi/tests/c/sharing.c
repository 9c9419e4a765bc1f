/* Groups: what members ask for is made, fetched and counted against loops in C. */
#include "suite.h"

/* A text that a call gives, to be freed. */
static char *text_of(const sieva_group *group, int32_t (*call)(const sieva_group *, char *, uint64_t, uint64_t *))
{
    uint64_t n = 0;
    OK(call(group, NULL, 0, &n));
    char *text = malloc(n);
    OK(call(group, text, n, NULL));
    EXPECT(strlen(text) + 1 == n);
    return text;
}

/* Lines of a file behind its first. */
static long rows_of(const char *path)
{
    FILE *file = fopen(path, "r");
    long lines = -1;
    int c;
    EXPECT(file != NULL);
    if (!file)
        return -1;
    while ((c = getc(file)) != EOF)
        lines += c == '\n';
    fclose(file);
    return lines;
}

static void test_misused(const sieva_group *group, const char *place, const char *path)
{
    sieva_group *none;
    sieva_produce_options options = SIEVA_PRODUCE_INIT;
    sieva_produced done = SIEVA_PRODUCED_INIT;
    const char *names[] = { "same", "same" }, *sqls[] = { "SELECT i32", "SELECT u8" };
    EXPECT(sieva_group_open("no/group/here", &none) == SIEVA_ERROR_FILE_NOT_FOUND);
    EXPECT(sieva_group_open(NULL, &none) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_group_open(place, NULL) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_group_create(place, NULL, &path, 1, 0, &none) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_group_create(place, "model", NULL, 0, 0, &none) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_group_create(place, NULL, NULL, 0, 7, &none) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_group_join(NULL, "ada") == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_group_join(group, "../ada") == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_group_ask(group, "ada", names, sqls, 2, "csv", 0) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_group_ask(group, "ada", NULL, sqls, 1, "csv", 0) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_group_ask(group, "ada", names, sqls, 1, "xls", 0) == SIEVA_ERROR_INVALID_VALUE);
    sqls[0] = "SELECT i32 FROM 'other.nc'";
    EXPECT(sieva_group_ask(group, "ada", names, sqls, 1, NULL, 0) == SIEVA_ERROR_SYNTAX_ERROR);
    EXPECT(sieva_group_withdraw(group, "ada", "none") == SIEVA_ERROR_FILE_NOT_FOUND);
    EXPECT(sieva_group_produce(group, "other", NULL, NULL) == SIEVA_ERROR_FILE_NOT_FOUND);
    options.packing = 9;
    EXPECT(sieva_group_produce(group, "model", &options, NULL) == SIEVA_ERROR_INVALID_VALUE);
    options.packing = SIEVA_PACKING_FILES;
    options.ask_time = -1;
    EXPECT(sieva_group_produce(group, "model", &options, NULL) == SIEVA_ERROR_INVALID_VALUE);
    done.size = 0;
    EXPECT(sieva_group_produce(group, "model", NULL, &done) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_group_follow(group, "eve", "high", place, NULL, NULL) == SIEVA_ERROR_FILE_NOT_FOUND);
    sieva_group_close(NULL);
}

/* What is published comes back byte by byte, and by an address of its path. */
static void test_published(sieva_group *group, const char *path)
{
    char back[4200], link[8192], again[8192];
    uint64_t n = 0;
    sieva_stop *stop;
    snprintf(back, sizeof back, "%s.back", path);
    OK(sieva_stop_create(&stop));
    OK(sieva_stop_set(stop));
    EXPECT(sieva_group_publish(group, "ada", "o.nc", path, 0, stop) == SIEVA_ERROR_CANCELLED);
    OK(sieva_group_publish(group, "ada", "o.nc", path, 60, NULL));
    EXPECT(sieva_group_publish(group, "ada", "../o.nc", path, 0, NULL) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_group_publish(group, NULL, "o.nc", path, 0, NULL) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_group_fetch(group, "ada/o.nc", back, stop) == SIEVA_ERROR_CANCELLED);
    sieva_stop_free(stop);
    OK(sieva_group_fetch(group, "ada/o.nc", back, NULL));
    EXPECT(rows_of(back) == rows_of(path));
    EXPECT(sieva_group_fetch(group, "none.nc", back, NULL) == SIEVA_ERROR_FILE_NOT_FOUND);
    OK(sieva_group_link(group, "o.nc", 60, NULL, 0, &n));
    EXPECT(n < sizeof link);
    OK(sieva_group_link(group, "o.nc", 60, link, sizeof link, NULL));
    EXPECT(strlen(link) + 1 == n && !strncmp(link, "file:///", 8) && strstr(link, "published/ada/o.nc"));
    EXPECT(sieva_group_link(group, "o.nc", 0, link, sizeof link, NULL) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_group_link(group, "o.nc", 60, again, 3, NULL) == SIEVA_ERROR_INVALID_VALUE);
    OK(sieva_group_unpublish(group, "ada", "o.nc"));
    EXPECT(sieva_group_unpublish(group, "ada", "o.nc") == SIEVA_ERROR_FILE_NOT_FOUND);
}

void test_sharing(const char *path)
{
    sieva_group *group, *again;
    sieva_stop *stop;
    sieva_produce_options options = SIEVA_PRODUCE_INIT;
    sieva_produced done = SIEVA_PRODUCED_INIT;
    sieva_followed got = SIEVA_FOLLOWED_INIT;
    const char *names[] = { "high", "mean", "wrong" };
    const char *sqls[] = { "SELECT i32 WHERE i32 > 1000", "SELECT avg(f64) AS mean WHERE f64 > 0", "SELECT none" };
    char place[4096], folder[4200], file[4400];
    long expected = 0;
    for (int i = 0; i < N; i++)
        expected += ocean.i32[i] > 1000;
    snprintf(place, sizeof place, "%s.group", path);
    OK(sieva_group_create(place, "model", &path, 1, 0, &group));
    OK(sieva_group_open(place, &again));
    OK(sieva_group_ask(group, "ada", names, sqls, 3, "csv", 0));
    OK(sieva_group_join(again, "bob"));
    test_misused(group, place, path);
    test_published(group, path);

    options.settle_ms = -1;
    options.packing = SIEVA_PACKING_PARTIAL;
    options.object_size = 1 << 20;
    uint64_t n = 0;
    OK(sieva_group_plan(group, "model", &options, NULL, 0, &n));
    char *text = malloc(n);
    OK(sieva_group_plan(group, "model", &options, text, n, NULL));
    EXPECT(strstr(text, "\"user\":\"ada\"") && strstr(text, "unknown-array") && strstr(text, "bytes_read"));
    free(text);
    OK(sieva_stop_create(&stop));
    options.stop = stop;
    OK(sieva_stop_set(stop));
    EXPECT(sieva_group_produce(group, "model", &options, &done) == SIEVA_ERROR_CANCELLED);
    options.stop = NULL;
    OK(sieva_group_produce(group, "model", &options, &done));
    EXPECT(done.steps == 1 && done.answers == 3 && done.failed == 1 && done.objects == 1 && done.troubles == 0);
    EXPECT(done.size == sizeof done);

    snprintf(folder, sizeof folder, "%s.folder", path);
    EXPECT(sieva_group_follow(again, "ada", "high", folder, stop, &got) == SIEVA_ERROR_CANCELLED);
    sieva_stop_free(stop);
    OK(sieva_group_follow(again, "ada", "high", folder, NULL, &got));
    EXPECT(got.files == 1 && got.failures == 0 && got.troubles == 0);
    snprintf(file, sizeof file, "%s/ocean.csv", folder);
    EXPECT(rows_of(file) == expected);
    snprintf(folder, sizeof folder, "%s.wrong", path);
    OK(sieva_group_follow(again, "ada", "wrong", folder, NULL, &got));
    EXPECT(got.files == 0 && got.failures == 1);
    text = text_of(again, sieva_group_troubles);
    EXPECT(strstr(text, "\"code\":\"unknown-array\"") && strstr(text, "\"step\":\"ocean.nc\""));
    free(text);
    text = text_of(group, sieva_group_troubles);
    EXPECT(!strcmp(text, "[]"));
    free(text);
    text = text_of(group, sieva_group_status);
    EXPECT(strstr(text, "\"silent\":[\"bob\"]") && strstr(text, "\"answered\":1"));
    free(text);
    text = text_of(group, sieva_group_list);
    EXPECT(strstr(text, "\"name\":\"model\"") && strstr(text, "\"schema\":{"));
    free(text);

    OK(sieva_group_withdraw(group, "ada", "wrong"));
    OK(sieva_group_leave(group, "ada"));
    EXPECT(sieva_group_leave(group, "ada") == SIEVA_ERROR_FILE_NOT_FOUND);
    /* A program of an earlier header, which knows the first two fields alone. */
    struct {
        uint64_t size, steps;
    } less = { 16, 7 };
    options.packing = SIEVA_PACKING_FILES;
    OK(sieva_group_produce(group, "model", &options, (sieva_produced *)&less));
    EXPECT(less.size == 16 && less.steps == 0);
    OK(sieva_group_produce(group, "model", &options, NULL));
    sieva_group_close(group);
    sieva_group_close(again);
}
