/*
 * The site's settings: /etc/sieva/gridftp.conf (or the file that SIEVA_GRIDFTP_CONF names), lines `name = value`, and
 * environment variables SIEVA_GRIDFTP_NAME, which win. README.md lists the names.
 */
#ifndef SIEVA_GRIDFTP_CONFIG_H
#define SIEVA_GRIDFTP_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

struct config {
    char *library;        /* libsieva_c.so */
    char *worker;         /* the program that parses foreign files */
    char *store;          /* directory for augmentations; NULL: beside the files */
    char *spool;          /* directory for results that are made once; NULL: the engine's default */
    uint64_t spool_limit; /* bytes of one result there */
    uint64_t memory;      /* bytes of one query */
    uint32_t threads;     /* 0: one for each core */
    bool isolated;        /* parse files in a process of their own */
    bool index;           /* index what was uploaded */
    char *program;        /* the command line `sieva`, which indexes; a name is looked for in PATH */
    char *catalog;        /* where uploads are registered; NULL: nowhere */
    char *log;            /* all that indexing says; NULL: its outcome alone is kept, in the server's log */
    uint32_t time_limit;     /* seconds for evaluating a question; 0: any time */
    uint32_t progress_limit; /* seconds for a block of a result; 0: any time */
    uint32_t stall_limit;    /* seconds in which a client must take a block; 0: any time */
    uint32_t keep;           /* seconds that an idle session keeps its last result */
    uint32_t wait;           /* seconds that a question waits until others leave room for it */
    uint32_t total_queries;  /* of all sessions at a time; 0: any number */
    uint64_t total_memory;   /* bytes of all sessions; 0: any number */
    uint64_t total_spool;    /* the same */
    char *sessions;          /* directory where sessions note what they take; NULL: see account.c */
    char error[512];      /* what is wrong with the settings; empty: nothing */
};

/* The settings, read once for each process. Never NULL. */
const struct config *config_get(void);

#endif
