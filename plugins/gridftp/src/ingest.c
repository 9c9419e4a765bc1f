/*
 * The server tells its authorization modules when all bytes of an upload are safely written (GFS_ACL_ACTION_COMMIT with
 * `final`); aborted and failed uploads have no such moment. So this is an authorization module which allows everything,
 * and then starts a detached process of the lowest priority: sessions never wait for it.
 *
 * At most one works at a time on a host, by a lock. Who gets the lock and finds that the file was changed meanwhile leaves
 * it to the process which that change started: many uploads of one file are indexed once.
 */
#define _GNU_SOURCE
#include "ingest.h"

#include "config.h"

#include "globus_gridftp_server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The server offers it without a declaration; where it does not, uploads are not indexed. */
extern void globus_gfs_acl_add_module(globus_gfs_acl_module_t *module) __attribute__((weak));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *expected; /* of the upload under way */

/* All that the detached process needs, made before the fork: it must not allocate. */
struct work {
    const char *program;
    const char *add[9], *index[7]; /* arguments; add[0] is NULL where there is no catalog */
    char lock_path[PATH_MAX];
    const char *log;
    const char *path;
    struct stat file;
};

static bool prepare(struct work *work, const char *path)
{
    const struct config *config = config_get();
    const char **argument = work->add;
    memset(work, 0, sizeof *work);
    work->program = config->program;
    work->log = config->log;
    work->path = path;
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
    int length = snprintf(work->lock_path, sizeof work->lock_path, "%s/sieva-ingest.lock", config->lock);
    return length > 0 && (size_t)length < sizeof work->lock_path && stat(path, &work->file) == 0;
}

/* Says what happened, in the log of indexing. */
static void say(const struct work *work, const char *what)
{
    dprintf(STDERR_FILENO, "sieva: %s: %s\n", work->path, what);
}

static void redirect(const struct work *work)
{
    int null = open("/dev/null", O_RDWR);
    int log = work->log == NULL ? null : open(work->log, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0644);
    dup2(null, STDIN_FILENO);
    dup2(log < 0 ? null : log, STDOUT_FILENO);
    dup2(log < 0 ? null : log, STDERR_FILENO);
    syscall(SYS_close_range, 3u, ~0u, 0u);
}

/* Waits for its turn; the lock is held until the process ends. Other users' processes may have made the file. */
static bool wait_for_turn(const struct work *work)
{
    int file = open(work->lock_path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0 && errno == ENOENT)
        file = open(work->lock_path, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0444);
    if (file < 0)
        return false;
    while (flock(file, LOCK_EX) != 0)
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

static bool run(const struct work *work, const char *const *arguments)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        execvp(work->program, (char *const *)arguments);
        say(work, "cannot run the program that indexes; hint: the setting `program`");
        _exit(127);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status == 0;
}

static void work_detached(const struct work *work)
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
    if (!wait_for_turn(work)) {
        say(work, "not indexed: no lock file can be had; hint: the setting `lock`");
        return;
    }
    if (!is_unchanged(work)) {
        say(work, "not indexed: the file was changed or removed meanwhile");
        return;
    }
    if (work->add[0] != NULL && !run(work, work->add))
        say(work, "not registered in the catalog");
    say(work, run(work, work->index) ? "indexed" : "not indexed");
}

static void start(const char *path)
{
    struct work work;
    if (!prepare(&work, path)) {
        globus_gfs_log_message(GLOBUS_GFS_LOG_WARN, "sieva: %s is not indexed: %s\n", path, strerror(errno));
        return;
    }
    globus_gfs_log_message(GLOBUS_GFS_LOG_INFO, "sieva: indexing %s in the background\n", path);
    pid_t child = fork();
    if (child == 0) {
        if (fork() == 0)
            work_detached(&work);
        _exit(0);
    }
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
}

void ingest_expect(const char *pathname)
{
    pthread_mutex_lock(&lock);
    free(expected);
    expected = strdup(pathname);
    pthread_mutex_unlock(&lock);
}

/* Whether this is the upload under way, which then is over. */
static bool take_expected(const char *pathname)
{
    pthread_mutex_lock(&lock);
    bool taken = expected != NULL && pathname != NULL && strcmp(expected, pathname) == 0;
    if (taken) {
        free(expected);
        expected = NULL;
    }
    pthread_mutex_unlock(&lock);
    return taken;
}

static int allow_session(void **handle, globus_gfs_acl_info_t *info, globus_gfs_acl_handle_t acl, globus_result_t *result)
{
    (void)info, (void)acl;
    *handle = NULL;
    *result = GLOBUS_SUCCESS;
    return GLOBUS_GFS_ACL_COMPLETE;
}

static void forget_session(void *handle)
{
    (void)handle;
}

static int allow_action(void *handle, globus_gfs_acl_action_t action, globus_gfs_acl_object_desc_t *object,
                        globus_gfs_acl_info_t *info, globus_gfs_acl_handle_t acl, globus_result_t *result)
{
    (void)handle, (void)info, (void)acl;
    *result = GLOBUS_SUCCESS;
    if (action == GFS_ACL_ACTION_COMMIT && object->final && take_expected(object->name) && config_get()->index)
        start(object->name);
    return GLOBUS_GFS_ACL_COMPLETE;
}

void ingest_watch(void)
{
    /* The server calls the first three without looking whether they are there. */
    static globus_gfs_acl_module_t module = {
        .init_func = allow_session, .authorize_func = allow_action, .destroy_func = forget_session};
    if (globus_gfs_acl_add_module != NULL)
        globus_gfs_acl_add_module(&module);
    else
        globus_gfs_log_message(GLOBUS_GFS_LOG_WARN, "sieva: this server does not tell of uploads: they are not indexed\n");
}
