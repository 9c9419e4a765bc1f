/*
 * Answers: the bytes that a request stands for, at any offset, before they are sent.
 */
#ifndef SIEVA_GRIDFTP_ANSWER_H
#define SIEVA_GRIDFTP_ANSWER_H

#include "engine.h"
#include "request.h"
#include "session.h"

#include <stdint.h>
#include <sys/stat.h>

/* Counted references; otherwise it never changes, and any thread may read it. */
struct answer {
    int references;
    struct request request; /* what was asked; its path is the real one */
    struct identity who;    /* asked */
    struct stat file;       /* of the file when it was asked */
    sieva_source *source;
    sieva_result *result;   /* NULL where text is the answer */
    char *text;
    uint64_t size, rows;
    char id[160];
};

/* The answer of a request, which it takes over: the session's kept one where that asked the same and the file did not
 * change, else a new one, made in a thread. done() is called once, from the event loop, perhaps before this returns; it
 * gets a reference of its own, or NULL and the failure. */
void answer_get(struct session *session, const struct identity *who, struct request *request,
                void (*done)(struct answer *answer, const struct failure *failure, void *argument), void *argument);

struct answer *answer_hold(struct answer *answer);
void answer_release(struct answer *answer);

/* Copies bytes from offset on; *count is 0 behind the last. Blocks: for threads of jobs. False: failure is set. */
bool answer_read(const struct answer *answer, uint64_t offset, void *buffer, uint64_t capacity, uint64_t *count,
                 struct failure *failure);

#endif
