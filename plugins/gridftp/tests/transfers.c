/*
 * Transfers without a server: blocks come back some time after they were registered, or never; failing, or not.
 */
#define _GNU_SOURCE
#include "../src/answer.h"
#include "../src/job.h"
#include "../src/journal.h"
#include "../src/transfer.h"
#include "fake.h"

#include <string.h>

/* ---- The server. ---- */

static struct server {
    bool ranged;      /* the range was asked */
    bool takes;       /* blocks come back */
    uint64_t fails;   /* from this offset on they failed */
    uint64_t took;    /* bytes, in ascending order */
    int outstanding, finished;
    globus_result_t result;
    void *event;
} server;

struct block {
    globus_gridftp_server_write_cb_t written;
    void *argument;
    globus_byte_t *buffer;
    globus_size_t count;
    uint64_t offset;
};

static void come_back(void *argument)
{
    struct block *block = argument;
    if (!server.takes) {
        call_later(1000, come_back, block);
        return;
    }
    bool failed = block->offset >= server.fails;
    for (uint64_t i = 0; i < block->count; i++)
        EXPECT(block->buffer[i] == (unsigned char)((block->offset + i) * 7));
    server.outstanding--;
    block->written(NULL, failed ? GLOBUS_FAILURE : GLOBUS_SUCCESS, block->buffer, block->count, block->argument);
    free(block);
}

globus_result_t globus_gridftp_server_register_write(globus_gfs_operation_t op, globus_byte_t *buffer,
                                                     globus_size_t count, globus_off_t offset, int stripe,
                                                     globus_gridftp_server_write_cb_t written, void *argument)
{
    (void)op, (void)stripe;
    struct block *block = malloc(sizeof *block);
    EXPECT((uint64_t)offset == server.took);
    server.took += count;
    server.outstanding++;
    *block = (struct block){written, argument, buffer, count, (uint64_t)offset};
    call_later((uint64_t)(rand() % 2000), come_back, block);
    return GLOBUS_SUCCESS;
}

void globus_gridftp_server_get_read_range(globus_gfs_operation_t op, globus_off_t *offset, globus_off_t *length)
{
    (void)op;
    *offset = 0;
    *length = server.ranged ? 0 : -1;
    server.ranged = true;
}

void globus_gridftp_server_get_optimal_concurrency(globus_gfs_operation_t op, int *count)
{
    (void)op;
    *count = 4;
}

void globus_gridftp_server_get_block_size(globus_gfs_operation_t op, globus_size_t *size)
{
    (void)op;
    *size = 20000;
}

void globus_gridftp_server_begin_transfer(globus_gfs_operation_t op, int mask, void *event)
{
    (void)op, (void)mask;
    server.event = event;
}

void globus_gridftp_server_finished_transfer(globus_gfs_operation_t op, globus_result_t result)
{
    (void)op;
    EXPECT(server.outstanding == 0);
    server.finished++;
    server.result = result;
}

void journal_begin(struct entry *entry, const char *verb, const struct request *request, const struct session *session,
                   globus_gfs_operation_t op)
{
    (void)verb, (void)request, (void)session, (void)op;
    *entry = (struct entry){.identity = {"ada", "-"}};
}

void journal_write(const struct entry *entry, const char *failure)
{
    (void)entry, (void)failure;
}

void journal_clear(struct entry *entry)
{
    (void)entry;
}

/* ---- What is sent. ---- */

static void begin(struct session *session, const char *path, const char *sql)
{
    struct request request;
    struct failure failure = {0};
    server = (struct server){.takes = true, .fails = UINT64_MAX};
    EXPECT(request_of_text(path, sql, &request, &failure));
    transfer_send(NULL, session, &request, true);
}

int main(int count, char **words)
{
    int key;
    EXPECT(count == 2);
    EXPECT(globus_module_activate(GLOBUS_COMMON_MODULE) == GLOBUS_SUCCESS);
    struct session *session = session_get(&key);
    for (int i = 0; i < 3; i++) {
        begin(session, words[1], "slow");
        AWAIT(server.finished == 1);
        EXPECT(server.result == GLOBUS_SUCCESS && server.took == SIZE);
    }
    EXPECT(evaluations == 1);

    begin(session, words[1], "slow"); /* a connection that fails in the middle */
    server.fails = SIZE / 2;
    AWAIT(server.finished == 1);
    EXPECT(server.result != GLOBUS_SUCCESS && server.took < SIZE);
    begin(session, words[1], "slow"); /* what was stopped is made anew */
    AWAIT(server.finished == 1);
    EXPECT(server.result == GLOBUS_SUCCESS && evaluations == 2);

    begin(session, words[1], "slow"); /* an abort */
    AWAIT(server.took > 0);
    EXPECT(transfer_abort(server.event));
    AWAIT(server.finished == 1);
    EXPECT(!transfer_abort(server.event) && server.took < SIZE);

    begin(session, words[1], "never"); /* blocks that are never made */
    AWAIT(server.finished == 1);
    EXPECT(server.result != GLOBUS_SUCCESS && server.took == 0);

    begin(session, words[1], "slow"); /* a client that takes nothing, and then all that was on its way */
    server.takes = false;
    AWAIT(server.took > 0);
    AWAIT(open_streams == 0);
    EXPECT(server.finished == 0);
    server.takes = true;
    AWAIT(server.finished == 1);
    EXPECT(server.result != GLOBUS_SUCCESS && server.took < SIZE);

    begin(session, words[1], "slow"); /* a session that ends first */
    session_end(&key);
    AWAIT(server.finished == 1 && open_streams == 0 && open_results == 0);
    uint64_t end = now_ms() + 1500; /* looks that are to come */
    AWAIT(now_ms() > end);
    EXPECT(open_sources == 0 && open_stops == 0);
    globus_module_deactivate(GLOBUS_COMMON_MODULE);
    puts("ok");
    return 0;
}
