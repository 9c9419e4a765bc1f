/*
 * What a client asks of a file, taken out of a path, of the text of SITE SIEVA, or of the arguments of ERET.
 */
#ifndef SIEVA_GRIDFTP_REQUEST_H
#define SIEVA_GRIDFTP_REQUEST_H

#include "failure.h"

#include <stdbool.h>
#include <stdint.h>

enum request_kind {
    REQUEST_NONE = 0, /* the file itself */
    REQUEST_QUERY,    /* the result of a query, as a file */
    REQUEST_DESCRIBE, /* what is known of that result, as JSON */
    REQUEST_SCHEMA    /* the descriptors of the file, as JSON */
};

/* Texts are owned by the request and freed by request_clear(). */
struct request {
    enum request_kind kind;
    char *path;       /* the file's */
    char *sql;        /* empty for a schema */
    char format[16];  /* as sieva_result_options.format */
    bool laid_out;    /* whether the format is, so that only a deflated result is written first */
    uint32_t deflate; /* as sieva_result_options.deflate */
    bool any_order;   /* the client takes blocks in any order: those of a deflated result as they are made */
    char id[160];     /* what the client expects sieva_result_id() to be; empty: anything */
};

/* Takes a path apart: FILE;sql=SELECT ...[;format=NAME][;as=NAME.EXT][;deflate=N][;order=any][;id=ID][;describe] or FILE;schema, where `?` may
 * stand for the first `;` and `&` for the others. The part behind FILE may be percent-encoded. The kind is REQUEST_NONE
 * for any other path. The server cuts paths at 4095 bytes, and takes them for directories (`a//b` becomes `a/b`): where
 * command, the client's line as it came, is not NULL, the question is taken from there. False: failure says what is wrong;
 * nothing is to be cleared then. */
bool request_of_path(const char *pathname, const char *command, struct request *request, struct failure *failure);

/* Takes the text of SITE SIEVA or of ERET apart: all that may follow `;sql=` above, or `schema`. Nothing is decoded. */
bool request_of_text(const char *path, const char *text, struct request *request, struct failure *failure);

/* Whether a path asks for something else than the file of that name. */
bool request_is_in_path(const char *pathname);

/* The length of a path's part that names a file: all of it, where nothing is asked. */
size_t request_file_length(const char *pathname);

void request_clear(struct request *request);

#endif
