/*
 * The engine, libsieva_c.so, loaded when the first query comes: sessions that only move files pay nothing for it.
 */
#ifndef SIEVA_GRIDFTP_ENGINE_H
#define SIEVA_GRIDFTP_ENGINE_H

#include "failure.h"
#include "sieva.h"

#define ENGINE_FUNCTIONS(X)                                                                                             \
    X(error_message) X(error_hint) X(error_name) X(open) X(close) X(source_schema) X(result_format) X(result_open) X(result_size) X(result_rows)       \
    X(result_id) X(result_read) X(result_stream) X(result_stream_any_order) X(result_free) X(stream_next) X(stream_ready) X(stream_free)            \
    X(stop_create) X(stop_set) X(stop_free)

/* engine->open is sieva_open(), and so on. */
struct engine {
#define MEMBER(name) __typeof__(&sieva_##name) name;
    ENGINE_FUNCTIONS(MEMBER)
#undef MEMBER
};

/* The engine, loaded once for each process; NULL, with the failure, where it cannot be. */
const struct engine *engine_get(struct failure *failure);

#endif
