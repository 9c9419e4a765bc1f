/*
 * Ranks but the first open another file: a copy, whose metadata are gone. They have what rank 0 learnt, and read values alone.
 *
 *   opening FILE COPY ARRAY
 *
 * ARRAY is of one dimension and of float64; the sum of its values is told by each rank.
 */
#include "check.h"

int main(int argc, char **argv)
{
    sieva_mpi_source *source = NULL;
    sieva_array array;
    uint64_t index = 0, got = 0;
    begin(&argc, &argv);
    if (argc != 4)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int32_t status = sieva_mpi_open(MPI_COMM_WORLD, argv[here == 0 ? 1 : 2], NULL, &source);
    if (status != SIEVA_OK) {
        printf("rank %d: %s\n", here, sieva_mpi_error_message());
        return end() + 1;
    }
    const sieva_source *own = sieva_mpi_source_here(source);
    OK(sieva_array_find(own, argv[3], &index));
    OK(sieva_array_describe(own, index, &array));
    double *values = room(array.shape[0], sizeof *values), sum = 0;
    OK(sieva_read_box(own, argv[3], 1, NULL, NULL, 0, SIEVA_F64, values, array.shape[0], NULL, &got));
    for (uint64_t i = 0; i < got; i++)
        sum += values[i];
    printf("rank %d sum %.17g\n", here, sum);
    free(values);
    sieva_mpi_close(source);
    return end();
}
