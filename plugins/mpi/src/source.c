/*
 * Opening a source on all ranks: a file, or a collection of a catalog.
 */
#include "bytes.h"
#include "error.h"
#include "handles.h"

#include <stdlib.h>
#include <string.h>

/* Bytes that a rank takes at most where nobody says more. */
#define MOST_MEMORY ((uint64_t)1 << 30)

/* The options of a program, which may know fewer of them than this library. */
static sieva_options own_options(const sieva_options *given)
{
    sieva_options own = SIEVA_OPTIONS_INIT;
    if (given != NULL) {
        memcpy(&own, given, given->size < sizeof own ? (size_t)given->size : sizeof own);
        own.size = sizeof own;
    }
    return own;
}

/* The session of a rank, which has its share of the node unless the program says what it may take. */
static int32_t open_session(sieva_mpi_source *source, sieva_options *options)
{
    sieva_session_options session = SIEVA_SESSION_INIT;
    struct share share = share_of_node(&source->world);
    if (options->threads == 0)
        options->threads = share.threads;
    session.threads = options->threads;
    session.memory = options->memory > share.memory ? options->memory : share.memory;
    source->memory = options->memory;
    source->building = options->memory > 0 ? options->memory : share.memory < MOST_MEMORY ? share.memory : MOST_MEMORY;
    return said(sieva_session_create(&session, &source->session));
}

/* What rank 0 learnt of the source; no bytes where a source has no such thing, such as many files. */
static int32_t bytes_of_manifest(const sieva_source *source, struct bytes *bytes)
{
    uint64_t size = 0;
    int32_t status = sieva_source_manifest(source, NULL, 0, &size);
    if (status == SIEVA_ERROR_UNSUPPORTED)
        return SIEVA_OK;
    status = said(status);
    if (status == SIEVA_OK)
        status = bytes_room(bytes, size, "manifests");
    if (status == SIEVA_OK)
        status = said(sieva_source_manifest(source, bytes->data, bytes->size, &size));
    return status;
}

/* Rank 0 opens the source. The others get what it learnt, and read no metadata: thousands of ranks ask the file system for one
 * file's length and time of modification, for no more. */
static int32_t open_here(sieva_mpi_source *source, const char *path, sieva_options *options)
{
    const struct world *world = &source->world;
    struct bytes manifest = NO_BYTES;
    int32_t status = SIEVA_OK;
    if (world->rank == 0) {
        status = said(sieva_session_open(source->session, path, options, &source->here));
        if (status == SIEVA_OK && world->size > 1)
            status = bytes_of_manifest(source->here, &manifest);
    }
    status = agree(world, status);
    if (status == SIEVA_OK)
        status = bytes_broadcast(world, 0, &manifest);
    if (status == SIEVA_OK) {
        if (world->rank != 0) {
            options->manifest = manifest.size > 0 ? manifest.data : NULL;
            options->manifest_bytes = manifest.size;
            status = said(sieva_session_open(source->session, path, options, &source->here));
        }
        status = agree(world, status);
    }
    bytes_free(&manifest);
    return status;
}

/* What is opened: a path, or a collection of a catalog. */
struct place {
    const char *path;
    const char *catalog;
    const char *collection;
};

/* Rank 0 asks the catalog. The others have what the tasks carry. */
static int32_t open_collection(sieva_mpi_source *source, const struct place *place, const sieva_options *options)
{
    sieva_catalog *catalog = NULL;
    int32_t status = SIEVA_OK;
    source->is_collection = 1;
    if (source->world.rank == 0)
        status = said(sieva_catalog_open(place->catalog, 1, &catalog));
    if (status == SIEVA_OK)
        status = said(sieva_collection_open(source->session, catalog, place->collection, options, &source->here));
    sieva_catalog_close(catalog);
    return agree(&source->world, status);
}

static int32_t open_place(MPI_Comm comm, const struct place *place, const sieva_options *options, sieva_mpi_source **source)
{
    int is_running = 0, has_ended = 0;
    MPI_Initialized(&is_running);
    MPI_Finalized(&has_ended);
    if (!is_running || has_ended)
        return refuse(SIEVA_ERROR_INVALID_VALUE, "sieva_mpi_open() is called between MPI_Init() and MPI_Finalize()");
    if (comm == MPI_COMM_NULL || source == NULL)
        return refuse(SIEVA_ERROR_INVALID_VALUE, "comm is MPI_COMM_NULL, or source NULL: a communicator, and where the source "
                                                 "goes, are expected");
    sieva_mpi_source *made = calloc(1, sizeof *made);
    if (made == NULL)
        return refuse(SIEVA_ERROR_MEMORY_LIMIT, "the system gives no memory for a handle");
    sieva_options own = own_options(options);
    world_open(&made->world, comm);
    int32_t status = agree(&made->world, open_session(made, &own));
    if (status == SIEVA_OK)
        status = place->collection != NULL ? open_collection(made, place, &own) : open_here(made, place->path, &own);
    if (status == SIEVA_OK)
        *source = made;
    else
        sieva_mpi_close(made);
    return status;
}

int32_t sieva_mpi_open(MPI_Comm comm, const char *path, const sieva_options *options, sieva_mpi_source **source)
{
    struct place place = {path, NULL, NULL};
    return open_place(comm, &place, options, source);
}

int32_t sieva_mpi_collection_open(MPI_Comm comm, const char *catalog, const char *collection, const sieva_options *options, sieva_mpi_source **source)
{
    struct place place = {NULL, catalog, collection};
    if (collection == NULL)
        return refuse(SIEVA_ERROR_INVALID_VALUE, "collection is NULL: its name in the catalog is expected");
    return open_place(comm, &place, options, source);
}

void sieva_mpi_close(sieva_mpi_source *source)
{
    if (source == NULL)
        return;
    sieva_close(source->here);
    sieva_session_free(source->session);
    world_close(&source->world);
    free(source);
}

const sieva_source *sieva_mpi_source_here(const sieva_mpi_source *source)
{
    return source == NULL ? NULL : source->here;
}

const sieva_session *sieva_mpi_source_session(const sieva_mpi_source *source)
{
    return source == NULL ? NULL : source->session;
}
