/*
 * Waves of reading and sending. Two are held at most: one that is read, and one that is under way.
 */
#include "bytes.h"
#include "error.h"
#include "many.h"

#include <stdlib.h>
#include <string.h>

enum { TAG_VALUES = 15 };

/* What goes and comes in a wave: bytes of each rank, behind one another in the order of ranks and there of parts. */
struct wave {
    uint64_t number;
    char *out, *in;
    int *sends, *send_places, *receives, *receive_places;
    MPI_Request *requests; /* one of a collective, or two of each rank */
    int pending;
};

/* Where a part of this rank's belongs. */
static struct piece place_of(struct many *many, const struct part *part)
{
    sieva_mpi_box *box = &many->boxes[part->box];
    struct piece place = {many->shapes[2 * part->box], many->shapes[2 * part->box + 1], box->values};
    return place;
}

/* Reads what this rank reads in a wave: its own goes where it belongs, what others asked for to the wave. */
static void read_wave(struct many *many, struct wave *wave, struct unit *unit)
{
    int own = many->source->world.rank;
    int *done = calloc((size_t)(unsigned)many->source->world.size, sizeof *done);
    for (uint64_t i = 0, end; i < many->count; i = end) {
        const struct part *first = &many->parts[i];
        for (end = i; end < many->count && many->parts[end].unit == first->unit; end++)
            continue;
        if (first->reader != (uint64_t)own || first->wave != wave->number)
            continue;
        if (done == NULL || read_unit(many, first, end - i, unit) != SIEVA_OK)
            many->has_failed[first->unit] = 1;
        for (const struct part *part = first; part < many->parts + end && done != NULL; part++) {
            struct piece to = {part->start, part->count, NULL};
            if (part->asker == (uint64_t)own) {
                to = place_of(many, part);
                /* Of boxes, all that was read of its box, whichever of its parts it is of: once. */
                int is_there = unit->run == NULL && part > first && part[-1].asker == part->asker && part[-1].box == part->box;
                if (!many->has_failed[part->unit] && !is_there)
                    copy_part(part, unit, &to);
                continue;
            }
            to.values = wave->out + wave->send_places[part->asker] + done[part->asker];
            if (!many->has_failed[part->unit])
                copy_part(part, unit, &to);
            else
                memset(to.values, 0, (size_t)part->bytes);
            done[part->asker] += (int)part->bytes;
        }
    }
    free(done);
}

/* Puts what came where it belongs. */
static void take_wave(struct many *many, const struct wave *wave)
{
    int own = many->source->world.rank;
    for (int from = 0; from < many->source->world.size; from++) {
        uint64_t done = 0;
        for (uint64_t i = 0; i < many->count && wave->receives[from] > 0 && from != own; i++) {
            const struct part *part = &many->parts[i];
            if (part->wave != wave->number || part->reader != (uint64_t)from || part->asker != (uint64_t)own)
                continue;
            struct piece to = place_of(many, part), came = {part->start, part->count, wave->in + wave->receive_places[from] + done};
            copy_common(part->rank, width_of((int32_t)part->type), &to, &came);
            done += part->bytes;
        }
    }
}

static void wave_free(struct wave *wave)
{
    free(wave->out);
    free(wave->in);
    free(wave->sends);
    free(wave->requests);
}

/* Sets how many bytes go and come in a wave; how many of both. */
static void wave_begin(const struct many *many, uint64_t number, struct wave *wave, int *out, int *in)
{
    const struct world *world = &many->source->world;
    wave->number = number;
    memset(wave->sends, 0, (size_t)world->size * 4 * sizeof *wave->sends);
    for (uint64_t i = 0; i < many->count; i++) {
        const struct part *part = &many->parts[i];
        if (part->wave != number || part->reader == part->asker)
            continue;
        if (part->reader == (uint64_t)world->rank)
            wave->sends[part->asker] += (int)part->bytes;
        if (part->asker == (uint64_t)world->rank)
            wave->receives[part->reader] += (int)part->bytes;
    }
    *out = *in = 0;
    for (int r = 0; r < world->size; r++) {
        wave->send_places[r] = *out;
        wave->receive_places[r] = *in;
        *out += wave->sends[r];
        *in += wave->receives[r];
    }
}

/* Room for any wave. */
static int32_t wave_room(const struct many *many, struct wave *wave)
{
    size_t size = (size_t)many->source->world.size;
    int out, in, most_out = 1, most_in = 1;
    wave->sends = calloc(size * 4, sizeof *wave->sends);
    wave->requests = calloc(size * 2, sizeof *wave->requests);
    if (wave->sends == NULL || wave->requests == NULL)
        return fail_memory(size * 4 * sizeof *wave->sends, "counts");
    wave->send_places = wave->sends + size;
    wave->receives = wave->sends + 2 * size;
    wave->receive_places = wave->sends + 3 * size;
    for (uint64_t number = 0; number < many->waves; number++) {
        wave_begin(many, number, wave, &out, &in);
        most_out = out > most_out ? out : most_out;
        most_in = in > most_in ? in : most_in;
    }
    wave->out = malloc((size_t)most_out);
    wave->in = malloc((size_t)most_in);
    return wave->out == NULL || wave->in == NULL ? fail_memory((uint64_t)most_out + (uint64_t)most_in, "values that are sent") : SIEVA_OK;
}

/* Begins to receive what is sent point to point. */
static void expect_wave(const struct many *many, struct wave *wave)
{
    const struct world *world = &many->source->world;
    for (int r = 0; r < world->size; r++)
        if (wave->receives[r] > 0)
            MPI_Irecv(wave->in + wave->receive_places[r], wave->receives[r], MPI_BYTE, r, TAG_VALUES, world->comm, &wave->requests[wave->pending++]);
}

/* Begins to send what was read. */
static void send_wave(const struct many *many, struct wave *wave, int32_t mode)
{
    const struct world *world = &many->source->world;
    if (mode != SIEVA_MPI_INDEPENDENT) {
        MPI_Ialltoallv(wave->out, wave->sends, wave->send_places, MPI_BYTE, wave->in, wave->receives, wave->receive_places, MPI_BYTE,
                       world->comm, &wave->requests[wave->pending++]);
        return;
    }
    for (int r = 0; r < world->size; r++)
        if (wave->sends[r] > 0)
            MPI_Isend(wave->out + wave->send_places[r], wave->sends[r], MPI_BYTE, r, TAG_VALUES, world->comm, &wave->requests[wave->pending++]);
}

static void finish_wave(struct many *many, struct wave *wave)
{
    for (int i = 0; i < wave->pending; i++)
        wait_for(&wave->requests[i]);
    if (wave->pending > 0)
        take_wave(many, wave);
    wave->pending = 0;
}

int32_t many_run(struct many *many, int32_t mode)
{
    struct wave waves[2];
    struct unit unit = {.boxes = NULL};
    int out, in;
    memset(waves, 0, sizeof waves);
    int32_t status = wave_room(many, &waves[0]);
    if (status == SIEVA_OK)
        status = wave_room(many, &waves[1]);
    status = agree(&many->source->world, status);
    for (uint64_t number = 0; number < many->waves && status == SIEVA_OK; number++) {
        struct wave *wave = &waves[number % 2];
        wave_begin(many, number, wave, &out, &in);
        if (mode == SIEVA_MPI_INDEPENDENT)
            expect_wave(many, wave);
        read_wave(many, wave, &unit);
        send_wave(many, wave, mode);
        finish_wave(many, mode == SIEVA_MPI_COLLECTIVE ? wave : &waves[(number + 1) % 2]);
    }
    for (int i = 0; i < 2; i++) {
        finish_wave(many, &waves[i]);
        wave_free(&waves[i]);
    }
    bytes_free(&unit.values);
    free(unit.boxes);
    return status;
}
