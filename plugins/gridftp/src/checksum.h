/*
 * CKSM of an answer.
 */
#ifndef SIEVA_GRIDFTP_CHECKSUM_H
#define SIEVA_GRIDFTP_CHECKSUM_H

#include "request.h"
#include "session.h"

/* Sums the bytes that the command names, by its algorithm: MD5, ADLER32, SHA1, SHA256 or SHA512, as the File DSI does. */
void checksum_tell(globus_gfs_operation_t op, struct session *session, const globus_gfs_command_info_t *info,
                   struct request *request);

#endif
