/* Plans: equal questions have equal ones, through bytes, JSON and text and back, and the same answers. */
#include "suite.h"

/* A plan's id, in a place of its own for each of two. */
static const char *id_of(const sieva_plan *plan, int place)
{
    static char ids[2][33];
    uint64_t needed = 0;
    OK(sieva_plan_id(plan, ids[place], sizeof ids[place], &needed));
    EXPECT(needed == sizeof ids[place]);
    return ids[place];
}

static int same(const sieva_plan *a, const sieva_plan *b)
{
    return !strcmp(id_of(a, 0), id_of(b, 1));
}

/* The bytes, the JSON and the text of a plan are each that plan again. */
static void test_there_and_back(const sieva_source *source, const sieva_plan *plan)
{
    sieva_plan *again;
    uint64_t n = 0, wrong;
    OK(sieva_plan_bytes(plan, NULL, 0, &n));
    uint8_t *bytes = malloc(n);
    EXPECT(sieva_plan_bytes(plan, bytes, n - 1, &wrong) == SIEVA_ERROR_INVALID_VALUE && wrong == n);
    OK(sieva_plan_bytes(plan, bytes, n, &n));
    OK(sieva_plan_from_bytes(bytes, n, &again));
    EXPECT(same(plan, again));
    sieva_plan_free(again);
    bytes[n - 1] ^= 1;
    EXPECT(sieva_plan_from_bytes(bytes, n, &again) == SIEVA_ERROR_INVALID_VALUE);
    free(bytes);
    OK(sieva_plan_json(plan, NULL, 0, &n));
    char *text = malloc(n);
    OK(sieva_plan_json(plan, text, n, NULL));
    OK(sieva_plan_from_json(text, &again));
    EXPECT(same(plan, again));
    sieva_plan_free(again);
    free(text);
    OK(sieva_plan_text(plan, NULL, 0, &n));
    text = malloc(n);
    OK(sieva_plan_text(plan, text, n, NULL));
    OK(sieva_plan_sql(source, text, &again));
    EXPECT(same(plan, again));
    sieva_plan_free(again);
    free(text);
}

/* Conditions that were made by calls, and the same as text. */
static void test_of_conditions(const sieva_source *source)
{
    sieva_query *above, *below, *both, *asked;
    sieva_plan *plan, *text;
    int32_t low = -5000;
    double high = 5000.0;
    uint64_t hits = 0, expected = 0;
    for (int i = 0; i < N; i++)
        expected += ocean.i32[i] > low && ocean.i32[i] <= high;
    OK(sieva_query_create(source, "i32", SIEVA_GT, SIEVA_I32, &low, &above));
    OK(sieva_query_create(source, "i32", SIEVA_LE, SIEVA_F64, &high, &below));
    OK(sieva_query_and(above, below, &both));
    OK(sieva_query_plan(both, &plan));
    OK(sieva_plan_sql(source, "select * where not i32 > 5000 and -5000 < i32", &text));
    EXPECT(same(plan, text));
    test_there_and_back(source, plan);
    OK(sieva_plan_query(source, plan, NULL, &asked));
    sieva_plan_free(plan);
    OK(sieva_query_nhits(asked, &hits));
    EXPECT(hits == expected);
    OK(sieva_query_plan(asked, &plan));
    EXPECT(same(plan, text));
    sieva_query *joined;
    EXPECT(sieva_query_and(asked, both, &joined) == SIEVA_ERROR_UNSUPPORTED);
    EXPECT(sieva_query_and(both, asked, &joined) == SIEVA_ERROR_UNSUPPORTED);
    EXPECT(sieva_query_not(asked, &joined) == SIEVA_ERROR_UNSUPPORTED);
    EXPECT(sieva_query_clear_region(asked) == SIEVA_ERROR_UNSUPPORTED);
    sieva_query_free(asked);
    sieva_query_free(above);
    sieva_query_free(below);
    sieva_query_free(both);
    sieva_plan_free(plan);
    sieva_plan_free(text);
}

/* Groups, and their rows as a file. */
static void test_of_groups(const sieva_source *source)
{
    const char *sql = "SELECT u8 % 4 AS k, count(*) AS n GROUP BY u8 % 4 ORDER BY k DESC";
    sieva_plan *plan;
    sieva_query *query;
    sieva_result *result, *other;
    sieva_result_options options = SIEVA_RESULT_OPTIONS_INIT;
    uint64_t n = 0, rows = 0;
    unsigned char a[4096], b[4096];
    OK(sieva_plan_sql(source, sql, &plan));
    test_there_and_back(source, plan);
    OK(sieva_plan_query(source, plan, NULL, &query));
    OK(sieva_query_nhits(query, &n));
    EXPECT(n == 4);
    options.format = "csv";
    OK(sieva_result_of_plan(source, plan, NULL, &options, &result));
    OK(sieva_result_rows(result, &rows));
    EXPECT(rows == 4);
    OK(sieva_result_read(result, 0, a, sizeof a, &n));
    OK(sieva_result_open(source, sql, NULL, &options, &other));
    OK(sieva_result_read(other, 0, b, sizeof b, &rows));
    EXPECT(n == rows && n > 20 && !memcmp(a, b, n));
    sieva_result_free(result);
    sieva_result_free(other);
    sieva_query_free(query);
    sieva_plan_free(plan);
}

void test_plans(const sieva_source *source)
{
    sieva_plan *plan = NULL;
    test_of_conditions(source);
    test_of_groups(source);
    EXPECT(sieva_plan_sql(source, "SELECT nothing", &plan) == SIEVA_ERROR_UNKNOWN_ARRAY);
    EXPECT(sieva_plan_sql(source, "SELECT FROM", &plan) == SIEVA_ERROR_SYNTAX_ERROR);
    EXPECT(sieva_plan_from_json("{}", &plan) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_plan_from_bytes(NULL, 0, &plan) == SIEVA_ERROR_INVALID_VALUE && !plan);
    sieva_plan_free(NULL);
}
