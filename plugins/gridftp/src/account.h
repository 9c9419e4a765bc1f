/*
 * What all sessions of a host together may take: questions at a time, memory, and room for spooled results.
 *
 * Sessions are processes, so each notes what it takes in a record of a common file, and holds a lock on the record for as
 * long as it lives. The record of a process that crashed has no lock, and counts no more.
 */
#ifndef SIEVA_GRIDFTP_ACCOUNT_H
#define SIEVA_GRIDFTP_ACCOUNT_H

#include "failure.h"

#include <stdbool.h>
#include <stdint.h>

/* What an answer takes. */
struct usage {
    uint64_t questions, memory, spool;
};

/* Opens the common file: as early as the process has the server's own rights, which are gone once a client has logged in. */
void account_open(void);

/* The file, open for writing, whose lock is of the one process that indexes uploads; -1: there is none. It lies where only the
 * server can hold that lock. */
int account_turn(void);

enum admission {
    ADMITTED,
    BUSY,    /* what others hold leaves no room now */
    REFUSED, /* the failure is set */
};

/* Asks for `wanted` in the place of `held`, which it becomes where that is admitted. From any thread. */
enum admission account_ask(struct usage *held, struct usage wanted, struct failure *failure);

/* Takes less than before. From any thread. */
void account_lower(struct usage *held, struct usage wanted);

#endif
