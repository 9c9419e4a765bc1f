/*
 * The descriptor of the log is the one that has the log's inode. Lines look as the server's own.
 */
#define _GNU_SOURCE
#include "serverlog.h"

#include "globus_gridftp_server.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

enum { DESCRIPTORS = 1024 };

/* The descriptor of a file that is open already; -1: none. */
static int find_open(const char *path)
{
    struct stat wanted, facts;
    if (stat(path, &wanted) != 0)
        return -1;
    for (int file = 0; file < DESCRIPTORS; file++)
        if (fstat(file, &facts) == 0 && facts.st_dev == wanted.st_dev && facts.st_ino == wanted.st_ino)
            return file;
    return -1;
}

struct server_log server_log_find(void)
{
    const char *module = globus_gfs_config_get_string("log_module");
    const char *single = globus_gfs_config_get_string("log_single"), *unique = globus_gfs_config_get_string("log_unique");
    char path[PATH_MAX];
    if (module != NULL && strncmp(module, "syslog", 6) == 0)
        return (struct server_log){.file = -1, .syslog = true};
    if (single == NULL && unique == NULL)
        return (struct server_log){.file = STDERR_FILENO};
    if (single != NULL)
        snprintf(path, sizeof path, "%s", single);
    else
        snprintf(path, sizeof path, "%sgridftp.%d.log", unique, (int)getpid());
    int file = find_open(path);
    return (struct server_log){.file = file, .syslog = file < 0};
}

void server_log_write(const struct server_log *log, const char *line)
{
    char date[32] = "";
    time_t now = time(NULL);
    if (log->syslog)
        syslog(LOG_DAEMON | LOG_ERR, "%s", line);
    if (log->file < 0 || ctime_r(&now, date) == NULL)
        return;
    date[strcspn(date, "\n")] = '\0';
    dprintf(log->file, "[%d] %s :: %s\n", (int)getpid(), date, line);
}
