/*
 * The server's log: a line for each question, whoever asked it and whatever became of it.
 */
#ifndef SIEVA_GRIDFTP_JOURNAL_H
#define SIEVA_GRIDFTP_JOURNAL_H

#include "request.h"
#include "session.h"

#include <stdint.h>
#include <time.h>

/* What a line tells. */
struct entry {
    const char *verb; /* RETR, STAT, CKSM */
    struct identity identity;
    char *path, *sql; /* as asked */
    char format[16];
    uint64_t rows, bytes;
    struct timespec start;
};

void journal_begin(struct entry *entry, const char *verb, const struct request *request, const struct session *session,
                   globus_gfs_operation_t op);

/* Writes the line. failure: what went wrong; NULL: nothing did. */
void journal_write(const struct entry *entry, const char *failure);

/* Writes the line of a request that could not even be taken apart: what is the path or the text that came. */
void journal_refuse(const char *verb, const char *what, const struct session *session, globus_gfs_operation_t op,
                    const struct failure *failure);

void journal_clear(struct entry *entry);

#endif
