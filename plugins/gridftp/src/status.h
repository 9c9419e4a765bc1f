/*
 * SIZE, MDTM, MLST and LIST of an answer: that of a file whose size is the result's.
 */
#ifndef SIEVA_GRIDFTP_STATUS_H
#define SIEVA_GRIDFTP_STATUS_H

#include "request.h"
#include "session.h"

/* Tells the facts of what the request, which it takes over, stands for. */
void status_tell(globus_gfs_operation_t op, struct session *session, struct request *request);

#endif
