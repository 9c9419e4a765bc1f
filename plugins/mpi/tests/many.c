/*
 * Boxes that all ranks ask for, compared with the formula of the values: each is its number in C order.
 *
 *   many FILE ARRAY...
 *   many FILE ARRAY broken   the values of 1024 to 1535 cannot be read
 *
 * Rank 0 tells how many values were asked for in all modes.
 */
#include "check.h"

enum { MOST = 24 };

static uint64_t state;

/* A number below n; the same program draws the same ones. */
static uint64_t drawn(uint64_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return n > 0 ? (state >> 33) % n : 0;
}

static int is_right(const sieva_array *array, const sieva_mpi_box *box)
{
    uint64_t at[8] = {0};
    const double *values = box->values;
    for (uint64_t i = 0; i < box->capacity; i++) {
        uint64_t number = 0;
        for (uint32_t d = 0; d < array->rank; d++)
            number = number * array->shape[d] + box->start[d] + at[d];
        if (box->type == SIEVA_F64 ? values[i] != (double)number : ((const float *)box->values)[i] != (float)number)
            return 0;
        for (uint32_t d = array->rank; d > 0 && ++at[d - 1] == box->count[d - 1]; d--)
            at[d - 1] = 0;
    }
    return 1;
}

/* A batch of random boxes in a mode; how many values this rank asked for. */
static uint64_t batch(sieva_mpi_source *source, int32_t mode, char **names, int arrays)
{
    sieva_mpi_box boxes[MOST];
    uint64_t start[MOST][8], count[MOST][8], asked = 0, n = (uint64_t)here == 1 && mode == 0 ? 0 : MOST;
    sieva_array described[MOST];
    memset(boxes, 0, sizeof boxes);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t index = 0, values = 1;
        const char *name = names[drawn((uint64_t)arrays)];
        OK(sieva_array_find(sieva_mpi_source_here(source), name, &index));
        OK(sieva_array_describe(sieva_mpi_source_here(source), index, &described[i]));
        for (uint32_t d = 0; d < described[i].rank; d++) {
            start[i][d] = drawn(described[i].shape[d] + 1);
            count[i][d] = drawn(described[i].shape[d] - start[i][d] + 1);
            values *= count[i][d];
        }
        boxes[i].array = name;
        boxes[i].start = start[i];
        boxes[i].count = count[i];
        boxes[i].rank = described[i].rank;
        boxes[i].type = drawn(3) ? SIEVA_F64 : SIEVA_F32;
        boxes[i].capacity = values;
        boxes[i].values = room(values, 8);
        boxes[i].status = -1;
        asked += values;
    }
    OK(sieva_mpi_read_many(source, mode, boxes, n));
    for (uint64_t i = 0; i < n; i++) {
        EXPECT(boxes[i].status == SIEVA_OK && is_right(&described[i], &boxes[i]));
        free(boxes[i].values);
    }
    return asked;
}

/* What is wrong with one box of one rank is that box's alone; all are told. */
static void test_errors(sieva_mpi_source *source, const char *name)
{
    sieva_array array;
    uint64_t index = 0, start[8] = {0}, count[8];
    double good, other;
    OK(sieva_array_find(sieva_mpi_source_here(source), name, &index));
    OK(sieva_array_describe(sieva_mpi_source_here(source), index, &array));
    for (uint32_t d = 0; d < array.rank; d++)
        count[d] = 1;
    sieva_mpi_box boxes[] = {{name, start, count, &good, 1, array.rank, SIEVA_F64, -1, 0},
                             {name, start, count, &other, 1, array.rank, SIEVA_F64, -1, 0}};
    int is_last = here == ranks - 1;
    if (is_last)
        boxes[1].array = "nothing";
    good = other = -1;
    int32_t status = sieva_mpi_read_many(source, SIEVA_MPI_NONBLOCKING, boxes, 2);
    EXPECT(status == SIEVA_ERROR_UNKNOWN_ARRAY && sieva_mpi_error_rank() == ranks - 1);
    EXPECT(boxes[0].status == SIEVA_OK && good == 0);
    EXPECT(boxes[1].status == (is_last ? SIEVA_ERROR_UNKNOWN_ARRAY : SIEVA_OK));
    boxes[1].array = name;
    boxes[1].capacity = is_last ? 0 : 1;
    EXPECT(sieva_mpi_read_many(source, SIEVA_MPI_COLLECTIVE, boxes, 2) == SIEVA_ERROR_INVALID_VALUE);
    boxes[1].capacity = 1;
    boxes[1].start = count;
    count[0] = array.shape[0];
    EXPECT(sieva_mpi_read_many(source, SIEVA_MPI_INDEPENDENT, boxes + 1, 1) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_mpi_read_many(source, 7, NULL, 0) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_mpi_read_many(source, SIEVA_MPI_COLLECTIVE, NULL, is_last) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_mpi_read_many(NULL, 0, NULL, 0) == SIEVA_ERROR_INVALID_VALUE);
    OK(sieva_mpi_read_many(source, SIEVA_MPI_COLLECTIVE, NULL, 0));
}

/* The chunk of values 1024 to 1535 cannot be read: only rank 0 asks for it. */
static void test_broken(sieva_mpi_source *source, const char *name)
{
    for (int32_t mode = 0; mode < 3; mode++) {
        uint64_t broken[] = {1000}, whole[] = {0}, count[] = {500};
        double *first = room(500, 8), *second = room(500, 8);
        sieva_mpi_box boxes[] = {{name, here == 0 ? broken : whole, count, first, 500, 1, SIEVA_F64, -1, 0},
                                 {name, whole, count, second, 500, 1, SIEVA_F64, -1, 0}};
        sieva_array array = {.rank = 1, .shape = (const uint64_t[]){4096}};
        EXPECT(sieva_mpi_read_many(source, mode, boxes, 2) == SIEVA_ERROR_CORRUPT_FILE);
        EXPECT(sieva_mpi_error_rank() == 0 && strstr(sieva_mpi_error_message(), "rank 0: ") != NULL);
        EXPECT(boxes[0].status == (here == 0 ? SIEVA_ERROR_CORRUPT_FILE : SIEVA_OK));
        EXPECT(boxes[1].status == SIEVA_OK && is_right(&array, &boxes[1]));
        EXPECT(here == 0 || is_right(&array, &boxes[0]));
        free(first);
        free(second);
    }
}

int main(int argc, char **argv)
{
    sieva_mpi_source *source = NULL;
    sieva_options options = SIEVA_OPTIONS_INIT;
    begin(&argc, &argv);
    if (argc < 3)
        MPI_Abort(MPI_COMM_WORLD, 2);
    if (argc == 4 && !strcmp(argv[3], "broken")) {
        OK(sieva_mpi_open(MPI_COMM_WORLD, argv[1], NULL, &source));
        test_broken(source, argv[2]);
        sieva_mpi_close(source);
        return end();
    }
    uint64_t asked = 0;
    state = (uint64_t)here + 5;
    for (int pass = 0; pass < 3; pass++) {
        /* With little memory there are many waves; with stripes, units that begin and end within rows. */
        int limited = pass == 1;
        options.memory = limited ? 1 << 20 : 0;
        options.striping = pass == 2 ? "stripe_size=5000,stripe_count=3,stripe_offset=1" : NULL;
        OK(sieva_mpi_open(MPI_COMM_WORLD, argv[1], &options, &source));
        if (source == NULL)
            break;
        for (int mode = 0; mode < 3; mode++)
            asked += batch(source, mode, argv + 2, argc - 2);
        if (pass == 0)
            test_errors(source, argv[2]);
        sieva_mpi_close(source);
        source = NULL;
    }
    asked = sum_of(asked);
    if (here == 0)
        printf("asked %" PRIu64 "\n", asked);
    return end();
}
