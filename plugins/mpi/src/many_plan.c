/*
 * What this rank asks for, as all ranks are told; and what sieva_deal_parts() makes of the parts of all.
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

/* Numbers of a part before its box. */
enum { HEAD = 7, DEALT = 7 };

/* Numbers that grow. */
struct list {
    uint64_t *numbers;
    uint64_t count, room;
};

static uint64_t *grown(struct list *list, uint64_t more)
{
    if (list->count + more > list->room) {
        uint64_t room = 2 * (list->count + more);
        uint64_t *numbers = room <= SIZE_MAX / sizeof *numbers ? realloc(list->numbers, (size_t)room * sizeof *numbers) : NULL;
        if (numbers == NULL)
            return NULL;
        list->numbers = numbers;
        list->room = room;
    }
    uint64_t *at = list->numbers + list->count;
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
    uint64_t *at = rows != NULL ? grown(list, needed * (width - 3 + HEAD)) : NULL;
    if (at == NULL) {
        free(rows);
        return fail_memory(needed * width * sizeof *at, "parts of boxes");
    }
    status = said(sieva_box_parts(many->source->here, box->array, box->rank, start, count, many->largest, rows, needed, &needed));
    for (uint64_t i = 0; i < needed && status == SIEVA_OK; i++, at += width - 3 + HEAD) {
        const uint64_t head[] = {index, (uint64_t)box->type, width_of(box->type), number};
        memcpy(at, head, sizeof head);
        memcpy(at + 4, rows + i * width, (size_t)width * sizeof *at);
    }
    if (status != SIEVA_OK)
        list->count -= needed * (width - 3 + HEAD);
    free(rows);
    return status;
}

/* All ranks get the parts of all; how many numbers are of each. */
static int32_t tell_all(struct many *many, const struct list *own, uint64_t *sizes)
{
    const struct world *world = &many->source->world;
    uint64_t total = 0;
    numbers_of_all(world, own->count * sizeof *own->numbers, sizes);
    for (int r = 0; r < world->size; r++)
        total += sizes[r];
    many->numbers = malloc(total > 0 ? (size_t)total : 1);
    int32_t status = agree(world, many->numbers == NULL ? fail_memory(total, "parts of boxes") : SIEVA_OK);
    if (status == SIEVA_OK)
        memory_gather(world, SIEVA_MPI_EVERYWHERE, own->numbers, sizes, many->numbers);
    for (int r = 0; r < world->size; r++)
        sizes[r] /= sizeof *many->numbers;
    return status;
}

/* Where the numbers of each part begin, and who asks. */
static int32_t find_parts(const struct many *many, const uint64_t *sizes, struct part *given)
{
    const uint64_t *at = many->numbers;
    uint64_t found = 0;
    for (int r = 0; r < many->source->world.size; r++)
        for (const uint64_t *end = at + sizes[r]; at < end; found++) {
            sieva_array array;
            int32_t status = said(sieva_array_describe(many->source->here, at[0], &array));
            if (status != SIEVA_OK)
                return status;
            struct part part = {.array = at[0], .type = at[1], .rank = array.rank, .asker = (uint64_t)r, .box = at[3],
                                .start = at + HEAD, .count = at + HEAD + array.rank, .bytes = at[2]};
            for (uint32_t d = 0; d < array.rank; d++)
                part.bytes *= part.count[d];
            given[found] = part;
            at += HEAD + 2 * (uint64_t)array.rank;
        }
    return SIEVA_OK;
}

/* The parts in the order in which they are read, with who reads them and when. */
static int32_t deal_out(struct many *many, const uint64_t *sizes)
{
    const sieva_source *here = many->source->here;
    uint32_t ranks = (uint32_t)many->source->world.size;
    int32_t status = said(sieva_deal_parts(here, ranks, sizes, many->numbers, many->at_once, NULL, 0, &many->count));
    if (status != SIEVA_OK)
        return status;
    size_t n = (size_t)many->count;
    uint64_t *dealt = malloc((n + 1) * DEALT * sizeof *dealt);
    struct part *given = malloc((n + 1) * sizeof *given);
    many->parts = malloc((n + 1) * sizeof *many->parts);
    if (dealt == NULL || given == NULL || many->parts == NULL)
        status = fail_memory((n + 1) * (2 * sizeof *given + DEALT * sizeof *dealt), "parts of boxes");
    if (status == SIEVA_OK)
        status = find_parts(many, sizes, given);
    if (status == SIEVA_OK)
        status = said(sieva_deal_parts(here, ranks, sizes, many->numbers, many->at_once, dealt, many->count, &many->count));
    for (size_t i = 0; i < n && status == SIEVA_OK; i++) {
        const uint64_t *row = dealt + i * DEALT;
        many->parts[i] = given[row[0]];
        many->parts[i].unit = row[1];
        many->parts[i].reader = row[2];
        many->parts[i].wave = row[3];
        many->parts[i].is_row = row[4];
        many->parts[i].first = row[5];
        many->parts[i].n = row[6];
        many->units = row[1] + 1;
        many->waves = row[3] + 1 > many->waves ? row[3] + 1 : many->waves;
    }
    free(given);
    free(dealt);
    return status;
}

/* The most bytes that a rank sends in a wave: counts of MPI_Alltoallv are ints. */
static uint64_t most_sent(const struct many *many)
{
    uint64_t most = 0, used = 0;
    for (uint64_t i = 0; i < many->count; i++) {
        const struct part *part = &many->parts[i];
        /* Units of a reader and wave need not follow one another; a unit alone may be more than a wave has. */
        used = i > 0 && part->unit == part[-1].unit ? used : 0;
        used += part->asker != part->reader ? part->bytes : 0;
        most = used > most ? used : most;
    }
    return most > many->at_once ? most : many->at_once;
}

int32_t many_plan(struct many *many)
{
    const struct world *world = &many->source->world;
    struct list own = {NULL, 0, 0};
    uint64_t *sizes = calloc((size_t)world->size, sizeof *sizes);
    many->shapes = calloc((size_t)(2 * many->n + 1), sizeof *many->shapes);
    int has_room = many->shapes != NULL && sizes != NULL;
    int32_t status = agree(world, has_room ? SIEVA_OK : fail_memory(2 * many->n * sizeof *many->shapes, "boxes"));
    for (uint64_t i = 0; i < many->n && status == SIEVA_OK; i++)
        many->boxes[i].status = cut(many, i, &own);
    if (status == SIEVA_OK)
        status = tell_all(many, &own, sizes);
    free(own.numbers);
    if (status == SIEVA_OK) {
        status = deal_out(many, sizes);
        uint64_t most = status == SIEVA_OK ? most_sent(many) : 0;
        if (most > INT_MAX / (uint64_t)world->size)
            status = fail(SIEVA_ERROR_MEMORY_LIMIT, "a block that is sent to all ranks takes %" PRIu64 " bytes", most);
        many->has_failed = calloc((size_t)many->units + 1, 1);
        if (status == SIEVA_OK && many->has_failed == NULL)
            status = fail_memory(many->units, "marks of what failed");
        status = agree(world, status);
    }
    free(sizes);
    return status;
}
