/*
 * Rows and groups as the bytes of a file, for who gets them.
 */
#include "bytes.h"
#include "error.h"
#include "found.h"
#include "merge.h"
#include "shares.h"

/* What rank 0 found, for whoever gets the result. */
static int32_t hand_over(const sieva_mpi_query *query, int32_t at, struct bytes *found)
{
    const struct world *world = &query->source->world;
    int32_t status = agree(world, world->rank == 0 ? bytes_of_merge(query->answer.merge, found) : SIEVA_OK);
    if (status != SIEVA_OK || at == 0)
        return status;
    if (at == SIEVA_MPI_EVERYWHERE)
        return bytes_broadcast(world, 0, found);
    if (world->rank == 0)
        bytes_send(world, at, found);
    else if (world->rank == at)
        status = bytes_receive(world, 0, found);
    return agree(world, status);
}

/* The result of this rank, by what was found, or found by it alone. */
static int32_t make_result(const sieva_mpi_query *query, const struct bytes *found, const sieva_result_options *options, sieva_result **result)
{
    const sieva_source *here = query->source->here;
    sieva_merge *merge = NULL;
    if (query->answer.is_uncut)
        return said(sieva_result_of_plan(here, query->plan, NULL, options, result));
    int32_t status = said(sieva_merge_from_bytes(found->data, found->size, query->source->memory, &merge));
    if (status == SIEVA_OK)
        status = said(sieva_merge_result(merge, here, query->plan, NULL, options, result));
    sieva_merge_free(merge);
    return status;
}

/* Whoever gets the result makes it of what rank 0 found. */
static int32_t make_everywhere(const sieva_mpi_query *query, int32_t at, const sieva_result_options *options, sieva_result **result)
{
    const struct world *world = &query->source->world;
    struct bytes found = NO_BYTES;
    int32_t status = query->answer.is_uncut ? SIEVA_OK : hand_over(query, at, &found);
    if (status == SIEVA_OK)
        status = agree(world, is_receiver(world, at) ? make_result(query, &found, options, result) : SIEVA_OK);
    bytes_free(&found);
    return status;
}

/* The bytes of the result that rank 0 has made. */
static int32_t bytes_of_result(const sieva_result *result, struct bytes *bytes)
{
    uint64_t size = 0;
    int32_t status = said(sieva_result_bytes(result, NULL, 0, &size));
    if (status == SIEVA_OK)
        status = bytes_room(bytes, size, "results");
    if (status == SIEVA_OK)
        status = said(sieva_result_bytes(result, bytes->data, bytes->size, &size));
    return status;
}

/* Rank 0 makes the result, and its bytes where others get it. */
static int32_t make_here(const sieva_mpi_query *query, const sieva_result_options *options, int is_sent, sieva_result **result, struct bytes *file)
{
    const sieva_source *here = query->source->here;
    int32_t status = query->answer.is_uncut ? sieva_result_of_plan(here, query->plan, NULL, options, result)
                                            : sieva_merge_result(query->answer.merge, here, query->plan, NULL, options, result);
    status = said(status);
    return status == SIEVA_OK && is_sent ? bytes_of_result(*result, file) : status;
}

/* From rank 0 to who gets the result. */
static int32_t send_file(const struct world *world, int32_t at, struct bytes *file)
{
    if (at == SIEVA_MPI_EVERYWHERE)
        return bytes_broadcast(world, 0, file);
    if (world->rank == at)
        return bytes_receive(world, 0, file);
    if (world->rank == 0)
        bytes_send(world, at, file);
    return SIEVA_OK;
}

/* Of a collection rank 0 alone has the catalog: it makes the file, and sends that. */
static int32_t make_and_send(const sieva_mpi_query *query, int32_t at, const sieva_result_options *options, sieva_result **result)
{
    const struct world *world = &query->source->world;
    struct bytes file = NO_BYTES;
    int is_sent = at != 0 && world->size > 1;
    int32_t status = agree(world, world->rank == 0 ? make_here(query, options, is_sent, result, &file) : SIEVA_OK);
    if (status == SIEVA_OK && is_sent) {
        status = send_file(world, at, &file);
        if (status == SIEVA_OK && world->rank != 0 && is_receiver(world, at))
            status = said(sieva_result_from_bytes(file.data, file.size, options, result));
        status = agree(world, status);
    }
    bytes_free(&file);
    if (!is_receiver(world, at)) {
        sieva_result_free(*result);
        *result = NULL;
    }
    return status;
}

int32_t sieva_mpi_query_result(sieva_mpi_query *query, const sieva_result_options *options, int32_t at, sieva_result **result)
{
    if (query == NULL)
        return refuse(SIEVA_ERROR_INVALID_VALUE, "query is NULL: a handle of sieva_mpi_query_text() is expected");
    const struct world *world = &query->source->world;
    sieva_result *made = NULL;
    int32_t status = check_at(world, at, 0);
    if (status == SIEVA_OK && result == NULL && is_receiver(world, at))
        status = fail(SIEVA_ERROR_INVALID_VALUE, "result is NULL: where it goes is expected");
    status = agree(world, status);
    if (status == SIEVA_OK)
        status = find(query, SIEVA_TASK_ANY, &query->answer);
    if (status == SIEVA_OK && query->source->is_collection)
        status = make_and_send(query, at, options, &made);
    else if (status == SIEVA_OK)
        status = make_everywhere(query, at, options, &made);
    if (status == SIEVA_OK && result != NULL)
        *result = made;
    else
        sieva_result_free(made);
    return status;
}
