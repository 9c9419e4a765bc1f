/*
 * What a query is decides what becomes of it.
 */
#define _GNU_SOURCE
#include "fake.h"

#include <string.h>


struct sieva_stop {
    atomic_bool set;
};
struct sieva_result {
    const sieva_stop *stop;
    bool never; /* its streams are never ready */
};
struct sieva_stream {
    const sieva_result *result;
    uint64_t at, end, block;
};
atomic_int open_sources, open_results, open_stops, open_streams, evaluations;
atomic_bool hang = true;
static _Thread_local int32_t last;

static int32_t fail(int32_t status)
{
    return last = status;
}

static const char *fake_message(void)
{
    return last == SIEVA_ERROR_CANCELLED ? "the query was interrupted" : "wrong";
}

static const char *fake_hint(void)
{
    return "";
}

static const char *fake_name(int32_t code)
{
    return code == SIEVA_ERROR_CANCELLED ? "cancelled" : "syntax-error";
}

static int32_t fake_open(const char *path, const sieva_options *options, sieva_source **source)
{
    (void)path, (void)options;
    open_sources++;
    *source = malloc(1);
    return SIEVA_OK;
}

static void fake_close(sieva_source *source)
{
    if (source != NULL)
        open_sources--;
    free(source);
}

static int32_t fake_result_format(const char *name, const char **format, int32_t *laid_out)
{
    (void)name;
    *format = "netcdf";
    *laid_out = 1;
    return SIEVA_OK;
}

static int32_t fake_result_open(const sieva_source *source, const char *sql, const sieva_options *options,
                                const sieva_result_options *result_options, sieva_result **result)
{
    (void)source, (void)result_options;
    evaluations++;
    if (strstr(sql, "wrong") != NULL)
        return fail(SIEVA_ERROR_SYNTAX_ERROR);
    for (int i = 0; strstr(sql, "slow") != NULL && i < 20; i++)
        usleep(1000);
    while (strstr(sql, "long") != NULL && !atomic_load(&options->stop->set))
        usleep(1000);
    if (strstr(sql, "long") != NULL)
        return fail(SIEVA_ERROR_CANCELLED);
    while (strstr(sql, "hang") != NULL && atomic_load(&hang))
        usleep(1000);
    open_results++;
    *result = malloc(sizeof **result);
    **result = (sieva_result){options->stop, strstr(sql, "never") != NULL};
    return SIEVA_OK;
}

static int32_t fake_number(const sieva_result *result, uint64_t *number)
{
    (void)result;
    *number = SIZE;
    return SIEVA_OK;
}

static int32_t fake_id(const sieva_result *result, char *text, uint64_t capacity, uint64_t *needed)
{
    (void)result, (void)needed;
    snprintf(text, capacity, "id");
    return SIEVA_OK;
}

static void fake_result_free(sieva_result *result)
{
    if (result != NULL)
        open_results--;
    free(result);
}

static int32_t fake_stream(const sieva_result *result, uint64_t offset, uint64_t length, uint64_t block,
                           sieva_stream **stream)
{
    open_streams++;
    *stream = malloc(sizeof **stream);
    **stream = (sieva_stream){result, offset, offset + length, block};
    return SIEVA_OK;
}

static int32_t fake_ready(const sieva_stream *stream, int32_t *ready)
{
    *ready = !stream->result->never && (stream->at / stream->block % 3 != 0 || rand() % 4 == 0);
    return SIEVA_OK;
}

static int32_t fake_next(sieva_stream *stream, void *buffer, uint64_t capacity, uint64_t *offset, uint64_t *count)
{
    uint64_t rest = stream->end - stream->at;
    *offset = stream->at;
    *count = rest < capacity ? rest : capacity;
    for (uint64_t i = 0; i < *count; i++)
        ((unsigned char *)buffer)[i] = (unsigned char)((stream->at + i) * 7);
    stream->at += *count;
    return SIEVA_OK;
}

/* As the engine's: it ends with what its threads are at. */
static void fake_stream_free(sieva_stream *stream)
{
    for (int i = 0; i < 500 && stream->result->never && !atomic_load(&stream->result->stop->set); i++)
        usleep(10000);
    usleep(5000);
    open_streams--;
    free(stream);
}

static int32_t fake_stop_create(sieva_stop **stop)
{
    open_stops++;
    *stop = calloc(1, sizeof **stop);
    return SIEVA_OK;
}

static int32_t fake_stop_set(const sieva_stop *stop)
{
    atomic_store((atomic_bool *)&stop->set, true);
    return SIEVA_OK;
}

static void fake_stop_free(sieva_stop *stop)
{
    if (stop != NULL)
        open_stops--;
    free(stop);
}

const struct engine *engine_get(struct failure *failure)
{
    static const struct engine engine = {
        .error_message = fake_message,   .error_name = fake_name,     .open = fake_open,
        .error_hint = fake_hint,         .result_format = fake_result_format,
        .close = fake_close,             .result_open = fake_result_open, .result_size = fake_number,
        .result_rows = fake_number,      .result_id = fake_id,        .result_free = fake_result_free,
        .result_stream = fake_stream,    .stream_ready = fake_ready,  .stream_next = fake_next,
        .stream_free = fake_stream_free, .stop_create = fake_stop_create,
        .stop_set = fake_stop_set,       .stop_free = fake_stop_free,
    };
    (void)failure;
    return &engine;
}

/* There is no server whose settings say more. */
bool restrict_allows(const char *path, const char *real)
{
    (void)path, (void)real;
    return true;
}

int32_t restrict_may_open(void *restriction, int32_t purpose, const char *asked, const char *real)
{
    (void)restriction, (void)purpose, (void)asked, (void)real;
    return 1;
}

struct restriction *restrict_take(void)
{
    return NULL;
}
