/*
 * The text of a request. It comes from the network: nothing in it is believed, and nothing in it is ever a format.
 */
#include "request.h"

#include "engine.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* The server cuts a longer path without a word. */
enum { PATH_LIMIT = 4095, TEXT_LIMIT = 65536 };

/* The length of the separator at text: `;`, `?`, or either percent-encoded; 0 where there is none. */
static size_t separator_length(const char *text)
{
    if (*text == ';' || *text == '?')
        return 1;
    return strncasecmp(text, "%3f", 3) == 0 || strncasecmp(text, "%3b", 3) == 0 ? 3 : 0;
}

/* Whether the whole path names a file, and what is before the question names nothing: a file may be called `x;schema`. */
static bool is_mere_name(const char *pathname, size_t file_length)
{
    struct stat facts;
    char *file = stat(pathname, &facts) == 0 ? strndup(pathname, file_length) : NULL;
    bool is = file != NULL && stat(file, &facts) != 0;
    free(file);
    return is;
}

/* Where a text's question begins, separator included; NULL where there is none. */
static const char *find_mark(const char *pathname)
{
    for (const char *at = pathname; *at != '\0'; at++) {
        size_t skip = separator_length(at);
        if (skip == 0)
            continue;
        if (strncasecmp(at + skip, "sql=", 4) == 0 || strncasecmp(at + skip, "sql%3d", 6) == 0 ||
            strcasecmp(at + skip, "schema") == 0)
            return at;
    }
    return NULL;
}

/* The same of a path; NULL where it is a mere name. */
static const char *find_question(const char *pathname)
{
    const char *mark = find_mark(pathname);
    return mark == NULL || is_mere_name(pathname, (size_t)(mark - pathname)) ? NULL : mark;
}

bool request_is_in_path(const char *pathname)
{
    return find_question(pathname) != NULL;
}

size_t request_file_length(const char *pathname)
{
    const char *question = find_question(pathname);
    return question == NULL ? strlen(pathname) : (size_t)(question - pathname);
}

static int hex_value(char digit)
{
    return isdigit((unsigned char)digit) ? digit - '0' : tolower((unsigned char)digit) - 'a' + 10;
}

/* Decodes %XX in place. A text with white space was not encoded by anybody, so its percent signs are its own
 * (LIKE '%ab%'). False where a NUL byte comes out. */
static bool percent_decode(char *text)
{
    if (strpbrk(text, " \t\r\n") != NULL)
        return true;
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        if (*from == '%' && isxdigit((unsigned char)from[1]) && isxdigit((unsigned char)from[2])) {
            *to = (char)(hex_value(from[1]) << 4 | hex_value(from[2]));
            from += 2;
            if (*to == '\0')
                return false;
        } else {
            *to = *from;
        }
        to++;
    }
    *to = '\0';
    return true;
}

/* The format that a suffix, or the name of a format, stands for; NULL is the default. The engine knows which there are. */
static bool set_format(struct request *request, const char *name, struct failure *failure)
{
    const struct engine *engine = engine_get(failure);
    if (engine == NULL)
        return false;
    const char *format = NULL;
    int32_t laid_out = 0;
    int32_t status = engine->result_format(name, &format, &laid_out);
    if (status != SIEVA_OK) {
        failure_of_engine(failure, status, engine->error_name(status), engine->error_message(), engine->error_hint());
        return false;
    }
    snprintf(request->format, sizeof request->format, "%s", format);
    request->laid_out = laid_out != 0;
    return true;
}

/* Whether text is an option's value to its end: letters, digits, `.`, `_`, `-`. So `'a;id=b'` in a query is none. */
static bool is_word(const char *text)
{
    return *text != '\0' && text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")] == '\0';
}

/* `deflate=` 0 to 9. */
static bool set_deflate(struct request *request, const char *value, struct failure *failure)
{
    if (isdigit((unsigned char)value[0]) && value[1] == '\0') {
        request->deflate = (uint32_t)(value[0] - '0');
        return true;
    }
    failure_set(failure, 501, "invalid-value",
                "invalid-value: `deflate=%.40s`: levels are 0 (not compressed), and 1 (fast) to 9 (small)", value);
    return false;
}

/* `order=any`, or as ever. */
static bool set_order(struct request *request, const char *value, struct failure *failure)
{
    request->any_order = strcasecmp(value, "any") == 0;
    if (request->any_order || strcasecmp(value, "ascending") == 0)
        return true;
    failure_set(failure, 501, "invalid-value", "invalid-value: `order=%.40s`: one of ascending, any", value);
    return false;
}

enum option { OPTION_NONE, OPTION_TAKEN, OPTION_WRONG };

/* Takes the option that text is, if it is one. An explicit format wins over a name's suffix. */
static enum option take_option(const char *text, struct request *request, bool *has_format, struct failure *failure)
{
    if (strcasecmp(text, "describe") == 0) {
        request->kind = REQUEST_DESCRIBE;
        return OPTION_TAKEN;
    }
    const char *value = strchr(text, '=');
    if (value == NULL || !is_word(++value))
        return OPTION_NONE;
    if (strncasecmp(text, "format=", 7) == 0) {
        *has_format = true;
        return set_format(request, value, failure) ? OPTION_TAKEN : OPTION_WRONG;
    }
    if (strncasecmp(text, "as=", 3) == 0) {
        const char *suffix = strrchr(value, '.');
        if (*has_format)
            return OPTION_TAKEN;
        return set_format(request, suffix == NULL ? value : suffix + 1, failure) ? OPTION_TAKEN : OPTION_WRONG;
    }
    if (strncasecmp(text, "deflate=", 8) == 0)
        return set_deflate(request, value, failure) ? OPTION_TAKEN : OPTION_WRONG;
    if (strncasecmp(text, "order=", 6) == 0)
        return set_order(request, value, failure) ? OPTION_TAKEN : OPTION_WRONG;
    if (strncasecmp(text, "id=", 3) == 0) {
        if (strlen(value) >= sizeof request->id) {
            failure_set(failure, 501, "invalid-value", "invalid-value: `id=` is longer than any id");
            return OPTION_WRONG;
        }
        strcpy(request->id, value);
        return OPTION_TAKEN;
    }
    return OPTION_NONE;
}

/* Takes the options off the end of a query; what is left is the SQL. */
static bool take_options(char *sql, struct request *request, struct failure *failure)
{
    bool has_format = false;
    for (;;) {
        char *last = NULL;
        for (char *at = sql; *at != '\0'; at++)
            if (*at == ';' || *at == '&')
                last = at;
        if (last == NULL)
            return true;
        switch (take_option(last + 1, request, &has_format, failure)) {
        case OPTION_WRONG:
            return false;
        case OPTION_NONE:
            return true;
        case OPTION_TAKEN:
            *last = '\0';
        }
    }
}

static bool check_text(const char *text, struct failure *failure)
{
    for (const char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 && *at != '\t' && *at != '\n' && *at != '\r') {
            failure_set(failure, 501, "syntax-error", "syntax-error: byte %td of the query is a control character",
                        at - text);
            return false;
        }
    }
    return true;
}

static bool lacks_memory(struct failure *failure)
{
    failure_set(failure, 451, "internal-error", "internal-error: out of memory");
    return false;
}

/* Fills a request from text, which it takes over, and frees in the case of a failure. */
static bool fill(struct request *request, const char *path, size_t path_length, char *text, struct failure *failure)
{
    memset(request, 0, sizeof *request);
    if (text == NULL)
        return lacks_memory(failure);
    request->kind = REQUEST_QUERY;
    if (strcasecmp(text, "schema") == 0) {
        request->kind = REQUEST_SCHEMA;
        *text = '\0';
    } else {
        if (strncasecmp(text, "sql=", 4) == 0)
            memmove(text, text + 4, strlen(text + 4) + 1);
        if (!check_text(text, failure) || !set_format(request, NULL, failure) ||
            !take_options(text, request, failure)) {
            free(text);
            return false;
        }
        if (text[strspn(text, " \t\r\n;")] == '\0') {
            failure_set(failure, 501, "syntax-error",
                        "syntax-error: the query is empty; hint: FILE;sql=SELECT name WHERE name > 5");
            free(text);
            return false;
        }
    }
    request->sql = text;
    request->path = strndup(path, path_length);
    if (request->path != NULL)
        return true;
    request_clear(request);
    return lacks_memory(failure);
}

static bool is_too_long(const char *text, struct failure *failure)
{
    if (strlen(text) <= TEXT_LIMIT)
        return false;
    failure_set(failure, 501, "syntax-error", "syntax-error: the query has %zu bytes, more than %d", strlen(text),
                TEXT_LIMIT);
    return true;
}

bool request_of_path(const char *pathname, const char *command, struct request *request, struct failure *failure)
{
    const char *question = find_question(pathname);
    memset(request, 0, sizeof *request);
    if (question == NULL)
        return true;
    size_t length = (size_t)(question - pathname);
    const char *uncut = command == NULL ? NULL : find_mark(command);
    if (uncut != NULL) {
        question = uncut;
        if (is_too_long(question, failure))
            return false;
    } else if (strlen(pathname) >= PATH_LIMIT) {
        failure_set(failure, 501, "syntax-error",
                    "syntax-error: a path and its query have room for %d bytes; hint: RETR, SITE SIEVA and ERET take longer ones",
                    PATH_LIMIT - 1);
        return false;
    }
    const char *begin = question + separator_length(question);
    char *text = strndup(begin, strcspn(begin, "\r\n"));
    if (text != NULL && !percent_decode(text)) {
        failure_set(failure, 501, "syntax-error", "syntax-error: the query holds a NUL byte (%%00)");
        free(text);
        return false;
    }
    return fill(request, pathname, length, text, failure);
}

bool request_of_text(const char *path, const char *text, struct request *request, struct failure *failure)
{
    if (is_too_long(text, failure))
        return false;
    return fill(request, path, strlen(path), strdup(text), failure);
}

void request_clear(struct request *request)
{
    free(request->path);
    free(request->sql);
    memset(request, 0, sizeof *request);
}
