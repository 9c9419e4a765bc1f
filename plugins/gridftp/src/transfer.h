/*
 * RETR of an answer.
 */
#ifndef SIEVA_GRIDFTP_TRANSFER_H
#define SIEVA_GRIDFTP_TRANSFER_H

#include "request.h"
#include "session.h"

/* Sends what the request, which it takes over, stands for: all of it, or the ranges that the server asks; whole: it asks all. */
void transfer_send(globus_gfs_operation_t op, struct session *session, struct request *request, bool whole);

/* Stops the transfer that argument is, if it is one of ours. False: it is the File DSI's. */
bool transfer_abort(void *argument);

#endif
