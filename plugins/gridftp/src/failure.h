/*
 * What went wrong with a request, in words for the client, and the FTP reply that it becomes.
 */
#ifndef SIEVA_GRIDFTP_FAILURE_H
#define SIEVA_GRIDFTP_FAILURE_H

#include "globus_gridftp_server.h"

#include <stdbool.h>
#include <stdint.h>

/* A failure; no failure where reply is 0. */
struct failure {
    int reply;       /* FTP reply code, such as 501 */
    char name[48];   /* sieva's code of the error, such as "syntax-error" */
    char text[2048]; /* what was given, what was expected, what to do; one line */
};

/* Sets a failure of this plug-in's own. The text is made one printable line. */
void failure_set(struct failure *failure, int reply, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Sets the failure that an engine's status stands for, of the thread that got it: sieva_error_name(), sieva_error_message(),
 * which ends with the hint, and sieva_error_hint(). A hint for a command line or for Python is put in a client's words. */
void failure_of_engine(struct failure *failure, int32_t status, const char *name, const char *message, const char *hint);

/* Puts words in the place of a path of this server's (NULL: none) in a failure's text; whether it was there. */
bool failure_hide(struct failure *failure, const char *path, const char *words);

/* The failure as an error object of the server, which replies with its code and text. */
globus_result_t failure_result(const struct failure *failure);

/* Replaces, in place, all that could break a line or forge one: control characters become spaces. */
void one_line(char *text);

#endif
