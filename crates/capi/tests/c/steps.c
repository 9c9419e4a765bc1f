/* Steps of memory: what is asked of them is compared with loops in C. */
#include "suite.h"

#include <math.h>

enum { NT = 12, NV = 30 };

/* Adds the values of an array in two blocks along its first dimension, the second one first. */
static void in_two(sieva_step *step, const char *path, const double *values)
{
    const uint64_t start[] = { NT / 3, 0 }, count[] = { NT - NT / 3, NV }, none[] = { 0, 0 }, first[] = { NT / 3, NV };
    OK(sieva_step_block(step, path, start, count, values + NT / 3 * NV));
    OK(sieva_step_block(step, path, none, first, values));
}

static void test_misused_steps(const sieva_group *group, sieva_step *step)
{
    const uint64_t shape[] = { 3 }, start[] = { 2 }, count[] = { 2 };
    const double some[3] = { 0 };
    sieva_step *other;
    int32_t over = 7;
    EXPECT(sieva_step_create(NULL, &other) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_step_create("s", NULL) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_step_array(step, "f64", SIEVA_F64, 1, shape, NULL) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_step_array(NULL, "a", SIEVA_F64, 1, shape, NULL) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_step_array(step, "a", 99, 1, shape, NULL) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_step_array(step, "a", SIEVA_F64, 1, NULL, NULL) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_step_block(step, "none", NULL, NULL, some) == SIEVA_ERROR_UNKNOWN_ARRAY);
    EXPECT(sieva_step_attribute(step, "a", SIEVA_F64, 1, NULL) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_step_leave_out(step, "f64", "is there") == SIEVA_ERROR_INVALID_VALUE);
    OK(sieva_step_create("half", &other));
    OK(sieva_step_array(other, "a", SIEVA_F64, 1, shape, NULL));
    EXPECT(sieva_step_block(other, "a", start, count, some) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_step_block(other, "a", start, NULL, some) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_step_block(other, "a", NULL, NULL, NULL) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_group_produce_step(group, "sim", other, NULL, NULL) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(strstr(sieva_error_message(), "0 of 3 values") != NULL);
    OK(sieva_step_block(other, "a", NULL, NULL, some));
    EXPECT(sieva_group_produce_step(group, "none", other, NULL, NULL) == SIEVA_ERROR_FILE_NOT_FOUND);
    EXPECT(sieva_group_produce_step(group, "sim", NULL, NULL, NULL) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_group_register(group, "../sim") == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_group_is_over(group, NULL, NULL) == SIEVA_ERROR_INVALID_VALUE);
    OK(sieva_group_is_over(group, NULL, &over));
    EXPECT(over == 0);
    sieva_step_free(other);
    sieva_step_free(NULL);
}

void test_steps(const char *path)
{
    static double values[NT * NV];
    static uint64_t large[NV];
    const char *texts[] = { "one", "zw\xc3\xb6lf" }, *units = "K", *dims[] = { "t", "x" };
    const char *names[] = { "hot", "mean", "large", "gone" };
    const char *sqls[] = { "SELECT f64 WHERE f64 > 100", "SELECT avg(f64) AS mean, count(*) AS n WHERE f64 < 100",
                           "SELECT u64 WHERE u64 > 18446744073709551600", "SELECT wave" };
    const uint64_t shape[] = { NT, NV }, two[] = { 2 };
    const double fill = -999;
    sieva_group *group;
    sieva_step *step;
    sieva_produced done = SIEVA_PRODUCED_INIT;
    sieva_followed got = SIEVA_FOLLOWED_INIT;
    char place[4096], folder[4200], file[4400], line[200], expected[200];
    long hot = 0, n = 0;
    double sum = 0;
    for (int i = 0; i < NT * NV; i++) {
        values[i] = i % 11 == 0 ? NAN : i % 13 == 0 ? fill : i % 17 == 0 ? INFINITY : i % 19 == 0 ? -0.0 : i;
        hot += values[i] > 100;
        if (values[i] < 100 && values[i] != fill) {
            sum += values[i];
            n++;
        }
    }
    for (int i = 0; i < NV; i++)
        large[i] = UINT64_MAX - (uint64_t)i;
    snprintf(place, sizeof place, "%s.steps", path);
    OK(sieva_group_create(place, NULL, NULL, 0, 0, &group));
    OK(sieva_group_register(group, "sim"));
    OK(sieva_group_ask(group, "ada", names, sqls, 4, "csv", 0));
    OK(sieva_step_create("run.000000", &step));
    OK(sieva_step_array(step, "f64", SIEVA_F64, 2, shape, dims));
    in_two(step, "f64", values);
    OK(sieva_step_array(step, "u64", SIEVA_U64, 1, shape + 1, NULL));
    OK(sieva_step_block(step, "u64", NULL, NULL, large));
    OK(sieva_step_array(step, "text", SIEVA_STR, 1, two, NULL));
    OK(sieva_step_block(step, "text", NULL, NULL, texts));
    OK(sieva_step_attribute(step, "f64/units", SIEVA_STR, 1, &units));
    OK(sieva_step_attribute(step, "f64/_FillValue", SIEVA_F64, 1, &fill));
    OK(sieva_step_leave_out(step, "wave", "is of complex numbers"));
    test_misused_steps(group, step);
    OK(sieva_group_produce_step(group, "sim", step, NULL, &done));
    EXPECT(done.steps == 1 && done.answers == 4 && done.failed == 1 && done.troubles == 0);
    sieva_step_free(step);

    snprintf(folder, sizeof folder, "%s.steps.mean", path);
    OK(sieva_group_follow(group, "ada", "mean", folder, NULL, &got));
    EXPECT(got.files == 1);
    OK(sieva_group_followed(group, 0, file, sizeof file, NULL));
    EXPECT(sieva_group_followed(group, 1, file, sizeof file, NULL) == SIEVA_ERROR_INVALID_VALUE);
    FILE *csv = fopen(file, "r");
    EXPECT(csv && fgets(line, sizeof line, csv) && !strcmp(line, "mean,n\n"));
    snprintf(expected, sizeof expected, ",%ld\n", n);
    EXPECT(csv && fgets(line, sizeof line, csv) && strstr(line, expected));
    EXPECT(fabs(strtod(line, NULL) - sum / (double)n) < 1e-12);
    if (csv)
        fclose(csv);

    const char *asked[] = { "hot", "large" };
    long rows[] = { hot, 15 };
    for (int i = 0; i < 2; i++) {
        long lines = -1;
        int c;
        snprintf(folder, sizeof folder, "%s.steps.%s", path, asked[i]);
        OK(sieva_group_follow(group, "ada", asked[i], folder, NULL, &got));
        OK(sieva_group_followed(group, 0, file, sizeof file, NULL));
        csv = fopen(file, "r");
        while (csv && (c = getc(csv)) != EOF)
            lines += c == '\n';
        EXPECT(lines == rows[i]);
        if (csv)
            fclose(csv);
    }
    snprintf(folder, sizeof folder, "%s.steps.gone", path);
    OK(sieva_group_follow(group, "ada", "gone", folder, NULL, &got));
    EXPECT(got.files == 0 && got.failures == 1);
    char told[400];
    OK(sieva_group_troubles(group, told, sizeof told, NULL));
    EXPECT(strstr(told, "'wave' is of complex numbers") && strstr(told, "\"code\":\"unsupported\""));
    int32_t over = 0;
    OK(sieva_group_end(group, "sim"));
    OK(sieva_group_is_over(group, "sim", &over));
    EXPECT(over == 1);
    sieva_group_close(group);
}
