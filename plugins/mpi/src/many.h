/*
 * Boxes that all ranks ask for: cut into parts, dealt out to readers, read once, sent to who asked.
 */
#ifndef SIEVA_MPI_MANY_H
#define SIEVA_MPI_MANY_H

#include "handles.h"

/* Dimensions of an array at most. */
#define MANY_DIMS 32

/* A part of a box: the smallest thing that is sent. All ranks have all of them, in the same order. */
struct part {
    uint64_t server, stripe, array, block, type;
    uint64_t rank;             /* of the array */
    uint64_t asker, box;       /* which box of which rank it is of */
    uint64_t start[MANY_DIMS]; /* of the array */
    uint64_t count[MANY_DIMS];
    uint64_t bytes;            /* of its values */
    uint64_t unit;             /* parts of a unit are read together */
    uint64_t reader, wave;
};

struct many {
    sieva_mpi_source *source;
    sieva_mpi_box *boxes; /* of this rank */
    uint64_t n;
    uint64_t largest;     /* bytes of a part, of which nobody decodes a smaller block */
    uint64_t at_once;     /* bytes that a rank sends in a wave */
    struct part *parts;
    uint64_t count;
    uint64_t waves;
    uint64_t (*shapes)[MANY_DIMS]; /* starts of this rank's boxes, then their lengths */
    uint8_t *has_failed;           /* of each unit: 1 where its reader could not read it */
    uint64_t units;
};

/* Cuts this rank's boxes, tells all ranks, and deals parts out; agreed upon. What a box has of errors is its status. */
int32_t many_plan(struct many *many);

/* Reads and sends all waves. What could not be read is marked by its reader. */
int32_t many_run(struct many *many, int32_t mode);

/* Bytes of a value of a type for numbers; 0 of another. */
uint64_t width_of(int32_t type);

#endif
