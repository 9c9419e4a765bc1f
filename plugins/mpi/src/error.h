/*
 * Errors: noted by the rank that has one, agreed upon by all.
 */
#ifndef SIEVA_MPI_ERROR_H
#define SIEVA_MPI_ERROR_H

#include "world.h"

#include <stdint.h>

/* Notes an error of this library's own on this rank; the code. */
int32_t fail(int32_t code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Notes that so many bytes are not to be had. */
int32_t fail_memory(uint64_t bytes, const char *what);

/* Notes what sieva said of a call that gave this status; the status. */
int32_t said(int32_t status);

/* An error that keeps this rank from taking part: it is told here alone. */
int32_t refuse(int32_t code, const char *text);

/* Collective: SIEVA_OK if all ranks come with that, else the code of the lowest rank that has an error, whose words all ranks
 * then have. */
int32_t agree(const struct world *world, int32_t status);

/* Whether this rank is to say the words of the last error: others have the same. */
int error_speaks(void);

#endif
