/*
 * Parts that are read together, each element once, and copied to where they are wanted.
 */
#include "bytes.h"
#include "error.h"
#include "many.h"

#include <stdlib.h>
#include <string.h>

void copy_common(uint64_t rank, uint64_t width, const struct piece *to, const struct piece *from)
{
    uint64_t at[MANY_DIMS] = {0}, start[MANY_DIMS], count[MANY_DIMS];
    for (uint64_t d = 0; d < rank; d++) {
        uint64_t to_end = to->start[d] + to->count[d], from_end = from->start[d] + from->count[d];
        uint64_t end = to_end < from_end ? to_end : from_end;
        start[d] = to->start[d] > from->start[d] ? to->start[d] : from->start[d];
        if (start[d] >= end)
            return;
        count[d] = end - start[d];
    }
    uint64_t row = rank > 0 ? count[rank - 1] : 1;
    for (;;) {
        uint64_t here = 0, there = 0;
        for (uint64_t d = 0; d < rank; d++) {
            here = here * to->count[d] + start[d] - to->start[d] + at[d];
            there = there * from->count[d] + start[d] - from->start[d] + at[d];
        }
        memcpy(to->values + here * width, from->values + there * width, (size_t)(row * width));
        uint64_t d = rank > 0 ? rank - 1 : 0;
        while (d > 0 && ++at[d - 1] == count[d - 1])
            at[--d] = 0;
        if (d == 0)
            return;
    }
}

static uint64_t values_of(const uint64_t *count, uint64_t rank)
{
    uint64_t values = 1;
    for (uint64_t d = 0; d < rank; d++)
        values *= count[d];
    return values;
}

/* The boxes that are read of a unit, by the parts of it. */
static int32_t unite(const struct part *parts, uint64_t count, struct unit *unit)
{
    uint64_t rank = parts->rank, row = 2 * rank, needed = 0;
    uint64_t *given = malloc((size_t)(count * row + 1) * sizeof *given);
    if (given == NULL)
        return fail_memory(count * row * sizeof *given, "boxes of a block");
    for (uint64_t i = 0; i < count; i++) {
        memcpy(given + i * row, parts[i].start, (size_t)rank * sizeof *given);
        memcpy(given + i * row + rank, parts[i].count, (size_t)rank * sizeof *given);
    }
    int32_t status = said(sieva_unite_boxes((uint32_t)rank, count, given, (int32_t)parts->is_row, NULL, 0, &needed));
    if (status == SIEVA_OK && needed * row + 1 > unit->room) {
        free(unit->boxes);
        unit->room = needed * row + 1;
        unit->boxes = malloc((size_t)unit->room * sizeof *unit->boxes);
        if (unit->boxes == NULL) {
            unit->room = 0;
            status = fail_memory(needed * row * sizeof *given, "boxes of a block");
        }
    }
    if (status == SIEVA_OK)
        status = said(sieva_unite_boxes((uint32_t)rank, count, given, (int32_t)parts->is_row, unit->boxes, needed, &unit->count));
    free(given);
    return status;
}

/* Room for so many values of a unit. */
static int32_t values_room(struct unit *unit, uint64_t bytes)
{
    if (bytes <= unit->values.size && unit->values.data != NULL)
        return SIEVA_OK;
    bytes_free(&unit->values);
    return bytes_room(&unit->values, bytes, "values of a block");
}

/* A unit that is one run of elements, if it lies so. */
static int32_t read_run(const struct many *many, const struct part *part, const sieva_array *array, struct unit *unit)
{
    uint64_t got = 0;
    int32_t status = values_room(unit, part->n * width_of((int32_t)part->type));
    if (status == SIEVA_OK)
        status = said(sieva_read_run(many->source->here, array->path, part->first, part->n, (int32_t)part->type, unit->values.data, part->n,
                                     NULL, &got));
    unit->run = got > 0 ? array->shape : NULL;
    return status;
}

int32_t read_unit(struct many *many, const struct part *parts, uint64_t count, struct unit *unit)
{
    uint64_t rank = parts->rank, width = width_of((int32_t)parts->type), values = 0, done = 0, got;
    sieva_array array;
    unit->run = NULL;
    int32_t status = said(sieva_array_describe(many->source->here, parts->array, &array));
    if (status == SIEVA_OK && parts->n > 0)
        status = read_run(many, parts, &array, unit);
    if (unit->run != NULL || status != SIEVA_OK)
        return status;
    status = unite(parts, count, unit);
    for (uint64_t i = 0; i < unit->count && status == SIEVA_OK; i++)
        values += values_of(unit->boxes + (2 * i + 1) * rank, rank);
    if (status == SIEVA_OK)
        status = values_room(unit, values * width);
    for (uint64_t i = 0; i < unit->count && status == SIEVA_OK; i++) {
        const uint64_t *start = unit->boxes + 2 * i * rank, *lengths = start + rank;
        status = said(sieva_read_box(many->source->here, array.path, (uint32_t)rank, start, lengths, 0, (int32_t)parts->type,
                                     unit->values.data + done * width, values - done, NULL, &got));
        done += values_of(lengths, rank);
    }
    return status;
}

/* Copies what a part holds from a run of elements that it is of. */
static void copy_of_run(const struct part *part, const struct unit *unit, const struct piece *to)
{
    uint64_t rank = part->rank, width = width_of((int32_t)part->type), at[MANY_DIMS] = {0};
    uint64_t row = rank > 0 ? part->count[rank - 1] : 1;
    for (;;) {
        uint64_t here = 0, there = 0;
        for (uint64_t d = 0; d < rank; d++) {
            here = here * to->count[d] + part->start[d] - to->start[d] + at[d];
            there = there * unit->run[d] + part->start[d] + at[d];
        }
        memcpy(to->values + here * width, (const char *)unit->values.data + (there - part->first) * width, (size_t)(row * width));
        uint64_t d = rank > 0 ? rank - 1 : 0;
        while (d > 0 && ++at[d - 1] == part->count[d - 1])
            at[--d] = 0;
        if (d == 0)
            return;
    }
}

void copy_part(const struct part *part, const struct unit *unit, const struct piece *to)
{
    uint64_t rank = part->rank, width = width_of((int32_t)part->type);
    char *at = (char *)unit->values.data;
    if (unit->run != NULL) {
        copy_of_run(part, unit, to);
        return;
    }
    for (uint64_t i = 0; i < unit->count; i++) {
        const uint64_t *start = unit->boxes + 2 * i * rank;
        struct piece from = {start, start + rank, at};
        copy_common(rank, width, to, &from);
        at += values_of(start + rank, rank) * width;
    }
}
