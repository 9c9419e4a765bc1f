/*
 * A detached process of the lowest priority: sessions never wait for it. At most one works at a time on a host, by a lock
 * in the server's own directory. Who gets the lock and finds that the file was changed meanwhile leaves it to the process
 * which that change started: many uploads of one file are indexed once.
 *
 * It stays between the program that indexes and the logs: the program, which the client's user may watch, gets neither.
 */
#define _GNU_SOURCE
#include "indexing.h"

#include "account.h"
#include "config.h"
#include "failure.h"
#include "serverlog.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Where things lie in the detached process, behind its standard streams; all else is closed. */
enum { TURN = 3, SERVER_LOG = 4, OWN_LOG = 5, FIRST_CLOSED = 6, ASIDE = 32 };

/* All that the detached process needs, made before the fork. */
struct work {
    const char *program;
    const char *add[9], *index[7]; /* arguments; add[0] is NULL where there is no catalog */
    const char *log;               /* NULL: none */
    const char *path;
    char shown[2048]; /* the path on one line */
    const struct identity *who;
    struct server_log server;
    struct stat file;
    struct timespec began;
    char told[1024]; /* the last of what the program said */
};

static bool prepare(struct work *work, const char *path, const struct identity *who)
{
    const struct config *config = config_get();
    const char **argument = work->add;
    memset(work, 0, sizeof *work);
    work->program = config->program;
    work->log = config->log;
    work->path = path;
    work->who = who;
    work->server = server_log_find();
    snprintf(work->shown, sizeof work->shown, "%s", path);
    one_line(work->shown);
    clock_gettime(CLOCK_MONOTONIC, &work->began);
    if (config->catalog != NULL) {
        *argument++ = config->program, *argument++ = "catalog", *argument++ = "add", *argument++ = path;
        *argument++ = "--catalog", *argument++ = config->catalog;
        if (config->isolated)
            *argument++ = "--isolated";
    }
    argument = work->index;
    *argument++ = config->program, *argument++ = "index", *argument++ = path;
    if (config->isolated)
        *argument++ = "--isolated";
    if (config->store != NULL)
        *argument++ = "--store", *argument++ = config->store;
    return stat(path, &work->file) == 0;
}

/* A line for the log of indexing: when, for whom, of what. */
static void note(const struct work *work, const char *text)
{
    char date[32] = "";
    struct tm parts;
    time_t now = time(NULL);
    if (work->log == NULL)
        return;
    if (gmtime_r(&now, &parts) != NULL)
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &parts);
    dprintf(OWN_LOG, "%s user=\"%s\" dn=\"%s\" path=\"%s\": %s\n", date, work->who->user, work->who->subject, work->shown,
            text);
}

/* The outcome, for both logs. */
static void tell(const struct work *work, const char *outcome, const char *why)
{
    char line[6144];
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double seconds = (double)(now.tv_sec - work->began.tv_sec) + (double)(now.tv_nsec - work->began.tv_nsec) * 1e-9;
    snprintf(line, sizeof line, "sieva: INDEX user=\"%s\" dn=\"%s\" path=\"%s\" seconds=%.3f result=%s%s%s", work->who->user,
             work->who->subject, work->shown, seconds, outcome, *why == '\0' ? "" : ": ", why);
    server_log_write(&work->server, line);
    snprintf(line, sizeof line, "%s%s%s", outcome, *why == '\0' ? "" : ": ", why);
    note(work, line);
}

/* Puts descriptors where they belong. They come from below ASIDE, so that none is overwritten by another. */
static void place(int from, int to)
{
    if (from < 0 || dup2(from, to) < 0)
        close(to);
    else
        fcntl(to, F_SETFD, FD_CLOEXEC);
}

static void redirect(struct work *work)
{
    int null = open("/dev/null", O_RDWR);
    int turn = fcntl(account_turn(), F_DUPFD, ASIDE), server = fcntl(work->server.file, F_DUPFD, ASIDE);
    int log = work->log == NULL ? -1 : open(work->log, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0640);
    int error = errno;
    int own = log < 0 ? -1 : fcntl(log, F_DUPFD, ASIDE);
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        dup2(null, stream);
    place(turn, TURN);
    place(server, SERVER_LOG);
    place(own, OWN_LOG);
    syscall(SYS_close_range, (unsigned)FIRST_CLOSED, ~0u, 0u);
    work->server.file = server < 0 ? -1 : SERVER_LOG;
    if (work->log != NULL && own < 0) {
        char why[512];
        snprintf(why, sizeof why, "%.400s: %s; hint: a file that the users of sessions may write to", work->log,
                 strerror(error));
        work->log = NULL;
        tell(work, "the log of indexing cannot be written", why);
    }
}

/* Waits for its turn. The lock is of this process (fcntl(2)), and ends with it: a session's other uploads have their own. */
static bool wait_for_turn(void)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    while (fcntl(TURN, F_SETLKW, &whole) != 0)
        if (errno != EINTR)
            return false;
    return true;
}

static bool is_unchanged(const struct work *work)
{
    struct stat now;
    return stat(work->path, &now) == 0 && now.st_ino == work->file.st_ino && now.st_size == work->file.st_size &&
           now.st_mtim.tv_sec == work->file.st_mtim.tv_sec && now.st_mtim.tv_nsec == work->file.st_mtim.tv_nsec;
}

/* Keeps the last of what the program says: its errors come last. */
static void keep(struct work *work, const char *line)
{
    size_t had = strlen(work->told), length = strlen(line), room = sizeof work->told - 2;
    if (length > room)
        length = room;
    if (had + length > room) {
        memmove(work->told, work->told + had + length - room, room - length);
        work->told[had = room - length] = '\0';
    }
    snprintf(work->told + had, sizeof work->told - had, "%s%.*s", had == 0 ? "" : " ", (int)length, line);
}

static void listen_to(struct work *work, int output)
{
    char *line = NULL;
    size_t size = 0;
    FILE *text = fdopen(output, "r");
    if (text == NULL) {
        close(output);
        return;
    }
    while (getline(&line, &size, text) > 0) {
        line[strcspn(line, "\n")] = '\0';
        one_line(line);
        if (*line == '\0')
            continue;
        note(work, line);
        keep(work, line);
    }
    free(line);
    fclose(text);
}

/* Whether the program did it; what it said is in work->told. */
static bool run(struct work *work, const char *const *arguments)
{
    int status = -1, ends[2];
    work->told[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        execvp(work->program, (char *const *)arguments);
        dprintf(STDERR_FILENO, "cannot run `%s`: %s; hint: the setting `program`\n", work->program, strerror(errno));
        _exit(127);
    }
    close(ends[1]);
    if (child > 0)
        listen_to(work, ends[0]);
    else
        close(ends[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status == 0;
}

static void work_detached(struct work *work)
{
    enum { WHO_PROCESS = 1, CLASS_IDLE = 3, CLASS_SHIFT = 13 }; /* linux/ioprio.h */
    sigset_t none;
    setsid();
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    redirect(work);
    setpriority(PRIO_PROCESS, 0, 19);
    syscall(SYS_ioprio_set, WHO_PROCESS, 0, CLASS_IDLE << CLASS_SHIFT);
    if (!wait_for_turn())
        tell(work, "not indexed", "the server has no directory for its lock; hint: the setting `sessions`");
    else if (!is_unchanged(work))
        tell(work, "not indexed", "the file was changed or removed meanwhile");
    else {
        if (work->add[0] != NULL && !run(work, work->add))
            tell(work, "not registered in the catalog", work->told);
        bool indexed = run(work, work->index);
        tell(work, indexed ? "indexed" : "not indexed", indexed ? "" : work->told);
    }
}

void indexing_start(const char *path, const struct identity *who)
{
    struct work work;
    if (!prepare(&work, path, who)) {
        globus_gfs_log_message(GLOBUS_GFS_LOG_ERR, "sieva: INDEX path=\"%s\" result=not indexed: %s\n", work.shown,
                               strerror(errno));
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        if (fork() == 0)
            work_detached(&work);
        _exit(0);
    }
    if (child < 0)
        globus_gfs_log_message(GLOBUS_GFS_LOG_ERR, "sieva: INDEX path=\"%s\" result=not indexed: %s\n", work.shown,
                               strerror(errno));
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
}
