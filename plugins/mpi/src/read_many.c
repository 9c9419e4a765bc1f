/*
 * Boxes that all ranks ask for, each rank its own: read once, sent to whoever asked (Liu et al., Locality-driven High-level I/O
 * Aggregation for Processing Scientific Datasets, section IV.B, Algorithm 1).
 */
#include "bytes.h"
#include "error.h"
#include "many.h"

#include <stdlib.h>

/* Bytes of a part and of a wave of a rank, where memory allows. */
#define LARGEST_PART ((uint64_t)4 << 20)
#define LARGEST_WAVE ((uint64_t)8 << 20)

/* Whether there is a wave to agree on is the same on all ranks only if all have the least memory of any. */
static void set_limits(struct many *many)
{
    const struct world *world = &many->source->world;
    uint64_t least = many->source->building, most = LARGEST_WAVE;
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, &least, 1, MPI_UINT64_T, MPI_MIN, world->comm, &request);
    wait_for(&request);
    uint64_t part = least / 4 / (8 * (uint64_t)world->size), wave = least / 4 / (4 * ((uint64_t)world->size + 1));
    /* All that ranks send to one is counted by an int. */
    most = most * (uint64_t)world->size > (uint64_t)1 << 30 ? ((uint64_t)1 << 30) / (uint64_t)world->size : most;
    many->largest = part < 4096 ? 4096 : part < LARGEST_PART ? part : LARGEST_PART;
    many->at_once = wave < most ? wave : most;
}

/* All ranks learn which units could not be read. */
static int32_t tell_failures(struct many *many)
{
    const struct world *world = &many->source->world;
    MPI_Request request;
    for (uint64_t done = 0; done < many->units; done += 1 << 20) {
        uint64_t left = many->units - done;
        MPI_Iallreduce(MPI_IN_PLACE, many->has_failed + done, (int)(left < 1 << 20 ? left : 1 << 20), MPI_UINT8_T, MPI_MAX, world->comm, &request);
        wait_for(&request);
    }
    return SIEVA_OK;
}

/* Whoever got zeros for a part that its reader could not read asks for it alone: for the words, and as the reader's trouble may be
 * its own. */
static void ask_again(struct many *many, const struct part *part)
{
    sieva_mpi_box *box = &many->boxes[part->box];
    uint64_t values = 1, got;
    if (box->status != SIEVA_OK)
        return;
    for (uint32_t d = 0; d < box->rank; d++)
        values *= many->shapes[2 * part->box + 1][d];
    box->status = said(sieva_read_box(many->source->here, box->array, box->rank, many->shapes[2 * part->box],
                                      many->shapes[2 * part->box + 1], 0, box->type, box->values, values, NULL, &got));
}

static int32_t own_status(struct many *many)
{
    int32_t status = SIEVA_OK;
    for (uint64_t i = 0; i < many->count; i++) {
        const struct part *part = &many->parts[i];
        if (part->asker == (uint64_t)many->source->world.rank && many->has_failed[part->unit])
            ask_again(many, part);
    }
    for (uint64_t i = many->n; i > 0; i--)
        status = many->boxes[i - 1].status != SIEVA_OK ? many->boxes[i - 1].status : status;
    return status;
}

int32_t sieva_mpi_read_many(sieva_mpi_source *source, int32_t mode, sieva_mpi_box *boxes, uint64_t n)
{
    if (source == NULL)
        return refuse(SIEVA_ERROR_INVALID_VALUE, "source is NULL: a handle of sieva_mpi_open() is expected");
    const struct world *world = &source->world;
    struct many many = {.source = source, .boxes = boxes, .n = n};
    int32_t status = SIEVA_OK;
    if (mode < SIEVA_MPI_INDEPENDENT || mode > SIEVA_MPI_NONBLOCKING)
        status = fail(SIEVA_ERROR_INVALID_VALUE, "mode is %d: a number of enum sieva_mpi_mode is expected", (int)mode);
    else if (boxes == NULL && n > 0)
        status = fail(SIEVA_ERROR_INVALID_VALUE, "boxes is NULL, and n is not 0");
    else if (source->is_collection)
        status = fail(SIEVA_ERROR_UNSUPPORTED, "a collection has no boxes: read the arrays of its files");
    status = agree(world, status);
    if (status == SIEVA_OK) {
        set_limits(&many);
        status = many_plan(&many);
    }
    if (status == SIEVA_OK)
        status = many_run(&many, mode);
    if (status == SIEVA_OK)
        status = tell_failures(&many);
    if (status == SIEVA_OK)
        status = agree(world, own_status(&many));
    free(many.parts);
    free(many.numbers);
    free(many.shapes);
    free(many.has_failed);
    return status;
}
