/*
 * What is kept of a client's session: who it is, the query of SITE SIEVA, and the last result.
 */
#ifndef SIEVA_GRIDFTP_SESSION_H
#define SIEVA_GRIDFTP_SESSION_H

#include "globus_gridftp_server.h"

#include <pthread.h>
#include <stdbool.h>

struct answer;

/* Counted references: the server's, and those of questions under way, which may last longer. */
struct session {
    int references;
    void *key;           /* the File DSI's session, which the server passes to every function */
    char *subject;       /* distinguished name of the certificate; NULL: none was shown */
    char *text;          /* of SITE SIEVA, for the next RETR; NULL: none */
    pthread_mutex_t lock; /* of what follows */
    struct answer *kept; /* of the last question, so that RETR after SIZE asks nothing again */
    bool ended;          /* nothing is kept any more */
    bool timed;          /* a look whether it still needs what is kept is to come */
    struct session *next;
};

/* Whom a request comes from: for the log and for the engine. */
struct identity {
    char user[128];    /* `-` where there is none */
    char subject[512]; /* `-` where no certificate was shown */
};

/* Notes who starts a session; its key is not known before its first request. */
void session_announce(const globus_gfs_session_info_t *info);

/* The session of a key, made where there is none: also ERET comes with the sessions of another DSI. It is the server's. */
struct session *session_get(void *key);

struct session *session_hold(struct session *session);
void session_release(struct session *session);

/* Ends a session; frees what it kept. */
void session_end(void *key);

/* Keeps an answer in the place of another (NULL: none), for as long as the settings say. */
void session_keep(struct session *session, struct answer *answer);

/* The answer that is kept, with a reference of its own; NULL where there is none. */
struct answer *session_kept(struct session *session);

/* Keeps an answer no longer, if it is kept. */
void session_forget(struct session *session, const struct answer *answer);

/* False where memory is short: there is no text then. */
bool session_set_text(struct session *session, const char *text);

struct identity session_identity(const struct session *session, globus_gfs_operation_t op);

#endif
