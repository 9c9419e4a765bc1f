/*
 * The facts of an answer. Its size is known once the selection is: values need not be read. The session keeps the answer,
 * so that the RETR which follows does not evaluate again.
 */
#include "status.h"

#include "answer.h"
#include "journal.h"

#include <stdlib.h>
#include <string.h>

struct status {
    globus_gfs_operation_t op;
    struct entry entry;
};

static void tell(struct answer *answer, const struct failure *failure, void *argument)
{
    struct failure memory;
    struct status *status = argument;
    globus_gfs_operation_t op = status->op;
    globus_gfs_stat_t facts;
    memset(&facts, 0, sizeof facts);
    if (answer != NULL) {
        const char *path = status->entry.path == NULL ? "" : status->entry.path, *slash = strrchr(path, '/');
        facts.mode = S_IFREG | (int)(answer->file.st_mode & 0444);
        facts.nlink = 1;
        facts.uid = answer->file.st_uid;
        facts.gid = answer->file.st_gid;
        facts.size = (globus_off_t)answer->size;
        facts.atime = answer->file.st_atime;
        facts.mtime = answer->file.st_mtime;
        facts.ctime = answer->file.st_ctime;
        facts.name = strdup(slash == NULL ? path : slash + 1);
        status->entry.rows = answer->rows;
    }
    if (answer != NULL && (facts.name == NULL || status->entry.path == NULL)) {
        failure_set(&memory, 451, "internal-error", "internal-error: out of memory");
        failure = &memory;
    }
    journal_write(&status->entry, failure == NULL ? NULL : failure->text);
    journal_clear(&status->entry);
    free(status);
    answer_release(answer);
    globus_gridftp_server_finished_stat(op, failure == NULL ? GLOBUS_SUCCESS : failure_result(failure),
                                        failure == NULL ? &facts : NULL, failure == NULL);
    free(facts.name);
}

void status_tell(globus_gfs_operation_t op, struct session *session, struct request *request)
{
    struct status *status = calloc(1, sizeof *status);
    if (status == NULL) {
        request_clear(request);
        globus_gridftp_server_finished_stat(op, GlobusGFSErrorMemory("status"), NULL, 0);
        return;
    }
    status->op = op;
    request->any_order = false; /* the size is asked */
    journal_begin(&status->entry, "STAT", request, session, op);
    answer_get(session, &status->entry.identity, request, tell, status);
}
