/*
 * What all ranks find together: dealt out, run, merged.
 */
#include "found.h"
#include "deal.h"
#include "error.h"
#include "merge.h"

#include <string.h>

void found_free(struct found *found)
{
    sieva_query_free(found->whole);
    sieva_merge_free(found->merge);
    memset(found, 0, sizeof *found);
}

/* Runs this rank's task, if it has one. */
static int32_t run_task(const sieva_mpi_query *query, const struct bytes *task, sieva_merge **merge)
{
    if (task->size == 0)
        return SIEVA_OK;
    return said(sieva_task_run(query->source->here, task->data, task->size, NULL, merge));
}

/* On rank 0, the query that knows its answer, or has to find it alone. */
static int32_t finish(const sieva_mpi_query *query, struct found *found)
{
    const sieva_source *here = query->source->here;
    if (found->is_uncut)
        return said(sieva_plan_query(here, query->plan, NULL, &found->whole));
    return said(sieva_merge_query(found->merge, here, query->plan, NULL, &found->whole));
}

int32_t find(sieva_mpi_query *query, int32_t kind, struct found *found)
{
    const struct world *world = &query->source->world;
    struct bytes task = NO_BYTES;
    int is_cut = 0;
    if (found->is_there)
        return SIEVA_OK;
    int32_t status = deal(query, kind, &task, &is_cut);
    found->is_uncut = !is_cut;
    if (status == SIEVA_OK && is_cut)
        status = agree(world, run_task(query, &task, &found->merge));
    bytes_free(&task);
    if (status == SIEVA_OK && is_cut)
        status = merge_to_first(query->source, &found->merge);
    if (status == SIEVA_OK)
        status = agree(world, world->rank == 0 ? finish(query, found) : SIEVA_OK);
    if (status == SIEVA_OK)
        found->is_there = 1;
    else
        found_free(found);
    return status;
}
