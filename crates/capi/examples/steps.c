/*
 * Sharing from memory: a simulation gives what was asked of its steps, and no file of a step is ever written.
 *
 *   cc -std=c99 steps.c -Iinclude -Llib -Wl,-rpath,lib -lsieva_c -o steps
 *   ./steps GROUP SQL FOLDER
 *
 * The consumer is in the same program here: it asks for SQL of each step, of `T` along y and x, and gets a CSV file of each.
 */
#include <sieva.h>

#include <stdio.h>
#include <stdlib.h>

enum { NY = 40, NX = 50, STEPS = 3 };

/* Ends the program where a call failed. */
static void check(int32_t status, const char *what)
{
    if (status != SIEVA_OK) {
        fprintf(stderr, "%s: %s: %s\n", what, sieva_error_name(status), sieva_error_message());
        exit(1);
    }
}

/* Gives what is asked of the simulation's array in a step. */
static void give(const sieva_group *group, int number, const double *T)
{
    const uint64_t shape[] = { NY, NX };
    const char *dims[] = { "y", "x" }, *units = "K";
    char name[32];
    sieva_step *step;
    snprintf(name, sizeof name, "heat.%06d", number);
    check(sieva_step_create(name, &step), "step");
    check(sieva_step_array(step, "T", SIEVA_F64, 2, shape, dims), "T");
    check(sieva_step_block(step, "T", NULL, NULL, T), "values of T");
    check(sieva_step_attribute(step, "T/units", SIEVA_STR, 1, &units), "units of T");
    check(sieva_group_produce_step(group, "heat", step, NULL, NULL), "produce");
    sieva_step_free(step);
}

int main(int argc, char **argv)
{
    static double T[NY * NX];
    sieva_group *group;
    sieva_followed followed = SIEVA_FOLLOWED_INIT;
    const char *name = "answer", *sql;
    if (argc != 4) {
        fprintf(stderr, "usage: steps GROUP SQL FOLDER\n");
        return 2;
    }
    sql = argv[2];
    check(sieva_group_create(argv[1], NULL, NULL, 0, 0, &group), "create");
    check(sieva_group_register(group, "heat"), "register");
    check(sieva_group_ask(group, "ada", &name, &sql, 1, "csv", 0), "ask");
    for (int number = 0; number < STEPS; number++) {
        for (int i = 0; i < NY * NX; i++)
            T[i] = 1000 * number + i;
        give(group, number, T);
    }
    check(sieva_group_end(group, "heat"), "end");
    check(sieva_group_follow(group, "ada", name, argv[3], NULL, &followed), "follow");
    printf("%llu files, %llu errors\n", (unsigned long long)followed.files, (unsigned long long)followed.failures);
    sieva_group_close(group);
    return followed.failures > 0;
}
