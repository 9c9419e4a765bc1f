/*
 * After an upload (SDQuery, SC13, section 3.5): registering the file and building its indexes, in the background.
 */
#ifndef SIEVA_GRIDFTP_INGEST_H
#define SIEVA_GRIDFTP_INGEST_H

#include "session.h"

/* Asks the server to tell of uploads that are safely written. To be called once, before a session starts. */
void ingest_watch(void);

/* Notes that the File DSI is about to receive this file. */
void ingest_expect(const char *pathname, const struct identity *who);

#endif
