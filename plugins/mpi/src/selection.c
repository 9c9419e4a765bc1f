/*
 * Positions of the hits, for who gets them.
 */
#include "error.h"
#include "shares.h"

int32_t sieva_mpi_query_share(sieva_mpi_query *query, uint64_t *first, uint64_t *count)
{
    if (query == NULL)
        return refuse(SIEVA_ERROR_INVALID_VALUE, "query is NULL: a handle of sieva_mpi_query_text() is expected");
    int32_t status = share_out(query);
    if (status == SIEVA_OK && first != NULL)
        *first = query->first;
    if (status == SIEVA_OK && count != NULL)
        *count = query->count;
    return status;
}

/* All positions for one rank. */
static int32_t send_all(const sieva_mpi_query *query, int32_t at, sieva_selection **selection)
{
    int rank = query->source->world.rank;
    if (rank == 0)
        return at == 0 ? said(sieva_selection_part(query->all, 0, query->total, selection)) : send_part(query, at, 0, query->total);
    return rank == at ? receive_part(query, selection) : SIEVA_OK;
}

int32_t sieva_mpi_query_selection(sieva_mpi_query *query, int32_t at, sieva_selection **selection)
{
    if (query == NULL)
        return refuse(SIEVA_ERROR_INVALID_VALUE, "query is NULL: a handle of sieva_mpi_query_text() is expected");
    const struct world *world = &query->source->world;
    sieva_selection *made = NULL;
    int32_t status = check_at(world, at, 1);
    if (status == SIEVA_OK && selection == NULL && is_receiver(world, at))
        status = fail(SIEVA_ERROR_INVALID_VALUE, "selection is NULL: where it goes is expected");
    status = agree(world, status);
    if (status == SIEVA_OK)
        status = share_out(query);
    if (status == SIEVA_OK && at == SIEVA_MPI_SHARED)
        status = agree(world, said(sieva_selection_part(query->mine, 0, query->count, &made)));
    else if (status == SIEVA_OK && at == SIEVA_MPI_EVERYWHERE)
        status = broadcast_all(query, &made);
    else if (status == SIEVA_OK)
        status = agree(world, send_all(query, at, &made));
    if (status == SIEVA_OK && selection != NULL)
        *selection = made;
    else
        sieva_selection_free(made);
    return status;
}
