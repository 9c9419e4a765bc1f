/*
 * The common file has records of one size; the locks are those of open file descriptions (fcntl(2), F_OFD_SETLK), which end
 * with the last descriptor, whatever becomes of the process. It lies in a directory that only its owner can enter, or
 * others could hold the locks.
 */
#define _GNU_SOURCE
#include "account.h"

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORDS = 4096, RECORD = 64 };
/* A byte behind all records: who has its lock may add up and enter what it takes. */
static const off_t GUARD = (off_t)RECORDS * RECORD;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct usage own;  /* of this process: the sum of what its answers hold */
static int file = -1;     /* the common file; -1: totals are kept of this process alone */
static int turn = -1;     /* the file whose lock says which process indexes */
static int record = -1;   /* this process's in there */
static bool opened;
static char fault[512];   /* why there is none; empty: none is needed */

/* Takes or gives back the lock on some bytes, without waiting. */
static bool set_lock(off_t begin, off_t length, short type)
{
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = begin, .l_len = length};
    return fcntl(file, F_OFD_SETLK, &range) == 0;
}

/* Opens a directory that nobody else can enter, which is made where there is none; -1: there is no such. */
static int open_directory(const char *path)
{
    struct stat facts;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return -1;
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0)
        return -1;
    if (fstat(directory, &facts) == 0 && facts.st_uid == geteuid() && (facts.st_mode & 077) == 0)
        return directory;
    close(directory);
    errno = EPERM;
    return -1;
}

static bool open_file(const char *path)
{
    int directory = open_directory(path);
    if (directory >= 0) {
        file = openat(directory, "sessions", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        turn = openat(directory, "indexing", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        close(directory);
    }
    if (file < 0)
        snprintf(fault, sizeof fault, "no directory for the totals of all sessions: %.300s: %s", path,
                 errno == EPERM ? "others than its owner may enter it" : strerror(errno));
    return file >= 0;
}

void account_open(void)
{
    const struct config *config = config_get();
    char path[PATH_MAX];
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    pthread_mutex_lock(&lock);
    if (!opened) {
        opened = true;
        if (config->sessions != NULL)
            open_file(config->sessions);
        else if (geteuid() == 0)
            open_file("/run/sieva-gridftp");
        else if (snprintf(path, sizeof path, "%s/sieva-gridftp-%u", runtime == NULL ? "/tmp" : runtime,
                          (unsigned)geteuid()) < (int)sizeof path)
            open_file(path);
        if (file < 0)
            globus_gfs_log_message(GLOBUS_GFS_LOG_ERR, "sieva: %s; hint: the setting `sessions`\n", fault);
    }
    pthread_mutex_unlock(&lock);
}

int account_turn(void)
{
    return turn;
}

/* Enters what this process takes. A record that cannot be written counts for more than it is, or less: never for ever. */
static bool enter(struct usage next)
{
    own = next;
    return file < 0 || record < 0 ||
           pwrite(file, &own, sizeof own, (off_t)record * RECORD) == (ssize_t)sizeof own;
}

/* Finds a record that no process has. */
static bool take_record(void)
{
    for (record = 0; record < RECORDS; record++)
        if (set_lock((off_t)record * RECORD, RECORD, F_WRLCK))
            return enter(own); /* in the place of what its last holder took */
    record = -1;
    return false;
}

/* Whether another process holds a record. */
static bool is_held(int number)
{
    struct flock range = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)number * RECORD, .l_len = RECORD};
    return fcntl(file, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}

/* What all other processes take. */
static struct usage others(void)
{
    struct usage sum = {0}, one;
    struct stat facts;
    int end = fstat(file, &facts) == 0 ? (int)(facts.st_size / RECORD) + 1 : 0;
    for (int number = 0; number < end && number < RECORDS; number++) {
        if (number == record || !is_held(number) ||
            pread(file, &one, sizeof one, (off_t)number * RECORD) != (ssize_t)sizeof one)
            continue;
        sum.questions += one.questions;
        sum.memory += one.memory;
        sum.spool += one.spool;
    }
    return sum;
}

static struct usage replaced(struct usage all, struct usage old, struct usage new)
{
    return (struct usage){all.questions - old.questions + new.questions, all.memory - old.memory + new.memory,
                          all.spool - old.spool + new.spool};
}

/* Whether more is taken of a thing than before, and more than there is. */
static bool is_over(uint64_t old, uint64_t new, uint64_t all, uint64_t most)
{
    return most > 0 && new > old && all > most;
}

static bool fits(struct usage held, struct usage wanted, struct usage next)
{
    const struct config *config = config_get();
    struct usage rest = file < 0 ? (struct usage){0} : others();
    return !is_over(held.questions, wanted.questions, rest.questions + next.questions, config->total_queries) &&
           !is_over(held.memory, wanted.memory, rest.memory + next.memory, config->total_memory) &&
           !is_over(held.spool, wanted.spool, rest.spool + next.spool, config->total_spool);
}

enum admission account_ask(struct usage *held, struct usage wanted, struct failure *failure)
{
    enum admission admission = BUSY;
    account_open();
    pthread_mutex_lock(&lock);
    struct usage next = replaced(own, *held, wanted);
    if (file < 0 && config_get()->sessions != NULL) {
        failure_set(failure, 451, "internal-error",
                    "internal-error: this server cannot keep its limits; hint: tell its administrator, the server's log has more");
        admission = REFUSED;
    } else if (file < 0) {
        admission = fits(*held, wanted, next) ? ADMITTED : BUSY;
    } else if (set_lock(GUARD, 1, F_WRLCK)) {
        if ((record >= 0 || take_record()) && fits(*held, wanted, next) && enter(next))
            admission = ADMITTED;
        set_lock(GUARD, 1, F_UNLCK);
    }
    if (file < 0 && admission == ADMITTED)
        enter(next);
    if (admission == ADMITTED)
        *held = wanted;
    pthread_mutex_unlock(&lock);
    return admission;
}

void account_lower(struct usage *held, struct usage wanted)
{
    pthread_mutex_lock(&lock);
    enter(replaced(own, *held, wanted));
    *held = wanted;
    pthread_mutex_unlock(&lock);
}
