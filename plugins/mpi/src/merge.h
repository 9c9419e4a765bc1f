/*
 * What ranks found, merged along a binary tree.
 */
#ifndef SIEVA_MPI_MERGE_H
#define SIEVA_MPI_MERGE_H

#include "bytes.h"
#include "handles.h"

/* Collective: adds up what all ranks come with (NULL: nothing); *merge is all of it on rank 0, and NULL on others. What a rank came
 * with is freed. */
int32_t merge_to_first(const sieva_mpi_source *source, sieva_merge **merge);

/* The bytes of what was found. */
int32_t bytes_of_merge(const sieva_merge *merge, struct bytes *bytes);

#endif
