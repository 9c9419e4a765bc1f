/*
 * Answers: the bytes that a request stands for, at any offset, before they are sent.
 */
#ifndef SIEVA_GRIDFTP_ANSWER_H
#define SIEVA_GRIDFTP_ANSWER_H

#include "account.h"
#include "engine.h"
#include "request.h"
#include "restrict.h"
#include "session.h"

#include <stdint.h>
#include <sys/stat.h>

/* Counted references; what was asked and found never changes, and any thread may read it. */
struct answer {
    int references;
    bool kept;              /* one of them is the session's */
    uint64_t idle_since;    /* when the last other one ended; milliseconds */
    struct usage held;      /* what it takes, for account.h */
    sieva_stop *stop;       /* ends its query, its reads and its streams */
    struct request request; /* what was asked */
    struct identity who;    /* asked */
    struct stat file;       /* of the file when it was asked */
    char *real;             /* the path that the request's leads to: not for the client */
    struct restriction *restriction; /* what its query may open */
    sieva_source *source;
    sieva_result *result;   /* NULL where text is the answer */
    char *text;
    uint64_t size, rows;    /* size: 0 where it may be sent in any order, as it is not known then */
    uint64_t spooled;       /* bytes in the spool */
    char id[160];
};

/* The answer of a request, which it takes over: the session's kept one where that asked the same and the file did not
 * change, else a new one, made in a thread, once there is room for it among those of all sessions. done() is called once, from the event loop, perhaps before this returns; it
 * gets a reference of its own, or NULL and the failure. */
void answer_get(struct session *session, const struct identity *who, struct request *request,
                void (*done)(struct answer *answer, const struct failure *failure, void *argument), void *argument);

struct answer *answer_hold(struct answer *answer);

/* Gives a reference back. Where only the session's is left, the answer takes no more than what it keeps. */
void answer_release(struct answer *answer);

/* The same of the session's own. */
void answer_drop(struct answer *answer);

/* How long nobody but the session has used it. */
uint64_t answer_idle_ms(const struct answer *answer);

/* Ends its query, and all reads of it, soon; it is of no use any more. */
void answer_stop(const struct answer *answer);

/* Sets the failure that an engine's status stands for, in this thread, without the server's own paths: its log has them. */
void answer_fail(const struct answer *answer, const struct engine *engine, int32_t status, struct failure *failure);

/* Copies bytes from offset on; *count is 0 behind the last. Blocks: for threads of jobs. False: failure is set. */
bool answer_read(const struct answer *answer, uint64_t offset, void *buffer, uint64_t capacity, uint64_t *count,
                 struct failure *failure);

#endif
