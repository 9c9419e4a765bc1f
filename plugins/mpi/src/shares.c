/*
 * The hits, shared out evenly: positions are sent, no condition is evaluated again.
 */
#include "shares.h"
#include "bytes.h"
#include "error.h"
#include "found.h"

void share_of_rank(uint64_t hits, int ranks, int rank, uint64_t *first, uint64_t *count)
{
    uint64_t each = hits / (uint64_t)ranks, more = hits % (uint64_t)ranks, before = (uint64_t)rank;
    *first = each * before + (before < more ? before : more);
    *count = each + (before < more);
}

int32_t check_at(const struct world *world, int32_t at, int may_be_shared)
{
    if (at == SIEVA_MPI_EVERYWHERE || (at == SIEVA_MPI_SHARED && may_be_shared) || (at >= 0 && at < world->size))
        return SIEVA_OK;
    return fail(SIEVA_ERROR_INVALID_VALUE, "at is %d: %sSIEVA_MPI_EVERYWHERE (%d) or a rank below %d is expected", (int)at,
                may_be_shared ? "SIEVA_MPI_SHARED (-2), " : "", (int)SIEVA_MPI_EVERYWHERE, world->size);
}

/* The bytes of the hits from number first on, count of them. */
static int32_t bytes_of_part(const sieva_selection *all, uint64_t first, uint64_t count, struct bytes *bytes)
{
    sieva_selection *part = NULL;
    uint64_t size = 0;
    int32_t status = said(sieva_selection_part(all, first, count, &part));
    if (status == SIEVA_OK)
        status = said(sieva_selection_bytes(part, NULL, 0, &size));
    if (status == SIEVA_OK)
        status = bytes_room(bytes, size, "positions");
    if (status == SIEVA_OK)
        status = said(sieva_selection_bytes(part, bytes->data, bytes->size, &size));
    sieva_selection_free(part);
    if (status != SIEVA_OK)
        bytes_free(bytes);
    return status;
}

/* A selection of this rank's own source, of positions that rank 0 has sent. */
static int32_t selection_of_bytes(const sieva_mpi_query *query, const struct bytes *bytes, sieva_selection **selection)
{
    sieva_query *rows = NULL;
    int32_t status = said(sieva_plan_query(query->source->here, query->plan, NULL, &rows));
    if (status == SIEVA_OK)
        status = said(sieva_selection_from_bytes(rows, bytes->data, bytes->size, selection));
    sieva_query_free(rows);
    return status;
}

int32_t send_part(const sieva_mpi_query *query, int to, uint64_t first, uint64_t count)
{
    struct bytes bytes = NO_BYTES;
    /* No bytes are sent where it fails. */
    int32_t status = bytes_of_part(query->all, first, count, &bytes);
    bytes_send(&query->source->world, to, &bytes);
    bytes_free(&bytes);
    return status;
}

int32_t receive_part(const sieva_mpi_query *query, sieva_selection **selection)
{
    struct bytes bytes = NO_BYTES;
    int32_t status = bytes_receive(&query->source->world, 0, &bytes);
    if (status == SIEVA_OK && bytes.size > 0)
        status = selection_of_bytes(query, &bytes, selection);
    bytes_free(&bytes);
    return status;
}

int32_t broadcast_all(const sieva_mpi_query *query, sieva_selection **selection)
{
    const struct world *world = &query->source->world;
    struct bytes bytes = NO_BYTES;
    int32_t status = agree(world, world->rank == 0 ? bytes_of_part(query->all, 0, query->total, &bytes) : SIEVA_OK);
    if (status == SIEVA_OK)
        status = bytes_broadcast(world, 0, &bytes);
    if (status == SIEVA_OK)
        status = agree(world, selection_of_bytes(query, &bytes, selection));
    bytes_free(&bytes);
    return status;
}

/* Rank 0 sends each rank its share, and keeps its own. */
static int32_t send_shares(sieva_mpi_query *query)
{
    int32_t status = SIEVA_OK;
    uint64_t first, count;
    for (int rank = 1; rank < query->source->world.size; rank++) {
        share_of_rank(query->total, query->source->world.size, rank, &first, &count);
        int32_t sent = send_part(query, rank, first, count);
        status = status != SIEVA_OK ? status : sent;
    }
    return status != SIEVA_OK ? status : said(sieva_selection_part(query->all, 0, query->count, &query->mine));
}

/* Positions of rank 0, and their number for all. */
static int32_t count_hits(sieva_mpi_query *query)
{
    const struct world *world = &query->source->world;
    int32_t status = SIEVA_OK;
    if (world->rank == 0)
        status = said(sieva_query_selection(query->hits.whole, &query->all));
    if (world->rank == 0 && status == SIEVA_OK)
        status = said(sieva_selection_nhits(query->all, &query->total));
    status = agree(world, status);
    if (status == SIEVA_OK)
        memory_broadcast(world, 0, &query->total, sizeof query->total);
    return status;
}

int32_t share_out(sieva_mpi_query *query)
{
    const struct world *world = &query->source->world;
    if (query->mine != NULL)
        return SIEVA_OK;
    int32_t status = find(query, SIEVA_TASK_SELECTION, &query->hits);
    if (status == SIEVA_OK)
        status = count_hits(query);
    if (status == SIEVA_OK) {
        share_of_rank(query->total, world->size, world->rank, &query->first, &query->count);
        status = agree(world, world->rank == 0 ? send_shares(query) : receive_part(query, &query->mine));
    }
    if (status != SIEVA_OK) {
        sieva_selection_free(query->all);
        sieva_selection_free(query->mine);
        query->all = query->mine = NULL;
    }
    return status;
}
