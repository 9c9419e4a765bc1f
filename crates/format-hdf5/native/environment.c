/*
 * What libhdf5 sees of the environment: none of its own variables.
 *
 * HDF5_DRIVER, HDF5_VOL_CONNECTOR, HDF5_PLUGIN_PATH, HDF5_VDS_PREFIX and the like are meant for the libhdf5 of h5py or
 * netCDF4 in the same process. The one in here is a part of sieva: with a driver or connector that it cannot load it
 * would not even start, and with others it would read other files than those that were checked.
 *
 * libhdf5 offers no call that stops it from looking, and unsetting the variables for a while would be seen by other
 * threads. So the object files that are linked with this one find this `getenv`. It is hidden: neither a program nor
 * another library ever calls it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

typedef char *(*getenv_type)(const char *);

extern char **environ;

/* For programs without a dynamic linker. */
static char *look_up(const char *name)
{
    size_t len = strlen(name);
    for (char **entry = environ; entry && *entry; entry++) {
        if (strncmp(*entry, name, len) == 0 && (*entry)[len] == '=') {
            return *entry + len + 1;
        }
    }
    return NULL;
}

__attribute__((visibility("hidden"))) char *getenv(const char *name)
{
    static _Atomic(getenv_type) system_getenv;

    if (strncmp(name, "HDF5_", 5) == 0) {
        return NULL;
    }
    getenv_type get = system_getenv;
    if (!get) {
        get = (getenv_type)dlsym(RTLD_DEFAULT, "getenv");
        system_getenv = get ? get : look_up;
        get = system_getenv;
    }
    return get(name);
}

/*
 * Which files libhdf5 opens: those that may be.
 *
 * All but one kind it opens by the driver that is given to it. Raw data that are kept in other files it opens itself, by
 * name, and between a look at the name and that somebody could put another file there. So `open` is one of ours, too:
 * where a call of libhdf5 is under way in this thread, the file is opened in Rust, if it may be, and what is opened is what
 * was looked at. Whoever else in this library opens a file has the system's.
 */
typedef int (*open_type)(const char *); /* gives a descriptor, or -1; -2 outside of libhdf5 */

static _Atomic(open_type) open_in_rust;

__attribute__((visibility("hidden"))) void sieva_hdf5_open_by(open_type opener)
{
    open_in_rust = opener;
}

static mode_t mode_of(int flags, va_list rest)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
}

static int open_permitted(const char *name, int flags, mode_t mode)
{
    open_type opener = open_in_rust;
    int fd = opener ? opener(name) : -2;

    return fd == -2 ? openat(AT_FDCWD, name, flags | O_LARGEFILE, mode) : fd;
}

__attribute__((visibility("hidden"))) int open64(const char *name, int flags, ...)
{
    va_list rest;

    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return open_permitted(name, flags, mode);
}

/* What it is called where all offsets have 64 bits. */
__attribute__((visibility("hidden"))) int open(const char *name, int flags, ...)
{
    va_list rest;

    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return open_permitted(name, flags, mode);
}

/* Called once, so that the linker takes this file for its `getenv` and `open`; whether it did. */
__attribute__((visibility("hidden"))) int sieva_hdf5_environment_is_hidden(void)
{
    return getenv("HDF5_DRIVER") == NULL;
}
