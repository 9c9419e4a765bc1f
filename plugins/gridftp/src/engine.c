/*
 * Loading of the engine. Its symbols stay apart from the server's, in both directions: RTLD_LOCAL hides them, and
 * RTLD_DEEPBIND makes the library find its own first.
 */
#define _GNU_SOURCE
#include "engine.h"

#include "config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

static struct engine engine;
static struct failure loading;

static void load(void)
{
    const struct config *config = config_get();
    if (config->error[0] != '\0') {
        failure_set(&loading, 451, "internal-error",
                    "this server's settings for queries are wrong: %s; hint: tell its administrator", config->error);
        return;
    }
    /* Where uses are noted, with who asked: the engine looks there. */
    if (config->catalog != NULL)
        setenv("SIEVA_CATALOG", config->catalog, 0);
    void *library = dlopen(config->library, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (library == NULL) {
        globus_gfs_log_message(GLOBUS_GFS_LOG_ERR, "sieva: %s\n", dlerror());
        failure_set(&loading, 451, "internal-error",
                    "this server cannot load its query engine; hint: tell its administrator, the server's log has more");
        return;
    }
#define LOAD(name)                                                                                                      \
    engine.name = (__typeof__(engine.name))dlsym(library, "sieva_" #name);                                              \
    if (engine.name == NULL)                                                                                            \
        failure_set(&loading, 451, "internal-error",                                                                    \
                    "the query engine of this server is older than its plug-in (no sieva_" #name                         \
                    "); hint: tell its administrator");
    ENGINE_FUNCTIONS(LOAD)
#undef LOAD
}

const struct engine *engine_get(struct failure *failure)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (loading.reply == 0)
        return &engine;
    *failure = loading;
    return NULL;
}
