/*
 * Boxes that all ranks ask for: cut into parts, dealt out to readers, read once, sent to who asked.
 */
#ifndef SIEVA_MPI_MANY_H
#define SIEVA_MPI_MANY_H

#include "bytes.h"
#include "handles.h"

/* Dimensions of an array at most. */
#define MANY_DIMS 32

/* A part of a box: the smallest thing that is sent. All ranks have all of them, in the same order. */
struct part {
    uint64_t array, type;
    uint64_t rank;         /* of the array */
    uint64_t asker, box;   /* which box of which rank it is of */
    const uint64_t *start; /* of many.numbers */
    const uint64_t *count;
    uint64_t bytes;        /* of its values */
    uint64_t unit;         /* parts of a unit are read together */
    uint64_t reader, wave, is_row;
    uint64_t first, n;     /* where the unit is one run of elements in C order: its first element, and how many; n is 0 elsewhere */
};

struct many {
    sieva_mpi_source *source;
    sieva_mpi_box *boxes; /* of this rank */
    uint64_t n;
    uint64_t largest;     /* bytes of a part, of which nobody decodes a smaller block */
    uint64_t at_once;     /* bytes that a rank sends in a wave */
    uint64_t *numbers;    /* the parts of all ranks, as sieva_deal_parts() has them */
    struct part *parts;   /* the same in the order in which they are read */
    uint64_t count;
    uint64_t waves;
    uint64_t (*shapes)[MANY_DIMS]; /* starts of this rank's boxes, then their lengths */
    uint8_t *has_failed;           /* of each unit: 1 where its reader could not read it */
    uint64_t units;
};

/* A box of an array, and its values. */
struct piece {
    const uint64_t *start, *count;
    char *values;
};

/* What was read of a unit: a run of elements, or boxes, one behind the other, of which none has an element of another. */
struct unit {
    uint64_t *boxes; /* starts, then lengths, of each */
    uint64_t count, room;
    const uint64_t *run; /* of a run the lengths of its array, of boxes NULL */
    struct bytes values;
};

/* Reads what parts of a unit hold, once. */
int32_t read_unit(struct many *many, const struct part *parts, uint64_t count, struct unit *unit);

/* Copies what was read of a unit to a box of the array, as far as that goes. Of a run that is what the part holds; of boxes all
 * that they have in common with it: the part tells rank and type. */
void copy_part(const struct part *part, const struct unit *unit, const struct piece *to);

/* Copies what two boxes have in common from one to the other. */
void copy_common(uint64_t rank, uint64_t width, const struct piece *to, const struct piece *from);

/* Cuts this rank's boxes, tells all ranks, and deals parts out; agreed upon. What a box has of errors is its status. */
int32_t many_plan(struct many *many);

/* Reads and sends all waves. What could not be read is marked by its reader. */
int32_t many_run(struct many *many, int32_t mode);

/* Bytes of a value of a type for numbers; 0 of another. */
uint64_t width_of(int32_t type);

#endif
