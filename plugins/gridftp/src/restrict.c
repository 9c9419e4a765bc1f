/*
 * -restrict-paths: a list of paths, comma between, each with a prefix of R, W, RW or N for what is allowed below it;
 * none is RW. The longest entry that matches counts; a path that none matches is not allowed.
 */
#include "restrict.h"

#include "globus_gridftp_server.h"

#include <fnmatch.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether an entry's path covers this one: it itself, what lies below it, or what its pattern fits. */
static bool covers(const char *entry, const char *path)
{
    size_t length = strlen(entry);
    if (strpbrk(entry, "[*?") != NULL)
        return fnmatch(entry, path, 0) == 0;
    return strncmp(path, entry, length) == 0 &&
           (path[length] == '\0' || path[length] == '/' || (length > 0 && entry[length - 1] == '/'));
}

static const char *home_directory(void)
{
    const char *home = globus_gfs_config_get_string("home_dir");
    const struct passwd *user = home == NULL ? getpwuid(getuid()) : NULL;
    if (user != NULL)
        home = user->pw_dir;
    return home == NULL || access(home, X_OK) != 0 ? "/" : home;
}

/* An entry's path: `~` is the user's home directory. To be freed. */
static char *expand(const char *entry, const char *home)
{
    if (*entry != '~')
        return strdup(entry);
    size_t size = strlen(home) + strlen(entry) + 1;
    char *path = malloc(size);
    if (path != NULL)
        snprintf(path, size, "%s%s", strcmp(home, "/") == 0 && entry[1] == '/' ? "" : home, entry + 1);
    return path;
}

/* Whether the longest entry of the list that covers path allows reading. */
static bool allows(const char *list, const char *home, const char *path)
{
    char *copy = strdup(list), *state = NULL;
    size_t longest = 0;
    bool allowed = false;
    if (copy == NULL)
        return false;
    for (char *entry = strtok_r(copy, ",", &state); entry != NULL; entry = strtok_r(NULL, ",", &state)) {
        entry += strspn(entry, " ");
        size_t flags = strspn(entry, "RWNrwn");
        bool reads = flags == 0 || memchr(entry, 'R', flags) != NULL || memchr(entry, 'r', flags) != NULL;
        char *expanded = expand(entry + flags, home);
        char *real = expanded == NULL ? NULL : realpath(expanded, NULL); /* the entry itself may be a link */
        size_t length = expanded == NULL ? 0 : strlen(expanded);
        if (expanded != NULL && length >= longest &&
            (covers(expanded, path) || (real != NULL && covers(real, path)))) {
            allowed = reads;
            longest = length;
        }
        free(real);
        free(expanded);
    }
    free(copy);
    return allowed;
}

struct restriction {
    char *list; /* NULL: nothing is restricted */
    char *home;
    bool follows; /* links, wherever they lead */
    struct restriction *next;
};

static bool is_same(const struct restriction *taken, const char *list, const char *home, bool follows)
{
    if (list == NULL || taken->list == NULL)
        return list == taken->list;
    return strcmp(taken->list, list) == 0 && strcmp(taken->home, home) == 0 && taken->follows == follows;
}

static struct restriction *make(const char *list, const char *home, bool follows)
{
    struct restriction *made = calloc(1, sizeof *made);
    if (made == NULL || list == NULL)
        return made;
    made->list = strdup(list);
    made->home = strdup(home);
    made->follows = follows;
    if (made->list != NULL && made->home != NULL)
        return made;
    free(made->list);
    free(made->home);
    free(made);
    return NULL;
}

struct restriction *restrict_take(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct restriction *all;
    const char *list = globus_gfs_config_get_string("restrict_paths"), *home = home_directory();
    if (list != NULL && *list == '\0')
        list = NULL;
    bool follows = globus_gfs_config_get_bool("rp_follow_symlinks");
    pthread_mutex_lock(&lock);
    struct restriction *taken = all;
    while (taken != NULL && !is_same(taken, list, home, follows))
        taken = taken->next;
    if (taken == NULL && (taken = make(list, home, follows)) != NULL) {
        taken->next = all;
        all = taken;
    }
    pthread_mutex_unlock(&lock);
    return taken;
}

static bool may_read(const struct restriction *restriction, const char *path, const char *real)
{
    if (restriction->list == NULL)
        return true;
    return allows(restriction->list, restriction->home, path) &&
           (restriction->follows || allows(restriction->list, restriction->home, real));
}

int32_t restrict_may_open(void *restriction, int32_t purpose, const char *asked, const char *real)
{
    (void)purpose;
    return restriction != NULL && real != NULL && may_read(restriction, asked, real);
}

bool restrict_allows(const char *path, const char *real)
{
    const struct restriction *restriction = restrict_take();
    return restriction != NULL && may_read(restriction, path, real);
}
