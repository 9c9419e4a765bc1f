/*
 * Sharing: a producer puts what a consumer asked for, and no more, into a group; the consumer fetches it as CSV.
 *
 *   cc -std=c99 share.c -Iinclude -Llib -Wl,-rpath,lib -lsieva_c -o share
 *   ./share GROUP FILE SQL FOLDER
 *
 * Both are one program here; they may as well be two on two machines, with a group in a store, s3://bucket/group.
 */
#include <sieva.h>

#include <stdio.h>
#include <stdlib.h>

/* Ends the program where a call failed. */
static void check(int32_t status, const char *what)
{
    if (status != SIEVA_OK) {
        fprintf(stderr, "%s: %s: %s\n", what, sieva_error_name(status), sieva_error_message());
        exit(1);
    }
}

int main(int argc, char **argv)
{
    sieva_group *group;
    sieva_produce_options options = SIEVA_PRODUCE_INIT;
    sieva_produced produced = SIEVA_PRODUCED_INIT;
    sieva_followed followed = SIEVA_FOLLOWED_INIT;
    const char *name = "answer", *file, *sql;
    if (argc != 5) {
        fprintf(stderr, "usage: share GROUP FILE SQL FOLDER\n");
        return 2;
    }
    file = argv[2];
    sql = argv[3];
    check(sieva_group_create(argv[1], "model", &file, 1, 0, &group), "create");
    check(sieva_group_ask(group, "ada", &name, &sql, 1, "csv", 0), "ask");
    options.settle_ms = -1; /* the file is complete */
    options.ask_time = 60;
    check(sieva_group_produce(group, "model", &options, &produced), "produce");
    check(sieva_group_follow(group, "ada", name, argv[4], NULL, &followed), "follow");
    printf("%llu answers, %llu of them errors, %llu files\n", (unsigned long long)produced.answers,
           (unsigned long long)produced.failed, (unsigned long long)followed.files);
    sieva_group_close(group);
    return followed.failures > 0;
}
