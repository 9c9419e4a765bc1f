/* Conditions, chains and regions, against loops over the values. */
#include "suite.h"

#include <math.h>

static uint64_t hits(sieva_query *query)
{
    uint64_t n = UINT64_MAX;
    OK(sieva_query_nhits(query, &n));
    return n;
}

/* Hits of a comparison in the type of the values; NaN satisfies none. */
#define LOOP(T, array)                                                                                   \
    for (int i = 0; i < N; i++) {                                                                        \
        T a = (array)[i], b;                                                                             \
        memcpy(&b, value, sizeof b);                                                                     \
        int here = op == SIEVA_GT ? a > b : op == SIEVA_GE ? a >= b : op == SIEVA_LT ? a < b             \
            : op == SIEVA_LE ? a <= b : op == SIEVA_EQ ? a == b : a != b;                                \
        n += here && a == a && b == b && !is_missing(column, i);                                         \
    }                                                                                                    \
    break

static int is_missing(const struct column *column, int i)
{
    return column->type == SIEVA_I16 && ocean.i16[i] == 7;
}

static uint64_t loop(const struct column *column, int op, const void *value)
{
    uint64_t n = 0;
    switch (column->type) {
    case SIEVA_I8: LOOP(int8_t, ocean.i8);
    case SIEVA_I16: LOOP(int16_t, ocean.i16);
    case SIEVA_I32: LOOP(int32_t, ocean.i32);
    case SIEVA_I64: LOOP(int64_t, ocean.i64);
    case SIEVA_U8: LOOP(uint8_t, ocean.u8);
    case SIEVA_U16: LOOP(uint16_t, ocean.u16);
    case SIEVA_U32: LOOP(uint32_t, ocean.u32);
    case SIEVA_U64: LOOP(uint64_t, ocean.u64);
    case SIEVA_F32: LOOP(float, ocean.f32);
    case SIEVA_F64: LOOP(double, ocean.f64);
    }
    return n;
}

/* Every type and operator, with values of the array as literals, so that equality means something. */
void test_comparisons(const sieva_source *source)
{
    for (int c = 0; c < NTYPES; c++) {
        for (int k = 0; k < 12; k++) {
            const char *value = (const char *)columns[c].values + (size_t)(k * 37 * (k % 3 ? 1 : 31)) * columns[c].size;
            for (int op = SIEVA_GT; op <= SIEVA_NE; op++) {
                sieva_query *query = NULL;
                OK(sieva_query_create(source, columns[c].name, op, columns[c].type, value, &query));
                uint64_t n = hits(query), expected = loop(&columns[c], op, value);
                if (n != expected) {
                    fprintf(stderr, "%s, value %d, op %d: %llu hits, not %llu\n", columns[c].name, k, op,
                            (unsigned long long)n, (unsigned long long)expected);
                    failures++;
                }
                sieva_query_free(query);
            }
        }
    }
    /* Of another type than the array: numbers are compared, all of their bits. */
    uint64_t beyond = (UINT64_C(1) << 53) + 1, expected = 0;
    double two53 = 9007199254740992.0;
    sieva_query *exact, *rounded;
    OK(sieva_query_create(source, "i64", SIEVA_EQ, SIEVA_U64, &beyond, &exact));
    for (int i = 0; i < N; i++)
        expected += ocean.i64[i] == (int64_t)beyond;
    EXPECT(expected > 0 && hits(exact) == expected);
    OK(sieva_query_create(source, "i64", SIEVA_EQ, SIEVA_F64, &two53, &rounded));
    expected = 0;
    for (int i = 0; i < N; i++)
        expected += ocean.i64[i] == INT64_C(1) << 53;
    EXPECT(expected > 0 && hits(rounded) == expected);
    sieva_query_free(exact);
    sieva_query_free(rounded);
    sieva_query *text;
    OK(sieva_query_create(source, "label", SIEVA_EQ, SIEVA_STR, "L103", &text));
    EXPECT(hits(text) == 1);
    sieva_query_free(text);
    OK(sieva_query_text(source, "i32 BETWEEN -5000 AND 5000 AND NOT u8 = 3", &text));
    expected = 0;
    for (int i = 0; i < N; i++)
        expected += ocean.i32[i] >= -5000 && ocean.i32[i] <= 5000 && ocean.u8[i] != 3;
    EXPECT(hits(text) == expected);
    sieva_query_free(text);
}

/* `length` conditions on i32 and its value `k * step - 100000`, joined one by one. */
static sieva_query *chain(const sieva_source *source, int op, int step, int length, int any)
{
    sieva_query *all = NULL;
    for (int k = 0; k < length; k++) {
        sieva_query *one, *joined;
        int32_t value = k * step - 100000;
        if (sieva_query_create(source, "i32", op, SIEVA_I32, &value, &one) != SIEVA_OK)
            return all;
        if (!all) {
            all = one;
            continue;
        }
        OK(any ? sieva_query_or(all, one, &joined) : sieva_query_and(all, one, &joined));
        sieva_query_free(all);
        sieva_query_free(one);
        all = joined;
    }
    return all;
}

void test_chains(const sieva_source *source)
{
    const int length = getenv("SIEVA_CHAIN") ? atoi(getenv("SIEVA_CHAIN")) : 100000;
    uint64_t even = 0, odd = 0, within = 0;
    for (int i = 0; i < N; i++) {
        int64_t place = (int64_t)ocean.i32[i] + 100000;
        int listed = place % 2 == 0 && place / 2 < length;
        even += listed;
        odd += !listed;
        within += place >= length - 1;
    }
    EXPECT(even > 0 && odd > 0 && within > 0);
    sieva_query *equal = chain(source, SIEVA_EQ, 2, length, 1), *unequal = chain(source, SIEVA_NE, 2, length, 0);
    sieva_query *above = chain(source, SIEVA_GE, 1, length, 0), *opposite, *none, *mixed;
    EXPECT(hits(equal) == even);
    EXPECT(hits(unequal) == odd);
    EXPECT(hits(above) == within);
    OK(sieva_query_not(equal, &opposite));
    EXPECT(hits(opposite) == odd);
    OK(sieva_query_and(equal, opposite, &none));
    EXPECT(hits(none) == 0);
    /* Several arrays of the same dimensions, and a chain within another junction. */
    sieva_query *other;
    float limit = 12.5f;
    OK(sieva_query_create(source, "f32", SIEVA_LT, SIEVA_F32, &limit, &other));
    OK(sieva_query_and(equal, other, &mixed));
    uint64_t expected = 0;
    for (int i = 0; i < N; i++) {
        int64_t place = (int64_t)ocean.i32[i] + 100000;
        expected += place % 2 == 0 && place / 2 < length && ocean.f32[i] < limit;
    }
    EXPECT(hits(mixed) == expected);
    sieva_query_free(equal);
    sieva_query_free(unequal);
    sieva_query_free(above);
    sieva_query_free(opposite);
    sieva_query_free(none);
    sieva_query_free(mixed);
    sieva_query_free(other);
}

void test_regions(const sieva_source *source)
{
    /* Boxes that overlap, match nothing, and one that is empty. */
    const uint64_t starts[] = { 1, 3, 7, 2, 10, 20, 5, 39, 49, 0, 0, 0 };
    const uint64_t counts[] = { 2, 30, 11, 3, 5, 30, 1, 1, 1, 0, 40, 50 };
    float limit = 10;
    sieva_query *query, *outside;
    OK(sieva_query_create(source, "f32", SIEVA_GT, SIEVA_F32, &limit, &query));
    OK(sieva_query_set_region(query, NULL, 4, 3, starts, counts));
    uint64_t expected[N], n = 0, inside = 0;
    for (uint64_t i = 0; i < N; i++) {
        uint64_t at[3] = { i / (NY * NX), i / NX % NY, i % NX };
        int any = 0;
        for (int b = 0; b < 4; b++) {
            int in = 1;
            for (int d = 0; d < 3; d++)
                in = in && at[d] >= starts[3 * b + d] && at[d] < starts[3 * b + d] + counts[3 * b + d];
            any = any || in;
        }
        inside += any;
        if (any && ocean.f32[i] > limit)
            expected[n++] = i;
    }
    EXPECT(n > 100 && hits(query) == n);
    sieva_selection *selection;
    uint64_t *coords = malloc(3 * n * sizeof *coords), *positions = malloc(n * sizeof *positions), got;
    OK(sieva_query_selection(query, &selection));
    OK(sieva_selection_coords(selection, 0, n, coords, &got));
    EXPECT(got == n);
    OK(sieva_selection_positions(selection, 5, n, positions, &got));
    EXPECT(got == n - 5 && !memcmp(positions, expected + 5, (n - 5) * sizeof *positions));
    for (uint64_t i = 0; i < n; i++)
        EXPECT((coords[3 * i] * NY + coords[3 * i + 1]) * NX + coords[3 * i + 2] == expected[i]);
    sieva_selection_free(selection);
    free(coords);
    free(positions);

    /* Everything of an array within a region; its opposite; and no region any more. */
    sieva_query *everything;
    OK(sieva_query_all(source, "u8", &everything));
    EXPECT(hits(everything) == N);
    OK(sieva_query_set_region(everything, "u8", 4, 3, starts, counts));
    EXPECT(hits(everything) == inside);
    OK(sieva_query_not(everything, &outside));
    EXPECT(hits(outside) == N - inside);
    OK(sieva_query_set_region(everything, "u8", 0, 3, NULL, NULL));
    EXPECT(hits(everything) == 0);
    OK(sieva_query_clear_region(everything));
    EXPECT(hits(everything) == N);

    /* Reading is cut down to one plane of six. */
    const uint64_t plane[] = { 4, 0, 0 }, extent[] = { 1, NY, NX };
    sieva_stats stats = SIEVA_STATS_INIT;
    double all = -1e9;
    sieva_query *pruned;
    OK(sieva_query_create(source, "f64", SIEVA_GT, SIEVA_F64, &all, &pruned));
    OK(sieva_query_set_region(pruned, "f64", 1, 3, plane, extent));
    uint64_t in_plane = 0;
    for (int i = 4 * NY * NX; i < 5 * NY * NX; i++)
        in_plane += ocean.f64[i] > all;
    EXPECT(hits(pruned) == in_plane);
    OK(sieva_query_stats(pruned, &stats));
    EXPECT(stats.bytes_read >= 8 * NY * NX && stats.bytes_read < 8 * 2 * NY * NX);
    sieva_query_free(pruned);
    sieva_query_free(everything);
    sieva_query_free(outside);
    sieva_query_free(query);
}
