/*
 * Work that blocks, done in a thread of its own so that the server's event loop goes on.
 */
#ifndef SIEVA_GRIDFTP_JOB_H
#define SIEVA_GRIDFTP_JOB_H

#include <stdbool.h>

/* Runs work(argument) in a thread, then done(argument) from the event loop. The thread must not call globus_...: in the
 * server's usual thread model, without threads, only the event loop may. False where no thread can be made. */
bool job_start(void (*work)(void *argument), void (*done)(void *argument), void *argument);

/* Calls function(argument) from the event loop after that many microseconds. */
void call_later(unsigned microseconds, void (*function)(void *argument), void *argument);

#endif
