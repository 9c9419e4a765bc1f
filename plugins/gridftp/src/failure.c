/*
 * Failures as FTP replies (RFC 959, section 4.2): 501 where the query is to be changed, 550 where the file or the right
 * to it is missing, 552 where a limit of the server was exceeded, 451 where the server is at fault.
 */
#include "failure.h"

#include "sieva.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void one_line(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        char character = (unsigned char)*from < 0x20 || *from == 0x7f ? ' ' : *from;
        if (character == ' ' && to > text && to[-1] == ' ')
            continue;
        *to++ = character;
    }
    *to = '\0';
}

void failure_set(struct failure *failure, int reply, const char *name, const char *format, ...)
{
    va_list arguments;
    failure->reply = reply;
    snprintf(failure->name, sizeof failure->name, "%s", name);
    va_start(arguments, format);
    vsnprintf(failure->text, sizeof failure->text, format, arguments);
    va_end(arguments);
    one_line(failure->text);
}

static int reply_of(int32_t status)
{
    switch (status) {
    case SIEVA_ERROR_UNKNOWN_ARRAY:
    case SIEVA_ERROR_UNKNOWN_DIMENSION:
    case SIEVA_ERROR_UNKNOWN_ATTRIBUTE:
    case SIEVA_ERROR_UNKNOWN_FUNCTION:
    case SIEVA_ERROR_AMBIGUOUS_NAME:
    case SIEVA_ERROR_SYNTAX_ERROR:
    case SIEVA_ERROR_TYPE_MISMATCH:
    case SIEVA_ERROR_INVALID_VALUE:
    case SIEVA_ERROR_DIMENSION_MISMATCH:
    case SIEVA_ERROR_ARITHMETIC_OVERFLOW:
        return 501;
    case SIEVA_ERROR_MEMORY_LIMIT:
        return 552;
    case SIEVA_ERROR_IO_ERROR:
    case SIEVA_ERROR_CANCELLED:
    case SIEVA_ERROR_INTERNAL_ERROR:
        return 451;
    default:
        return 550;
    }
}

/* Whether a hint is for those who have the engine at hand: options, arguments, commands. */
static bool is_for_others(const char *hint)
{
    static const char *const marks[] = {"--", "Python", "sieva ", "dims=", "memory=", "select=", "join=", "external=", "SIEVA_"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strstr(hint, marks[i]) != NULL)
            return true;
    return false;
}

/* What a client can do instead; NULL: nothing. */
static const char *hint_of(int32_t status)
{
    switch (status) {
    case SIEVA_ERROR_MEMORY_LIMIT:
        return "ask for fewer columns, rows or groups, or for more memory of this server's administrator (`memory`)";
    case SIEVA_ERROR_UNALIGNED_DIMENSIONS:
        return "CROSS before WHERE asks for each position with each";
    case SIEVA_ERROR_PERMISSION_DENIED:
        return "this server opens nothing but the files that it serves";
    default:
        return NULL;
    }
}

void failure_of_engine(struct failure *failure, int32_t status, const char *name, const char *message, const char *hint)
{
    static const char between[] = "; hint: ";
    size_t all = strlen(message), end = strlen(hint) + strlen(between);
    const char *other = hint_of(status);
    if (*hint == '\0' || all < end || strcmp(message + all - strlen(hint), hint) != 0 || !is_for_others(hint))
        failure_set(failure, reply_of(status), name, "%s: %s", name, message);
    else
        failure_set(failure, reply_of(status), name, "%s: %.*s%s%s", name, (int)(all - end), message,
                    other == NULL ? "" : between, other == NULL ? "" : other);
}

bool failure_hide(struct failure *failure, const char *path, const char *words)
{
    char text[sizeof failure->text];
    size_t length = path == NULL ? 0 : strlen(path), to = 0;
    bool found = false;
    if (length < 2)
        return false;
    for (const char *from = failure->text; *from != '\0' && to + 1 < sizeof text;) {
        if (strncmp(from, path, length) == 0) {
            to += (size_t)snprintf(text + to, sizeof text - to, "%s", words);
            from += length;
            found = true;
        } else {
            text[to++] = *from++;
        }
    }
    text[to < sizeof text ? to : sizeof text - 1] = '\0';
    if (found)
        strcpy(failure->text, text);
    return found;
}

globus_result_t failure_result(const struct failure *failure)
{
    char name[sizeof failure->name];
    size_t length = 0;
    for (; failure->name[length] != '\0'; length++)
        name[length] = failure->name[length] == '-' ? '_' : (char)toupper((unsigned char)failure->name[length]);
    name[length] = '\0';
    return GlobusGFSErrorFtpResponse(NULL, failure->reply, name, "%s", failure->text);
}
