/*
 * Reading by HDF5 what sieva found: positions of the hits go to H5Sselect_elements(), for programs that read by HDF5 anyway.
 *
 *   cc -std=c99 elements.c -Iinclude -Llib -Wl,-rpath,lib -lsieva_c $(pkg-config --cflags --libs hdf5) -o elements
 *   ./elements particles.h5 Energy 1.7
 *
 * The file needs an array of numbers. Its values where they are greater than the limit are read by HDF5 and by sieva; the
 * program ends with 1 where these differ.
 */
#include <sieva.h>

#include <hdf5.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program where a call of sieva failed. */
static void check(int32_t status, const char *what)
{
    if (status != SIEVA_OK) {
        fprintf(stderr, "%s: %s: %s\n", what, sieva_error_name(status), sieva_error_message());
        exit(1);
    }
}

/* Ends the program where a call of HDF5 failed, which has said why. */
static hid_t made(hid_t id, const char *what)
{
    if (id < 0) {
        fprintf(stderr, "%s: HDF5 failed\n", what);
        exit(1);
    }
    return id;
}

static void *allocate(uint64_t n, size_t size)
{
    void *memory = calloc(n ? n : 1, size);
    if (!memory) {
        fprintf(stderr, "no memory for %llu values\n", (unsigned long long)n);
        exit(1);
    }
    return memory;
}

/* Reads n elements at coordinates (n, rank) by HDF5. */
static void read_elements(const char *file, const char *array, uint64_t n, uint32_t rank, const uint64_t *coords, double *values)
{
    hid_t opened = made(H5Fopen(file, H5F_ACC_RDONLY, H5P_DEFAULT), file);
    hid_t set = made(H5Dopen2(opened, array, H5P_DEFAULT), array);
    hid_t space = made(H5Dget_space(set), array);
    /* hsize_t is a type of its own, of 64 bits. */
    hsize_t *places = allocate(n * rank, sizeof *places), length = n;
    for (uint64_t i = 0; i < n * rank; i++)
        places[i] = coords[i];
    made(H5Sselect_elements(space, H5S_SELECT_SET, (size_t)n, places), "H5Sselect_elements");
    hid_t memory = made(H5Screate_simple(1, &length, NULL), "H5Screate_simple");
    made(H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, values), "H5Dread");
    free(places);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(opened);
}

int main(int argc, char **argv)
{
    sieva_source *source;
    sieva_query *query;
    sieva_selection *selection;
    uint64_t n, got;
    uint32_t rank;
    if (argc != 4) {
        fprintf(stderr, "usage: %s FILE ARRAY LIMIT\n", argv[0]);
        return 2;
    }
    const double limit = atof(argv[3]);
    check(sieva_open(argv[1], NULL, &source), "open");
    check(sieva_query_create(source, argv[2], SIEVA_GT, SIEVA_F64, &limit, &query), "query");
    check(sieva_query_selection(query, &selection), "selection");
    check(sieva_selection_nhits(selection, &n), "number of hits");
    check(sieva_selection_shape(selection, &rank, NULL, 0), "rank");
    printf("%llu values are greater than %g\n", (unsigned long long)n, limit);

    uint64_t *coords = allocate(n * rank, sizeof *coords);
    double *ours = allocate(n, sizeof *ours), *theirs = allocate(n, sizeof *theirs);
    check(sieva_selection_coords(selection, 0, n, coords, &got), "coordinates");
    check(sieva_read(selection, argv[2], SIEVA_F64, ours, n, NULL, &got), "values");
    /* No element is none to HDF5, too, but not to H5Sselect_elements(). */
    if (n > 0)
        read_elements(argv[1], argv[2], n, rank, coords, theirs);
    int differ = memcmp(ours, theirs, n * sizeof *ours) != 0;
    printf("HDF5 and sieva %s\n", differ ? "differ" : "agree");

    free(theirs);
    free(ours);
    free(coords);
    sieva_selection_free(selection);
    sieva_query_free(query);
    sieva_close(source);
    return differ;
}
