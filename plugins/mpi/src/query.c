/*
 * Queries: planned by rank 0, known to all; the number of their rows.
 */
#include "bytes.h"
#include "error.h"
#include "found.h"

#include <stdlib.h>

static int32_t bytes_of_plan(const sieva_plan *plan, struct bytes *bytes)
{
    uint64_t size = 0;
    int32_t status = said(sieva_plan_bytes(plan, NULL, 0, &size));
    if (status == SIEVA_OK)
        status = bytes_room(bytes, size, "plans");
    if (status == SIEVA_OK)
        status = said(sieva_plan_bytes(plan, bytes->data, bytes->size, &size));
    return status;
}

/* Gives all ranks the plan of rank 0, which comes with the status of planning. */
static int32_t share_plan(const struct world *world, int32_t status, const sieva_plan *own, sieva_plan **plan)
{
    struct bytes bytes = NO_BYTES;
    if (world->rank == 0 && status == SIEVA_OK)
        status = bytes_of_plan(own, &bytes);
    status = agree(world, status);
    if (status == SIEVA_OK)
        status = bytes_broadcast(world, 0, &bytes);
    if (status == SIEVA_OK)
        status = agree(world, said(sieva_plan_from_bytes(bytes.data, bytes.size, plan)));
    bytes_free(&bytes);
    return status;
}

/* A query of the plan of rank 0, whose own handle stays with the caller. */
static int32_t make_query(sieva_mpi_source *source, int32_t status, const sieva_plan *own, sieva_mpi_query **query)
{
    sieva_mpi_query *made = calloc(1, sizeof *made);
    if (status == SIEVA_OK && query == NULL)
        status = fail(SIEVA_ERROR_INVALID_VALUE, "query is NULL: where the query goes is expected");
    if (status == SIEVA_OK && made == NULL)
        status = fail_memory(sizeof *made, "handles");
    sieva_plan *plan = NULL;
    status = share_plan(&source->world, status, own, &plan);
    if (status != SIEVA_OK) {
        sieva_plan_free(plan);
        free(made);
        return status;
    }
    made->source = source;
    made->plan = plan;
    *query = made;
    return SIEVA_OK;
}

int32_t sieva_mpi_query_text(sieva_mpi_source *source, const char *sql, sieva_mpi_query **query)
{
    sieva_plan *plan = NULL;
    int32_t status = SIEVA_OK;
    if (source == NULL)
        return refuse(SIEVA_ERROR_INVALID_VALUE, "source is NULL: a handle of sieva_mpi_open() is expected");
    if (source->world.rank == 0)
        status = said(sieva_plan_sql(source->here, sql, &plan));
    status = make_query(source, status, plan, query);
    if (status == SIEVA_OK && plan != NULL) {
        /* A collection remembers what the catalog said of the handle that it planned. */
        sieva_plan_free((*query)->plan);
        (*query)->plan = plan;
        plan = NULL;
    }
    sieva_plan_free(plan);
    return status;
}

int32_t sieva_mpi_query_plan(sieva_mpi_source *source, const sieva_plan *plan, sieva_mpi_query **query)
{
    int32_t status = SIEVA_OK;
    if (source == NULL)
        return refuse(SIEVA_ERROR_INVALID_VALUE, "source is NULL: a handle of sieva_mpi_open() is expected");
    if (source->world.rank == 0 && plan == NULL)
        status = fail(SIEVA_ERROR_INVALID_VALUE, "plan is NULL: rank 0 gives one");
    return make_query(source, status, plan, query);
}

void sieva_mpi_query_free(sieva_mpi_query *query)
{
    if (query == NULL)
        return;
    sieva_selection_free(query->mine);
    sieva_selection_free(query->all);
    found_free(&query->hits);
    found_free(&query->answer);
    sieva_plan_free(query->plan);
    free(query);
}

/* Whether rows are positions, so that who has found these knows how many there are; of groups and of different rows they are not. */
static int32_t are_rows_positions(const sieva_mpi_query *query, int *they_are)
{
    const struct world *world = &query->source->world;
    sieva_tasks *tasks = NULL;
    int32_t status = SIEVA_OK;
    *they_are = 0;
    if (world->rank == 0) {
        status = sieva_plan_tasks(query->source->here, query->plan, SIEVA_TASK_COUNT, 1, &tasks);
        *they_are = status == SIEVA_OK;
        status = status == SIEVA_ERROR_UNSUPPORTED ? SIEVA_OK : said(status);
    }
    sieva_tasks_free(tasks);
    status = agree(world, status);
    if (status == SIEVA_OK)
        memory_broadcast(world, 0, they_are, sizeof *they_are);
    return status;
}

/* What tells the number of rows: what was found before, or else tasks that count, which hold no positions. Rows that these cannot
 * count, such as groups, are found first. */
static int32_t find_number(sieva_mpi_query *query, struct found *counted, const struct found **teller)
{
    int they_are = 0;
    int32_t status = SIEVA_OK;
    *teller = &query->answer;
    if (query->answer.is_there)
        return SIEVA_OK;
    if (query->hits.is_there)
        status = are_rows_positions(query, &they_are);
    if (they_are)
        *teller = &query->hits;
    if (status != SIEVA_OK || they_are)
        return status;
    status = find(query, SIEVA_TASK_COUNT, counted);
    if (status == SIEVA_OK && counted->is_uncut)
        return find(query, SIEVA_TASK_ANY, &query->answer);
    *teller = counted;
    return status;
}

/* Rank 0 knows how many there are. */
static int32_t count_rows(const struct found *teller, uint64_t *nhits)
{
    return teller->whole == NULL ? SIEVA_OK : said(sieva_query_nhits(teller->whole, nhits));
}

int32_t sieva_mpi_query_nhits(sieva_mpi_query *query, uint64_t *nhits)
{
    if (query == NULL)
        return refuse(SIEVA_ERROR_INVALID_VALUE, "query is NULL: a handle of sieva_mpi_query_text() is expected");
    const struct world *world = &query->source->world;
    int32_t status = agree(world, nhits == NULL ? fail(SIEVA_ERROR_INVALID_VALUE, "nhits is NULL") : SIEVA_OK);
    if (status == SIEVA_OK && !query->is_counted) {
        struct found counted = {0, 0, NULL, NULL};
        const struct found *teller = NULL;
        status = find_number(query, &counted, &teller);
        if (status == SIEVA_OK)
            status = agree(world, count_rows(teller, &query->nhits));
        found_free(&counted);
        if (status == SIEVA_OK) {
            memory_broadcast(world, 0, &query->nhits, sizeof query->nhits);
            query->is_counted = 1;
        }
    }
    if (status == SIEVA_OK)
        *nhits = query->nhits;
    return status;
}
