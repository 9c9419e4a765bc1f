/*
 * Texts at the hits: their bytes are gathered as values are, their lengths beside them.
 */
#include "bytes.h"
#include "error.h"
#include "shares.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The texts of a share: bytes, and count + 1 offsets. */
struct texts {
    struct bytes bytes;
    struct bytes offsets;
};

static void texts_free(struct texts *texts)
{
    bytes_free(&texts->bytes);
    bytes_free(&texts->offsets);
}

static uint64_t *offsets_of(const struct texts *texts)
{
    return (uint64_t *)(void *)texts->offsets.data;
}

/* How many bytes this rank's share has. */
static int32_t measure(const sieva_mpi_query *query, const char *array, uint64_t *size)
{
    *size = 0;
    if (query->count == 0 && query->total > 0)
        return SIEVA_OK;
    return said(sieva_read_texts(query->mine, array, 0, query->count, NULL, 0, NULL, size));
}

static int32_t read_share(const sieva_mpi_query *query, const char *array, uint64_t size, struct texts *texts)
{
    int32_t status = bytes_room(&texts->bytes, size, "texts of a share");
    if (status == SIEVA_OK)
        status = bytes_room(&texts->offsets, (query->count + 1) * sizeof(uint64_t), "texts of a share");
    if (status != SIEVA_OK)
        return status;
    offsets_of(texts)[0] = 0;
    if (query->count == 0)
        return SIEVA_OK;
    return said(sieva_read_texts(query->mine, array, 0, query->count, (char *)texts->bytes.data, size,
                                 offsets_of(texts), &size));
}

/* Puts all shares behind one another where they go; offsets become those in the whole. */
static void gather(const sieva_mpi_query *query, int32_t at, const struct texts *texts, uint64_t *sizes, char *bytes, uint64_t *offsets)
{
    const struct world *world = &query->source->world;
    uint64_t before = 0, first;
    for (int r = 0; r < world->rank; r++)
        before += sizes[r];
    for (uint64_t i = 0; i < query->count; i++)
        offsets_of(texts)[i + 1] += before;
    memory_gather(world, at, texts->bytes.data, sizes, bytes);
    for (int r = 0; r < world->size; r++) {
        share_of_rank(query->total, world->size, r, &first, &sizes[r]);
        sizes[r] *= sizeof *offsets;
    }
    /* The ends of all texts; the first begins at 0. */
    memory_gather(world, at, offsets_of(texts) + 1, sizes, offsets == NULL ? NULL : offsets + 1);
    if (offsets != NULL)
        offsets[0] = 0;
}

/* A call's arguments, and what is known of all shares. */
struct asked {
    const char *array;
    int32_t at;
    char *bytes;
    uint64_t capacity;
    uint64_t *offsets;
    uint64_t gets;   /* bytes that this rank gets */
    uint64_t *sizes; /* bytes of each share */
};

static int32_t check_room(const sieva_mpi_query *query, const struct asked *asked)
{
    if (!is_receiver(&query->source->world, asked->at))
        return SIEVA_OK;
    if (asked->offsets == NULL || (asked->bytes == NULL && asked->gets > 0) || asked->capacity < asked->gets)
        return fail(SIEVA_ERROR_INVALID_VALUE, "room for %" PRIu64 " bytes%s, %" PRIu64 " are needed", asked->capacity,
                    asked->offsets == NULL ? " without offsets" : "", asked->gets);
    return SIEVA_OK;
}

/* Reads the texts, and sends them to who gets them. */
static int32_t read_all(const sieva_mpi_query *query, const struct asked *asked)
{
    const struct world *world = &query->source->world;
    struct texts texts = {NO_BYTES, NO_BYTES};
    int is_receiver_here = is_receiver(world, asked->at);
    int32_t status = agree(world, check_room(query, asked));
    if (status == SIEVA_OK)
        status = agree(world, read_share(query, asked->array, asked->sizes[world->rank], &texts));
    if (status == SIEVA_OK && asked->at == SIEVA_MPI_SHARED) {
        if (texts.bytes.size > 0)
            memcpy(asked->bytes, texts.bytes.data, texts.bytes.size);
        memcpy(asked->offsets, texts.offsets.data, texts.offsets.size);
    } else if (status == SIEVA_OK) {
        gather(query, asked->at, &texts, asked->sizes, asked->bytes, is_receiver_here ? asked->offsets : NULL);
    }
    texts_free(&texts);
    return status;
}

/* Tells all ranks how long each share is, and whether somebody wants more than that. */
static int32_t measure_all(const sieva_mpi_query *query, struct asked *asked, int *wants_texts)
{
    const struct world *world = &query->source->world;
    uint64_t own = 0;
    int32_t status = measure(query, asked->array, &own);
    asked->sizes = calloc((size_t)world->size, sizeof *asked->sizes);
    if (status == SIEVA_OK && asked->sizes == NULL)
        status = fail_memory(sizeof own * (uint64_t)world->size, "sizes");
    status = agree(world, status);
    if (status != SIEVA_OK)
        return status;
    numbers_of_all(world, own, asked->sizes);
    *wants_texts = is_receiver(world, asked->at) && (asked->bytes != NULL || asked->offsets != NULL || asked->capacity > 0);
    *wants_texts = most_of_all(world, *wants_texts);
    asked->gets = asked->at == SIEVA_MPI_SHARED ? own : 0;
    if (asked->at != SIEVA_MPI_SHARED && is_receiver(world, asked->at))
        for (int r = 0; r < world->size; r++)
            asked->gets += asked->sizes[r];
    return SIEVA_OK;
}

int32_t sieva_mpi_read_texts(sieva_mpi_query *query, const char *array, int32_t at, char *bytes, uint64_t capacity, uint64_t *offsets, uint64_t *count, uint64_t *needed)
{
    if (query == NULL)
        return refuse(SIEVA_ERROR_INVALID_VALUE, "query is NULL: a handle of sieva_mpi_query_text() is expected");
    const struct world *world = &query->source->world;
    struct asked asked = {array, at, bytes, capacity, offsets, 0, NULL};
    int wants_texts = 0;
    int32_t status = agree(world, check_at(world, at, 1));
    if (status == SIEVA_OK)
        status = share_out(query);
    if (status == SIEVA_OK)
        status = measure_all(query, &asked, &wants_texts);
    if (status == SIEVA_OK && needed != NULL)
        *needed = asked.gets;
    if (status == SIEVA_OK && wants_texts)
        status = read_all(query, &asked);
    free(asked.sizes);
    if (status == SIEVA_OK && count != NULL)
        *count = !is_receiver(world, at) ? 0 : at == SIEVA_MPI_SHARED ? query->count : query->total;
    return status;
}
