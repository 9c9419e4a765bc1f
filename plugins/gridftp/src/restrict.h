/*
 * The server's restricted paths (-restrict-paths), applied to the file that a query reads.
 */
#ifndef SIEVA_GRIDFTP_RESTRICT_H
#define SIEVA_GRIDFTP_RESTRICT_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the server's settings allow reading a file by this path, and by the real path that it leads to, unless
 * symbolic links may lead anywhere (-rp-follow-symlinks). The server itself has checked the path as it was sent, query
 * included, which an entry for one file (`N/data/secret.nc`) or a pattern (`N/data/s*.nc`) does not match. */
bool restrict_allows(const char *path, const char *real);

/* The settings as they are now, for threads that may not ask the server: what a query opens besides its file is looked at
 * there. Kept for the life of the process, once for each state of the settings, as the engine's threads may ask for it after
 * a source was closed; NULL where memory is short. */
struct restriction;
struct restriction *restrict_take(void);

/* The engine's question (sieva_may_open), with the settings that were taken as its context; NULL allows nothing. Files are
 * as restrict_allows() has them. URLs are refused: the server itself would not fetch them for anybody. */
int32_t restrict_may_open(void *restriction, int32_t purpose, const char *asked, const char *real);

#endif
