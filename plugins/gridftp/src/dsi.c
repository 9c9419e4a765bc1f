/*
 * The data storage interface `sieva` of the Globus GridFTP server (SDQuery, SC13, section 3.5): the File DSI, and in front
 * of it what answers questions. Each function looks whether it is asked a question, and else hands on to the File DSI, with
 * that one's own session, so that a file is served by the very code that always served it.
 *
 * Loaded by `-dsi sieva`, by `SITE DSI sieva`, and as a module of ERET (`-allowed-modules sieva`).
 */
#include "account.h"
#include "checksum.h"
#include "ingest.h"
#include "job.h"
#include "journal.h"
#include "status.h"
#include "transfer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { COMMAND_SIEVA = GLOBUS_GFS_MIN_CUSTOM_CMD + 1 };

static globus_gfs_storage_iface_t interface, *file;
static globus_extension_handle_t file_handle, own_handle;

static void start(globus_gfs_operation_t op, globus_gfs_session_info_t *info)
{
    globus_gridftp_server_add_command(op, "SITE SIEVA", COMMAND_SIEVA, 2, 3, "SITE SIEVA [<sp> query]: for the next RETR",
                                      GLOBUS_FALSE, 0);
    session_announce(info);
    file->init_func(op, info); /* ends the start, with a session of its own */
}

static void destroy(void *key)
{
    session_end(key);
    if (file->destroy_func != NULL)
        file->destroy_func(key);
}

/* The request of SITE SIEVA for a path, while it waits for its RETR; directories are not asked. */
static bool request_of_session(const struct session *session, const char *pathname, struct request *request,
                               struct failure *failure)
{
    struct stat facts;
    memset(request, 0, sizeof *request);
    if (session->text == NULL || stat(pathname, &facts) != 0 || !S_ISREG(facts.st_mode))
        return true;
    return request_of_text(pathname, session->text, request, failure);
}

/* The request that comes with a path and no module; its kind is REQUEST_NONE where there is none. command is the client's
 * whole line, or NULL where it is not known. */
static bool request_of_any(const struct session *session, const char *pathname, const char *command,
                           struct request *request, struct failure *failure)
{
    if (!request_of_path(pathname, command, request, failure))
        return false;
    return request->kind != REQUEST_NONE || request_of_session(session, pathname, request, failure);
}

/* The client's line as it came; NULL on a data node, which hears of its client through another process. */
static const char *client_command(globus_gfs_operation_t op)
{
    return globus_gfs_config_get_bool("data_node") ? NULL : globus_gfs_data_get_cmd_string(op);
}

/* Whether all is to be sent, by this process alone. */
static bool is_whole(const globus_gfs_transfer_info_t *info)
{
    globus_off_t offset = 0, length = 0;
    return info->partial_offset <= 0 && info->partial_length < 0 && info->node_count <= 1 &&
           globus_range_list_size(info->range_list) == 1 &&
           globus_range_list_at(info->range_list, 0, &offset, &length) == GLOBUS_SUCCESS && offset == 0 &&
           length == GLOBUS_RANGE_LIST_MAX;
}

static void send_data(globus_gfs_operation_t op, globus_gfs_transfer_info_t *info, void *key)
{
    struct session *session = session_get(key);
    struct request request;
    struct failure failure = {0};
    bool good = info->module_name != NULL
                    ? request_of_text(info->pathname, info->module_args == NULL ? "" : info->module_args, &request, &failure)
                    : request_of_any(session, info->pathname, client_command(op), &request, &failure);
    session_set_text(session, NULL);
    if (!good) {
        journal_refuse("RETR", info->pathname, session, op, &failure);
        globus_gridftp_server_finished_transfer(op, failure_result(&failure));
    } else if (request.kind != REQUEST_NONE) {
        transfer_send(op, session, &request, is_whole(info));
    } else {
        file->send_func(op, info, key);
    }
}

static void receive_data(globus_gfs_operation_t op, globus_gfs_transfer_info_t *info, void *key)
{
    struct failure failure;
    if (info->module_name == NULL && !request_is_in_path(info->pathname)) {
        struct identity who = session_identity(session_get(key), op);
        ingest_expect(info->pathname, &who);
        file->recv_func(op, info, key);
        return;
    }
    failure_set(&failure, 553, "unsupported", "unsupported: the result of a query cannot be written to");
    globus_gridftp_server_finished_transfer(op, failure_result(&failure));
}

static void tell_status(globus_gfs_operation_t op, globus_gfs_stat_info_t *info, void *key)
{
    struct session *session = session_get(key);
    struct request request;
    struct failure failure = {0};
    if (!request_of_any(session, info->pathname, NULL, &request, &failure)) {
        journal_refuse("STAT", info->pathname, session, op, &failure);
        globus_gridftp_server_finished_stat(op, failure_result(&failure), NULL, 0);
    } else if (request.kind != REQUEST_NONE) {
        status_tell(op, session, &request);
    } else {
        file->stat_func(op, info, key);
    }
}

/* SITE SIEVA: keeps the query for the next RETR, or forgets it. */
static void keep_query(globus_gfs_operation_t op, globus_gfs_command_info_t *info, struct session *session)
{
    char **words = NULL;
    int count = 0;
    struct request request;
    struct failure failure = {0};
    globus_gridftp_server_query_op_info(op, info->op_info, GLOBUS_GFS_OP_INFO_CMD_ARGS, &words, &count);
    if (!session_set_text(session, count > 2 ? info->pathname : NULL)) {
        failure_set(&failure, 451, "internal-error", "internal-error: out of memory");
        globus_gridftp_server_finished_command(op, failure_result(&failure), NULL);
        return;
    }
    if (session->text != NULL) {
        if (!request_of_text("", session->text, &request, &failure)) {
            session_set_text(session, NULL);
            globus_gridftp_server_finished_command(op, failure_result(&failure), NULL);
            return;
        }
        request_clear(&request);
    }
    globus_gridftp_server_finished_command(op, GLOBUS_SUCCESS,
                                           session->text == NULL ? "250 The next RETR sends a file.\r\n"
                                                                 : "250 The next RETR sends the result of the query.\r\n");
}

static void run_command(globus_gfs_operation_t op, globus_gfs_command_info_t *info, void *key)
{
    struct session *session = session_get(key);
    struct request request;
    struct failure failure = {0};
    if ((int)info->command == COMMAND_SIEVA) {
        keep_query(op, info, session);
        return;
    }
    if (info->command != GLOBUS_GFS_CMD_CKSM) {
        file->command_func(op, info, key);
        return;
    }
    if (!request_of_any(session, info->pathname, NULL, &request, &failure)) {
        journal_refuse("CKSM", info->pathname, session, op, &failure);
        globus_gridftp_server_finished_command(op, failure_result(&failure), NULL);
    } else if (request.kind != REQUEST_NONE) {
        checksum_tell(op, session, info, &request);
    } else {
        file->command_func(op, info, key);
    }
}

static void handle_event(globus_gfs_event_info_t *info, void *key)
{
    if (!transfer_abort(info->event_arg))
        file->trev_func(info, key);
}

/* The real path of the file that a path names, with the question behind it again: so the server checks where a symbolic
 * link leads, and still passes the question on. */
static globus_result_t find_real_path(const char *pathname, char **real, void *key)
{
    size_t length = request_file_length(pathname);
    char *name = strndup(pathname, length), *found = NULL;
    if (name == NULL)
        return GlobusGFSErrorMemory("name");
    globus_result_t result = file->realpath_func(name, &found, key);
    free(name);
    if (result != GLOBUS_SUCCESS)
        return result;
    *real = globus_common_create_string("%s%s", found, pathname + length);
    globus_free(found);
    return GLOBUS_SUCCESS;
}

static int activate(void);
static int deactivate(void);
static globus_version_t version = {0, 1, 1, 0};

#pragma GCC visibility push(default) /* the one symbol that the server looks for */
GlobusExtensionDefineModule(globus_gridftp_server_sieva) = {
    .module_name = "globus_gridftp_server_sieva",
    .activation_func = activate,
    .deactivation_func = deactivate,
    .version = &version,
};
#pragma GCC visibility pop

/* The end of a session that came by SITE DSI releases this interface twice; a reference of our own keeps it whole. */
static void keep_alive(void *unused)
{
    (void)unused;
    globus_extension_lookup(&own_handle, GLOBUS_GFS_DSI_REGISTRY, "sieva");
}

static int activate(void)
{
    file = globus_extension_lookup(&file_handle, GLOBUS_GFS_DSI_REGISTRY, "file");
    if (file == NULL && globus_extension_activate("globus_gridftp_server_file") == GLOBUS_SUCCESS)
        file = globus_extension_lookup(&file_handle, GLOBUS_GFS_DSI_REGISTRY, "file");
    if (file == NULL) {
        globus_gfs_log_message(GLOBUS_GFS_LOG_ERR, "sieva: this server has no DSI `file`\n");
        return GLOBUS_FAILURE;
    }
    interface = *file;
    interface.init_func = start;
    interface.destroy_func = destroy;
    interface.send_func = send_data;
    interface.recv_func = receive_data;
    interface.stat_func = tell_status;
    interface.command_func = run_command;
    interface.trev_func = handle_event;
    if (file->realpath_func != NULL)
        interface.realpath_func = find_real_path;
    ingest_watch();
    account_open();
    int failed = globus_extension_registry_add(GLOBUS_GFS_DSI_REGISTRY, "sieva",
                                               GlobusExtensionMyModule(globus_gridftp_server_sieva), &interface);
    if (!failed)
        call_later(0, keep_alive, NULL); /* not from here: a module may not look itself up */
    return failed;
}

static int deactivate(void)
{
    globus_extension_registry_remove(GLOBUS_GFS_DSI_REGISTRY, "sieva");
    globus_extension_release(file_handle);
    return GLOBUS_SUCCESS;
}
