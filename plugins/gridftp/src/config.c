/*
 * Reading the settings. A setting that is wrong is told to the server's log and refuses queries: files are served on.
 */
#define _GNU_SOURCE
#include "config.h"

#include "globus_gridftp_server.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static struct config settings;
static const uint64_t UNSET = UINT64_MAX;

enum kind { TEXT, NUMBER, SECONDS, BYTES, FLAG };

static const struct setting {
    const char *name;
    enum kind kind;
    void *value;
} table[] = {
    {"library", TEXT, &settings.library},     {"worker", TEXT, &settings.worker},
    {"store", TEXT, &settings.store},         {"spool", TEXT, &settings.spool},
    {"spool_limit", BYTES, &settings.spool_limit}, {"memory", BYTES, &settings.memory},
    {"threads", NUMBER, &settings.threads},   {"isolated", FLAG, &settings.isolated},
    {"index", FLAG, &settings.index},         {"program", TEXT, &settings.program},
    {"catalog", TEXT, &settings.catalog},     {"log", TEXT, &settings.log},
    {"time_limit", SECONDS, &settings.time_limit},
    {"progress_limit", SECONDS, &settings.progress_limit}, {"keep", SECONDS, &settings.keep},
    {"stall_limit", SECONDS, &settings.stall_limit},
    {"wait", SECONDS, &settings.wait},        {"total_queries", NUMBER, &settings.total_queries},
    {"total_memory", BYTES, &settings.total_memory}, {"total_spool", BYTES, &settings.total_spool},
    {"sessions", TEXT, &settings.sessions},
};
enum { SETTINGS = sizeof table / sizeof *table };

/* Keeps the first fault. */
static void fault(const char *place, const char *what, const char *text)
{
    if (settings.error[0] == '\0')
        snprintf(settings.error, sizeof settings.error, "%.200s: %s `%.200s`", place, what, text);
}

/* A number with an optional K, M, G or T (powers of 1024); false where text is none. */
static bool parse_bytes(const char *text, uint64_t *bytes)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (end == text || *text == '-' || errno != 0)
        return false;
    const char *units = "KMGT", *unit = *end == '\0' ? NULL : strchr(units, toupper((unsigned char)*end));
    unsigned shift = unit == NULL ? 0 : 10 * (unsigned)(unit - units + 1);
    if ((unit != NULL && end[1] != '\0') || (unit == NULL && *end != '\0') || number > UINT64_MAX >> shift)
        return false;
    *bytes = (uint64_t)number << shift;
    return true;
}

static void set(const struct setting *setting, const char *text, const char *place)
{
    uint64_t number;
    switch (setting->kind) {
    case TEXT:
        free(*(char **)setting->value);
        *(char **)setting->value = *text == '\0' ? NULL : strdup(text);
        if (*text != '\0' && *(char **)setting->value == NULL)
            fault(place, "no memory for", text); /* or a setting that restricts would be one that does not */
        return;
    case BYTES:
        if (parse_bytes(text, setting->value))
            return;
        fault(place, "expected a number of bytes such as 512M, got", text);
        return;
    case NUMBER:
        if (parse_bytes(text, &number) && number <= 4096)
            *(uint32_t *)setting->value = (uint32_t)number;
        else
            fault(place, "expected a number up to 4096, got", text);
        return;
    case SECONDS:
        if (isdigit((unsigned char)*text) && text[strspn(text, "0123456789")] == '\0' && parse_bytes(text, &number) &&
            number <= 1000000)
            *(uint32_t *)setting->value = (uint32_t)number;
        else
            fault(place, "expected a number of seconds up to 1000000, got", text);
        return;
    case FLAG:
        if (strcasecmp(text, "yes") == 0 || strcasecmp(text, "no") == 0)
            *(bool *)setting->value = strcasecmp(text, "yes") == 0;
        else
            fault(place, "expected yes or no, got", text);
    }
}

/* Takes white space off both ends, in place. */
static char *trim(char *text)
{
    text += strspn(text, " \t\r\n");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL)
        text[--length] = '\0';
    return text;
}

static void read_line(char *line, const char *place)
{
    line = trim(line);
    if (*line == '\0' || *line == '#')
        return;
    char *equals = strchr(line, '=');
    if (equals == NULL) {
        fault(place, "expected `name = value`, got", line);
        return;
    }
    *equals = '\0';
    const char *name = trim(line);
    for (size_t i = 0; i < SETTINGS; i++) {
        if (strcmp(table[i].name, name) == 0) {
            set(&table[i], trim(equals + 1), place);
            return;
        }
    }
    fault(place, "no setting", name);
}

/* A missing file is fine, unless it was named by hand. */
static void read_file(void)
{
    const char *named = getenv("SIEVA_GRIDFTP_CONF"), *path = named == NULL ? "/etc/sieva/gridftp.conf" : named;
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        if (named != NULL || errno != ENOENT)
            fault(path, "cannot be read:", strerror(errno));
        return;
    }
    char line[4096], place[4200];
    for (int number = 1; fgets(line, sizeof line, file) != NULL; number++) {
        snprintf(place, sizeof place, "%s:%d", path, number);
        read_line(line, place);
    }
    fclose(file);
}

static void read_environment(void)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        char name[64] = "SIEVA_GRIDFTP_";
        size_t length = strlen(name);
        for (const char *at = table[i].name; *at != '\0'; at++)
            name[length++] = (char)toupper((unsigned char)*at);
        const char *value = getenv(name);
        if (value != NULL)
            set(&table[i], value, name);
    }
}

/* What is named nowhere lies beside this plug-in. */
static char *beside(const char *name)
{
    Dl_info info;
    if (dladdr((void *)beside, &info) == 0 || info.dli_fname == NULL)
        return strdup(name);
    const char *slash = strrchr(info.dli_fname, '/');
    char *path = NULL;
    if (slash == NULL)
        return strdup(name);
    return asprintf(&path, "%.*s/%s", (int)(slash - info.dli_fname), info.dli_fname, name) < 0 ? NULL : path;
}

static uint64_t physical_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages <= 0 || size <= 0 ? 0 : (uint64_t)pages * (uint64_t)size;
}

static void read_all(void)
{
    settings.isolated = true;
    settings.library = beside("libsieva_c.so");
    settings.worker = beside("sieva-worker");
    settings.program = beside("sieva/bin/sieva"); /* where `make install` puts it */
    if (settings.program != NULL && access(settings.program, X_OK) != 0) {
        free(settings.program);
        settings.program = strdup("sieva");
    }
    settings.memory = (uint64_t)1 << 30;
    settings.spool_limit = (uint64_t)8 << 30;
    settings.time_limit = 300;
    settings.progress_limit = 60;
    settings.stall_limit = 600;
    settings.keep = 60;
    settings.wait = 10;
    settings.total_queries = 64;
    settings.total_memory = physical_memory() / 4 * 3;
    settings.total_spool = UNSET;
    read_file();
    read_environment();
    if (settings.memory == 0 || settings.spool_limit == 0)
        fault("settings", "must not be 0:", "memory, spool_limit");
    if (settings.total_spool == UNSET)
        settings.total_spool = settings.spool_limit > UINT64_MAX / 4 ? 0 : 4 * settings.spool_limit;
    /* One question alone must find room. */
    if (settings.total_memory > 0 && settings.memory > settings.total_memory)
        settings.memory = settings.total_memory;
    if (settings.total_spool > 0 && settings.spool_limit > settings.total_spool)
        settings.spool_limit = settings.total_spool;
    if (settings.library == NULL || settings.worker == NULL || settings.program == NULL)
        fault("settings", "must not be empty:", "library, worker, program");
    if (settings.error[0] != '\0')
        globus_gfs_log_message(GLOBUS_GFS_LOG_ERR, "sieva: configuration: %s\n", settings.error);
}

const struct config *config_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_all);
    return &settings;
}
