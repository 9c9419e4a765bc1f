/*
 * Work that takes too long, or that nobody waits for any more.
 */
#ifndef SIEVA_GRIDFTP_WATCH_H
#define SIEVA_GRIDFTP_WATCH_H

#include "engine.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Milliseconds of a clock that only goes forward. */
uint64_t now_ms(void);

/* Whether the client of this process has closed its connection. False where that cannot be known. */
bool client_is_gone(void);

struct watch {
    uint64_t limit;           /* milliseconds between signs of life; 0: any time */
    const char *what;         /* took too long, for the client */
    atomic_uint_fast64_t sign; /* when there was one */
    uint64_t stopped;         /* when the work was told to end; 0: it was not */
    struct failure failure;   /* why */
};

void watch_begin(struct watch *watch, uint32_t seconds, const char *what);

/* The work goes on as it should. From any thread. */
void watch_sign(struct watch *watch);

/* Milliseconds since then. */
uint64_t watch_age(struct watch *watch);

/* Looks whether the work is to end; sets the failure where it is. */
bool watch_is_over(struct watch *watch);

/* From the event loop: as above, and tells the engine. True: it was told a second ago, and has not ended. */
bool watch_look(struct watch *watch, const struct engine *engine, const sieva_stop *stop);

#endif
