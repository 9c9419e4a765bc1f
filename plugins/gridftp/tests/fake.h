/*
 * An engine that takes its time, or never ends, and a way to wait for it: for tests without a server.
 */
#ifndef SIEVA_GRIDFTP_FAKE_H
#define SIEVA_GRIDFTP_FAKE_H

#include "../src/watch.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SIZE = 1000003 }; /* of each result; byte i is (unsigned char)(i * 7) */

#define EXPECT(condition)                                                                                               \
    do {                                                                                                                \
        if (!(condition)) {                                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                             \
            exit(1);                                                                                                    \
        }                                                                                                               \
    } while (0)

/* Lets the event loop run until something is so. */
#define AWAIT(condition)                                                                                                \
    for (uint64_t until = now_ms() + 20000; !(condition); usleep(1000)) {                                               \
        EXPECT(now_ms() < until);                                                                                       \
        globus_poll_nonblocking();                                                                                      \
    }

/* What there is, and how many queries were evaluated. */
extern atomic_int open_sources, open_results, open_stops, open_streams, evaluations;
extern atomic_bool hang; /* queries that hang do so */

#endif
