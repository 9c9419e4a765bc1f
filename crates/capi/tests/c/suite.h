/* What the parts of the suite share: a CDF-5 file, its values in memory, and counting of failures. */
#ifndef SUITE_H
#define SUITE_H

#include <sieva.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NZ = 6, NY = 40, NX = 50, N = NZ * NY * NX, NTYPES = 10, LABEL = 5 };

/* The values of the file's arrays, all of dimensions (z, y, x), and its labels, of (y). */
struct ocean {
    int8_t i8[N];
    int16_t i16[N];
    int32_t i32[N];
    int64_t i64[N];
    uint8_t u8[N];
    uint16_t u16[N];
    uint32_t u32[N];
    uint64_t u64[N];
    float f32[N];
    double f64[N];
    char label[NY][LABEL + 1];
};

/* An array's name in the file, its number in sieva.h and in netCDF, bytes of a value, and its values. */
struct column {
    const char *name;
    int32_t type;
    uint32_t nc_type;
    size_t size;
    void *values;
};

extern struct ocean ocean;
extern struct column columns[NTYPES];
extern int failures;

/* Fills `ocean` and writes it as CDF-5 (format specification, appendix of the netCDF user's guide). */
void write_ocean(const char *path);

/* Counts and reports a condition that does not hold. */
#define EXPECT(condition)                                                         \
    do {                                                                          \
        if (!(condition)) {                                                       \
            fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition, sieva_error_message()); \
            failures++;                                                           \
        }                                                                         \
    } while (0)

#define OK(call) EXPECT((call) == SIEVA_OK)

void test_schema(const sieva_source *source);
void test_comparisons(const sieva_source *source);
void test_chains(const sieva_source *source);
void test_regions(const sieva_source *source);
void test_values(const sieva_source *source);
void test_requests(const sieva_source *source);
void test_results(const sieva_source *source, const char *path);
void test_plans(const sieva_source *source);
void test_tasks(const sieva_source *source);
void test_misuse(const sieva_source *source, const char *path);
void test_limits(const char *path);
void test_functions(const char *path);
void test_once(const char *path);
void test_session(const char *path);
void test_started(const char *path);
void test_all_started(const char *path);
void test_index(const char *path);
void test_made(const char *path);
void test_sharing(const char *path);
void test_steps(const char *path);

#endif
