/*
 * The work of a plan, dealt out: rank 0 cuts it into parts of equal size, each rank gets one.
 */
#ifndef SIEVA_MPI_DEAL_H
#define SIEVA_MPI_DEAL_H

#include "bytes.h"
#include "handles.h"

/* Collective: this rank's task, of kind (enum sieva_task_kind); none where there are fewer tasks than ranks. *is_cut is 0 where
 * rank 0 says that the plan has no such tasks: then nobody has one, and the status is SIEVA_OK. */
int32_t deal(sieva_mpi_query *query, int32_t kind, struct bytes *task, int *is_cut);

#endif
