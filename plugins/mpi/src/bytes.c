/*
 * Bytes between ranks: of any number, though those of one message of MPI are counted by an int.
 */
#include "bytes.h"
#include "error.h"
#include "sieva_mpi.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of one message at most. The tests take fewer, so that few are cut, too. */
#ifndef SIEVA_MPI_PIECE
#define SIEVA_MPI_PIECE ((uint64_t)1 << 30)
#endif

enum { TAG_SIZE = 1, TAG_ROOM = 2, TAG_BYTES = 3 };

static int piece_of(uint64_t left)
{
    return (int)(left < SIEVA_MPI_PIECE ? left : SIEVA_MPI_PIECE);
}

static void broadcast(const struct world *world, int root, void *memory, int count)
{
    MPI_Request request;
    MPI_Ibcast(memory, count, MPI_BYTE, root, world->comm, &request);
    wait_for(&request);
}

static void send(const struct world *world, int to, int tag, const void *memory, int count)
{
    MPI_Request request;
    MPI_Isend(memory, count, MPI_BYTE, to, tag, world->comm, &request);
    wait_for(&request);
}

static void receive(const struct world *world, int from, int tag, void *memory, int count)
{
    MPI_Request request;
    MPI_Irecv(memory, count, MPI_BYTE, from, tag, world->comm, &request);
    wait_for(&request);
}

int most_of_all(const struct world *world, int value)
{
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MAX, world->comm, &request);
    wait_for(&request);
    return value;
}

void numbers_of_all(const struct world *world, uint64_t own, uint64_t *all)
{
    MPI_Request request;
    MPI_Iallgather(&own, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, world->comm, &request);
    wait_for(&request);
}

void bytes_free(struct bytes *bytes)
{
    free(bytes->data);
    bytes->data = NULL;
    bytes->size = 0;
}

int32_t bytes_room(struct bytes *bytes, uint64_t size, const char *what)
{
    bytes->size = 0;
    bytes->data = size == (size_t)size ? malloc(size > 0 ? (size_t)size : 1) : NULL;
    if (bytes->data == NULL)
        return fail_memory(size, what);
    bytes->size = size;
    return SIEVA_OK;
}

void memory_broadcast(const struct world *world, int root, void *memory, uint64_t size)
{
    char *at = memory;
    for (uint64_t done = 0; done < size; done += SIEVA_MPI_PIECE)
        broadcast(world, root, at + done, piece_of(size - done));
}

int32_t bytes_broadcast(const struct world *world, int root, struct bytes *bytes)
{
    uint64_t size = bytes->size;
    int32_t status = SIEVA_OK;
    broadcast(world, root, &size, sizeof size);
    if (world->rank != root)
        status = bytes_room(bytes, size, "bytes of another rank");
    status = agree(world, status);
    if (status == SIEVA_OK)
        memory_broadcast(world, root, bytes->data, size);
    return status;
}

static void memory_send(const struct world *world, int to, const void *memory, uint64_t size)
{
    const char *at = memory;
    for (uint64_t done = 0; done < size; done += SIEVA_MPI_PIECE)
        send(world, to, TAG_BYTES, at + done, piece_of(size - done));
}

static void memory_receive(const struct world *world, int from, void *memory, uint64_t size)
{
    char *at = memory;
    for (uint64_t done = 0; done < size; done += SIEVA_MPI_PIECE)
        receive(world, from, TAG_BYTES, at + done, piece_of(size - done));
}

void bytes_send(const struct world *world, int to, const struct bytes *bytes)
{
    int has_room;
    send(world, to, TAG_SIZE, &bytes->size, sizeof bytes->size);
    receive(world, to, TAG_ROOM, &has_room, sizeof has_room);
    if (has_room)
        memory_send(world, to, bytes->data, bytes->size);
}

int32_t bytes_receive(const struct world *world, int from, struct bytes *bytes)
{
    uint64_t size;
    receive(world, from, TAG_SIZE, &size, sizeof size);
    int32_t status = bytes_room(bytes, size, "bytes of another rank");
    int has_room = status == SIEVA_OK;
    send(world, from, TAG_ROOM, &has_room, sizeof has_room);
    if (has_room)
        memory_receive(world, from, bytes->data, size);
    return status;
}

static void gather_everywhere(const struct world *world, const void *own, const uint64_t *sizes, char *place)
{
    for (int r = 0; r < world->size; r++) {
        if (r == world->rank && place != own && sizes[r] > 0)
            memmove(place, own, (size_t)sizes[r]);
        memory_broadcast(world, r, place, sizes[r]);
        place += sizes[r];
    }
}

void memory_gather(const struct world *world, int32_t at, const void *own, const uint64_t *sizes, void *place)
{
    if (at == SIEVA_MPI_EVERYWHERE) {
        gather_everywhere(world, own, sizes, place);
    } else if (at != world->rank) {
        memory_send(world, at, own, sizes[world->rank]);
    } else {
        char *to = place;
        for (int r = 0; r < world->size; r++) {
            if (r != at)
                memory_receive(world, r, to, sizes[r]);
            else if (to != own && sizes[r] > 0)
                memmove(to, own, (size_t)sizes[r]);
            to += sizes[r];
        }
    }
}
