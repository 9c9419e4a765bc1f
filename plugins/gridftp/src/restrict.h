/*
 * The server's restricted paths (-restrict-paths), applied to the file that a query reads.
 */
#ifndef SIEVA_GRIDFTP_RESTRICT_H
#define SIEVA_GRIDFTP_RESTRICT_H

#include <stdbool.h>

/* Whether the server's settings allow reading a file by this path, and by the real path that it leads to, unless
 * symbolic links may lead anywhere (-rp-follow-symlinks). The server itself has checked the path as it was sent, query
 * included, which an entry for one file (`N/data/secret.nc`) or a pattern (`N/data/s*.nc`) does not match. */
bool restrict_allows(const char *path, const char *real);

#endif
