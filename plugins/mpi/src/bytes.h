/*
 * Bytes between ranks: of any number, though those of one message of MPI are counted by an int.
 */
#ifndef SIEVA_MPI_BYTES_H
#define SIEVA_MPI_BYTES_H

#include "world.h"

#include <stdint.h>

/* Bytes that belong to it; none where data is NULL. */
struct bytes {
    uint8_t *data;
    uint64_t size;
};

#define NO_BYTES {NULL, 0}

void bytes_free(struct bytes *bytes);

/* Room for so many; the status. What they are for is told where there is none. */
int32_t bytes_room(struct bytes *bytes, uint64_t size, const char *what);

/* Collective: bytes of rank root are those of all; agreed upon. */
int32_t bytes_broadcast(const struct world *world, int root, struct bytes *bytes);

/* Collective: memory of a size that all know, from rank root to all. */
void memory_broadcast(const struct world *world, int root, void *memory, uint64_t size);

/* Collective: the greatest value of all ranks. */
int most_of_all(const struct world *world, int value);

/* Collective: the number that each rank comes with. */
void numbers_of_all(const struct world *world, uint64_t own, uint64_t *all);

/* From a rank to another, which calls bytes_receive(). What the receiver has no room for is not sent. */
void bytes_send(const struct world *world, int to, const struct bytes *bytes);
int32_t bytes_receive(const struct world *world, int from, struct bytes *bytes);

/* Collective: memory of all ranks, of sizes[r] bytes each, behind one another at place of rank at, or everywhere. own may lie in
 * place already, where it belongs. */
void memory_gather(const struct world *world, int32_t at, const void *own, const uint64_t *sizes, void *place);

#endif
