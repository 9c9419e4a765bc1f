/*
 * Sending (SDQuery, SC13, section 4.2): threads of the engine read and filter regions ahead; the event loop takes blocks
 * off, in ascending order, and registers them with the server, which spreads them over its TCP streams. The number of
 * blocks on their way is what the server calls optimal, so memory is bounded and reading overlaps sending. Ascending order
 * also holds with one stream, where the server ignores offsets (stream mode).
 */
#define _GNU_SOURCE
#include "transfer.h"

#include "answer.h"
#include "config.h"
#include "job.h"
#include "journal.h"
#include "watch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SHORTEST_WAIT = 100, LONGEST_WAIT = 4000 }; /* microseconds between looks for the next block */
enum { SWEEP = 500000 };                           /* between looks for clients that take none */
/* A client may ask for blocks of any size; as many as the server calls optimal are on their way. */
enum { SMALLEST_BLOCK = 4096, LARGEST_BLOCK = 4 << 20 };

struct transfer {
    globus_gfs_operation_t op;
    pthread_mutex_t lock; /* with threads in the server, callbacks come on any of them */
    const struct engine *engine;
    struct session *session;
    struct answer *answer;
    struct watch watch; /* of the blocks that the engine makes */
    struct entry entry; /* of the log */
    sieva_stream *stream; /* of the range that is being sent; NULL between ranges */
    uint64_t at, end;     /* the same of an answer that is a text */
    size_t block;
    void **spare; /* buffers not in use, a list through their first bytes */
    int in_flight;
    unsigned wait;
    bool waiting;  /* a look is to come */
    bool drained;  /* no range is left */
    bool stopped;  /* by failure or abort */
    bool over;     /* about to be freed */
    struct failure failure;
    globus_result_t error; /* of the server, where there is no failure */
    struct transfer *next;
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct transfer *transfers;
static bool sweeping; /* a look at all of them is to come */

static void go_on(struct transfer *transfer);

static void look(void *argument)
{
    struct transfer *transfer = argument;
    pthread_mutex_lock(&transfer->lock);
    transfer->waiting = false;
    if (!transfer->stopped && !transfer->drained && watch_is_over(&transfer->watch)) {
        transfer->failure = transfer->watch.failure;
        transfer->stopped = true;
    }
    go_on(transfer);
}

static void look_later(struct transfer *transfer)
{
    if (transfer->waiting)
        return;
    transfer->waiting = true;
    call_later(transfer->wait, look, transfer);
    transfer->wait = transfer->wait * 2 < LONGEST_WAIT ? transfer->wait * 2 : LONGEST_WAIT;
}

static bool stop_if(struct transfer *transfer, int32_t status)
{
    if (status == SIEVA_OK)
        return false;
    answer_fail(transfer->answer, transfer->engine, status, &transfer->failure);
    return transfer->stopped = true;
}

/* Opens the next range that the server asks: all, a part (ERET P), what REST left, or a stripe's. */
static bool open_range(struct transfer *transfer)
{
    globus_off_t offset, length;
    globus_gridftp_server_get_read_range(transfer->op, &offset, &length);
    if (transfer->answer->request.any_order && length != 0)
        return !stop_if(transfer, transfer->engine->result_stream_any_order(transfer->answer->result, transfer->block,
                                                                            &transfer->stream));
    uint64_t size = transfer->answer->size;
    if (length == 0 || offset < 0 || (uint64_t)offset >= size) {
        transfer->drained = true;
        return false;
    }
    uint64_t rest = size - (uint64_t)offset;
    uint64_t count = length < 0 || (uint64_t)length > rest ? rest : (uint64_t)length;
    transfer->at = (uint64_t)offset;
    transfer->end = transfer->at + count;
    if (transfer->answer->text != NULL)
        return true;
    return !stop_if(transfer, transfer->engine->result_stream(transfer->answer->result, transfer->at, count,
                                                              transfer->block, &transfer->stream));
}

static void finish_range(struct transfer *transfer)
{
    if (transfer->stream != NULL)
        transfer->engine->stream_free(transfer->stream);
    transfer->stream = NULL;
    transfer->at = transfer->end = 0;
}

enum taken { TAKEN, NOT_READY, END_OF_RANGE, FAILED };

/* Takes the next block of the range, without waiting. */
static enum taken take_block(struct transfer *transfer, void *buffer, uint64_t *offset, uint64_t *count)
{
    if (transfer->answer->text != NULL) {
        uint64_t rest = transfer->end - transfer->at;
        *count = rest < transfer->block ? rest : transfer->block;
        *offset = transfer->at;
        memcpy(buffer, transfer->answer->text + *offset, *count);
        transfer->at += *count;
        return *count == 0 ? END_OF_RANGE : TAKEN;
    }
    int32_t ready = 0;
    if (stop_if(transfer, transfer->engine->stream_ready(transfer->stream, &ready)))
        return FAILED;
    if (!ready)
        return NOT_READY;
    if (stop_if(transfer, transfer->engine->stream_next(transfer->stream, buffer, transfer->block, offset, count)))
        return FAILED;
    return *count == 0 ? END_OF_RANGE : TAKEN;
}

static void *take_buffer(struct transfer *transfer)
{
    void **buffer = transfer->spare;
    if (buffer == NULL)
        return malloc(transfer->block);
    transfer->spare = *buffer;
    return buffer;
}

static void give_buffer(struct transfer *transfer, void *buffer)
{
    *(void **)buffer = transfer->spare;
    transfer->spare = buffer;
}

static void written(globus_gfs_operation_t op, globus_result_t result, globus_byte_t *buffer, globus_size_t count,
                    void *argument)
{
    (void)op;
    struct transfer *transfer = argument;
    pthread_mutex_lock(&transfer->lock);
    give_buffer(transfer, buffer);
    transfer->in_flight--;
    watch_sign(&transfer->watch); /* the engine was not waited for meanwhile */
    if (result == GLOBUS_SUCCESS) {
        transfer->entry.bytes += count;
    } else if (!transfer->stopped) {
        transfer->stopped = true;
        transfer->error = result;
    }
    go_on(transfer);
}

/* Registers blocks until enough of them are on their way. */
static void pump(struct transfer *transfer)
{
    int most = 1;
    globus_gridftp_server_get_optimal_concurrency(transfer->op, &most);
    while (!transfer->stopped && !transfer->drained && transfer->in_flight < most) {
        if (transfer->at == transfer->end && transfer->stream == NULL && !open_range(transfer))
            return;
        uint64_t offset = 0, count = 0;
        void *buffer = take_buffer(transfer);
        if (buffer == NULL) {
            failure_set(&transfer->failure, 451, "internal-error", "internal-error: out of memory");
            transfer->stopped = true;
            return;
        }
        enum taken taken = take_block(transfer, buffer, &offset, &count);
        if (taken != TAKEN) {
            give_buffer(transfer, buffer);
            if (taken == NOT_READY) {
                look_later(transfer);
                return;
            }
            finish_range(transfer);
            continue;
        }
        transfer->wait = SHORTEST_WAIT;
        watch_sign(&transfer->watch);
        globus_result_t result = globus_gridftp_server_register_write(transfer->op, buffer, count, (globus_off_t)offset,
                                                                      -1, written, transfer);
        if (result == GLOBUS_SUCCESS) {
            transfer->in_flight++;
            continue;
        }
        give_buffer(transfer, buffer);
        transfer->stopped = true;
        transfer->error = result;
    }
}

static void unlist(struct transfer *transfer)
{
    pthread_mutex_lock(&list_lock);
    struct transfer **link = &transfers;
    while (*link != transfer)
        link = &(*link)->next;
    *link = transfer->next;
    pthread_mutex_unlock(&list_lock);
}

/* What is left of a transfer that was stopped: the stream's threads end only with the pieces that they are at. */
struct rest {
    const struct engine *engine;
    sieva_stream *stream;
    struct answer *answer;
};

static void free_rest(void *argument)
{
    struct rest *rest = argument;
    rest->engine->stream_free(rest->stream);
    rest->stream = NULL;
}

static bool leave_rest(void *argument)
{
    (void)argument;
    return true;
}

static void rest_left(void *argument, bool left)
{
    (void)argument, (void)left;
}

static void release_rest(void *argument)
{
    struct rest *rest = argument;
    answer_release(rest->answer);
    free(rest);
}

/* Stops what the engine does for the transfer, without waiting for it. */
static void stop_engine(struct transfer *transfer)
{
    static const struct task task = {
        .work = free_rest, .watch = leave_rest, .done = rest_left, .release = release_rest};
    if (transfer->stream == NULL)
        return;
    answer_stop(transfer->answer);
    session_forget(transfer->session, transfer->answer);
    struct rest *rest = malloc(sizeof *rest);
    if (rest == NULL)
        return;
    *rest = (struct rest){transfer->engine, transfer->stream, answer_hold(transfer->answer)};
    if (job_start(&task, rest)) {
        transfer->stream = NULL;
        return;
    }
    release_rest(rest);
}

static void end(struct transfer *transfer)
{
    globus_gfs_operation_t op = transfer->op;
    if (transfer->stopped)
        stop_engine(transfer);
    globus_result_t result = transfer->failure.reply != 0 ? failure_result(&transfer->failure) : transfer->error;
    unlist(transfer);
    finish_range(transfer);
    journal_write(&transfer->entry, transfer->failure.reply != 0 ? transfer->failure.text
                                    : transfer->stopped          ? "aborted"
                                                                 : NULL);
    answer_release(transfer->answer);
    session_release(transfer->session);
    while (transfer->spare != NULL)
        free(take_buffer(transfer));
    pthread_mutex_destroy(&transfer->lock);
    journal_clear(&transfer->entry);
    free(transfer);
    globus_gridftp_server_finished_transfer(op, result);
}

/* Goes on as far as it can, with the lock held, which it releases. Nobody is to come when nothing is on its way and no look
 * is to come: whoever finds that ends the transfer. */
static void go_on(struct transfer *transfer)
{
    pump(transfer);
    bool is_over = (transfer->stopped || transfer->drained) && transfer->in_flight == 0 && !transfer->waiting;
    transfer->over = is_over;
    pthread_mutex_unlock(&transfer->lock);
    if (is_over)
        end(transfer);
}

/* A client that takes no block holds what others may need: its result is given up, and only the blocks on their way, which
 * are the server's, are waited for. */
static void give_up(struct transfer *transfer, uint32_t seconds)
{
    failure_set(&transfer->failure, 451, "cancelled",
                "cancelled: the client took nothing for this server's %u seconds; hint: start anew from where it stopped",
                seconds);
    transfer->stopped = true;
    stop_engine(transfer);
    finish_range(transfer);
    answer_release(transfer->answer);
    transfer->answer = NULL;
}

/* Looks at all transfers that wait for their clients. */
static void sweep(void *unused)
{
    uint32_t limit = config_get()->stall_limit;
    pthread_mutex_lock(&list_lock);
    for (struct transfer *transfer = transfers; transfer != NULL; transfer = transfer->next) {
        pthread_mutex_lock(&transfer->lock);
        if (!transfer->stopped && transfer->in_flight > 0 && watch_age(&transfer->watch) > (uint64_t)limit * 1000)
            give_up(transfer, limit);
        pthread_mutex_unlock(&transfer->lock);
    }
    sweeping = transfers != NULL;
    if (sweeping)
        call_later(SWEEP, sweep, unused);
    pthread_mutex_unlock(&list_lock);
}

bool transfer_abort(void *argument)
{
    pthread_mutex_lock(&list_lock);
    struct transfer *transfer = transfers;
    while (transfer != NULL && transfer != argument)
        transfer = transfer->next;
    if (transfer != NULL) {
        pthread_mutex_lock(&transfer->lock);
        transfer->stopped = true;
        transfer->wait = SHORTEST_WAIT;
        if (!transfer->over)
            look_later(transfer);
        pthread_mutex_unlock(&transfer->lock);
    }
    pthread_mutex_unlock(&list_lock);
    return transfer != NULL;
}

/* The answer is there: the data connection may be opened. */
static void begin(struct answer *answer, const struct failure *failure, void *argument)
{
    struct transfer *transfer = argument;
    globus_size_t block = 0;
    pthread_mutex_lock(&list_lock);
    transfer->next = transfers;
    transfers = transfer;
    if (!sweeping && config_get()->stall_limit > 0)
        call_later(SWEEP, sweep, NULL);
    sweeping = config_get()->stall_limit > 0;
    pthread_mutex_unlock(&list_lock);
    if (answer == NULL) {
        transfer->failure = *failure;
        end(transfer);
        return;
    }
    transfer->answer = answer;
    transfer->engine = engine_get(&transfer->failure);
    transfer->entry.rows = answer->rows;
    globus_gridftp_server_get_block_size(transfer->op, &block);
    transfer->block = block < SMALLEST_BLOCK ? SMALLEST_BLOCK : block > LARGEST_BLOCK ? LARGEST_BLOCK : block;
    watch_begin(&transfer->watch, config_get()->progress_limit, "a block of the result");
    globus_gridftp_server_begin_transfer(transfer->op, GLOBUS_GFS_EVENT_TRANSFER_ABORT, transfer);
    pthread_mutex_lock(&transfer->lock);
    go_on(transfer);
}

/* Whether blocks may come in any order: the client says so, and has asked for several streams or stripes, which there are
 * in extended block mode alone. In stream mode the server ignores where a block belongs. */
static bool may_come_in_any_order(globus_gfs_operation_t op, const struct request *request, bool whole)
{
    int concurrency = 0;
    if (!request->any_order || !whole || request->kind != REQUEST_QUERY || request->deflate == 0)
        return false;
    globus_gridftp_server_get_optimal_concurrency(op, &concurrency);
    return concurrency > 2; /* twice the number of streams */
}

void transfer_send(globus_gfs_operation_t op, struct session *session, struct request *request, bool whole)
{
    request->any_order = may_come_in_any_order(op, request, whole);
    struct transfer *transfer = calloc(1, sizeof *transfer);
    if (transfer == NULL) {
        request_clear(request);
        globus_gridftp_server_finished_transfer(op, GlobusGFSErrorMemory("transfer"));
        return;
    }
    pthread_mutex_init(&transfer->lock, NULL);
    transfer->op = op;
    transfer->wait = SHORTEST_WAIT;
    transfer->session = session_hold(session);
    journal_begin(&transfer->entry, "RETR", request, session, op);
    answer_get(session, &transfer->entry.identity, request, begin, transfer);
}
