/*
 * Values at the hits: read by shares, kept or gathered.
 */
#include "bytes.h"
#include "error.h"
#include "many.h"
#include "shares.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What a call asks for, and where its values go. */
struct reading {
    const char *array;
    int32_t at;
    int32_t type;
    char *values;
    uint8_t *missing;
    uint64_t width;     /* bytes of a value */
    uint64_t gets;      /* values that this rank gets */
    int wants_missing;  /* whether anybody who gets values wants to know which are missing */
    struct bytes lent;  /* room for this rank's share where the values go to others */
    struct bytes marks; /* and for what is missing of it */
};

/* That what was given will do. */
static int32_t check(const sieva_mpi_query *query, struct reading *reading, uint64_t capacity)
{
    const struct world *world = &query->source->world;
    reading->width = width_of(reading->type);
    if (reading->width == 0)
        return fail(SIEVA_ERROR_INVALID_VALUE, "type is %d: a number of enum sieva_type for numbers is expected", (int)reading->type);
    if (is_receiver(world, reading->at))
        reading->gets = reading->at == SIEVA_MPI_SHARED ? query->count : query->total;
    if (reading->gets == 0)
        return SIEVA_OK;
    if (reading->values == NULL || capacity < reading->gets)
        return fail(SIEVA_ERROR_INVALID_VALUE, "room for %" PRIu64 " values%s, %" PRIu64 " are needed", capacity,
                    reading->values == NULL ? " at NULL" : "", reading->gets);
    return SIEVA_OK;
}

/* Where this rank's share is read to: its place among all that it gets, or memory that is lent. */
static int32_t place_share(const sieva_mpi_query *query, struct reading *reading, char **values, uint8_t **missing)
{
    uint64_t before = reading->at == SIEVA_MPI_SHARED ? 0 : query->first;
    if (is_receiver(&query->source->world, reading->at)) {
        if (reading->wants_missing && reading->missing == NULL) {
            /* Others of those that get all want it. */
            int32_t status = bytes_room(&reading->marks, reading->gets, "marks of missing values");
            if (status != SIEVA_OK)
                return status;
            reading->missing = reading->marks.data;
        }
        *values = reading->values != NULL ? reading->values + before * reading->width : NULL;
        *missing = reading->missing != NULL ? reading->missing + before : NULL;
        return SIEVA_OK;
    }
    int32_t status = bytes_room(&reading->lent, query->count * reading->width, "values of a share");
    if (status == SIEVA_OK && reading->wants_missing)
        status = bytes_room(&reading->marks, query->count, "marks of missing values");
    *values = (char *)reading->lent.data;
    *missing = reading->marks.data;
    return status;
}

static int32_t read_share(const sieva_mpi_query *query, const struct reading *reading, void *values, uint8_t *missing)
{
    uint64_t got = 0;
    if (query->count > 0)
        return said(sieva_read_batch(query->mine, reading->array, 0, reading->type, values, query->count, missing, &got));
    /* Of no hits at all, names and types are still to be right. */
    if (query->total == 0)
        return said(sieva_read(query->mine, reading->array, reading->type, values, 0, missing, &got));
    return SIEVA_OK;
}

/* Sends shares to who gets all of them. */
static int32_t gather(const sieva_mpi_query *query, const struct reading *reading, const char *values, const uint8_t *missing)
{
    const struct world *world = &query->source->world;
    uint64_t *sizes = calloc((size_t)world->size, sizeof *sizes), first;
    int32_t status = agree(world, sizes == NULL ? fail_memory(sizeof *sizes * (uint64_t)world->size, "sizes") : SIEVA_OK);
    if (status == SIEVA_OK) {
        for (int r = 0; r < world->size; r++) {
            share_of_rank(query->total, world->size, r, &first, &sizes[r]);
            sizes[r] *= reading->width;
        }
        memory_gather(world, reading->at, values, sizes, reading->values);
        for (int r = 0; r < world->size; r++)
            sizes[r] /= reading->width;
        if (reading->wants_missing)
            memory_gather(world, reading->at, missing, sizes, reading->missing);
    }
    free(sizes);
    return status;
}

static int32_t run(const sieva_mpi_query *query, struct reading *reading)
{
    const struct world *world = &query->source->world;
    char *values = NULL;
    uint8_t *missing = NULL;
    int wants = is_receiver(world, reading->at) && reading->missing != NULL;
    if (reading->at != SIEVA_MPI_SHARED)
        wants = most_of_all(world, wants);
    reading->wants_missing = wants;
    int32_t status = place_share(query, reading, &values, &missing);
    if (status == SIEVA_OK)
        status = read_share(query, reading, values, missing);
    status = agree(world, status);
    if (status == SIEVA_OK && reading->at != SIEVA_MPI_SHARED)
        status = gather(query, reading, values, missing);
    return status;
}

int32_t sieva_mpi_read(sieva_mpi_query *query, const char *array, int32_t at, int32_t type, void *values, uint64_t capacity, uint8_t *missing, uint64_t *count)
{
    if (query == NULL)
        return refuse(SIEVA_ERROR_INVALID_VALUE, "query is NULL: a handle of sieva_mpi_query_text() is expected");
    const struct world *world = &query->source->world;
    struct reading reading = {array, at, type, values, missing, 0, 0, 0, NO_BYTES, NO_BYTES};
    int32_t status = agree(world, check_at(world, at, 1));
    if (status == SIEVA_OK)
        status = share_out(query);
    if (status == SIEVA_OK)
        status = agree(world, check(query, &reading, capacity));
    if (status == SIEVA_OK)
        status = run(query, &reading);
    bytes_free(&reading.lent);
    bytes_free(&reading.marks);
    if (status == SIEVA_OK && count != NULL)
        *count = reading.gets;
    return status;
}
