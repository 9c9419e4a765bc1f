/*
 * Making answers: the file is opened, the selection evaluated, the layout of the result laid down; values are read when
 * they are sent.
 */
#define _GNU_SOURCE
#include "answer.h"

#include "config.h"
#include "job.h"
#include "watch.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TURN = 50 }; /* milliseconds between looks whether there is room */

struct making {
    const struct engine *engine;
    struct session *session;
    struct answer *answer;
    bool made;        /* there is nothing to do but to take room for it */
    uint64_t until;   /* waits for room no longer than this */
    struct watch watch;
    struct failure failure; /* the thread's */
    void (*done)(struct answer *answer, const struct failure *failure, void *argument);
    void *argument;
};

struct answer *answer_hold(struct answer *answer)
{
    __atomic_add_fetch(&answer->references, 1, __ATOMIC_RELAXED);
    return answer;
}

static void answer_free(struct answer *answer)
{
    struct failure ignored;
    const struct engine *engine = engine_get(&ignored);
    if (engine != NULL) {
        engine->result_free(answer->result);
        engine->close(answer->source);
        engine->stop_free(answer->stop);
    }
    account_lower(&answer->held, (struct usage){0});
    free(answer->text);
    free(answer->real);
    request_clear(&answer->request);
    free(answer);
}

/* Bytes of memory that this process alone has. */
static uint64_t own_memory(void)
{
    unsigned long long resident = 0, shared = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%*s %llu %llu", &resident, &shared) != 2 || resident < shared)
        resident = shared = 0;
    fclose(file);
    return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Whether the result is written to the spool first. */
static bool is_spooled(const struct request *request)
{
    if (request->deflate > 0)
        return request->kind != REQUEST_SCHEMA && !request->any_order;
    return request->kind != REQUEST_SCHEMA && !request->laid_out;
}

static struct usage usage_of(const struct answer *answer, bool made, bool busy)
{
    const struct config *config = config_get();
    struct usage usage = {.questions = busy};
    uint64_t memory = busy ? config->memory : own_memory();
    usage.memory = memory < config->memory ? memory : config->memory;
    if (is_spooled(&answer->request))
        usage.spool = made ? answer->spooled : config->spool_limit;
    return usage;
}

void answer_release(struct answer *answer)
{
    if (answer == NULL)
        return;
    int left = __atomic_sub_fetch(&answer->references, 1, __ATOMIC_ACQ_REL);
    if (left == 0) {
        answer_free(answer);
    } else if (left == 1 && __atomic_load_n(&answer->kept, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&answer->idle_since, now_ms(), __ATOMIC_RELEASE);
        account_lower(&answer->held, usage_of(answer, true, false));
    }
}

void answer_drop(struct answer *answer)
{
    if (answer == NULL)
        return;
    __atomic_store_n(&answer->kept, false, __ATOMIC_RELEASE);
    if (__atomic_sub_fetch(&answer->references, 1, __ATOMIC_ACQ_REL) == 0)
        answer_free(answer);
}

uint64_t answer_idle_ms(const struct answer *answer)
{
    if (__atomic_load_n(&answer->references, __ATOMIC_ACQUIRE) > 1)
        return 0;
    return now_ms() - __atomic_load_n(&answer->idle_since, __ATOMIC_ACQUIRE);
}

void answer_stop(const struct answer *answer)
{
    struct failure ignored;
    const struct engine *engine = engine_get(&ignored);
    if (engine != NULL && answer->stop != NULL)
        engine->stop_set(answer->stop);
}

void answer_fail(const struct answer *answer, const struct engine *engine, int32_t status, struct failure *failure)
{
    const struct config *config = config_get();
    failure_of_engine(failure, status, engine->error_name(status), engine->error_message(), engine->error_hint());
    struct failure whole = *failure;
    bool hidden = strcmp(answer->real, answer->request.path) != 0 &&
                  failure_hide(failure, answer->real, answer->request.path);
    hidden |= failure_hide(failure, config->store, "(the store)");
    hidden |= failure_hide(failure, config->spool, "(the spool)");
    hidden |= failure_hide(failure, config->worker, "(the worker)");
    if (hidden)
        globus_gfs_log_message(GLOBUS_GFS_LOG_ERR, "sieva: %s\n", whole.text);
}

static bool engine_failed(struct making *making, int32_t status)
{
    if (status == SIEVA_OK)
        return false;
    answer_fail(making->answer, making->engine, status, &making->failure);
    return true;
}

static const char *known(const char *text)
{
    return strcmp(text, "-") == 0 ? NULL : text;
}

static sieva_options options_of(const struct config *config, const struct answer *answer)
{
    const struct identity *who = &answer->who;
    sieva_options options = SIEVA_OPTIONS_INIT;
    options.memory = config->memory;
    options.threads = config->threads;
    options.store = config->store;
    options.no_learning = config->store == NULL; /* a query leaves nothing beside a file that it was to read */
    options.isolated = config->isolated;
    options.worker = config->isolated ? config->worker : NULL;
    options.user = known(who->user);
    options.subject = known(who->subject);
    options.stop = answer->stop;
    options.may_open = restrict_may_open;
    options.may_open_context = answer->restriction;
    options.public_only = 1;
    return options;
}

static void make_schema(struct making *making)
{
    struct answer *answer = making->answer;
    uint64_t needed = 0;
    if (engine_failed(making, making->engine->source_schema(answer->source, NULL, 0, &needed)))
        return;
    answer->text = malloc(needed);
    if (answer->text == NULL)
        failure_set(&making->failure, 552, "memory-limit", "memory-limit: the schema takes %" PRIu64 " bytes", needed);
    else if (!engine_failed(making, making->engine->source_schema(answer->source, answer->text, needed, &needed)))
        answer->size = strlen(answer->text);
}

/* The result's facts in place of the result. */
static void make_description(struct making *making)
{
    struct answer *answer = making->answer;
    int length = asprintf(&answer->text,
                          "{\"id\": \"%s\", \"format\": \"%s\", \"bytes\": %" PRIu64 ", \"rows\": %" PRIu64 "}\n",
                          answer->id, answer->request.format, answer->size, answer->rows);
    if (length < 0)
        failure_set(&making->failure, 451, "internal-error", "internal-error: out of memory");
    else
        answer->size = (uint64_t)length;
}

static void make_result(struct making *making)
{
    const struct engine *engine = making->engine;
    const struct config *config = config_get();
    struct answer *answer = making->answer;
    sieva_options options = options_of(config, answer);
    sieva_result_options result_options = SIEVA_RESULT_OPTIONS_INIT;
    result_options.format = answer->request.format;
    result_options.deflate = answer->request.deflate;
    result_options.spool = config->spool;
    result_options.spool_limit = config->spool_limit;
    if (engine_failed(making, engine->result_open(answer->source, answer->request.sql, &options, &result_options,
                                                  &answer->result)) ||
        (!answer->request.any_order && engine_failed(making, engine->result_size(answer->result, &answer->size))) ||
        engine_failed(making, engine->result_rows(answer->result, &answer->rows)) ||
        engine_failed(making, engine->result_id(answer->result, answer->id, sizeof answer->id, NULL)))
        return;
    if (is_spooled(&answer->request)) {
        answer->spooled = answer->size;
        account_lower(&answer->held, usage_of(answer, true, true));
    }
    if (answer->request.id[0] != '\0' && strcmp(answer->request.id, answer->id) != 0)
        failure_set(&making->failure, 550, "stale-source",
                    "stale-source: this result's id is %s, not %s: the file, the query or the format is another one than "
                    "before; hint: start the transfer anew",
                    answer->id, answer->request.id);
    else if (answer->request.kind == REQUEST_DESCRIBE)
        make_description(making);
}

/* In a thread of its own. */
static void make(void *argument)
{
    struct making *making = argument;
    sieva_options options = options_of(config_get(), making->answer);
    if (engine_failed(making, making->engine->open(making->answer->request.path, &options, &making->answer->source)))
        return;
    if (making->answer->request.kind == REQUEST_SCHEMA)
        make_schema(making);
    else
        make_result(making);
}

static void free_making(void *argument)
{
    struct making *making = argument;
    answer_release(making->answer);
    session_release(making->session);
    free(making);
}

static void finish(void *argument, bool left)
{
    struct making *making = argument;
    struct failure failure = left || making->watch.failure.reply != 0 ? making->watch.failure : making->failure;
    if (failure.reply != 0) {
        making->done(NULL, &failure, making->argument);
        return;
    }
    session_keep(making->session, making->answer);
    making->done(answer_hold(making->answer), NULL, making->argument);
}

static bool watch(void *argument)
{
    struct making *making = argument;
    return watch_look(&making->watch, making->engine, making->answer->stop);
}

static void fail(struct making *making, const struct failure *failure)
{
    making->done(NULL, failure, making->argument);
    free_making(making);
}

/* Begins when there is room, or waits for it. */
static void begin(void *argument)
{
    static const struct task task = {.work = make, .watch = watch, .done = finish, .release = free_making};
    struct making *making = argument;
    struct failure failure = {0};
    struct usage wanted = usage_of(making->answer, making->made, true);
    enum admission admission = job_left_count() > 0 ? BUSY : account_ask(&making->answer->held, wanted, &failure);
    if (admission == ADMITTED && making->made) {
        making->done(answer_hold(making->answer), NULL, making->argument);
        free_making(making);
        return;
    }
    if (admission == ADMITTED) {
        watch_begin(&making->watch, config_get()->time_limit, "evaluating the query");
        if (job_start(&task, making))
            return;
        failure_set(&failure, 451, "internal-error",
                    "internal-error: no thread can be started; hint: try again later");
    } else if (admission == BUSY) {
        if (watch_is_over(&making->watch))
            failure = making->watch.failure;
        else if (now_ms() >= making->until)
            failure_set(&failure, 450, "busy",
                        "busy: the server answers as many questions, with as much memory and room for their results, as "
                        "it may; hint: try again later");
        else {
            call_later(TURN * 1000, begin, making);
            return;
        }
    }
    fail(making, &failure);
}

static bool is_same(const struct answer *kept, const struct identity *who, const struct request *request,
                    const struct stat *file)
{
    return kept != NULL && strcmp(kept->who.user, who->user) == 0 && strcmp(kept->who.subject, who->subject) == 0 &&
           kept->request.kind == request->kind && strcmp(kept->request.path, request->path) == 0 &&
           strcmp(kept->request.sql, request->sql) == 0 && strcmp(kept->request.format, request->format) == 0 &&
           kept->request.deflate == request->deflate &&
           /* of one that is sent in any order the size is not known */
           (!kept->request.any_order || request->any_order) &&
           (request->id[0] == '\0' || strcmp(kept->id, request->id) == 0) && kept->file.st_dev == file->st_dev &&
           kept->file.st_ino == file->st_ino && kept->file.st_size == file->st_size &&
           kept->file.st_mtim.tv_sec == file->st_mtim.tv_sec && kept->file.st_mtim.tv_nsec == file->st_mtim.tv_nsec &&
           /* set by a change of permissions, too, and not to be set back */
           kept->file.st_ctim.tv_sec == file->st_ctim.tv_sec && kept->file.st_ctim.tv_nsec == file->st_ctim.tv_nsec;
}

/* Whether the server's restrictions allow the request's path and the real one that it leads to. It is opened by the path that
 * was sent: the engine asks again, by where that leads then. */
static bool find_file(struct request *request, struct stat *file, char **found, struct failure *failure)
{
    char *real = realpath(request->path, NULL);
    int error = errno;
    /* Of what is not there the name decides: a refusal must not tell it from what is there. */
    if (!restrict_allows(request->path, real == NULL ? request->path : real)) {
        failure_set(failure, 550, "permission-denied", "permission-denied: '%.1024s' is outside of what may be opened",
                    request->path);
        free(real);
        return false;
    }
    if (real != NULL && stat(real, file) != 0)
        error = errno;
    else if (real != NULL)
        error = 0;
    if (error != 0) {
        const char *name = error == EACCES ? "permission-denied" : "file-not-found";
        failure_set(failure, 550, name, "%s: %.1024s", name, request->path);
        free(real);
        return false;
    }
    *found = real;
    return true;
}

void answer_get(struct session *session, const struct identity *who, struct request *request,
                void (*done)(struct answer *answer, const struct failure *failure, void *argument), void *argument)
{
    struct failure failure = {0};
    struct stat file;
    const struct engine *engine = engine_get(&failure);
    char *real = NULL;
    if (engine == NULL || !find_file(request, &file, &real, &failure)) {
        request_clear(request);
        done(NULL, &failure, argument);
        return;
    }
    struct answer *kept = session_kept(session), *answer = NULL;
    struct making *making = calloc(1, sizeof *making);
    bool made = is_same(kept, who, request, &file);
    if (made) {
        answer = kept;
        request_clear(request);
    } else {
        session_forget(session, kept); /* first, so that a session never has two */
        answer_release(kept);
        answer = calloc(1, sizeof *answer);
    }
    if (making == NULL || answer == NULL || (!made && engine->stop_create(&answer->stop) != SIEVA_OK)) {
        failure_set(&failure, 451, "internal-error", "internal-error: out of memory");
        if (made)
            answer_release(answer);
        else
            free(answer);
        free(making);
        free(real);
        request_clear(request);
        done(NULL, &failure, argument);
        return;
    }
    if (!made) {
        sieva_stop *stop = answer->stop;
        *answer = (struct answer){.references = 1,
                                  .stop = stop,
                                  .request = *request,
                                  .who = *who,
                                  .file = file,
                                  .real = real,
                                  .restriction = restrict_take()};
        memset(request, 0, sizeof *request);
    } else {
        free(real);
    }
    *making = (struct making){.engine = engine,
                              .session = session_hold(session),
                              .answer = answer,
                              .made = made,
                              .until = now_ms() + (uint64_t)config_get()->wait * 1000,
                              .done = done,
                              .argument = argument};
    watch_begin(&making->watch, 0, "");
    begin(making);
}

bool answer_read(const struct answer *answer, uint64_t offset, void *buffer, uint64_t capacity, uint64_t *count,
                 struct failure *failure)
{
    const struct engine *engine = engine_get(failure);
    if (answer->text != NULL) {
        uint64_t rest = offset < answer->size ? answer->size - offset : 0;
        *count = rest < capacity ? rest : capacity;
        memcpy(buffer, answer->text + (*count == 0 ? 0 : offset), *count);
        return true;
    }
    int32_t status = engine->result_read(answer->result, offset, buffer, capacity, count);
    if (status == SIEVA_OK)
        return true;
    answer_fail(answer, engine, status, failure);
    return false;
}
