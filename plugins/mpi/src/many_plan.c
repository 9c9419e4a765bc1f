/*
 * Which rank reads what, and when. All ranks come to the same, as all of them know all parts.
 */
#include "bytes.h"
#include "error.h"
#include "many.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

uint64_t width_of(int32_t type)
{
    switch (type) {
    case SIEVA_BOOL:
    case SIEVA_I8:
    case SIEVA_U8:
        return 1;
    case SIEVA_I16:
    case SIEVA_U16:
        return 2;
    case SIEVA_I32:
    case SIEVA_U32:
    case SIEVA_F32:
        return 4;
    case SIEVA_I64:
    case SIEVA_U64:
    case SIEVA_F64:
        return 8;
    default:
        return 0;
    }
}

/* Parts that grow. */
struct list {
    struct part *parts;
    uint64_t count, room;
};

static struct part *grown(struct list *list, uint64_t more)
{
    if (list->count + more > list->room) {
        uint64_t room = 2 * (list->count + more);
        struct part *parts = room <= SIZE_MAX / sizeof *parts ? realloc(list->parts, (size_t)room * sizeof *parts) : NULL;
        if (parts == NULL)
            return NULL;
        list->parts = parts;
        list->room = room;
    }
    struct part *at = list->parts + list->count;
    list->count += more;
    return at;
}

/* That a box can be asked for; its start and lengths. */
static int32_t check_box(const struct many *many, const sieva_mpi_box *box, uint64_t *index, uint64_t *start, uint64_t *count)
{
    const sieva_source *here = many->source->here;
    sieva_array array;
    if (width_of(box->type) == 0)
        return fail(SIEVA_ERROR_INVALID_VALUE, "type is %d: a number of enum sieva_type for numbers is expected", (int)box->type);
    int32_t status = said(sieva_array_find(here, box->array, index));
    if (status == SIEVA_OK)
        status = said(sieva_array_describe(here, *index, &array));
    if (status != SIEVA_OK)
        return status;
    if (box->rank != array.rank || array.rank > MANY_DIMS)
        return fail(SIEVA_ERROR_DIMENSION_MISMATCH, "a box of %u dimensions, '%s' has %u", (unsigned)box->rank, array.path, (unsigned)array.rank);
    uint64_t values = 1;
    for (uint32_t d = 0; d < array.rank; d++) {
        start[d] = box->start != NULL ? box->start[d] : 0;
        if (start[d] > array.shape[d] || (box->count != NULL && box->count[d] > array.shape[d] - start[d]))
            return fail(SIEVA_ERROR_INVALID_VALUE, "a box that ends behind the %" PRIu64 " of dimension %u of '%s'", array.shape[d], (unsigned)d, array.path);
        count[d] = box->count != NULL ? box->count[d] : array.shape[d] - start[d];
        values *= count[d];
    }
    if (values > 0 && (box->values == NULL || box->capacity < values))
        return fail(SIEVA_ERROR_INVALID_VALUE, "room for %" PRIu64 " values%s, %" PRIu64 " are needed", box->capacity,
                    box->values == NULL ? " at NULL" : "", values);
    return SIEVA_OK;
}

/* Cuts a box of this rank. */
static int32_t cut(struct many *many, uint64_t number, struct list *list)
{
    sieva_mpi_box *box = &many->boxes[number];
    uint64_t index = 0, needed = 0, *start = many->shapes[2 * number], *count = many->shapes[2 * number + 1];
    int32_t status = check_box(many, box, &index, start, count);
    if (status == SIEVA_OK)
        status = said(sieva_box_parts(many->source->here, box->array, box->rank, start, count, many->largest, NULL, 0, &needed));
    if (status != SIEVA_OK || needed == 0)
        return status;
    uint64_t width = 3 + 2 * (uint64_t)box->rank, *rows = malloc((size_t)(needed * width) * sizeof *rows);
    struct part *at = rows != NULL ? grown(list, needed) : NULL;
    if (at == NULL) {
        free(rows);
        return fail_memory(needed * sizeof *at, "parts of boxes");
    }
    status = said(sieva_box_parts(many->source->here, box->array, box->rank, start, count, many->largest, rows, needed, &needed));
    for (uint64_t i = 0; i < needed && status == SIEVA_OK; i++) {
        const uint64_t *row = rows + i * width;
        struct part part = {.server = row[0], .stripe = row[1], .array = index, .block = row[2], .type = (uint64_t)box->type,
                            .rank = box->rank, .asker = (uint64_t)many->source->world.rank, .box = number, .bytes = width_of(box->type)};
        for (uint32_t d = 0; d < box->rank; d++) {
            part.start[d] = row[3 + d];
            part.count[d] = row[3 + box->rank + d];
            part.bytes *= part.count[d];
        }
        at[i] = part;
    }
    if (status != SIEVA_OK)
        list->count -= needed;
    free(rows);
    return status;
}

/* By server, and there in the order in which bytes lie; then by who asked. */
static int order(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    const uint64_t left[] = {x->server, x->stripe, x->array, x->block, x->type, x->asker, x->box};
    const uint64_t right[] = {y->server, y->stripe, y->array, y->block, y->type, y->asker, y->box};
    for (int i = 0; i < 7; i++)
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    /* Parts of one box in one unit: shares of a stripe that is several boxes. */
    for (uint64_t d = 0; d < x->rank; d++)
        if (x->start[d] != y->start[d])
            return x->start[d] < y->start[d] ? -1 : 1;
    return 0;
}

static int is_same_unit(const struct part *a, const struct part *b)
{
    return a->server == b->server && a->stripe == b->stripe && a->array == b->array && a->block == b->block && a->type == b->type;
}

/* Divides units, in their order, among readers: each reads about as many bytes. A server's units follow one another, so that it has
 * as few readers as that allows. */
static void deal_out(struct many *many)
{
    uint64_t ranks = (uint64_t)many->source->world.size, total = 0, done = 0, largest = 0;
    for (uint64_t i = 0; i < many->count; i++) {
        struct part *part = &many->parts[i];
        int is_new = i == 0 || !is_same_unit(part, part - 1);
        many->units += is_new;
        part->unit = many->units - 1;
        /* What several want is read once: the largest part stands for all. */
        largest = is_new || part->bytes > largest ? part->bytes : largest;
        if (i + 1 == many->count || !is_same_unit(part, part + 1))
            total += largest;
    }
    for (uint64_t i = 0; i < many->count;) {
        uint64_t end = i;
        largest = 0;
        for (; end < many->count && many->parts[end].unit == many->parts[i].unit; end++)
            largest = many->parts[end].bytes > largest ? many->parts[end].bytes : largest;
        uint64_t reader = total > 0 ? (uint64_t)(((double)done + (double)largest / 2) * (double)ranks / (double)total) : 0;
        for (; i < end; i++)
            many->parts[i].reader = reader < ranks ? reader : ranks - 1;
        done += largest;
    }
}

/* Divides the units of each reader into waves, of which none sends more than fits, but for one unit; the most bytes of any wave. */
static uint64_t set_waves(struct many *many)
{
    uint64_t wave = 0, used = 0, most = 0;
    for (uint64_t i = 0; i < many->count;) {
        struct part *first = &many->parts[i];
        uint64_t end = i, bytes = 0;
        for (; end < many->count && many->parts[end].unit == first->unit; end++)
            bytes += many->parts[end].bytes;
        if (i == 0 || first->reader != first[-1].reader)
            wave = used = 0;
        if (used > 0 && used + bytes > many->at_once) {
            wave++;
            used = 0;
        }
        used += bytes;
        most = used > most ? used : most;
        for (; i < end; i++)
            many->parts[i].wave = wave;
        many->waves = wave + 1 > many->waves ? wave + 1 : many->waves;
    }
    return most;
}

/* All ranks get the parts of all. */
static int32_t tell_all(struct many *many, const struct list *own)
{
    const struct world *world = &many->source->world;
    uint64_t *sizes = calloc((size_t)world->size, sizeof *sizes), total = 0;
    int32_t status = agree(world, sizes == NULL ? fail_memory(sizeof *sizes * (uint64_t)world->size, "sizes") : SIEVA_OK);
    if (status == SIEVA_OK) {
        numbers_of_all(world, own->count * sizeof *own->parts, sizes);
        for (int r = 0; r < world->size; r++)
            total += sizes[r];
        many->count = total / sizeof *many->parts;
        many->parts = malloc(total > 0 ? (size_t)total : 1);
        status = agree(world, many->parts == NULL ? fail_memory(total, "parts of boxes") : SIEVA_OK);
    }
    if (status == SIEVA_OK)
        memory_gather(world, SIEVA_MPI_EVERYWHERE, own->parts, sizes, many->parts);
    free(sizes);
    return status;
}

int32_t many_plan(struct many *many)
{
    const struct world *world = &many->source->world;
    struct list own = {NULL, 0, 0};
    many->shapes = calloc((size_t)(2 * many->n + 1), sizeof *many->shapes);
    int32_t status = agree(world, many->shapes == NULL ? fail_memory(2 * many->n * sizeof *many->shapes, "boxes") : SIEVA_OK);
    for (uint64_t i = 0; i < many->n && status == SIEVA_OK; i++)
        many->boxes[i].status = cut(many, i, &own);
    if (status == SIEVA_OK)
        status = tell_all(many, &own);
    free(own.parts);
    if (status != SIEVA_OK)
        return status;
    qsort(many->parts, (size_t)many->count, sizeof *many->parts, order);
    deal_out(many);
    uint64_t most = set_waves(many);
    /* Counts of MPI_Alltoallv are ints. All ranks come to the same here. */
    if (most > INT_MAX / (uint64_t)world->size)
        status = fail(SIEVA_ERROR_MEMORY_LIMIT, "a block that is sent to all ranks takes %" PRIu64 " bytes", most);
    many->has_failed = calloc((size_t)many->units + 1, 1);
    if (many->has_failed == NULL)
        status = fail_memory(many->units, "marks of what failed");
    return agree(world, status);
}
