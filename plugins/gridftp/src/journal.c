/*
 * Lines of the log. What came from a client is made one line before it gets there, so that nobody forges another.
 */
#include "journal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static char *printable(const char *text)
{
    char *copy = strdup(text == NULL ? "" : text);
    if (copy != NULL)
        one_line(copy);
    return copy;
}

void journal_begin(struct entry *entry, const char *verb, const struct request *request, const struct session *session,
                   globus_gfs_operation_t op)
{
    memset(entry, 0, sizeof *entry);
    entry->verb = verb;
    entry->identity = session_identity(session, op);
    entry->path = printable(request->path);
    entry->sql = printable(request->kind == REQUEST_SCHEMA ? "schema" : request->sql);
    memcpy(entry->format, request->format, sizeof entry->format);
    clock_gettime(CLOCK_MONOTONIC, &entry->start);
}

void journal_write(const struct entry *entry, const char *failure)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double seconds = (double)(now.tv_sec - entry->start.tv_sec) + (double)(now.tv_nsec - entry->start.tv_nsec) * 1e-9;
    /* The only level that servers keep unless they are told otherwise. */
    globus_gfs_log_message(GLOBUS_GFS_LOG_ERR,
                           "sieva: %s user=\"%s\" dn=\"%s\" path=\"%s\" sql=\"%s\" format=%s rows=%" PRIu64
                           " bytes=%" PRIu64 " seconds=%.3f result=%s\n",
                           entry->verb, entry->identity.user, entry->identity.subject,
                           entry->path == NULL ? "-" : entry->path, entry->sql == NULL ? "-" : entry->sql,
                           entry->format, entry->rows, entry->bytes, seconds, failure == NULL ? "ok" : failure);
}

void journal_refuse(const char *verb, const char *what, const struct session *session, globus_gfs_operation_t op,
                    const struct failure *failure)
{
    struct request request = {.path = (char *)what, .format = "-"};
    struct entry entry;
    journal_begin(&entry, verb, &request, session, op);
    journal_write(&entry, failure->text);
    journal_clear(&entry);
}

void journal_clear(struct entry *entry)
{
    free(entry->path);
    free(entry->sql);
}
