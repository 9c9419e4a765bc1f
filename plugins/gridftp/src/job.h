/*
 * Work that blocks, done in a thread of its own so that the server's event loop goes on.
 */
#ifndef SIEVA_GRIDFTP_JOB_H
#define SIEVA_GRIDFTP_JOB_H

#include <stdbool.h>
#include <stdint.h>

/* What a job does, all of it with the job's argument. work and release may run in the thread, which must not call
 * globus_...: in the server's usual thread model, without threads, only the event loop may. */
struct task {
    void (*work)(void *argument);
    /* From the event loop, again and again while the thread works. True: its end is not waited for. May be NULL. */
    bool (*watch)(void *argument);
    /* From the event loop, once; left: the thread works on, so what it uses is not to be touched. */
    void (*done)(void *argument, bool left);
    /* Frees the argument, once nobody uses it. */
    void (*release)(void *argument);
};

/* Starts a job. False where no thread can be made: nothing was called then. */
bool job_start(const struct task *task, void *argument);

/* Jobs of this process whose end nobody waits for, and which have not ended. */
unsigned job_left_count(void);

/* Calls function(argument) from the event loop after that many microseconds. */
void call_later(uint64_t microseconds, void (*function)(void *argument), void *argument);

#endif
