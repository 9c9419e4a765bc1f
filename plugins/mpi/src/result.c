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

int32_t sieva_mpi_query_result(sieva_mpi_query *query, const sieva_result_options *options, int32_t at, sieva_result **result)
{
    if (query == NULL)
        return refuse(SIEVA_ERROR_INVALID_VALUE, "query is NULL: a handle of sieva_mpi_query_text() is expected");
    const struct world *world = &query->source->world;
    struct bytes found = NO_BYTES;
    sieva_result *made = NULL;
    int32_t status = check_at(world, at, 0);
    if (status == SIEVA_OK && result == NULL && is_receiver(world, at))
        status = fail(SIEVA_ERROR_INVALID_VALUE, "result is NULL: where it goes is expected");
    status = agree(world, status);
    if (status == SIEVA_OK)
        status = find(query, SIEVA_TASK_ANY, &query->answer);
    if (status == SIEVA_OK && !query->answer.is_uncut)
        status = hand_over(query, at, &found);
    if (status == SIEVA_OK)
        status = agree(world, is_receiver(world, at) ? make_result(query, &found, options, &made) : SIEVA_OK);
    bytes_free(&found);
    if (status == SIEVA_OK && result != NULL)
        *result = made;
    else
        sieva_result_free(made);
    return status;
}
