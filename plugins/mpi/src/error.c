/*
 * Errors: noted by the rank that has one, agreed upon by all. Texts have a fixed length, so that telling of an error needs no
 * memory.
 */
#include "error.h"
#include "bytes.h"
#include "sieva_mpi.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 4096 };

/* What this rank has to say, before the others know. */
static __thread char noted[LONGEST];

/* What is told to the program. */
static __thread struct {
    int32_t code;
    int32_t rank;
    /* Whether this rank speaks for those that were told the same. */
    int speaks;
    char text[LONGEST + 32];
} told = {SIEVA_OK, -1, 1, ""};

/* Cuts a text that was too long where no character is broken. */
static void whole_characters(char *text)
{
    size_t end = strlen(text), start = end;
    while (start > 0 && ((unsigned char)text[start - 1] & 0xC0) == 0x80)
        start--;
    if (end < LONGEST - 1 || start == 0)
        return;
    unsigned char lead = (unsigned char)text[start - 1];
    size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (end - (start - 1) < length)
        text[start - 1] = '\0';
}

int32_t fail(int32_t code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(noted, sizeof noted, format, arguments);
    va_end(arguments);
    whole_characters(noted);
    return code;
}

int32_t fail_memory(uint64_t bytes, const char *what)
{
    return fail(SIEVA_ERROR_MEMORY_LIMIT, "%s take %" PRIu64 " bytes, which the system does not give", what, bytes);
}

int32_t said(int32_t status)
{
    return status == SIEVA_OK ? status : fail(status, "%s", sieva_error_message());
}

int32_t refuse(int32_t code, const char *text)
{
    told.code = code;
    told.rank = -1;
    told.speaks = 1;
    snprintf(told.text, sizeof told.text, "%s", text);
    return code;
}

int32_t agree(const struct world *world, int32_t status)
{
    /* The greatest number is that of the lowest rank with an error; 0 of none. */
    int lowest = world->size - most_of_all(world, status == SIEVA_OK ? 0 : world->size - world->rank);
    int32_t head[2];
    if (lowest == world->size)
        return SIEVA_OK;
    head[0] = status;
    head[1] = (int32_t)strlen(noted);
    memory_broadcast(world, lowest, head, sizeof head);
    memory_broadcast(world, lowest, noted, (uint64_t)head[1]);
    noted[head[1]] = '\0';
    told.code = head[0];
    told.rank = lowest;
    told.speaks = world->rank == 0;
    snprintf(told.text, sizeof told.text, "rank %d: %s", lowest, noted);
    return head[0];
}

int32_t sieva_mpi_error_code(void)
{
    return told.code;
}

const char *sieva_mpi_error_message(void)
{
    return told.text;
}

int error_speaks(void)
{
    return told.speaks;
}

int32_t sieva_mpi_error_rank(void)
{
    return told.rank;
}
