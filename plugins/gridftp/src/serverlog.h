/*
 * The server's log for a process that has left the server: its own functions may not be called there.
 */
#ifndef SIEVA_GRIDFTP_SERVERLOG_H
#define SIEVA_GRIDFTP_SERVERLOG_H

#include <stdbool.h>

/* Where the server logs to. */
struct server_log {
    int file;    /* its descriptor; -1: none that was found */
    bool syslog; /* it is there, or a file that was not found: syslog has it then */
};

/* Finds it, in the server: the file was opened before the client logged in, who may not open it. */
struct server_log server_log_find(void);

/* Writes a line, without its end. */
void server_log_write(const struct server_log *log, const char *line);

#endif
