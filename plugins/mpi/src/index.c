/*
 * Indexes, built by all ranks. Rank 0 has the job: stage by stage it makes tasks, which are dealt out, run, and taken in by it. No
 * region is two tasks', so that no rank reads what another reads.
 */
#include "bytes.h"
#include "error.h"
#include "handles.h"

#include <stdlib.h>
#include <string.h>

/* A stage: its tasks follow one another in the source as ranks do. */
struct stage {
    uint64_t count;       /* tasks of all ranks */
    uint64_t first;       /* the number of this rank's first */
    uint64_t own;         /* how many it has */
    struct bytes *tasks;  /* its tasks */
    struct bytes *done;   /* what they gave */
};

/* The number of a rank's first task: of fewer tasks than ranks, those with one are spread, so that all nodes have some. */
static uint64_t first_of(const struct world *world, uint64_t count, int rank)
{
    return ((uint64_t)rank * count + (uint64_t)world->size - 1) / (uint64_t)world->size;
}

static void free_all(struct bytes *all, uint64_t count)
{
    for (uint64_t i = 0; all != NULL && i < count; i++)
        bytes_free(&all[i]);
    free(all);
}

static void stage_free(struct stage *stage)
{
    free_all(stage->tasks, stage->own);
    free_all(stage->done, stage->own);
    memset(stage, 0, sizeof *stage);
}

static int32_t bytes_of_task(const sieva_index_job *job, uint64_t number, struct bytes *task)
{
    uint64_t size = 0;
    int32_t status = said(sieva_index_job_task(job, number, NULL, 0, &size));
    if (status == SIEVA_OK)
        status = bytes_room(task, size, "tasks");
    if (status == SIEVA_OK)
        status = said(sieva_index_job_task(job, number, task->data, task->size, &size));
    return status;
}

/* Rank 0 makes the tasks of the next stage; all know how many there are, and have room for their own. */
static int32_t begin_stage(const struct world *world, const sieva_index_job *job, struct stage *stage)
{
    int32_t status = SIEVA_OK;
    if (world->rank == 0)
        status = said(sieva_index_job_tasks(job, (uint64_t)world->size, &stage->count));
    status = agree(world, status);
    if (status != SIEVA_OK)
        return status;
    memory_broadcast(world, 0, &stage->count, sizeof stage->count);
    stage->first = first_of(world, stage->count, world->rank);
    stage->own = first_of(world, stage->count, world->rank + 1) - stage->first;
    stage->tasks = calloc(stage->own > 0 ? (size_t)stage->own : 1, sizeof *stage->tasks);
    stage->done = calloc(stage->own > 0 ? (size_t)stage->own : 1, sizeof *stage->done);
    if (stage->tasks == NULL || stage->done == NULL)
        status = fail_memory(2 * sizeof *stage->tasks * stage->own, "tasks");
    return agree(world, status);
}

/* Rank 0 sends each rank its tasks; where it fails it sends no bytes, and goes on, as they wait for as many. */
static int32_t send_tasks(const struct world *world, const sieva_index_job *job, struct stage *stage)
{
    int32_t status = SIEVA_OK;
    for (uint64_t i = 0; i < stage->own && status == SIEVA_OK; i++)
        status = bytes_of_task(job, i, &stage->tasks[i]);
    for (int rank = 1; rank < world->size; rank++) {
        uint64_t end = first_of(world, stage->count, rank + 1);
        for (uint64_t number = first_of(world, stage->count, rank); number < end; number++) {
            struct bytes task = NO_BYTES;
            if (status == SIEVA_OK)
                status = bytes_of_task(job, number, &task);
            bytes_send(world, rank, &task);
            bytes_free(&task);
        }
    }
    return status;
}

static int32_t receive_tasks(const struct world *world, struct stage *stage)
{
    int32_t status = SIEVA_OK;
    for (uint64_t i = 0; i < stage->own; i++) {
        int32_t got = bytes_receive(world, 0, &stage->tasks[i]);
        status = status != SIEVA_OK ? status : got;
    }
    return status;
}

/* Runs this rank's tasks. */
static int32_t run_tasks(const sieva_mpi_source *source, const sieva_index_options *options, struct stage *stage)
{
    int32_t status = SIEVA_OK;
    for (uint64_t i = 0; i < stage->own && status == SIEVA_OK; i++) {
        sieva_index_result *result = NULL;
        uint64_t size = 0;
        status = said(sieva_index_task_run(source->here, stage->tasks[i].data, stage->tasks[i].size, options, &result));
        if (status == SIEVA_OK)
            status = said(sieva_index_result_bytes(result, NULL, 0, &size));
        if (status == SIEVA_OK)
            status = bytes_room(&stage->done[i], size, "what tasks gave");
        if (status == SIEVA_OK)
            status = said(sieva_index_result_bytes(result, stage->done[i].data, size, &size));
        sieva_index_result_free(result);
    }
    return status;
}

/* The options of a program, which may know fewer of them than this library; without memory a rank has its share of its node. */
static sieva_index_options own_options(const sieva_mpi_source *source, const sieva_index_options *given)
{
    sieva_index_options own = SIEVA_INDEX_OPTIONS_INIT;
    if (given != NULL) {
        memcpy(&own, given, given->size < sizeof own ? (size_t)given->size : sizeof own);
        own.size = sizeof own;
    }
    if (own.memory == 0)
        own.memory = source->building;
    return own;
}

static int32_t take(const sieva_index_job *job, uint64_t number, const struct bytes *done)
{
    return said(sieva_index_job_take(job, number, done->data, done->size));
}

/* Rank 0 takes in what all ranks' tasks gave, in their order. */
static int32_t take_all(const struct world *world, const sieva_index_job *job, const struct stage *stage)
{
    int32_t status = SIEVA_OK;
    for (uint64_t i = 0; i < stage->own && status == SIEVA_OK; i++)
        status = take(job, i, &stage->done[i]);
    for (int rank = 1; rank < world->size; rank++) {
        uint64_t end = first_of(world, stage->count, rank + 1);
        for (uint64_t number = first_of(world, stage->count, rank); number < end; number++) {
            struct bytes done = NO_BYTES;
            int32_t got = bytes_receive(world, rank, &done);
            status = status != SIEVA_OK ? status : got;
            if (status == SIEVA_OK)
                status = take(job, number, &done);
            bytes_free(&done);
        }
    }
    return status;
}

static void send_done(const struct world *world, const struct stage *stage)
{
    for (uint64_t i = 0; i < stage->own; i++)
        bytes_send(world, 0, &stage->done[i]);
}

/* Does a stage; it has no tasks where all is done. */
static int32_t do_stage(const sieva_mpi_source *source, const sieva_index_job *job, const sieva_index_options *options, struct stage *stage)
{
    const struct world *world = &source->world;
    int32_t status = begin_stage(world, job, stage);
    if (status != SIEVA_OK || stage->count == 0)
        return status;
    status = agree(world, world->rank == 0 ? send_tasks(world, job, stage) : receive_tasks(world, stage));
    if (status == SIEVA_OK)
        status = agree(world, run_tasks(source, options, stage));
    if (status != SIEVA_OK)
        return status;
    if (world->rank == 0)
        status = take_all(world, job, stage);
    else
        send_done(world, stage);
    return agree(world, status);
}

/* Rank 0 ends the job; all get its report, as far as their program knows it. */
static int32_t finish(const struct world *world, const sieva_index_job *job, sieva_index_report *report)
{
    sieva_index_report did = SIEVA_INDEX_REPORT_INIT;
    int32_t status = agree(world, world->rank == 0 ? said(sieva_index_job_finish(job, &did)) : SIEVA_OK);
    if (status != SIEVA_OK)
        return status;
    memory_broadcast(world, 0, &did, sizeof did);
    if (report != NULL) {
        did.size = report->size;
        memcpy(report, &did, did.size < sizeof did ? (size_t)did.size : sizeof did);
    }
    return SIEVA_OK;
}

/* That a report has room for its first field at least. */
static int32_t check_report(const sieva_index_report *report)
{
    if (report == NULL || (report->size >= sizeof report->size && report->size <= 4096))
        return SIEVA_OK;
    return fail(SIEVA_ERROR_INVALID_VALUE, "report has a size of %u bytes: sieva_index_report report = SIEVA_INDEX_REPORT_INIT is expected",
                (unsigned)report->size);
}

int32_t sieva_mpi_index_build(sieva_mpi_source *source, const char *const *arrays, uint64_t count, uint32_t kinds, const sieva_index_options *options, sieva_index_report *report)
{
    if (source == NULL)
        return refuse(SIEVA_ERROR_INVALID_VALUE, "source is NULL: a handle of sieva_mpi_open() is expected");
    const struct world *world = &source->world;
    sieva_index_options own = own_options(source, options);
    sieva_index_job *job = NULL;
    struct stage stage;
    memset(&stage, 0, sizeof stage);
    int32_t status = check_report(report);
    if (status == SIEVA_OK && world->rank == 0)
        status = said(sieva_index_job_open(source->here, arrays, count, kinds, &own, &job));
    status = agree(world, status);
    while (status == SIEVA_OK) {
        status = do_stage(source, job, &own, &stage);
        uint64_t tasks = stage.count;
        stage_free(&stage);
        if (tasks == 0)
            break;
    }
    if (status == SIEVA_OK)
        status = finish(world, job, report);
    sieva_index_job_free(job);
    /* What others built since, too. */
    if (status == SIEVA_OK)
        status = agree(world, said(sieva_index_refresh(source->here)));
    return status;
}
