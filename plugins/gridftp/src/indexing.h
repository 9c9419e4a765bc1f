/*
 * The work that an upload leaves: registering a file and indexing it, in a process that outlives the session.
 */
#ifndef SIEVA_GRIDFTP_INDEXING_H
#define SIEVA_GRIDFTP_INDEXING_H

#include "session.h"

/* Starts it; whatever becomes of it is told to the server's log. */
void indexing_start(const char *path, const struct identity *who);

#endif
