/* Functions that come as code, among the options of a source. */
#include "suite.h"

static const char WARM[] = "double map(double x) { return x * 1.8 + 32; }";
static const char SHARE[] = "long map(long of, int all) { return all / of; }";
static const char SMALL[] = "int filter(int x) { return x > -50 && x < 50; }";

static const char MANY[] = "long n; void step(double x) { n++; } long finish() { return n; }";

static uint64_t hits(const sieva_source *source, const char *condition)
{
    sieva_query *query;
    uint64_t n = 0;
    OK(sieva_query_text(source, condition, &query));
    OK(sieva_query_nhits(query, &n));
    sieva_query_free(query);
    return n;
}

void test_functions(const char *path)
{
    const sieva_function functions[] = {
        { "warm", (const uint8_t *)WARM, strlen(WARM) },
        { "Share", (const uint8_t *)SHARE, strlen(SHARE) },
        { "small", (const uint8_t *)SMALL, strlen(SMALL) },
        { "many", (const uint8_t *)MANY, strlen(MANY) },
    };
    sieva_options options = SIEVA_OPTIONS_INIT;
    sieva_source *source;
    sieva_query *query = NULL;
    uint64_t n = 0, warm = 0, small = 0, share = 0;
    /* Valgrind hides the kernel's page from which the clock of code is read. */
    if (getenv("SIEVA_NO_CODE"))
        return;
    options.functions = functions;
    options.function_count = 4;
    OK(sieva_open(path, &options, &source));
    for (int k = 0; k < N; k++) {
        int32_t of = ocean.i32[k];
        warm += ocean.f64[k] * 1.8 + 32 > 60;
        small += of > -50 && of < 50;
        share += of != 0 && 1000 / of == 7;
    }
    EXPECT(warm > 0 && hits(source, "warm(f64) > 60") == warm);
    EXPECT(small > 0 && hits(source, "small(i32)") == small);
    EXPECT(hits(source, "i32 <> 0 AND share(i32, 1000) = 7") == share);

    /* A reduction is an aggregate. */
    char sql[128];
    sieva_plan *plan;
    snprintf(sql, sizeof sql, "SELECT many(f64) WHERE warm(f64) > 60 HAVING many(f64) = %llu", (unsigned long long)warm);
    OK(sieva_plan_sql(source, sql, &plan));
    OK(sieva_plan_query(source, plan, NULL, &query));
    OK(sieva_query_nhits(query, &n));
    EXPECT(n == 1);
    sieva_query_free(query);
    sieva_plan_free(plan);
    query = NULL;

    /* A row for which a function fails, and a function that is none. */
    int32_t status = sieva_query_text(source, "share(i32 - i32, 1) = 7", &query);
    if (status == SIEVA_OK)
        status = sieva_query_nhits(query, &n);
    EXPECT(status == SIEVA_ERROR_ARITHMETIC_OVERFLOW);
    EXPECT(strstr(sieva_error_message(), "an integer is divided by zero") != NULL);
    sieva_query_free(query);
    sieva_close(source);
    options.function_count = 1;
    const sieva_function wrong = { "sqrt", (const uint8_t *)WARM, strlen(WARM) };
    options.functions = &wrong;
    EXPECT(sieva_open(path, &options, &source) == SIEVA_ERROR_INVALID_VALUE);
}
