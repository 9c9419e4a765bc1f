/* One query, one selection and one source, used by several threads at once: threads FILE. */
#include "suite.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 20 };

int failures;

/* What all threads use. */
static sieva_source *source;
static sieva_query *shared;
static sieva_selection *selection;
static uint64_t expected;

static void *work(void *number)
{
    int own = *(const int *)number;
    long wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t n = 0, count = 0;
        sieva_query *mine = NULL, *both = NULL;
        uint16_t limit = (uint16_t)(1000 * own), *values = malloc(expected * sizeof *values);
        /* The region changes under the others' hands, to the same rows each time. */
        const uint64_t start[] = { 0, 0, 0 }, extent[] = { NZ, NY, NX };
        wrong += sieva_query_set_region(shared, "u16", 1, 3, start, extent) != SIEVA_OK;
        wrong += sieva_query_nhits(shared, &n) != SIEVA_OK || n != expected;
        wrong += sieva_read(selection, "u16", SIEVA_U16, values, expected, NULL, &count) != SIEVA_OK;
        for (uint64_t i = 0; i < count; i++)
            wrong += values[i] < 30000;
        wrong += sieva_query_create(source, "u16", SIEVA_GE, SIEVA_U16, &limit, &mine) != SIEVA_OK;
        wrong += sieva_query_and(own % 2 ? mine : shared, own % 2 ? shared : mine, &both) != SIEVA_OK;
        wrong += sieva_query_nhits(both, &n) != SIEVA_OK || n != expected;
        /* Errors are each thread's own. */
        char name[16];
        snprintf(name, sizeof name, "none%d", own);
        wrong += sieva_array_find(source, name, &n) != SIEVA_ERROR_UNKNOWN_ARRAY;
        wrong += strstr(sieva_error_message(), name) == NULL;
        sieva_query_free(mine);
        sieva_query_free(both);
        free(values);
    }
    return (void *)wrong;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    uint16_t limit = 30000;
    if (argc != 2)
        return 2;
    write_ocean(argv[1]);
    for (int i = 0; i < N; i++)
        expected += ocean.u16[i] >= limit;
    OK(sieva_open(argv[1], NULL, &source));
    OK(sieva_query_create(source, "u16", SIEVA_GE, SIEVA_U16, &limit, &shared));
    OK(sieva_query_selection(shared, &selection));
    for (int t = 0; t < THREADS; t++) {
        numbers[t] = t;
        if (pthread_create(&threads[t], NULL, work, &numbers[t]))
            return 2;
    }
    for (int t = 0; t < THREADS; t++) {
        void *wrong = NULL;
        EXPECT(!pthread_join(threads[t], &wrong));
        EXPECT(wrong == NULL);
    }
    sieva_selection_free(selection);
    sieva_query_free(shared);
    sieva_close(source);
    printf("%d failures\n", failures);
    return failures > 0;
}
