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
    uint64_t spool_limit; /* bytes; 0: the engine's default */
    uint64_t memory;      /* bytes; 0: the engine's default */
    uint32_t threads;     /* 0: one for each core */
    bool isolated;        /* parse files in a process of their own */
    bool index;           /* index what was uploaded */
    char *program;        /* the command line `sieva`, which indexes */
    char *catalog;        /* where uploads are registered; NULL: nowhere */
    char *log;            /* what indexing says; NULL: nothing is kept */
    char *lock;           /* directory of the locks and lists of indexing */
    char error[512];      /* what is wrong with the settings; empty: nothing */
};

/* The settings, read once for each process. Never NULL. */
const struct config *config_get(void);

#endif
