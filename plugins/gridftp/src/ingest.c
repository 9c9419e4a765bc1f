/*
 * The server tells its authorization modules when all bytes of an upload are safely written (GFS_ACL_ACTION_COMMIT with
 * `final`); aborted and failed uploads have no such moment. So this is an authorization module which allows everything,
 * and then has the file indexed.
 */
#include "ingest.h"

#include "config.h"
#include "indexing.h"

#include "globus_gridftp_server.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The server offers it without a declaration; where it does not, uploads are not indexed. */
extern void globus_gfs_acl_add_module(globus_gfs_acl_module_t *module) __attribute__((weak));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *expected; /* of the upload under way */
static struct identity uploader;

void ingest_expect(const char *pathname, const struct identity *who)
{
    pthread_mutex_lock(&lock);
    free(expected);
    expected = strdup(pathname);
    uploader = *who;
    if (expected == NULL && config_get()->index)
        globus_gfs_log_message(GLOBUS_GFS_LOG_ERR, "sieva: INDEX result=not indexed: out of memory\n");
    pthread_mutex_unlock(&lock);
}

/* Whether this is the upload under way, which then is over. */
static bool take_expected(const char *pathname, struct identity *who)
{
    pthread_mutex_lock(&lock);
    bool taken = expected != NULL && pathname != NULL && strcmp(expected, pathname) == 0;
    if (taken) {
        free(expected);
        expected = NULL;
        *who = uploader;
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
    struct identity who;
    *result = GLOBUS_SUCCESS;
    if (action == GFS_ACL_ACTION_COMMIT && object->final && take_expected(object->name, &who) && config_get()->index)
        indexing_start(object->name, &who);
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
        globus_gfs_log_message(GLOBUS_GFS_LOG_ERR, "sieva: this server does not tell of uploads: they are not indexed\n");
}
