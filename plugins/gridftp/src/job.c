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
    atomic_bool ended;
    unsigned wait;
    void (*work)(void *argument);
    void (*done)(void *argument);
    void *argument;
};

void call_later(unsigned microseconds, void (*function)(void *argument), void *argument)
{
    globus_reltime_t delay;
    GlobusTimeReltimeSet(delay, 0, microseconds);
    globus_callback_register_oneshot(NULL, &delay, function, argument);
}

static void *run(void *argument)
{
    struct job *job = argument;
    job->work(job->argument);
    atomic_store(&job->ended, true);
    return NULL;
}

static void look(void *argument)
{
    struct job *job = argument;
    if (!atomic_load(&job->ended)) {
        job->wait = job->wait * 2 < LONGEST_WAIT ? job->wait * 2 : LONGEST_WAIT;
        call_later(job->wait, look, job);
        return;
    }
    pthread_join(job->thread, NULL);
    job->done(job->argument);
    free(job);
}

bool job_start(void (*work)(void *argument), void (*done)(void *argument), void *argument)
{
    struct job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return false;
    job->work = work;
    job->done = done;
    job->argument = argument;
    job->wait = FIRST_WAIT;
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
