/* Runs all parts of the suite on a file that it writes: suite FILE. */
#include "suite.h"

int failures;

int main(int argc, char **argv)
{
    sieva_source *source;
    if (argc != 2) {
        fprintf(stderr, "usage: suite FILE\n");
        return 2;
    }
    write_ocean(argv[1]);
    if (sieva_open(argv[1], NULL, &source) != SIEVA_OK) {
        fprintf(stderr, "%s\n", sieva_error_message());
        return 1;
    }
    test_schema(source);
    test_comparisons(source);
    test_chains(source);
    test_regions(source);
    test_values(source);
    test_requests(source);
    test_results(source, argv[1]);
    test_plans(source);
    test_tasks(source);
    test_misuse(source, argv[1]);
    test_limits(argv[1]);
    test_functions(argv[1]);
    test_once(argv[1]);
    test_session(argv[1]);
    test_started(argv[1]);
    test_all_started(argv[1]);
    sieva_close(source);
    test_index(argv[1]);
    test_made(argv[1]);
    test_sharing(argv[1]);
    test_steps(argv[1]);
    printf("%d failures\n", failures);
    return failures > 0;
}
