/*
 * Threads and the event loop. The loop asks whether a thread has ended: soon at first, then every 10 ms. It cannot be
 * woken from another thread in the server's usual thread model.
 */
#define _GNU_SOURCE
#include "job.h"

#include "globus_gridftp_server.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { FIRST_WAIT = 100, LONGEST_WAIT = 10000 }; /* microseconds */

struct job {
    pthread_t thread;
    atomic_int users; /* the thread and the event loop */
    atomic_bool ended;
    atomic_bool left;
    unsigned wait;
    struct task task;
    void *argument;
};

static atomic_uint left_count;

void call_later(uint64_t microseconds, void (*function)(void *argument), void *argument)
{
    globus_reltime_t delay;
    GlobusTimeReltimeSet(delay, (time_t)(microseconds / 1000000), (long)(microseconds % 1000000));
    globus_callback_register_oneshot(NULL, &delay, function, argument);
}

unsigned job_left_count(void)
{
    return atomic_load(&left_count);
}

/* Whoever is last frees what both used. */
static void release(struct job *job)
{
    if (atomic_fetch_sub(&job->users, 1) > 1)
        return;
    bool left = atomic_load(&job->left);
    job->task.release(job->argument);
    free(job);
    if (left)
        atomic_fetch_sub(&left_count, 1);
}

static void *run(void *argument)
{
    struct job *job = argument;
    job->task.work(job->argument);
    atomic_store(&job->ended, true);
    release(job);
    return NULL;
}

static void look(void *argument)
{
    struct job *job = argument;
    bool ended = atomic_load(&job->ended);
    if (!ended && (job->task.watch == NULL || !job->task.watch(job->argument))) {
        job->wait = job->wait * 2 < LONGEST_WAIT ? job->wait * 2 : LONGEST_WAIT;
        call_later(job->wait, look, job);
        return;
    }
    if (ended) {
        pthread_join(job->thread, NULL);
    } else {
        pthread_detach(job->thread);
        atomic_fetch_add(&left_count, 1);
        atomic_store(&job->left, true);
    }
    job->task.done(job->argument, !ended);
    release(job);
}

bool job_start(const struct task *task, void *argument)
{
    struct job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return false;
    job->task = *task;
    job->argument = argument;
    job->wait = FIRST_WAIT;
    atomic_store(&job->users, 2);
    /* Signals are the server's: its handlers run in its own threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&job->thread, NULL, run, job);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        free(job);
        return false;
    }
    call_later(job->wait, look, job);
    return true;
}
