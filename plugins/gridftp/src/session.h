/*
 * What is kept of a client's session: who it is, the query of SITE SIEVA, and the last result.
 */
#ifndef SIEVA_GRIDFTP_SESSION_H
#define SIEVA_GRIDFTP_SESSION_H

#include "globus_gridftp_server.h"

struct answer;

struct session {
    void *key;           /* the File DSI's session, which the server passes to every function */
    char *subject;       /* distinguished name of the certificate; NULL: none was shown */
    char *text;          /* of SITE SIEVA, for the next RETR; NULL: none */
    struct answer *kept; /* of the last question, so that RETR after SIZE asks nothing again */
    struct session *next;
};

/* Whom a request comes from: for the log and for the engine. */
struct identity {
    char user[128];    /* `-` where there is none */
    char subject[512]; /* `-` where no certificate was shown */
};

/* Notes who starts a session; its key is not known before its first request. */
void session_announce(const globus_gfs_session_info_t *info);

/* The session of a key, made where there is none: also ERET comes with the sessions of another DSI. */
struct session *session_get(void *key);

/* Forgets a session; frees what it kept. */
void session_end(void *key);

void session_set_text(struct session *session, const char *text);

struct identity session_identity(const struct session *session, globus_gfs_operation_t op);

#endif
