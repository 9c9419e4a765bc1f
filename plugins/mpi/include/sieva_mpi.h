/*
 * sieva on a communicator: one query, answered by all ranks of an MPI program together.
 *
 * C99, and C++ from C++98 on. Compiled by the MPI at hand (mpicc), as MPI libraries do not fit one another. Link with
 * -lsieva_mpi -lsieva_c.
 *
 * Rules of every function, besides those of sieva.h:
 *   Collective  Every function is called by all ranks of the communicator, in the same order and with the same arguments, but for
 *               memory that results go to. Those that are not say so ("local").
 *   Result      is the same on all ranks: SIEVA_OK, or the code of the error of the lowest rank that has one. Nobody waits for
 *               a rank that failed. sieva_mpi_error_message() has that rank's words, "rank 2: ...", on every rank. Only what
 *               keeps a rank from taking part at all is told at once and there alone: a handle that is NULL.
 *   At          Who gets a result: SIEVA_MPI_SHARED (each rank its share), SIEVA_MPI_EVERYWHERE (each rank all), or the number of
 *               a rank, which gets all.
 *   Shares      Hits are shared out evenly in the order of the source, whoever found them: numbers of hits differ by one at most,
 *               and the first ranks have more. The shares of all ranks, one behind the other, are the whole.
 *   A lost rank ends the program: errors of MPI itself are fatal on the communicator that sieva_mpi_open() makes for itself.
 *   Threads     One thread at a time calls functions of a source; MPI_THREAD_FUNNELED will do where it is the main thread.
 *
 * Answers are those of one process, to the bit and in the same order, whatever the number of ranks.
 */
#ifndef SIEVA_MPI_H
#define SIEVA_MPI_H

#include <mpi.h>
#include <sieva.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef SIEVA_MPI_API
#if defined(__GNUC__)
#define SIEVA_MPI_API __attribute__((visibility("default")))
#else
#define SIEVA_MPI_API
#endif
#endif

/* Who gets a result, besides the numbers of ranks. */
enum sieva_mpi_at { SIEVA_MPI_EVERYWHERE = -1, SIEVA_MPI_SHARED = -2 };

typedef struct sieva_mpi_source sieva_mpi_source;
typedef struct sieva_mpi_query sieva_mpi_query;

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

/* Local. The code of this thread's last call of this library that failed, SIEVA_OK if none did. */
SIEVA_MPI_API int32_t sieva_mpi_error_code(void);

/* Local. What that call said, "rank 2: ..." of an error on a rank. Never NULL; valid until the thread's next failing call. */
SIEVA_MPI_API const char *sieva_mpi_error_message(void);

/* Local. The rank that failed; -1 where no call did, and of an argument that kept this one from taking part. */
SIEVA_MPI_API int32_t sieva_mpi_error_rank(void);

/* Local. Says the words of the last error, on rank 0, and ends the program of all ranks: for who looks at no status. */
SIEVA_MPI_API void sieva_mpi_end_f(void);

/* ---- Sources ----------------------------------------------------------------------------------------------------- */

/* Opens a source on all ranks of a communicator, which is duplicated. path and options as in sieva_open(). Where options say
 * nothing of threads, a rank has its share of the cores of its node, and where they say nothing of memory, its share of half
 * of the node's, at most 1 GiB. *source is to be closed by sieva_mpi_close(). Errors: as sieva_open(); invalid-value before
 * MPI_Init(). */
SIEVA_MPI_API int32_t sieva_mpi_open(MPI_Comm comm, const char *path, const sieva_options *options, sieva_mpi_source **source);

/* The same of a communicator of Fortran: an integer, or the component MPI_VAL of mpi_f08. */
SIEVA_MPI_API int32_t sieva_mpi_open_f(MPI_Fint comm, const char *path, const sieva_options *options, sieva_mpi_source **source);

/* Opens a collection of a catalog on all ranks. Rank 0 opens the catalog, for reading, and asks it; no other rank does, nor reads the
 * metadata of files that the catalog has manifests of. catalog is as url in sieva_catalog_open(), collection its name there. Queries of
 * it are those of sieva_collection_open(): their objects are dealt out by the bytes of their arrays. Hits come by source, object and
 * position; of a selection sieva_selection_object() tells the objects, on any rank. Files have to be there for all ranks under the
 * paths that the catalog has. *source is to be closed by sieva_mpi_close(). Errors: as sieva_catalog_open(), sieva_collection_open(). */
SIEVA_MPI_API int32_t sieva_mpi_collection_open(MPI_Comm comm, const char *catalog, const char *collection, const sieva_options *options, sieva_mpi_source **source);

/* The same of a communicator of Fortran. */
SIEVA_MPI_API int32_t sieva_mpi_collection_open_f(MPI_Fint comm, const char *catalog, const char *collection, const sieva_options *options, sieva_mpi_source **source);

/* Closes a source, before MPI_Finalize() and after its queries were freed. NULL does nothing. */
SIEVA_MPI_API void sieva_mpi_close(sieva_mpi_source *source);

/* Local. This rank's own source: what sieva.h asks of it, such as names, shapes, attributes and boxes, this rank asks alone.
 * Valid until sieva_mpi_close(). */
SIEVA_MPI_API const sieva_source *sieva_mpi_source_here(const sieva_mpi_source *source);

/* Local. The session that this rank's queries of the source belong to: sieva_session_did() tells what they did. Valid until
 * sieva_mpi_close(). */
SIEVA_MPI_API const sieva_session *sieva_mpi_source_session(const sieva_mpi_source *source);

/* ---- Queries ----------------------------------------------------------------------------------------------------- */

/* A query by its text: a whole SELECT, or a condition alone, as in sieva_plan_sql(). Rank 0 plans it. No value is read.
 * *query is to be freed by sieva_mpi_query_free(). Errors: as sieva_plan_sql(). */
SIEVA_MPI_API int32_t sieva_mpi_query_text(sieva_mpi_source *source, const char *sql, sieva_mpi_query **query);

/* The same of a plan, which rank 0 has; that of others is not looked at and may be NULL. Errors: as sieva_plan_query(). */
SIEVA_MPI_API int32_t sieva_mpi_query_plan(sieva_mpi_source *source, const sieva_plan *plan, sieva_mpi_query **query);

/* Local. Frees a query. */
SIEVA_MPI_API void sieva_mpi_query_free(sieva_mpi_query *query);

/* The number of rows, on all ranks. Each rank counts in its part of the rows of the source. Errors: as sieva_query_nhits(). */
SIEVA_MPI_API int32_t sieva_mpi_query_nhits(sieva_mpi_query *query, uint64_t *nhits);

/* The positions of the hits: this rank's share of them, or all of them at a rank or everywhere; *selection is NULL on ranks that
 * get none. The condition is evaluated once, whatever is asked of the query, as the session keeps what it finds. *selection is to be freed by
 * sieva_selection_free(); it serves all that sieva.h does with selections. Errors: as sieva_query_selection(). */
SIEVA_MPI_API int32_t sieva_mpi_query_selection(sieva_mpi_query *query, int32_t at, sieva_selection **selection);

/* This rank's share of the hits: the number of its first, and how many there are. Errors: as sieva_mpi_query_selection(). */
SIEVA_MPI_API int32_t sieva_mpi_query_share(sieva_mpi_query *query, uint64_t *first, uint64_t *count);

/* ---- Values ------------------------------------------------------------------------------------------------------ */

/* The values of array at the hits, in their order: each rank reads those of its share, and keeps them or sends them to a rank or
 * to all. array, type, values, capacity and missing as in sieva_read(); on ranks that get nothing they are not looked at,
 * but for array and type, and *count is 0. Errors: as sieva_read(); invalid-value (at). */
SIEVA_MPI_API int32_t sieva_mpi_read(sieva_mpi_query *query, const char *array, int32_t at, int32_t type, void *values, uint64_t capacity, uint8_t *missing, uint64_t *count);

/* The same of texts: bytes, capacity, offsets (one more than *count) and needed as in sieva_read_texts(). Whoever gets texts first
 * asks with bytes and offsets NULL and capacity 0, as all ranks have to at once, for *count and *needed. */
SIEVA_MPI_API int32_t sieva_mpi_read_texts(sieva_mpi_query *query, const char *array, int32_t at, char *bytes, uint64_t capacity, uint64_t *offsets, uint64_t *count, uint64_t *needed);

/* How values come to who asked for them, in sieva_mpi_read_many(). */
enum sieva_mpi_mode {
    SIEVA_MPI_INDEPENDENT = 0, /* sent point to point as soon as they are read: nobody waits for whom it needs nothing of */
    SIEVA_MPI_COLLECTIVE = 1,  /* read and sent (MPI_Alltoallv) by turns, by all ranks */
    SIEVA_MPI_NONBLOCKING = 2  /* sent (MPI_Ialltoallv) while more is read */
};

/* A box that this rank asks for. */
typedef struct sieva_mpi_box {
    const char *array;
    const uint64_t *start; /* first position along each dimension, outermost first; NULL: from 0 */
    const uint64_t *count; /* extents; NULL: to the end */
    void *values;          /* room for the values, in C order */
    uint64_t capacity;     /* values that there is room for */
    uint32_t rank;         /* numbers in start and count */
    int32_t type;          /* enum sieva_type for numbers: of values */
    int32_t status;        /* set: SIEVA_OK, or what kept this box from being read */
    int32_t reserved;
} sieva_mpi_box;

/* Reads boxes that all ranks ask for, each rank its own n, or none (boxes NULL). They are cut as sieva_box_parts() does, and parts
 * dealt out by sieva_deal_parts(): each server's to as few ranks as balance allows, in the order of bytes there; what several want is
 * read once, and sent to whoever asked. Where that costs less and nothing overlaps, ranks read their own, and nothing is sent. Of a
 * block that several want in part, what lies between may be read, too, and by two ranks the rest of a row in which a stripe ends.
 * Besides values, buffers take at most a quarter of sieva_options.memory or of a rank's share. Values are decoded as by sieva_read_box().
 * Each box has its own status; the others' values are there all the same. Result: SIEVA_OK, or that of the lowest rank which did not get
 * all it asked for. Errors: as sieva_read_box(); invalid-value (mode); memory-limit. */
SIEVA_MPI_API int32_t sieva_mpi_read_many(sieva_mpi_source *source, int32_t mode, sieva_mpi_box *boxes, uint64_t n);

/* The histogram of the values of array at the hits, on all ranks: bins equal bins from low to high, as numpy.histogram; both NaN:
 * from the least to the greatest value. counts has room for bins numbers, edges for bins + 1. Each rank reads the values of its
 * share. Errors: as sieva_mpi_read(); invalid-value (a range that is not finite; no bins, or more than 2^20). */
SIEVA_MPI_API int32_t sieva_mpi_query_histogram(sieva_mpi_query *query, const char *array, uint64_t bins, double low, double high, uint64_t *counts, double *edges);

/* ---- Groups, rows as files ---------------------------------------------------------------------------------------- */

/* The rows or groups of the query as the bytes of a file, at a rank or everywhere (SIEVA_MPI_SHARED is invalid-value): *result is
 * NULL on ranks that get none. Conditions and aggregates are evaluated by all ranks; values of rows are read by who reads the
 * result, of a collection by rank 0, which sends the file. options and *result as in sieva_result_open(). Errors: as sieva_merge_result(). */
SIEVA_MPI_API int32_t sieva_mpi_query_result(sieva_mpi_query *query, const sieva_result_options *options, int32_t at, sieva_result **result);

/* ---- Indexes ------------------------------------------------------------------------------------------------------- */

/* Builds indexes of arrays of a source by all ranks, as sieva_index_build_with() does by one process: the store is the same, within 1 %,
 * a sorted replica byte for byte, and answers are. Rank 0 has the job; its tasks are dealt out stage by stage, and no byte of the file is
 * read twice. All ranks have to see the same store. arrays, count, kinds and columns and precision of options as there; memory and jobs
 * are those of each rank (0: its share of its node), progress is told of each rank's own part, stop of any rank ends all. *report,
 * unless it is NULL, is the same on all ranks. What was built of zone maps and bitmaps stays where a rank fails: who builds again goes
 * on from there. Queries that come after it use what was built. Errors: as sieva_index_build_with(); unsupported of a collection. */
SIEVA_MPI_API int32_t sieva_mpi_index_build(sieva_mpi_source *source, const char *const *arrays, uint64_t count, uint32_t kinds, const sieva_index_options *options, sieva_index_report *report);

#ifdef __cplusplus
}
#endif

#endif
