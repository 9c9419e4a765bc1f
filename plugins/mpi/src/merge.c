/*
 * What ranks found, merged along a binary tree: in step s, ranks whose number has bit s send what they have to the rank without
 * that bit, and are done. A rank that fails sends nothing and stays in the tree, so that nobody waits for it.
 */
#include "merge.h"
#include "error.h"

int32_t bytes_of_merge(const sieva_merge *merge, struct bytes *bytes)
{
    uint64_t size = 0;
    int32_t status = said(sieva_merge_bytes(merge, NULL, 0, &size));
    if (status == SIEVA_OK)
        status = bytes_room(bytes, size, "partial results");
    if (status == SIEVA_OK)
        status = said(sieva_merge_bytes(merge, bytes->data, bytes->size, &size));
    if (status != SIEVA_OK)
        bytes_free(bytes);
    return status;
}

static int32_t send_merge(const struct world *world, int to, const sieva_merge *merge)
{
    struct bytes bytes = NO_BYTES;
    int32_t status = merge != NULL ? bytes_of_merge(merge, &bytes) : SIEVA_OK;
    bytes_send(world, to, &bytes);
    bytes_free(&bytes);
    return status;
}

/* Adds what another rank sends, unless this one has failed. */
static int32_t receive_merge(const sieva_mpi_source *source, int from, int32_t before, sieva_merge **merge)
{
    struct bytes bytes = NO_BYTES;
    sieva_merge *other = NULL;
    int32_t status = bytes_receive(&source->world, from, &bytes);
    if (before == SIEVA_OK && status == SIEVA_OK && bytes.size > 0)
        status = said(sieva_merge_from_bytes(bytes.data, bytes.size, source->memory, &other));
    bytes_free(&bytes);
    if (before == SIEVA_OK && status == SIEVA_OK && other != NULL && *merge != NULL)
        status = said(sieva_merge_add(*merge, other));
    if (*merge == NULL)
        *merge = other;
    else
        sieva_merge_free(other);
    return before != SIEVA_OK ? before : status;
}

int32_t merge_to_first(const sieva_mpi_source *source, sieva_merge **merge)
{
    const struct world *world = &source->world;
    int32_t status = SIEVA_OK;
    for (int step = 1; step < world->size; step *= 2) {
        if (world->rank & step) {
            int32_t sent = send_merge(world, world->rank - step, *merge);
            status = status != SIEVA_OK ? status : sent;
            break;
        }
        if (world->rank + step < world->size)
            status = receive_merge(source, world->rank + step, status, merge);
    }
    status = agree(world, status);
    if (status != SIEVA_OK || world->rank != 0) {
        sieva_merge_free(*merge);
        *merge = NULL;
    }
    return status;
}
