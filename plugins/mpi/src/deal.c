/*
 * The work of a plan, dealt out: rank 0 cuts it into parts of equal size, each rank gets one. Parts follow one another in the
 * source as ranks do. Where there are fewer parts than ranks, those with one are spread, so that all nodes have some.
 */
#include "deal.h"
#include "error.h"

#include <inttypes.h>

/* Rank 0 makes the tasks; no tasks where the plan has none of that kind. */
static int32_t make_tasks(sieva_mpi_query *query, int32_t kind, sieva_tasks **tasks)
{
    uint64_t parts = (uint64_t)query->source->world.size;
    int32_t status = sieva_plan_tasks(query->source->here, query->plan, kind, parts, tasks);
    return status == SIEVA_ERROR_UNSUPPORTED ? SIEVA_OK : said(status);
}

static int32_t bytes_of_task(const sieva_tasks *tasks, uint64_t number, struct bytes *task)
{
    uint64_t size = 0;
    int32_t status = said(sieva_tasks_bytes(tasks, number, NULL, 0, &size));
    if (status == SIEVA_OK)
        status = bytes_room(task, size, "tasks");
    if (status == SIEVA_OK)
        status = said(sieva_tasks_bytes(tasks, number, task->data, task->size, &size));
    return status;
}

/* The number of a rank's task, or count where it has none: task t is that of rank t * ranks / count. */
static uint64_t task_of(uint64_t rank, uint64_t ranks, uint64_t count)
{
    uint64_t number = (rank * count + ranks - 1) / ranks;
    return number < count && number * ranks / count == rank ? number : count;
}

/* Rank 0 sends each rank its task; one that has none, or whose task could not be written, gets no bytes. */
static int32_t send_tasks(const struct world *world, const sieva_tasks *tasks, struct bytes *own)
{
    uint64_t count = 0;
    int32_t status = said(sieva_tasks_count(tasks, &count));
    for (int rank = 0; rank < world->size; rank++) {
        struct bytes task = NO_BYTES;
        uint64_t number = task_of((uint64_t)rank, (uint64_t)world->size, count);
        if (status == SIEVA_OK && number < count)
            status = bytes_of_task(tasks, number, &task);
        if (status != SIEVA_OK)
            bytes_free(&task);
        if (rank == 0) {
            *own = task;
        } else {
            bytes_send(world, rank, &task);
            bytes_free(&task);
        }
    }
    return status;
}

int32_t deal(sieva_mpi_query *query, int32_t kind, struct bytes *task, int *is_cut)
{
    const struct world *world = &query->source->world;
    sieva_tasks *tasks = NULL;
    int32_t status = agree(world, world->rank == 0 ? make_tasks(query, kind, &tasks) : SIEVA_OK);
    if (status != SIEVA_OK)
        return status;
    *is_cut = tasks != NULL;
    memory_broadcast(world, 0, is_cut, sizeof *is_cut);
    if (!*is_cut)
        return SIEVA_OK;
    if (world->rank == 0)
        status = send_tasks(world, tasks, task);
    else
        status = bytes_receive(world, 0, task);
    sieva_tasks_free(tasks);
    status = agree(world, status);
    if (status != SIEVA_OK)
        bytes_free(task);
    return status;
}
