/*
 * Making answers: the file is opened, the selection evaluated, the layout of the result laid down; values are read when
 * they are sent.
 */
#define _GNU_SOURCE
#include "answer.h"

#include "config.h"
#include "job.h"
#include "restrict.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct making {
    const struct engine *engine;
    struct session *session;
    struct answer *answer;
    struct failure failure;
    void (*done)(struct answer *answer, const struct failure *failure, void *argument);
    void *argument;
};

struct answer *answer_hold(struct answer *answer)
{
    __atomic_add_fetch(&answer->references, 1, __ATOMIC_RELAXED);
    return answer;
}

void answer_release(struct answer *answer)
{
    struct failure ignored;
    if (answer == NULL || __atomic_sub_fetch(&answer->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    const struct engine *engine = engine_get(&ignored);
    if (engine != NULL) {
        engine->result_free(answer->result);
        engine->close(answer->source);
    }
    free(answer->text);
    request_clear(&answer->request);
    free(answer);
}

static bool engine_failed(struct making *making, int32_t status)
{
    if (status == SIEVA_OK)
        return false;
    failure_of_engine(&making->failure, status, making->engine->error_name(status), making->engine->error_message());
    return true;
}

static const char *known(const char *text)
{
    return strcmp(text, "-") == 0 ? NULL : text;
}

static sieva_options options_of(const struct config *config, const struct identity *who)
{
    sieva_options options = SIEVA_OPTIONS_INIT;
    options.memory = config->memory;
    options.threads = config->threads;
    options.store = config->store;
    options.no_learning = config->store == NULL; /* a query leaves nothing beside a file that it was to read */
    options.isolated = config->isolated;
    options.worker = config->isolated ? config->worker : NULL;
    options.user = known(who->user);
    options.subject = known(who->subject);
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
    sieva_options options = options_of(config, &answer->who);
    sieva_result_options result_options = SIEVA_RESULT_OPTIONS_INIT;
    result_options.format = answer->request.format;
    result_options.spool = config->spool;
    result_options.spool_limit = config->spool_limit;
    if (engine_failed(making, engine->result_open(answer->source, answer->request.sql, &options, &result_options,
                                                  &answer->result)) ||
        engine_failed(making, engine->result_size(answer->result, &answer->size)) ||
        engine_failed(making, engine->result_rows(answer->result, &answer->rows)) ||
        engine_failed(making, engine->result_id(answer->result, answer->id, sizeof answer->id, NULL)))
        return;
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
    sieva_options options = options_of(config_get(), &making->answer->who);
    if (engine_failed(making, making->engine->open(making->answer->request.path, &options, &making->answer->source)))
        return;
    if (making->answer->request.kind == REQUEST_SCHEMA)
        make_schema(making);
    else
        make_result(making);
}

static void finish(void *argument)
{
    struct making *making = argument;
    if (making->failure.reply != 0) {
        answer_release(making->answer);
        making->done(NULL, &making->failure, making->argument);
    } else {
        answer_release(making->session->kept);
        making->session->kept = answer_hold(making->answer);
        making->done(making->answer, NULL, making->argument);
    }
    free(making);
}

static bool is_same(const struct answer *kept, const struct identity *who, const struct request *request,
                    const struct stat *file)
{
    return kept != NULL && strcmp(kept->who.user, who->user) == 0 && strcmp(kept->who.subject, who->subject) == 0 &&
           kept->request.kind == request->kind && strcmp(kept->request.path, request->path) == 0 &&
           strcmp(kept->request.sql, request->sql) == 0 && strcmp(kept->request.format, request->format) == 0 &&
           (request->id[0] == '\0' || strcmp(kept->id, request->id) == 0) && kept->file.st_dev == file->st_dev &&
           kept->file.st_ino == file->st_ino && kept->file.st_size == file->st_size &&
           kept->file.st_mtim.tv_sec == file->st_mtim.tv_sec && kept->file.st_mtim.tv_nsec == file->st_mtim.tv_nsec;
}

/* Replaces the request's path by the real one, which the server's restrictions must allow. */
static bool find_file(struct request *request, struct stat *file, struct failure *failure)
{
    char *real = realpath(request->path, NULL);
    if (real == NULL || stat(real, file) != 0) {
        failure_set(failure, 550, errno == EACCES ? "permission-denied" : "file-not-found", "%s: %.1024s",
                    errno == EACCES ? "permission-denied" : "file-not-found", request->path);
        free(real);
        return false;
    }
    if (!restrict_allows(request->path, real)) {
        failure_set(failure, 550, "permission-denied", "permission-denied: %.1024s is outside of what may be read",
                    request->path);
        free(real);
        return false;
    }
    free(request->path);
    request->path = real;
    return true;
}

void answer_get(struct session *session, const struct identity *who, struct request *request,
                void (*done)(struct answer *answer, const struct failure *failure, void *argument), void *argument)
{
    struct failure failure = {0};
    struct stat file;
    const struct engine *engine = engine_get(&failure);
    if (engine == NULL || !find_file(request, &file, &failure)) {
        request_clear(request);
        done(NULL, &failure, argument);
        return;
    }
    if (is_same(session->kept, who, request, &file)) {
        request_clear(request);
        done(answer_hold(session->kept), NULL, argument);
        return;
    }
    struct making *making = calloc(1, sizeof *making);
    struct answer *answer = calloc(1, sizeof *answer);
    if (making != NULL && answer != NULL) {
        *answer = (struct answer){.references = 1, .request = *request, .who = *who, .file = file};
        *making = (struct making){
            .engine = engine, .session = session, .answer = answer, .done = done, .argument = argument};
        memset(request, 0, sizeof *request);
        if (job_start(make, finish, making))
            return;
        answer_release(answer);
    } else {
        free(answer);
        request_clear(request);
    }
    free(making);
    failure_set(&failure, 451, "internal-error", "internal-error: no thread can be started; hint: try again later");
    done(NULL, &failure, argument);
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
    failure_of_engine(failure, status, engine->error_name(status), engine->error_message());
    return false;
}
