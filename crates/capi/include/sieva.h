/*
 * sieva: exact, indexed value queries over unmodified scientific files.
 *
 * It is one file because it is the interface: all that a program includes, and all that the library exports.
 *
 * C99, and C++ from C++98 on. Link with -lsieva_c.
 *
 * Rules of every function:
 *   Result     SIEVA_OK (0), or the positive code of an error; sieva_error_message() then says what was given, what
 *              was expected and what to do. Functions that may have to wait also return SIEVA_PENDING (-1).
 *   Output     goes to memory of the caller. Capacities count values, not bytes, unless said otherwise. Where there is
 *              too little room the result is SIEVA_ERROR_INVALID_VALUE, the message says what is needed, and nothing
 *              is written. Output parameters are set on success only, unless said otherwise.
 *   Handles    sieva_source, sieva_query, sieva_plan, sieva_tasks, sieva_merge, sieva_selection, sieva_request, sieva_result, sieva_stream, sieva_stop,
 *              sieva_catalog, sieva_objects, sieva_search, sieva_group and sieva_step are freed by their own function, in any order: a query keeps its source
 *              open, a selection its query's, a search its catalog. Freeing NULL does nothing; NULL elsewhere is
 *              SIEVA_ERROR_INVALID_VALUE.
 *   Texts      are UTF-8 with a closing NUL.
 *   Threads    All functions may be called from many threads at once, on the same handle too, but for those that free
 *              a handle: nobody else may be using it. A call that comes after sieva_query_set_...() sees what was set.
 *   Positions  are of 64 bits, from 0 on, in C order (last dimension fastest).
 *
 * Rows: a query's rows are the positions of the union of the dimensions of all arrays that it names; smaller arrays are
 * repeated along the dimensions that they lack.
 *
 * Values are decoded (scale_factor, add_offset, fill values); missing values and NaN satisfy no comparison. Comparison
 * is of numbers, exactly: (float)1.7 is greater than 1.7, and 64-bit integers keep all their bits.
 */
#ifndef SIEVA_H
#define SIEVA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef SIEVA_API
#define SIEVA_API
#endif

/* ---- Codes and errors ---------------------------------------------------------------------------------------- */

/* What functions return. Numbers are never changed or used again; newer versions may add some. */
enum sieva_status {
    SIEVA_PENDING = -1,                   /* not an error: the work goes on */
    SIEVA_OK = 0,
    SIEVA_ERROR_FILE_NOT_FOUND = 1,       /* the named file, directory or object does not exist */
    SIEVA_ERROR_PERMISSION_DENIED = 2,    /* the operating system refused access */
    SIEVA_ERROR_UNKNOWN_FORMAT = 3,       /* the file is not of a format that can be read */
    SIEVA_ERROR_CORRUPT_FILE = 4,         /* the bytes contradict the format: damaged, truncated or hostile */
    SIEVA_ERROR_IO_ERROR = 5,             /* reading or writing failed */
    SIEVA_ERROR_UNKNOWN_ARRAY = 6,        /* no array of that name */
    SIEVA_ERROR_UNKNOWN_DIMENSION = 7,    /* no dimension of that name */
    SIEVA_ERROR_UNKNOWN_ATTRIBUTE = 8,    /* no attribute of that name */
    SIEVA_ERROR_UNKNOWN_FUNCTION = 9,     /* no function of that name in a condition's text */
    SIEVA_ERROR_AMBIGUOUS_NAME = 10,      /* a bare name that several arrays or dimensions share */
    SIEVA_ERROR_SYNTAX_ERROR = 11,        /* the text of a condition does not follow the grammar */
    SIEVA_ERROR_TYPE_MISMATCH = 12,       /* types that do not go together */
    SIEVA_ERROR_INVALID_VALUE = 13,       /* an argument outside of what is allowed; too little room */
    SIEVA_ERROR_DIMENSION_MISMATCH = 14,  /* arrays or boxes whose dimensions cannot be lined up */
    SIEVA_ERROR_FILTER_UNAVAILABLE = 15,  /* data encoded with a filter that is not available */
    SIEVA_ERROR_UNSUPPORTED = 16,         /* a legal feature that is not supported */
    SIEVA_ERROR_LINK_REFUSED = 17,        /* a link out of the file that is not allowed */
    SIEVA_ERROR_MEMORY_LIMIT = 18,        /* the work does not fit into the stated memory limit */
    SIEVA_ERROR_ARITHMETIC_OVERFLOW = 19, /* integer arithmetic left its range; a function of code failed for a row */
    SIEVA_ERROR_CANCELLED = 20,           /* stopped by sieva_cancel() or a sieva_stop */
    SIEVA_ERROR_STALE_SOURCE = 21,        /* the file was changed since it was opened */
    SIEVA_ERROR_NO_INDEX = 22,            /* nothing of the kind that was asked for has been built */
    SIEVA_ERROR_CORRUPT_INDEX = 23,       /* a damaged augmentation; answers do not depend on it */
    SIEVA_ERROR_INTERNAL_ERROR = 24,      /* a fault of sieva: please report it */
    SIEVA_ERROR_UNALIGNED_DIMENSIONS = 25 /* arrays of a query that do not line up: their product was not asked for */
};

/* The code of this thread's last call that failed, SIEVA_OK if none did. */
SIEVA_API int32_t sieva_error_code(void);

/* What this thread's last failing call said, with what to do about it after "; hint: ". Never NULL; valid until the
 * thread's next failing call. */
SIEVA_API const char *sieva_error_message(void);

/* What to do about this thread's last failure, alone; empty where nothing is known. Valid as the message is. */
SIEVA_API const char *sieva_error_hint(void);

/* The name of a code, such as "unknown-array": the same in all languages. Never NULL; valid for ever. */
SIEVA_API const char *sieva_error_name(int32_t code);

/* The version of the library, such as "0.1.0". Valid for ever. */
SIEVA_API const char *sieva_version(void);

/* ---- Numbers for types, operators, access --------------------------------------------------------------------- */

/* Element types. */
enum sieva_type {
    SIEVA_BOOL = 1, /* uint8_t: 0 or 1 */
    SIEVA_I8 = 2,
    SIEVA_I16 = 3,
    SIEVA_I32 = 4,
    SIEVA_I64 = 5,
    SIEVA_U8 = 6,
    SIEVA_U16 = 7,
    SIEVA_U32 = 8,
    SIEVA_U64 = 9,
    SIEVA_F16 = 10, /* stored only: values are read as SIEVA_F32 */
    SIEVA_F32 = 11,
    SIEVA_F64 = 12,
    SIEVA_STR = 13 /* text: const char * where a value is given */
};

/* Comparisons of an array's values with a value. */
enum sieva_op { SIEVA_GT = 1, SIEVA_GE = 2, SIEVA_LT = 3, SIEVA_LE = 4, SIEVA_EQ = 5, SIEVA_NE = 6 };

/* Ways of evaluating conditions. All give the same answer. */
enum sieva_access {
    SIEVA_ACCESS_AUTO = 0, /* the cheapest */
    SIEVA_ACCESS_SCAN = 1, /* by reading the data alone */
    SIEVA_ACCESS_ZONEMAP = 2,
    SIEVA_ACCESS_BITMAP = 3,
    SIEVA_ACCESS_SORTED = 4
};

/* Ways of fetching values at selected positions. All give the same values. */
enum sieva_fetch {
    SIEVA_FETCH_AUTO = 0,   /* segments, put together across gaps that cost less than a request */
    SIEVA_FETCH_DIRECT = 1, /* one read for each segment */
    SIEVA_FETCH_BLOCK = 2   /* whole blocks */
};

/* What can be started (sieva_start). */
enum sieva_what { SIEVA_NHITS = 1, SIEVA_SELECTION = 2 };

/* Kinds of index, to be added (sieva_index_build). */
enum sieva_index { SIEVA_INDEX_ZONEMAP = 1, SIEVA_INDEX_BITMAP = 2, SIEVA_INDEX_SORTED = 4 };

/* Kinds of objects of catalogs. A group stands for all that is under it; the root of a source is a group, too. */
enum sieva_kind { SIEVA_ARRAYS = 1, SIEVA_GROUPS = 2, SIEVA_OBJECTS = 3 /* both */ };

/* ---- Sources ---------------------------------------------------------------------------------------------------- */

typedef struct sieva_source sieva_source;
typedef struct sieva_query sieva_query;
typedef struct sieva_plan sieva_plan;
typedef struct sieva_tasks sieva_tasks;
typedef struct sieva_merge sieva_merge;
typedef struct sieva_index_job sieva_index_job;
typedef struct sieva_index_result sieva_index_result;
typedef struct sieva_selection sieva_selection;
typedef struct sieva_request sieva_request;
typedef struct sieva_result sieva_result;
typedef struct sieva_stream sieva_stream;
typedef struct sieva_stop sieva_stop;
typedef struct sieva_session sieva_session;
typedef struct sieva_catalog sieva_catalog;
typedef struct sieva_objects sieva_objects;
typedef struct sieva_search sieva_search;
typedef struct sieva_group sieva_group;
typedef struct sieva_step sieva_step;

/* An object. What it points to is valid as long as the handle that it is of. */
typedef struct sieva_object {
    const char *source; /* location of its source: an absolute path or a URL */
    const char *path;   /* its path there, without a leading slash; "" is the source itself */
    int32_t kind;       /* SIEVA_ARRAYS or SIEVA_GROUPS */
    int32_t reserved;
} sieva_object;

/* Why a place is opened. */
enum sieva_purpose {
    SIEVA_PURPOSE_SOURCE = 0,   /* a query or the program names it: FROM, a subquery, one file of many */
    SIEVA_PURPOSE_LISTING = 1,  /* a directory whose names are looked at, for a pattern */
    SIEVA_PURPOSE_MEMBER = 2,   /* an object of an open source: metadata or a chunk of a Zarr hierarchy */
    SIEVA_PURPOSE_LINK = 3,     /* an open source leads to it: links, raw data kept elsewhere, references */
    SIEVA_PURPOSE_REDIRECT = 4, /* a server sends on to it */
    SIEVA_PURPOSE_INDEX = 5     /* the store of indexes beside a source */
};

/* Whether a place may be opened: not 0. asked is how it was named, absolute and without `.` and `..`; real is where that leads
 * now, links resolved, found by descriptor and before a byte is read. Of a URL real is NULL, and asked is its normal form
 * without user and password. It is called for what is not there as well, and a refusal is told in the same words. May be
 * called from any thread, by many at once, for as long as a source or what was made of it is open. */
typedef int32_t (*sieva_may_open)(void *context, int32_t purpose, const char *asked, const char *real);

/* A function that comes as code: a map, which gives a value of each row, a filter, which is a condition, or a reduction, which is
 * an aggregate. */
typedef struct sieva_function {
    const char *name;    /* how SQL calls it */
    const uint8_t *code; /* text of the C subset, or a WebAssembly module */
    uint64_t bytes;      /* how many bytes those are */
} sieva_function;

/* Options; 0 and NULL are the defaults. New fields will come at the end, so start with SIEVA_OPTIONS_INIT. */
typedef struct sieva_options {
    uint64_t size;             /* sizeof(sieva_options) */
    uint64_t memory;           /* bytes that reading may take; 0: 1 GiB */
    uint32_t threads;          /* 0: one for each core */
    int32_t access;            /* enum sieva_access */
    const char *store;         /* directory for augmentations; NULL: $SIEVA_STORE, else beside the file */
    const char *external_root; /* directory that links out of the file may lead to; NULL: none are followed */
    int32_t valid_range;       /* 1: values outside of the attribute valid_range are missing */
    int32_t no_learning;       /* 1: scans leave no statistics behind */
    const char *dims;          /* names of dimensions where the file has none, a line for each array: "g/map=y,x\ng/lat=y";
                                  arrays that are given one name line up along it */
    int32_t isolated;          /* 1: a process of its own, under limits, parses the file: of use for foreign files */
    int32_t cross;             /* 1: arrays that do not line up make a product, each position with each; 0: they are
                                  SIEVA_ERROR_UNALIGNED_DIMENSIONS */
    const char *worker;        /* the program for that; NULL: sieva-worker, found by $PATH */
    const char *user;          /* of a server: the account that the client has; NULL: it asks for nobody else */
    const char *subject;       /* of a server: what the client proved to be, such as a distinguished name; or NULL */
    const sieva_stop *stop;    /* ends queries that have these options, and opening HDF5, once it is set; NULL: nothing does */
    const char *allow;         /* places that may be opened, a line for each: directories, files, beginnings of URLs; NULL:
                                  what the system allows. Store, cache and catalog of the program's own are not asked for */
    sieva_may_open may_open;   /* who decides the same, or NULL; with both, both have to agree */
    void *may_open_context;    /* what may_open is called with */
    int32_t public_only;       /* 1: hosts with private, loopback and link-local addresses are refused: for servers */
    int32_t reserved2;
    uint64_t spill;            /* bytes that ORDER BY and DISTINCT may write to temporary files in $TMPDIR where memory does not
                                  do; 0: none, what does not fit is SIEVA_ERROR_MEMORY_LIMIT */
    int32_t fetch;             /* enum sieva_fetch */
    int32_t reserved3;
    const char *join;          /* of several files: the dimension that they follow one another along, one of theirs or a new
                                  one; NULL: the one that they differ in */
    const uint8_t *manifest;   /* what sieva_source_manifest() gave in another process: the file is not parsed, and none of it is
                                  read before values are wanted; NULL: it is parsed */
    uint64_t manifest_bytes;   /* how many bytes those are */
    const char *striping;      /* where the file's bytes lie: "stripe_size=1MiB,stripe_count=4,stripe_offset=0", "single"; NULL:
                                  what its storage tells */
    const sieva_function *functions; /* functions of SQL that come as code, function_count of them; they are copied */
    uint64_t function_count;
} sieva_options;

#define SIEVA_OPTIONS_INIT { sizeof(sieva_options), 0, 0, 0, NULL, NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, NULL, 0, NULL, NULL, 0 }

/* A flag that ends queries from another thread: those that have it among their options end with the error cancelled soon
 * after it is set, and so do their results and streams. *stop is to be freed by sieva_stop_free(), even before them. */
SIEVA_API int32_t sieva_stop_create(sieva_stop **stop);
SIEVA_API int32_t sieva_stop_set(const sieva_stop *stop);
SIEVA_API void sieva_stop_free(sieva_stop *stop);

/* Opens the file at path, which may be a URL; its first bytes tell the format. Where nothing has that very path and it
 * has one of *, ? and [, the files that match it are one source, joined along a dimension. options may be NULL. *source
 * is to be closed by sieva_close(). Errors: file-not-found, permission-denied, unknown-format, corrupt-file;
 * dimension-mismatch of files that do not fit together. */
SIEVA_API int32_t sieva_open(const char *path, const sieva_options *options, sieva_source **source);

/* What opening the source learnt, for other processes that open it after this one (sieva_options.manifest): its schema, where its
 * bytes lie, its state. It is for processes that trust this one. They read no metadata; one that finds the file in another state
 * gets stale-source, damaged bytes are corrupt-index. bytes, capacity and needed as in sieva_plan_bytes(); the bytes are made at the
 * first call, which reads where all chunks lie, and 64 KiB of samples. Errors: unsupported (not one file: several, Zarr,
 * reference sets); stale-source; of reading. */
SIEVA_API int32_t sieva_source_manifest(const sieva_source *source, uint8_t *bytes, uint64_t capacity, uint64_t *needed);

/* Closes a source. Its queries and selections go on working until they are freed. */
SIEVA_API void sieva_close(sieva_source *source);

/* The numbers of arrays and of dimensions. */
SIEVA_API int32_t sieva_source_count(const sieva_source *source, uint64_t *arrays, uint64_t *dimensions);

/* The format's name, such as "HDF5" or "netCDF-3 classic". Valid as long as the source is open. */
SIEVA_API int32_t sieva_source_format(const sieva_source *source, const char **format);

/* An array. What it points to is valid as long as the source is open. */
typedef struct sieva_array {
    const char *path;        /* group/name, without a leading slash */
    int32_t value_type;      /* enum sieva_type: what its values are read as without loss */
    int32_t stored_type;     /* enum sieva_type: what is stored; differs where values are packed */
    uint32_t rank;           /* number of dimensions; 0 for a scalar */
    uint32_t attributes;     /* number of attributes */
    const uint64_t *shape;   /* rank lengths, outermost first */
    const char *const *dims; /* rank paths of dimensions */
} sieva_array;

/* A dimension. */
typedef struct sieva_dimension {
    const char *path;  /* group/name; valid as long as the source is open */
    uint64_t length;
    int32_t unlimited; /* 1 where it may grow */
    int32_t reserved;
} sieva_dimension;

/* The number of the array that a name means: its path, or its leaf name where that is unique.
 * Errors: unknown-array, ambiguous-name. */
SIEVA_API int32_t sieva_array_find(const sieva_source *source, const char *name, uint64_t *index);

/* What array number index (from 0 on, in the order of the file) is. Errors: invalid-value. */
SIEVA_API int32_t sieva_array_describe(const sieva_source *source, uint64_t index, sieva_array *array);

/* What dimension number index (from 0 on) is. Errors: invalid-value. */
SIEVA_API int32_t sieva_dimension_describe(const sieva_source *source, uint64_t index, sieva_dimension *dimension);

/* What the source says of itself, as JSON: where arrays lie, how they are laid out along dimensions and coordinates, what
 * is known of their values. text, capacity and needed as in sieva_query_explain(). Reads coordinates. */
SIEVA_API int32_t sieva_source_schema(const sieva_source *source, char *text, uint64_t capacity, uint64_t *needed);

/* ---- Sessions --------------------------------------------------------------------------------------------------------- */

/* What the queries of a session share; 0 is the default. New fields will come at the end, so start with
 * SIEVA_SESSION_INIT. */
typedef struct sieva_session_options {
    uint64_t size;    /* sizeof(sieva_session_options) */
    uint64_t memory;  /* bytes that queries and caches may take; 0: half of the system's memory, at least 1 GiB */
    uint64_t cache;   /* of these, bytes for what is kept from query to query; 0: a quarter, at most 1 GiB */
    uint32_t threads; /* of a query that does not say; 0: one for each core */
    uint32_t queries; /* that may run at once; 0: four for each thread */
    int32_t no_cache; /* 1: nothing is kept from query to query */
    int32_t reserved; /* 0 */
} sieva_session_options;

#define SIEVA_SESSION_INIT { sizeof(sieva_session_options), 0, 0, 0, 0, 0, 0 }

/* Makes a session, to be freed by sieva_session_free(). What its queries decode, find and fetch is kept for the next, as
 * far as its caches allow; a file that has changed is read anew. A query has a share of its memory while a call of it
 * runs: its options' memory, else up to 1 GiB. One that finds no room waits; one that never would is
 * SIEVA_ERROR_MEMORY_LIMIT. options may be NULL. */
SIEVA_API int32_t sieva_session_create(const sieva_session_options *options, sieva_session **session);

/* As sieva_open(): queries of the source belong to the session. */
SIEVA_API int32_t sieva_session_open(const sieva_session *session, const char *path, const sieva_options *options,
                                     sieva_source **source);

/* What a session did, and holds. New fields will come at the end, so start with SIEVA_SESSION_STATS_INIT. */
typedef struct sieva_session_stats {
    uint64_t size;              /* sizeof(sieva_session_stats) */
    uint64_t memory;            /* bytes that it may take */
    uint64_t reserved;          /* bytes of shares that running queries have */
    uint64_t peak_reserved;     /* the most of it */
    uint64_t running;           /* queries that run */
    uint64_t waiting;           /* callers that wait for a share */
    uint64_t queries;           /* that were made */
    uint64_t evaluations;       /* of conditions */
    uint64_t selections_reused; /* conditions that were not evaluated, as what they select was known */
    uint64_t cache_bytes;       /* that are kept from query to query */
    uint64_t cache_hits;        /* chunks and values that were found there */
    uint64_t cache_misses;      /* and that were not */
} sieva_session_stats;

#define SIEVA_SESSION_STATS_INIT { sizeof(sieva_session_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Tells what a session did so far, and what it holds. */
SIEVA_API int32_t sieva_session_did(const sieva_session *session, sieva_session_stats *stats);

/* Evaluates several queries at once: what those of one source have in common is read and decoded once, tile by tile in the
 * order in which the data lie. What is asked of each afterwards is answered as if it had been asked by itself, to the
 * bit, and evaluates its condition no more. session may be NULL. memory: bytes that those which are evaluated together
 * may take; 0: as one query. Queries of a collection are SIEVA_ERROR_UNSUPPORTED. What fails one query stops no other:
 * codes has a place for each and is given SIEVA_OK or a code of an error, which asking that query tells of; where codes
 * is NULL, the first failure is that of this call, once all were run. */
SIEVA_API int32_t sieva_session_run(const sieva_session *session, const sieva_query *const *queries, uint64_t count, uint64_t memory, int32_t *codes);

/* Stops the queries of a session that run now: their calls fail with SIEVA_ERROR_CANCELLED, and they stay stopped. */
SIEVA_API int32_t sieva_session_cancel(const sieva_session *session);

/* Drops what is kept from query to query. */
SIEVA_API int32_t sieva_session_forget(const sieva_session *session);

/* Stops a session's queries and frees it. Its sources and queries are to be freed by themselves, even after it; asking
 * them is SIEVA_ERROR_CANCELLED. */
SIEVA_API void sieva_session_free(sieva_session *session);

/* ---- Attributes --------------------------------------------------------------------------------------------------- */

/* An attribute; name is valid as long as the source is open. */
typedef struct sieva_attribute {
    const char *name;
    uint64_t count; /* values; 1 for one text */
    int32_t type;   /* enum sieva_type, as stored; SIEVA_STR also for what has no plain value, in words */
    int32_t reserved;
} sieva_attribute;

/* The number of attributes of owner: an array's name, a group's path, or NULL for the whole source. */
SIEVA_API int32_t sieva_attribute_count(const sieva_source *source, const char *owner, uint64_t *count);

/* What attribute number index (from 0 on) of owner is. */
SIEVA_API int32_t sieva_attribute_describe(const sieva_source *source, const char *owner, uint64_t index, sieva_attribute *attribute);

/* The numbers of an attribute, as type, which must hold them exactly: SIEVA_I64 and SIEVA_F64 mostly do. *count is how
 * many there are. Errors: unknown-attribute, type-mismatch (text; a number that type cannot hold). */
SIEVA_API int32_t sieva_attribute_read(const sieva_source *source, const char *owner, const char *name, int32_t type, void *values, uint64_t capacity, uint64_t *count);

/* Text number index of an attribute. Valid as long as the source is open. Errors: unknown-attribute, type-mismatch. */
SIEVA_API int32_t sieva_attribute_text(const sieva_source *source, const char *owner, const char *name, uint64_t index, const char **text);

/* ---- Queries -------------------------------------------------------------------------------------------------------- */

/* A condition on one array: its values compared (op: enum sieva_op) with *value of the given type (enum sieva_type;
 * for SIEVA_STR value is the const char * itself). Types need not agree: the comparison is of numbers. Reads nothing.
 * *query is to be freed by sieva_query_free(). Errors: unknown-array, ambiguous-name, invalid-value. */
SIEVA_API int32_t sieva_query_create(const sieva_source *source, const char *array, int32_t op, int32_t type, const void *value, sieva_query **query);

/* A condition by its text, such as "TEMP > 25 AND (z_t < 5000 OR KMT IS NULL)": all that follows WHERE in sieva's SQL.
 * Errors: syntax-error; names and types are checked when the query is first asked. */
SIEVA_API int32_t sieva_query_text(const sieva_source *source, const char *condition, sieva_query **query);

/* Every position of an array; of use with sieva_query_set_region(). */
SIEVA_API int32_t sieva_query_all(const sieva_source *source, const char *array, sieva_query **query);

/* Both conditions. a and b stay as they are, are still to be freed, and later changes of them do not matter; their
 * regions count. Takes constant time: chains may be of any length, while AND, OR and NOT within each other may be 200
 * deep. Errors: invalid-value (of different sources), unsupported (too deep, or of a plan), memory-limit (2^22 conditions). */
SIEVA_API int32_t sieva_query_and(const sieva_query *a, const sieva_query *b, sieva_query **query);

/* Either condition. As sieva_query_and(). */
SIEVA_API int32_t sieva_query_or(const sieva_query *a, const sieva_query *b, sieva_query **query);

/* The opposite, region included. Where a condition is neither true nor false, for missing values, neither is this. */
SIEVA_API int32_t sieva_query_not(const sieva_query *a, sieva_query **query);

/* Restricts a query's rows to the union of boxes (0: to nothing), in the place of an earlier region. Boxes are in the
 * index space of array, whose dimensions the rows then have, or of the query's own rows where array is NULL. starts and
 * counts hold boxes * rank numbers, box by box, outermost dimension first. Boxes need not match chunks; what lies
 * outside is not read. Errors: dimension-mismatch (rank), invalid-value (a box that does not lie in the array; more than
 * 2^18 boxes). */
SIEVA_API int32_t sieva_query_set_region(sieva_query *query, const char *array, uint64_t boxes, uint32_t rank, const uint64_t *starts, const uint64_t *counts);

/* Takes a query's region away. */
SIEVA_API int32_t sieva_query_clear_region(sieva_query *query);

/* The memory, threads and access of a query, in the place of those of its source; other options do not count. */
SIEVA_API int32_t sieva_query_set_options(sieva_query *query, const sieva_options *options);

/* The number of rows that satisfy the condition. Errors: of names and types; of reading; no-index. */
SIEVA_API int32_t sieva_query_nhits(const sieva_query *query, uint64_t *nhits);

/* Bounds of the number of hits; reads coordinates at most, once. */
SIEVA_API int32_t sieva_query_estimate(const sieva_query *query, uint64_t *low, uint64_t *high);

/* What giving back all rows takes: of each quantity the least, what is expected, and the most, where UINT64_MAX is no
 * bound. New fields will come at the end, so start with SIEVA_PRICE_INIT. */
typedef struct sieva_price {
    uint64_t size;              /* sizeof(sieva_price) */
    uint64_t rows[3];           /* that come back */
    uint64_t bytes_read[3];     /* of the source */
    uint64_t bytes_returned[3]; /* of the values that come back */
    uint64_t requests[3];       /* for the bytes read */
    double seconds[3];          /* an estimate, its bounds too */
} sieva_price;

#define SIEVA_PRICE_INIT { sizeof(sieva_price), { 0 }, { 0 }, { 0 }, { 0 }, { 0.0 } }

/* The price of a query, told before it is run; no value is read. The sources of a collection's objects are opened for it.
 * Errors: of names and types, of opening. */
SIEVA_API int32_t sieva_query_price(const sieva_query *query, sieva_price *price);

/* The plan in words. capacity counts bytes with the closing NUL; *needed, which may be NULL, is set to what the text
 * needs, always. text may be NULL to ask for that alone. */
SIEVA_API int32_t sieva_query_explain(const sieva_query *query, char *text, uint64_t capacity, uint64_t *needed);

/* What a query did so far. New fields will come at the end, so start with SIEVA_STATS_INIT. */
typedef struct sieva_stats {
    uint64_t size;             /* sizeof(sieva_stats) */
    uint64_t tiles_scanned;    /* units of work (chunks, mostly) that were read */
    uint64_t tiles_skipped;    /* units of work decided without reading */
    uint64_t bytes_read;       /* of the source, by all its queries, since this one was first asked */
    uint64_t requests;         /* for those bytes */
    uint64_t index_bytes_read; /* of augmentations */
    double select_seconds;     /* for evaluating the condition */
    uint64_t evaluations;      /* of the condition: one, unless what was counted did not fit an eighth of its memory */
    uint64_t chunks_decoded;   /* of the source, as bytes_read */
} sieva_stats;

#define SIEVA_STATS_INIT { sizeof(sieva_stats), 0, 0, 0, 0, 0, 0.0, 0, 0 }

/* What asking a query took so far. Of a collection bytes and requests are those of all its queries since this one was made; tiles,
 * chunks and indexes are not counted. Errors: of names and types, where it was not asked before. */
SIEVA_API int32_t sieva_query_stats(const sieva_query *query, sieva_stats *stats);

/* Frees a query; its selections and requests stay. */
SIEVA_API void sieva_query_free(sieva_query *query);

/* ---- Plans ------------------------------------------------------------------------------------------------------------ */

/* A query as data, in its one form: equal questions have equal bytes and the same id, however they were worded. *plan is to
 * be freed by sieva_plan_free(). Of a condition the columns are those of SELECT *. No values are read, and no subquery is
 * run. Errors: of names and types. */
SIEVA_API int32_t sieva_query_plan(const sieva_query *query, sieva_plan **plan);

/* The plan of a SELECT, or of a condition alone, asked of source; a FROM must name that. Errors: as sieva_query_plan(),
 * syntax-error. */
SIEVA_API int32_t sieva_plan_sql(const sieva_source *source, const char *sql, sieva_plan **plan);

/* Plans of what sieva_plan_bytes() and sieva_plan_json() gave. Errors: invalid-value for what is no plan. */
SIEVA_API int32_t sieva_plan_from_bytes(const uint8_t *bytes, uint64_t count, sieva_plan **plan);
SIEVA_API int32_t sieva_plan_from_json(const char *json, sieva_plan **plan);

/* A plan's bytes, for programs. *needed is set to their number even where there is too little room; with bytes NULL and
 * capacity 0 that is all that is done. */
SIEVA_API int32_t sieva_plan_bytes(const sieva_plan *plan, uint8_t *bytes, uint64_t capacity, uint64_t *needed);

/* A plan as JSON; as a SELECT that has the same plan; and its id, of 32 hexadecimal digits. text, capacity and needed as in
 * sieva_query_explain(). */
SIEVA_API int32_t sieva_plan_json(const sieva_plan *plan, char *text, uint64_t capacity, uint64_t *needed);
SIEVA_API int32_t sieva_plan_text(const sieva_plan *plan, char *text, uint64_t capacity, uint64_t *needed);
SIEVA_API int32_t sieva_plan_id(const sieva_plan *plan, char *text, uint64_t capacity, uint64_t *needed);

/* The query that a plan stands for, asked of source, with options (memory, threads, access) or, if NULL, those of the
 * source. sieva_query_nhits() is its number of rows, groups counted as such; its selection is that of its condition. It is
 * neither joined nor restricted: unsupported. sieva_result_of_plan() gives its rows. What does not fit the source is told
 * when it is first asked: invalid-value, unknown-array. */
SIEVA_API int32_t sieva_plan_query(const sieva_source *source, const sieva_plan *plan, const sieva_options *options, sieva_query **query);

/* Frees a plan; queries of it stay. */
SIEVA_API void sieva_plan_free(sieva_plan *plan);

/* ---- Tasks: parts of a query elsewhere --------------------------------------------------------------------------------- */

/* What tasks give: what answers all that may be asked of the plan; the number of rows; their positions; groups. */
enum sieva_task_kind { SIEVA_TASK_ANY = 0, SIEVA_TASK_COUNT = 1, SIEVA_TASK_SELECTION = 2, SIEVA_TASK_GROUPS = 3 };

/* The work of a plan of source in as many parts or fewer, along whole chunks; of a collection objects that follow one another, with
 * about as many bytes each. No values are read. *tasks is to be freed by sieva_tasks_free(). Errors: as sieva_plan_query();
 * invalid-value (kind, 0 parts); unsupported (a histogram without a range, a subquery of another source, a count of different rows
 * or of groups). */
SIEVA_API int32_t sieva_plan_tasks(const sieva_source *source, const sieva_plan *plan, int32_t kind, uint64_t parts, sieva_tasks **tasks);

/* How many there are. */
SIEVA_API int32_t sieva_tasks_count(const sieva_tasks *tasks, uint64_t *count);

/* The bytes of one of them, from 0, to be sent to whoever runs it. Those of a collection carry what opening its files needs, so that
 * no catalog is asked there, and no metadata read of files that the catalog has manifests of. bytes, capacity and needed as in
 * sieva_plan_bytes(). */
SIEVA_API int32_t sieva_tasks_bytes(const sieva_tasks *tasks, uint64_t number, uint8_t *bytes, uint64_t capacity, uint64_t *needed);

/* Frees them. */
SIEVA_API void sieva_tasks_free(sieva_tasks *tasks);

/* Runs a task, of so many bytes, with options (memory, threads, access, stop) or, if NULL, those of the source. *merge is what it
 * found, to be freed by sieva_merge_free(). Errors: stale-source where the source is in another state than that of which the task
 * was made; invalid-value for damaged bytes, and where it was opened in another way; those of the query. */
SIEVA_API int32_t sieva_task_run(const sieva_source *source, const uint8_t *task, uint64_t count, const sieva_options *options, sieva_merge **merge);

/* What sieva_merge_bytes() gave. It, and what is added to it, may take memory bytes; 0: 1 GiB. Errors: invalid-value for damaged
 * bytes; memory-limit. */
SIEVA_API int32_t sieva_merge_from_bytes(const uint8_t *bytes, uint64_t count, uint64_t memory, sieva_merge **merge);

/* Adds what other tasks of the same plan found; other stays as it is. In any order the answer is the same, to the bit. Errors:
 * invalid-value for those of different plans or states of a source, and for rows that are in both, then merge stays as it is;
 * memory-limit, then what it held is lost. */
SIEVA_API int32_t sieva_merge_add(sieva_merge *merge, const sieva_merge *other);

/* Its bytes. bytes, capacity and needed as in sieva_plan_bytes(). */
SIEVA_API int32_t sieva_merge_bytes(const sieva_merge *merge, uint8_t *bytes, uint64_t capacity, uint64_t *needed);

/* The query of the plan, which knows its answer by what all tasks found: nothing is evaluated again. sieva_merge_result() gives its
 * rows. Errors: invalid-value where tasks are missing or are of another plan; stale-source, also where a catalog tells of other
 * objects than for the tasks; as sieva_plan_query(). */
SIEVA_API int32_t sieva_merge_query(const sieva_merge *merge, const sieva_source *source, const sieva_plan *plan, const sieva_options *options, sieva_query **query);

/* Frees it; queries and results of it stay. */
SIEVA_API void sieva_merge_free(sieva_merge *merge);

/* ---- Selections ------------------------------------------------------------------------------------------------------- */

/* The hits of a query, compressed. To be freed by sieva_selection_free(). */
SIEVA_API int32_t sieva_query_selection(const sieva_query *query, sieva_selection **selection);

/* The number of hits: what sieva_read() needs room for. */
SIEVA_API int32_t sieva_selection_nhits(const sieva_selection *selection, uint64_t *nhits);

/* The rank and shape of the rows that the positions are of. shape may be NULL to ask for the rank alone, which is set
 * even where capacity is too little. */
SIEVA_API int32_t sieva_selection_shape(const sieva_selection *selection, uint32_t *rank, uint64_t *shape, uint32_t capacity);

/* The name of a dimension of the rows; text as in sieva_query_explain(). */
SIEVA_API int32_t sieva_selection_dimension(const sieva_selection *selection, uint32_t axis, char *name, uint64_t capacity, uint64_t *needed);

/* Positions of the hits from number first on, ascending, up to capacity of them: each one number, in C order of the
 * rows. *count is how many were written, 0 behind the last. */
SIEVA_API int32_t sieva_selection_positions(const sieva_selection *selection, uint64_t first, uint64_t capacity, uint64_t *positions, uint64_t *count);

/* The same as coordinates: rank numbers for each hit, so that coords has room for capacity * rank. */
SIEVA_API int32_t sieva_selection_coords(const sieva_selection *selection, uint64_t first, uint64_t capacity, uint64_t *coords, uint64_t *count);

/* The positions in both, in either, in a and not in b: of selections whose rows are the same, else dimension-mismatch.
 * *selection is a new one, to be freed. */
SIEVA_API int32_t sieva_selection_and(const sieva_selection *a, const sieva_selection *b, sieva_selection **selection);
SIEVA_API int32_t sieva_selection_or(const sieva_selection *a, const sieva_selection *b, sieva_selection **selection);
SIEVA_API int32_t sieva_selection_minus(const sieva_selection *a, const sieva_selection *b, sieva_selection **selection);

/* A selection of rows of query (sieva_query_all() has those of an array), whatever its condition: of count positions, linear in C
 * order; of coordinates, rank numbers each; of the union of boxes, as in sieva_query_set_region(); of what sieva_selection_bytes()
 * gave of the same rows. Positions are best in increasing order; repeated ones count once. *selection is to be freed by
 * sieva_selection_free(). Errors: invalid-value (outside of the rows), dimension-mismatch (rank; bytes of other rows),
 * corrupt-file (bytes); of names and types. */
SIEVA_API int32_t sieva_selection_from_positions(const sieva_query *query, uint64_t count, const uint64_t *positions, sieva_selection **selection);
SIEVA_API int32_t sieva_selection_from_coords(const sieva_query *query, uint64_t count, uint32_t rank, const uint64_t *coords, sieva_selection **selection);
SIEVA_API int32_t sieva_selection_from_boxes(const sieva_query *query, uint64_t boxes, uint32_t rank, const uint64_t *starts, const uint64_t *counts, sieva_selection **selection);
SIEVA_API int32_t sieva_selection_from_bytes(const sieva_query *query, const uint8_t *bytes, uint64_t count, sieva_selection **selection);

/* A selection as bytes that travel, the same that Python's Selection.save() writes. bytes, capacity and needed as in
 * sieva_plan_bytes(). */
SIEVA_API int32_t sieva_selection_bytes(const sieva_selection *selection, uint8_t *bytes, uint64_t capacity, uint64_t *needed);

/* The hits from number first on, count of them at most: of use where they are shared out. *part is a new selection, to be freed.
 * Errors: invalid-value where there are fewer than first. */
SIEVA_API int32_t sieva_selection_part(const sieva_selection *selection, uint64_t first, uint64_t count, sieva_selection **part);

/* Of a selection of a collection: the number of objects that it has hits in. Positions and values come object by object; positions
 * are those of the rows of their object. What is of a shape, coordinates and set algebra, is unsupported. */
SIEVA_API int32_t sieva_selection_objects(const sieva_selection *selection, uint64_t *objects);

/* Object number index of these, from 0: its source, its path, its number among all objects of the query, and how many of the hits
 * are its own. *object is valid as long as the selection; number and nhits may be NULL. Errors: invalid-value. */
SIEVA_API int32_t sieva_selection_object(const sieva_selection *selection, uint64_t index, sieva_object *object, uint64_t *number, uint64_t *nhits);

/* The hits in object number index of these, as a selection of its file, which is opened: with shape, coordinates and all else. *object
 * is to be freed by sieva_selection_free(). Errors: invalid-value; stale-source; of opening. */
SIEVA_API int32_t sieva_selection_of_object(const sieva_selection *selection, uint64_t index, sieva_selection **object);

/* Frees a selection; requests that read it go on. */
SIEVA_API void sieva_selection_free(sieva_selection *selection);

/* ---- Values ------------------------------------------------------------------------------------------------------------- */

/* The values of array (a name, or an expression such as "TEMP * 1.8 + 32") at a selection's positions, in their order.
 * The array need not be one of the condition, but must have no dimension that the rows lack. type (enum sieva_type)
 * must hold each value exactly: the array's value_type always does. missing may be NULL, else it gets a byte for each
 * value: 1 where it is missing. A missing value is NaN, or 0 of an integer type, which must then have missing.
 * *count is the number of values, which is that of hits.
 * Errors: dimension-mismatch, type-mismatch, invalid-value (room), of reading. */
SIEVA_API int32_t sieva_read(const sieva_selection *selection, const char *array, int32_t type, void *values, uint64_t capacity, uint8_t *missing, uint64_t *count);

/* The same for the hits from number first on, up to capacity of them; *count is 0 behind the last. Batches that follow
 * each other share what they decoded. */
SIEVA_API int32_t sieva_read_batch(const sieva_selection *selection, const char *array, uint64_t first, int32_t type, void *values, uint64_t capacity, uint8_t *missing, uint64_t *count);

/* The texts of count hits from number first on: their bytes without NULs, and count + 1 offsets, so that text i is
 * bytes[offsets[i]] to bytes[offsets[i + 1] - 1]. capacity counts bytes. *needed is set to the number of bytes even
 * where there is too little room; with bytes and offsets NULL and capacity 0 that is all that is done. */
SIEVA_API int32_t sieva_read_texts(const sieva_selection *selection, const char *array, uint64_t first, uint64_t count, char *bytes, uint64_t capacity, uint64_t *offsets, uint64_t *needed);

/* A box of an array, whatever its values: rank starts and counts, outermost first (NULL: from 0; to the end), values in
 * C order. stored: 1 for values as they are stored, neither decoded nor missing. type, values, missing as in
 * sieva_read(); *read is the number of values. Besides values, what is decoded for them takes at most sieva_options.memory
 * of the source (0: 1 GiB, or half of the system's memory where that is more): a larger chunk is memory-limit. */
SIEVA_API int32_t sieva_read_box(const sieva_source *source, const char *array, uint32_t rank, const uint64_t *start, const uint64_t *count, int32_t stored, int32_t type, void *values, uint64_t capacity, uint8_t *missing, uint64_t *read);

/* n values of an array from number first on, both counted in C order over all of it, by one request of the storage: the elements of a
 * stripe, which begins and ends within rows. *read is n, or 0 where values do not lie so (chunks, files joined, records with others
 * between them): read boxes then. type, values, missing as in sieva_read_box(). */
SIEVA_API int32_t sieva_read_run(const sieva_source *source, const char *array, uint64_t first, uint64_t n, int32_t type, void *values, uint64_t capacity, uint8_t *missing, uint64_t *read);

/* One part of sieva_read_many(): a box of an array, or its values at the positions of a selection over its dimensions.
 * Fields that are not needed are 0, so start with = { 0 }. */
typedef struct sieva_part {
    const char *array;
    const sieva_selection *selection; /* whose positions are read; NULL: the box of start and count */
    const uint64_t *start;            /* NULL: from 0 */
    const uint64_t *count;            /* NULL: to the end */
    uint32_t rank;                    /* numbers in start and count */
    int32_t stored;                   /* 1: values as they are stored */
    int32_t type;                     /* enum sieva_type of values */
    int32_t code;                     /* set: SIEVA_OK, or the error of this part */
    void *values;
    uint64_t capacity;                /* values that have room there */
    uint8_t *missing;                 /* as in sieva_read(), or NULL */
    uint64_t read;                    /* set: the number of values */
} sieva_part;

/* Reads n parts of one source as one: each stored chunk and each byte of plain data that they want is read at most once,
 * and each chunk decoded once, on all threads. A part that fails has its code, the others have their values; what is
 * returned is the first error, and SIEVA_OK where there is none. The results take at most sieva_options.memory of the
 * source besides the caller's own memory (memory-limit: nothing is read, and no code is set). */
SIEVA_API int32_t sieva_read_many(const sieva_source *source, sieva_part *parts, uint64_t n);

/* A box of texts; bytes, offsets and needed as in sieva_read_texts(). */
SIEVA_API int32_t sieva_read_box_texts(const sieva_source *source, const char *array, uint32_t rank, const uint64_t *start, const uint64_t *count, char *bytes, uint64_t capacity, uint64_t *offsets, uint64_t *needed);

/* A box of an array cut by servers and stripes, where sieva knows them, and by blocks: chunks, else runs in C order whose
 * values take most bytes or less. For programs of many processes that share out what they read: parts of one array have
 * server, stripe and block in common, or no element. rank, start, count as in sieva_read_box(). parts has room for
 * capacity rows of 3 + 2 * rank numbers: server, stripe, block, starts, lengths. *needed is the number of rows, even where
 * there is too little room; with parts NULL and capacity 0 that is all that is done. Reads where the array lies. */
SIEVA_API int32_t sieva_box_parts(const sieva_source *source, const char *array, uint32_t rank, const uint64_t *start, const uint64_t *count, uint64_t most, uint64_t *parts, uint64_t capacity, uint64_t *needed);

/* Who reads the parts that many processes ask for: the same on all of them, as each is given the parts of all. Parts of one
 * server, stripe, block, array and kind are a unit, which one process reads and sends to those that asked; where that costs
 * less and nothing overlaps, each reads its own. counts has ranks values: how many of the numbers are of each process, which
 * follow one another. A part is 7 + 2 * rank numbers: array (sieva_array_find()), kind (any number: of parts that may not be read
 * together it differs), bytes of a value, request (any number), server, stripe and block (sieva_box_parts()), starts, lengths.
 * A process sends most bytes in a wave, or one unit. dealt has room for capacity rows of 7 numbers, in the order in which parts
 * are read: number of the part, in the order in which they are given; unit; reader; wave; is_row for sieva_unite_boxes(); and, where
 * the unit is one run of elements in C order, first and n for sieva_read_run(), else 0 and 0. *needed as in sieva_box_parts(). Reads nothing. Errors: invalid-value for numbers that are no parts. */
SIEVA_API int32_t sieva_deal_parts(const sieva_source *source, uint32_t ranks, const uint64_t *counts, const uint64_t *numbers, uint64_t most, uint64_t *dealt, uint64_t capacity, uint64_t *needed);

/* Boxes that cover what n boxes do, nothing twice: rows of 2 * rank numbers, starts then lengths, of which none is 0. What lies
 * between them may be covered, too, where reading it costs less than another request; with is_row nothing before the first
 * element in C order, or behind the last. united has room for capacity boxes; *needed as in sieva_box_parts(). */
SIEVA_API int32_t sieva_unite_boxes(uint32_t rank, uint64_t n, const uint64_t *boxes, int32_t is_row, uint64_t *united, uint64_t capacity, uint64_t *needed);

/* ---- Results as files --------------------------------------------------------------------------------------------------- */

/* How a result is encoded. New fields will come at the end, so start with SIEVA_RESULT_OPTIONS_INIT. */
typedef struct sieva_result_options {
    uint64_t size;        /* sizeof(sieva_result_options) */
    const char *format;   /* "netcdf", "hdf5", "arrow", "parquet" (if compiled in), "csv", "json", "table"; NULL: "netcdf" */
    const char *spool;    /* directory for what must be written before its length is known; NULL: $TMPDIR, else /tmp */
    uint64_t spool_limit; /* bytes that one result may take there; 0: 8 GiB */
    uint32_t deflate;     /* 1 (fast) to 9 (small): values in deflated chunks, of "netcdf" (then netCDF-4) and "hdf5"; 0: not compressed */
    uint32_t reserved;    /* 0 */
} sieva_result_options;

#define SIEVA_RESULT_OPTIONS_INIT { sizeof(sieva_result_options), NULL, NULL, 0, 0, 0 }

/* The format of results that name stands for: its name, or a suffix of its files ("nc", "feather"), in letters of either
 * case; NULL is the default. *format is set to its name, which stays valid, *laid_out (may be NULL) to 1 where the place of
 * each value is known before one is read, so that nothing is written anywhere unless it is deflated, and to 0 where the
 * result is written once. Errors: invalid-value, with all formats in the message. */
SIEVA_API int32_t sieva_result_format(const char *name, const char **format, int32_t *laid_out);

/* The rows of a query as the bytes of a file. sql is a whole SELECT, or a condition alone, whose columns are those of
 * SELECT *; a FROM must name this source. The condition is evaluated now; with it the length and the layout of the file
 * are known. Values are read when their part of the file is: netCDF and HDF5 are never held or written anywhere, other
 * formats are written once to a file without a name. A deflated one is made as sieva_result_stream_any_order() is read, and
 * written to such a file at the first call of sieva_result_size(), _read() or _stream(). options (memory, threads, access) may be NULL for those of the
 * source, result_options for the defaults. *result is to be freed by sieva_result_free(); it keeps its source open.
 * Errors: syntax-error with the position; of names, types and reading; memory-limit; unsupported (a column that the
 * format has no type for); invalid-value (format). */
SIEVA_API int32_t sieva_result_open(const sieva_source *source, const char *sql, const sieva_options *options, const sieva_result_options *result_options, sieva_result **result);

/* The same of a plan: its rows as they come, as the bytes of a file. Errors: as sieva_plan_query(), sieva_result_open(). */
SIEVA_API int32_t sieva_result_of_plan(const sieva_source *source, const sieva_plan *plan, const sieva_options *options, const sieva_result_options *result_options, sieva_result **result);

/* The same by what all tasks of the plan found. Errors: as sieva_merge_query(), sieva_result_open(). */
SIEVA_API int32_t sieva_merge_result(const sieva_merge *merge, const sieva_source *source, const sieva_plan *plan, const sieva_options *options, const sieva_result_options *result_options, sieva_result **result);

/* The length of the file. Errors: of a deflated one those of reading, and memory-limit beyond spool_limit. */
SIEVA_API int32_t sieva_result_size(const sieva_result *result, uint64_t *bytes);

/* The number of rows. */
SIEVA_API int32_t sieva_result_rows(const sieva_result *result, uint64_t *rows);

/* A name of the bytes, of 32 hexadecimal digits: the same for the same query in the same format of the same file, as long
 * as that is not changed. text, capacity and needed as in sieva_query_explain(). */
SIEVA_API int32_t sieva_result_id(const sieva_result *result, char *text, uint64_t capacity, uint64_t *needed);

/* The bytes of the file from offset on, up to capacity of them; *count is how many there are, 0 behind the end. Any part
 * may be read in any order, by many threads at once: the bytes are always the same. Errors: of reading; stale-source;
 * invalid-value (a computed integer that is equal to the fill value). */
SIEVA_API int32_t sieva_result_read(const sieva_result *result, uint64_t offset, void *buffer, uint64_t capacity, uint64_t *count);

/* A result as bytes that travel, with its number of rows and its name, and such a result in another process, which needs neither
 * source nor plan. All of it is in memory meanwhile. bytes, capacity and needed as in sieva_plan_bytes(); of result_options, which may
 * be NULL, spool and spool_limit count. Errors: as sieva_result_read(); corrupt-file for damaged bytes; memory-limit. */
SIEVA_API int32_t sieva_result_bytes(const sieva_result *result, uint8_t *bytes, uint64_t capacity, uint64_t *needed);
SIEVA_API int32_t sieva_result_from_bytes(const uint8_t *bytes, uint64_t count, const sieva_result_options *result_options, sieva_result **result);

/* length bytes of the file from offset on (to its end at most), as blocks of so many bytes (0: 256 KiB), made ahead by
 * threads of their own. *stream is to be freed by sieva_stream_free(), before or after the result. */
SIEVA_API int32_t sieva_result_stream(const sieva_result *result, uint64_t offset, uint64_t length, uint64_t block, sieva_stream **stream);

/* The whole file as blocks that may come in any order: of a deflated one as it is made, so that nothing is written first, and
 * what tells where all lies comes last. sieva_stream_next() gives the place of each. Errors: as sieva_result_stream(). */
SIEVA_API int32_t sieva_result_stream_any_order(const sieva_result *result, uint64_t block, sieva_stream **stream);

/* The next block, in ascending order (but for sieva_result_stream_any_order()); waits until it is there. *offset is its place in the file, *count its bytes, 0 at
 * the end. capacity less than a block gives a part of it. Errors: as sieva_result_read(). */
SIEVA_API int32_t sieva_stream_next(sieva_stream *stream, void *buffer, uint64_t capacity, uint64_t *offset, uint64_t *count);

/* Whether sieva_stream_next() would not wait: *ready is 1 or 0. */
SIEVA_API int32_t sieva_stream_ready(const sieva_stream *stream, int32_t *ready);

/* Frees a stream: ends its threads, which takes as long as what they are reading. */
SIEVA_API void sieva_stream_free(sieva_stream *stream);

/* Frees a result; its streams go on. */
SIEVA_API void sieva_result_free(sieva_result *result);

/* ---- Histograms and indexes ------------------------------------------------------------------------------------------------ */

/* The histogram of a whole array, from its zone maps: no data are read. Bin i counts the values from edges[i] to
 * edges[i + 1]; its width is a power of two. *bins is set to the number of bins, even where there is too little room;
 * counts has room for capacity numbers, edges for capacity + 1. With both NULL and capacity 0, *bins is all.
 * Errors: no-index unless sieva_index_build() or a scan left the statistics of all regions. */
SIEVA_API int32_t sieva_histogram(const sieva_source *source, const char *array, uint64_t capacity, uint64_t *counts, double *edges, uint64_t *bins);

/* The histogram of the values of array (a name or an expression) at a query's hits: bins equal bins from the least to
 * the greatest value, as numpy.histogram. counts has room for bins numbers, edges for bins + 1. */
SIEVA_API int32_t sieva_query_histogram(const sieva_query *query, const char *array, uint64_t bins, uint64_t *counts, double *edges);

/* Builds indexes of an array (NULL: of all numeric arrays) as far as they are not there; kinds is a sum of enum
 * sieva_index. The file is not changed: indexes go to the store. Errors: permission-denied, of reading. */
SIEVA_API int32_t sieva_index_build(const sieva_source *source, const char *array, uint32_t kinds);

/* What sieva_catalog_add() did. */
typedef struct sieva_added {
    uint64_t added;      /* sources that were not known */
    uint64_t replaced;   /* sources that had changed */
    uint64_t unchanged;  /* sources that were as they are known */
    uint64_t objects;    /* groups and arrays of those added or replaced */
    uint64_t others;     /* files of other formats */
    uint64_t damaged;    /* sources registered as damaged (1000 at most are counted); sieva_open() says why */
    uint64_t unreadable; /* what could not be looked at, and is not registered (1000 at most are counted) */
} sieva_added;

/* How far work is, in bytes of data. May be called from any thread, by many at once. */
typedef void (*sieva_progress)(void *context, uint64_t done, uint64_t total);

/* How indexes are built; 0 and NULL are the defaults. New fields will come at the end, so start with
 * SIEVA_INDEX_OPTIONS_INIT. */
typedef struct sieva_index_options {
    uint64_t size;            /* sizeof(sieva_index_options) */
    uint64_t memory;          /* bytes that the regions at hand may take, and a sort; 0: those of the source, else 1 GiB */
    uint32_t jobs;            /* workers; 0: the threads of the source, else one for each core */
    uint32_t precision;       /* significant decimal digits of the bounds of a bitmap's bins; 0: 2 */
    const char *columns;      /* arrays that a sorted replica carries besides its key, a line for each; NULL: all numeric ones of
                                 the same dimensions */
    uint64_t lock_timeout_ms; /* how long somebody else's lock on the store is waited for; 0: a minute */
    const sieva_stop *stop;   /* ends building once it is set; NULL: that of the source */
    sieva_progress progress;  /* is told how far it is; NULL: nobody */
    void *progress_context;   /* what progress is called with */
    uint64_t region_size;     /* bytes of a region of zone maps and bitmaps, about: whole chunks, at least one; 0: as the index that
                                 there is, else some 256 KiB */
} sieva_index_options;

#define SIEVA_INDEX_OPTIONS_INIT { sizeof(sieva_index_options), 0, 0, 0, NULL, 0, NULL, NULL, NULL, 0 }

/* What building or verifying did. New fields will come at the end, so start with SIEVA_INDEX_REPORT_INIT. */
typedef struct sieva_index_report {
    uint64_t size;             /* sizeof(sieva_index_report) */
    uint64_t regions_built;    /* regions built */
    uint64_t regions_kept;     /* regions that had all that was asked for already */
    uint64_t regions_renewed;  /* of those built, regions whose content was the same as before */
    uint64_t bytes_read;       /* of data, as decoded */
    uint64_t replicas_built;   /* sorted replicas written */
    uint64_t unreadable;       /* where no array was named: arrays with data that cannot be read */
    uint64_t regions_verified; /* regions whose records were compared with the data */
    uint64_t rows_verified;    /* rows of sorted replicas that were */
    uint64_t differences;      /* that were found */
} sieva_index_report;

#define SIEVA_INDEX_REPORT_INIT { sizeof(sieva_index_report), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* As sieva_index_build(), of count arrays (0: of all numeric ones), with options, which may be NULL. *report is set unless it is
 * NULL. Errors: unknown-array; permission-denied; cancelled, then what was built stays; of reading. */
SIEVA_API int32_t sieva_index_build_with(const sieva_source *source, const char *const *arrays, uint64_t count, uint32_t kinds, const sieva_index_options *options, sieva_index_report *report);

/* What there is of indexes, as JSON: what `sieva index --status --json` says. text, capacity and needed as in
 * sieva_query_explain(). */
SIEVA_API int32_t sieva_index_status(const sieva_source *source, char *text, uint64_t capacity, uint64_t *needed);

/* Compares indexes with the data: a sample of them, or with all not 0 all of them. *report, unless it is NULL, says what was
 * compared; text has a line for each difference, capacity and needed as in sieva_query_explain(), all three may be 0 and NULL.
 * Errors: no-index; of reading. */
SIEVA_API int32_t sieva_index_verify(const sieva_source *source, int32_t all, sieva_index_report *report, char *text, uint64_t capacity, uint64_t *needed);

/* Removes all indexes of the source; *dropped is 0 where there were none, else 1. Errors: permission-denied, io-error. */
SIEVA_API int32_t sieva_index_drop(const sieva_source *source, uint64_t *dropped);

/* Removes the sorted replicas by count arrays (0: all of them); *dropped is their number. Errors: unknown-array,
 * permission-denied, io-error. */
SIEVA_API int32_t sieva_index_drop_replicas(const sieva_source *source, const char *const *arrays, uint64_t count, uint64_t *dropped);

/* Indexes that many processes build together. One of them opens a job, with the arrays, kinds and options of
 * sieva_index_build_with(), of which memory is that of each process. Stage after stage, it asks for tasks, hands them out as bytes,
 * and takes what they gave; no task reads what another reads. What a task has built of zone maps and bitmaps stays; a sorted
 * replica is there once the job is finished. Errors: as sieva_index_build_with(). */
SIEVA_API int32_t sieva_index_job_open(const sieva_source *source, const char *const *arrays, uint64_t count, uint32_t kinds, const sieva_index_options *options, sieva_index_job **job);

/* Makes about so many tasks, which may run at the same time; *count is their number, 0 where all is done. Errors: invalid-value where
 * what those before gave was not taken. */
SIEVA_API int32_t sieva_index_job_tasks(const sieva_index_job *job, uint64_t parts, uint64_t *count);

/* The bytes of task number, from 0. bytes, capacity and needed as in sieva_tasks_bytes(). */
SIEVA_API int32_t sieva_index_job_task(const sieva_index_job *job, uint64_t number, uint8_t *bytes, uint64_t capacity, uint64_t *needed);

/* Runs a task in any process that can open its source, as it was opened for the job: one of a file that the source joins with others
 * is run on that file. Of the options, jobs, memory, lock_timeout_ms, stop and progress count. A
 * task that is run again finds what it did. Errors: stale-source where the source is in another state than then; as
 * sieva_index_build_with(). */
SIEVA_API int32_t sieva_index_task_run(const sieva_source *source, const uint8_t *task, uint64_t count, const sieva_index_options *options, sieva_index_result **result);

/* Has a source look for indexes anew when they are next wanted: other processes may have built or dropped some since it was first
 * asked. Queries that are there go on with what they know. */
SIEVA_API int32_t sieva_index_refresh(const sieva_source *source);

/* What a task gave, to be sent back. bytes, capacity and needed as in sieva_tasks_bytes(). */
SIEVA_API int32_t sieva_index_result_bytes(const sieva_index_result *result, uint8_t *bytes, uint64_t capacity, uint64_t *needed);

/* Frees what a task gave. */
SIEVA_API void sieva_index_result_free(sieva_index_result *result);

/* Takes what task number gave; with that of the last one the stage is done. Errors: invalid-value for damaged bytes, or those of
 * another stage. */
SIEVA_API int32_t sieva_index_job_take(const sieva_index_job *job, uint64_t number, const uint8_t *bytes, uint64_t count);

/* Ends a job that has no more tasks; *report, unless it is NULL, says what was done. Errors: invalid-value where there are tasks. */
SIEVA_API int32_t sieva_index_job_finish(const sieva_index_job *job, sieva_index_report *report);

/* Frees a job; a replica that is not finished is gone. */
SIEVA_API void sieva_index_job_free(sieva_index_job *job);

/* ---- Groups: sharing what others ask for ------------------------------------------------------------------------------------- */

/* Makes a group at a place, a directory or the address of a place in an object store, or takes the one that is there, and says
 * that producer shares files, directories and patterns of this machine; both NULL and 0: a group without a producer. expires:
 * seconds after which results are deleted that nobody took; 0: never. *group is to be closed by sieva_group_close(). Errors:
 * invalid-value for what is no name, and for a group that is there with another time; file-not-found for a source. */
SIEVA_API int32_t sieva_group_create(const char *place, const char *producer, const char *const *sources, uint64_t count, uint64_t expires, sieva_group **group);

/* Opens the group at a place. Errors: file-not-found where there is none; unsupported for one of another version. */
SIEVA_API int32_t sieva_group_open(const char *place, sieva_group **group);

/* Closes a group, of which nothing runs. */
SIEVA_API void sieva_group_close(sieva_group *group);

/* Makes a user a member; who asks becomes one. sieva_group_leave() withdraws all that was asked; what was made for the user is deleted
 * by the producers' next passes. */
SIEVA_API int32_t sieva_group_join(const sieva_group *group, const char *user);
SIEVA_API int32_t sieva_group_leave(const sieva_group *group, const char *user);

/* Asks for count things of every file of the group, each by a name, in place of what was asked by that name: all of them or none, by
 * one put. sqls: SELECTs without FROM. format: netcdf, hdf5, arrow, parquet, csv or json; NULL: netcdf. only_new: 1 for files that
 * producers do not have yet. Errors: invalid-value for what is no name, one name twice, and what is no format; syntax-error. */
SIEVA_API int32_t sieva_group_ask(const sieva_group *group, const char *user, const char *const *names, const char *const *sqls, uint64_t count, const char *format, int32_t only_new);

/* Asks for something no longer. Errors: file-not-found where it was not asked for. */
SIEVA_API int32_t sieva_group_withdraw(const sieva_group *group, const char *user, const char *name);

/* What producers have, with the schema of the newest file of each, and what is asked and waits to be taken, as JSON with a closing NUL.
 * text, capacity and needed as in sieva_source_schema(). */
SIEVA_API int32_t sieva_group_list(const sieva_group *group, char *text, uint64_t capacity, uint64_t *needed);
SIEVA_API int32_t sieva_group_status(const sieva_group *group, char *text, uint64_t capacity, uint64_t *needed);

/* Puts a file as it is into the group under a name of the user, in place of what is there: also for those who have no sieva. keep: seconds
 * after which it is deleted; 0: it stays until sieva_group_unpublish(). stop may be NULL. Errors: invalid-value for what is no name;
 * stale-source for a file that is changed meanwhile; cancelled; what was there stays then. */
SIEVA_API int32_t sieva_group_publish(const sieva_group *group, const char *user, const char *name, const char *path, uint64_t keep, const sieva_stop *stop);

/* Deletes what a user published. Errors: file-not-found where there is no such thing. */
SIEVA_API int32_t sieva_group_unpublish(const sieva_group *group, const char *user, const char *name);

/* Puts what a name leads to into a file, when all of it is here and right; what was stopped is gone on with. name: NAME or USER/NAME of what
 * was published, or USER/ASK/FILE of a result. stop may be NULL. Errors: file-not-found; invalid-value for what is no name, and one that
 * two users published; corrupt-file for other bytes than were put; cancelled. */
SIEVA_API int32_t sieva_group_fetch(const sieva_group *group, const char *name, const char *path, const sieva_stop *stop);

/* An address by which who has no key can read what a name leads to, for so many seconds, with a closing NUL. That of a directory is good as long
 * as the file. text, capacity and needed as in sieva_source_schema(). Errors: as sieva_group_fetch(); unsupported; permission-denied. */
SIEVA_API int32_t sieva_group_link(const sieva_group *group, const char *name, uint64_t expires, char *text, uint64_t capacity, uint64_t *needed);

/* In which objects results are put: each in one of its own; several in one, of which consumers read parts; several in one that is no
 * dearer for who reads it whole. */
enum sieva_packing { SIEVA_PACKING_FILES = 0, SIEVA_PACKING_PARTIAL = 1, SIEVA_PACKING_WHOLE = 2 };

/* How a pass is made; 0 and NULL are the defaults. New fields will come at the end, so start with SIEVA_PRODUCE_INIT. */
typedef struct sieva_produce_options {
    uint64_t size;          /* sizeof(sieva_produce_options) */
    uint64_t memory;        /* bytes that evaluating may take; 0: as a query */
    uint64_t ask_memory;    /* of these, what one ask may take; 0: all */
    uint64_t result_size;   /* bytes of a result; 0: any. What exceeds a limit of an ask is answered by an error */
    uint64_t object_size;   /* bytes of an object that several results share; 0: what the store was found to move best */
    double ask_time;        /* seconds that one ask of a file may take by itself; 0: any */
    double prices[3];       /* for each gigabyte of storage, of transfer into the store and out of it; all 0: those of the paper */
    int64_t settle_ms;      /* how long a file has to be left alone to count as complete; 0: 2000; below 0: not at all */
    uint32_t threads;       /* 0: one for each core */
    int32_t packing;        /* enum sieva_packing */
    const char *spool;      /* a directory where results are kept until they are put; NULL: that of temporary files */
    const sieva_stop *stop; /* ends the pass; NULL: nothing does */
} sieva_produce_options;

#define SIEVA_PRODUCE_INIT { sizeof(sieva_produce_options), 0, 0, 0, 0, 0, { 0, 0, 0 }, 0, 0, 0, NULL, NULL }

/* What a pass of a producer did. New fields will come at the end, so start with SIEVA_PRODUCED_INIT. */
typedef struct sieva_produced {
    uint64_t size;     /* sizeof(sieva_produced) */
    uint64_t steps;    /* files that something was made of */
    uint64_t answers;  /* asks that were answered */
    uint64_t failed;   /* of these, by an error */
    uint64_t objects;  /* that were put */
    uint64_t bytes;    /* of these */
    uint64_t deleted;  /* objects that nobody needs any more */
    uint64_t waiting;  /* files that may not be complete yet */
    uint64_t deferred; /* asks that are left to the next pass: others of the same member took long */
    uint64_t troubles; /* what could not be done this time: sieva_group_troubles() */
} sieva_produced;

#define SIEVA_PRODUCED_INIT { sizeof(sieva_produced), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* What the next pass of a producer would make, for whom, and what that takes, as JSON. No data are read. options may be NULL. */
SIEVA_API int32_t sieva_group_plan(const sieva_group *group, const char *producer, const sieva_produce_options *options, char *text, uint64_t capacity, uint64_t *needed);

/* Makes and puts all that is asked of a producer and not there yet, and deletes what nobody needs any more: one pass. One that was stopped
 * anywhere goes on when it is asked for again. options and produced may be NULL. Errors: file-not-found where there is no such
 * producer; invalid-value while another process of this machine is it; cancelled. */
SIEVA_API int32_t sieva_group_produce(const sieva_group *group, const char *producer, const sieva_produce_options *options, sieva_produced *produced);

/* A step of a program: arrays in its memory, of which what is asked of a group is made without a file on the way. name: as of a file, and
 * another one for each step; one of the name of an earlier step takes its place. *step is to be freed by sieva_step_free(). */
SIEVA_API int32_t sieva_step_create(const char *name, sieva_step **step);
SIEVA_API void sieva_step_free(sieva_step *step);

/* Adds an array to a step by its path (group/name), without values yet. type: enum sieva_type. shape: rank lengths, outermost first;
 * rank 0 is a single value. dims: rank names, by which arrays line up; NULL: those of one group line up by length. Errors: invalid-value
 * for a path that is there, more than memory has, and one dimension of two lengths when the step is produced. */
SIEVA_API int32_t sieva_step_array(sieva_step *step, const char *path, int32_t type, uint32_t rank, const uint64_t *shape, const char *const *dims);

/* Adds values of an array of a step: those of the box from start on, of count values along each dimension, in C order; both NULL: of all
 * of it. Blocks cover the array, and do not overlap. Numbers are not copied: they stay as they are until the step is freed, or was
 * produced for the last time; texts (const char *const *) are. Errors: unknown-array; invalid-value for a box that does not lie in the array. */
SIEVA_API int32_t sieva_step_block(sieva_step *step, const char *path, const uint64_t *start, const uint64_t *count, const void *values);

/* Adds an attribute of a step, in place of one of that name: of the array or the group that its name begins with (T/units), else of all of
 * it. values: count of that type; texts as const char *const *. units, _FillValue, scale_factor mean what they mean in files. */
SIEVA_API int32_t sieva_step_attribute(sieva_step *step, const char *name, int32_t type, uint64_t count, const void *values);

/* Says why something of a step is no array: who asks for it is told "'path' why". Errors: invalid-value for the path of an array. */
SIEVA_API int32_t sieva_step_leave_out(sieva_step *step, const char *path, const char *why);

/* Says that a producer gives steps of memory; it is then no longer one of files. Errors: invalid-value for what is no name, and while
 * another process of this machine is it. */
SIEVA_API int32_t sieva_group_register(const sieva_group *group, const char *producer);

/* Makes and puts all that is asked of a step, before it returns; what cannot be made of it is answered by an error, as there is no later
 * pass in which it could. Of options settle_ms means nothing. options and produced may be NULL. Errors: file-not-found where there is no such
 * producer; invalid-value for what is no name of a step, blocks that overlap or leave something out, and while another process of this
 * machine is the producer; of the store, after which it may be called again; cancelled. */
SIEVA_API int32_t sieva_group_produce_step(const sieva_group *group, const char *producer, const sieva_step *step, const sieva_produce_options *options, sieva_produced *produced);

/* Says that a producer has no more steps, until it is registered again. */
SIEVA_API int32_t sieva_group_end(const sieva_group *group, const char *producer);

/* Whether a producer has no more steps, by sieva_group_end(): *over is 1 or 0; NULL: all that there are, of which there is at least one. What
 * was put before that is all there. */
SIEVA_API int32_t sieva_group_is_over(const sieva_group *group, const char *producer, int32_t *over);

/* What a pass of a follower did. New fields will come at the end, so start with SIEVA_FOLLOWED_INIT. */
typedef struct sieva_followed {
    uint64_t size;     /* sizeof(sieva_followed) */
    uint64_t files;    /* that were put into the folder */
    uint64_t bytes;    /* that were fetched for them */
    uint64_t failures; /* answers that are errors */
    uint64_t troubles; /* what could not be fetched this time */
} sieva_followed;

#define SIEVA_FOLLOWED_INIT { sizeof(sieva_followed), 0, 0, 0, 0 }

/* Fetches the answers to what a user asks for by a name that are not in a folder yet: one pass. The folder is made, and is for this ask
 * alone. stop and followed may be NULL. Errors: file-not-found for who is no member, and what is not asked; invalid-value for the folder
 * of another ask; cancelled. */
SIEVA_API int32_t sieva_group_follow(const sieva_group *group, const char *user, const char *name, const char *folder, const sieva_stop *stop, sieva_followed *followed);

/* The path of file number index (from 0 on) that the last pass of a follower through this handle put into the folder, in the order in which
 * a producer put them. text, capacity and needed as in sieva_source_schema(). Errors: invalid-value beyond the last one. */
SIEVA_API int32_t sieva_group_followed(const sieva_group *group, uint64_t index, char *text, uint64_t capacity, uint64_t *needed);

/* What the last pass through this handle could not do, and the answers that are errors, as JSON: of each the file, the error's code and what
 * it says. */
SIEVA_API int32_t sieva_group_troubles(const sieva_group *group, char *text, uint64_t capacity, uint64_t *needed);

/* ---- Asynchronous requests ---------------------------------------------------------------------------------------------------- */

/* Starts work (enum sieva_what) on a query in a thread of its own. The query may be changed and freed meanwhile.
 * Several requests may run at once. *request is to be freed by sieva_request_free(). Errors: of names and types. */
SIEVA_API int32_t sieva_start(const sieva_query *query, int32_t what, sieva_request **request);

/* What follows starts the call that its name ends with; arguments that are wrong by themselves are told at once, all else by
 * sieva_wait(). Handles that are given may be freed meanwhile; memory that is written to belongs to the request until it has
 * ended or is freed. A request for a query, a result or a source with sieva_options.stop is cancelled by setting that; so does
 * sieva_cancel().
 * Of what may take long these have no such form, and are called by a thread of the program's own: sieva_source_manifest(),
 * sieva_index_job_open(), _tasks(), _take() and _finish(), sieva_index_task_run() (ended by sieva_index_options.stop), and
 * sieva_index_drop_replicas(), and all of sieva_group_...(), of which passes are ended by a sieva_stop. sieva_result_size() and _bytes() of a deflated result are started by sieva_start_result_read(), sieva_search_hits() by
 * sieva_search_start(); sieva_result_stream() and _any_order() have threads, and sieva_stream_ready() tells whether sieva_stream_next()
 * waits. These open one file or read coordinates or an index once: sieva_query_estimate(), sieva_query_plan(), sieva_query_stats(),
 * sieva_histogram(), sieva_selection_from_...(), sieva_selection_of_object(), and sieva_plan_sql() of a collection. These ask a catalog
 * for one answer: sieva_catalog_open(), sieva_collection_open(), sieva_tag_...(), sieva_selection_bytes() and sieva_tasks_bytes() of a
 * collection. All others work in memory. */

/* Starts sieva_read(). values and missing belong to the request until it has ended or is freed; the selection may be
 * freed meanwhile. */
SIEVA_API int32_t sieva_start_read(const sieva_selection *selection, const char *array, int32_t type, void *values, uint64_t capacity, uint8_t *missing, sieva_request **request);

/* Starts sieva_session_open(), or sieva_open() where session is NULL; sieva_request_source() then gives the source. Opening
 * is cancelled where the format can be (HDF5). */
SIEVA_API int32_t sieva_start_open(const sieva_session *session, const char *path, const sieva_options *options, sieva_request **request);

/* Starts sieva_read_box(). values and missing belong to the request until it has ended or is freed; the source may be
 * closed meanwhile. sieva_request_count() then gives the number of values. */
SIEVA_API int32_t sieva_start_read_box(const sieva_source *source, const char *array, uint32_t rank, const uint64_t *start, const uint64_t *count, int32_t stored, int32_t type, void *values, uint64_t capacity, uint8_t *missing, sieva_request **request);

/* Starts sieva_read_many(). parts and all that they lead to belong to the request until it has ended or is freed;
 * sieva_request_count() then gives the number of values of all parts. */
SIEVA_API int32_t sieva_start_read_many(const sieva_source *source, sieva_part *parts, uint64_t n, sieva_request **request);

/* Starts sieva_query_histogram(). counts and edges belong to the request until it has ended or is freed;
 * sieva_request_count() then gives the number of values that were counted. */
SIEVA_API int32_t sieva_start_histogram(const sieva_query *query, const char *array, uint64_t bins, uint64_t *counts, double *edges, sieva_request **request);

/* Starts sieva_session_run(). codes belongs to the request until it has ended or is freed; the session and the queries may
 * be freed meanwhile. sieva_request_count() then gives the number of queries that failed. */
SIEVA_API int32_t sieva_start_run(const sieva_session *session, const sieva_query *const *queries, uint64_t count, uint64_t memory, int32_t *codes, sieva_request **request);

/* Starts sieva_index_build(). What was built before it is cancelled stays, and the next building goes on from there. */
SIEVA_API int32_t sieva_start_index_build(const sieva_source *source, const char *array, uint32_t kinds, sieva_request **request);

/* Starts sieva_index_build_with(); sieva_request_count() then gives the number of regions built. */
SIEVA_API int32_t sieva_start_index_build_with(const sieva_source *source, const char *const *arrays, uint64_t count, uint32_t kinds, const sieva_index_options *options, sieva_index_report *report, sieva_request **request);

/* Starts sieva_index_verify(); sieva_request_text() then gives the differences. */
SIEVA_API int32_t sieva_start_index_verify(const sieva_source *source, int32_t all, sieva_index_report *report, sieva_request **request);

/* Start sieva_index_status(), whose text sieva_request_text() gives, and sieva_index_drop(), whose number sieva_request_count()
 * gives. They are not stopped. */
SIEVA_API int32_t sieva_start_index_status(const sieva_source *source, sieva_request **request);
SIEVA_API int32_t sieva_start_index_drop(const sieva_source *source, sieva_request **request);

/* Starts sieva_read_batch(), which decodes anew what the batch before it had decoded. sieva_request_count() then gives the number
 * of values. */
SIEVA_API int32_t sieva_start_read_batch(const sieva_selection *selection, const char *array, uint64_t first, int32_t type, void *values, uint64_t capacity, uint8_t *missing, sieva_request **request);

/* Starts sieva_read_texts() and sieva_read_box_texts(); sieva_request_count() then gives the number of bytes. */
SIEVA_API int32_t sieva_start_read_texts(const sieva_selection *selection, const char *array, uint64_t first, uint64_t count, char *bytes, uint64_t capacity, uint64_t *offsets, sieva_request **request);
SIEVA_API int32_t sieva_start_read_box_texts(const sieva_source *source, const char *array, uint32_t rank, const uint64_t *start, const uint64_t *count, char *bytes, uint64_t capacity, uint64_t *offsets, sieva_request **request);

/* Starts sieva_query_price(). */
SIEVA_API int32_t sieva_start_query_price(const sieva_query *query, sieva_price *price, sieva_request **request);

/* Starts sieva_query_explain() and sieva_source_schema(), which cannot be stopped while it reads one; sieva_request_text() then
 * gives the text. */
SIEVA_API int32_t sieva_start_query_explain(const sieva_query *query, sieva_request **request);
SIEVA_API int32_t sieva_start_source_schema(const sieva_source *source, sieva_request **request);

/* Starts sieva_plan_tasks(); sieva_request_tasks() then gives them. */
SIEVA_API int32_t sieva_start_plan_tasks(const sieva_source *source, const sieva_plan *plan, int32_t kind, uint64_t parts, sieva_request **request);

/* Starts sieva_task_run(), with a copy of the task; sieva_request_merge() then gives what it found. */
SIEVA_API int32_t sieva_start_task_run(const sieva_source *source, const uint8_t *task, uint64_t count, const sieva_options *options, sieva_request **request);

/* Starts sieva_merge_add(): other as it is when its turn comes. It is cancelled as long as it has not begun. */
SIEVA_API int32_t sieva_start_merge_add(sieva_merge *merge, const sieva_merge *other, sieva_request **request);

/* Starts sieva_merge_query(); sieva_request_query() then gives the query. */
SIEVA_API int32_t sieva_start_merge_query(const sieva_merge *merge, const sieva_source *source, const sieva_plan *plan, const sieva_options *options, sieva_request **request);

/* Start sieva_merge_result(), sieva_result_open() and sieva_result_of_plan(); sieva_request_result() then gives the result. */
SIEVA_API int32_t sieva_start_merge_result(const sieva_merge *merge, const sieva_source *source, const sieva_plan *plan, const sieva_options *options, const sieva_result_options *result_options, sieva_request **request);
SIEVA_API int32_t sieva_start_result_open(const sieva_source *source, const char *sql, const sieva_options *options, const sieva_result_options *result_options, sieva_request **request);
SIEVA_API int32_t sieva_start_result_of_plan(const sieva_source *source, const sieva_plan *plan, const sieva_options *options, const sieva_result_options *result_options, sieva_request **request);

/* Starts sieva_result_read(); sieva_request_count() then gives the number of bytes. With capacity 0 it only does what the first
 * sieva_result_size() has to do. */
SIEVA_API int32_t sieva_start_result_read(const sieva_result *result, uint64_t offset, void *buffer, uint64_t capacity, sieva_request **request);

/* Starts sieva_catalog_add(); sieva_request_count() then gives the number of sources that were registered, or were so before. */
SIEVA_API int32_t sieva_start_catalog_add(const sieva_catalog *catalog, const char *const *paths, uint64_t count, const char *collection, const sieva_options *options, sieva_added *added, sieva_request **request);

/* Starts sieva_search_create(); sieva_request_search() then gives the search. */
SIEVA_API int32_t sieva_start_search_create(const sieva_catalog *catalog, const char *collection, const char *condition, const char *array, const sieva_options *options, sieva_request **request);

/* Starts sieva_search_query(), which opens a source; sieva_request_query() then gives the query. It is not stopped. */
SIEVA_API int32_t sieva_start_search_query(const sieva_search *search, uint64_t index, sieva_request **request);

/* Starts sieva_search_read(); sieva_request_count() then gives the number of values. */
SIEVA_API int32_t sieva_start_search_read(const sieva_search *search, const char *array, uint64_t first, uint64_t objects, int32_t type, void *values, uint64_t capacity, uint8_t *missing, sieva_request **request);

/* Starts sieva_search_histogram(); sieva_request_count() then gives the number of values that were counted. */
SIEVA_API int32_t sieva_start_search_histogram(const sieva_search *search, const char *array, uint64_t bins, double low, double high, uint64_t *counts, double *edges, sieva_request **request);

/* Whether the work has ended, well or not: *done is 1 or 0. Never waits. */
SIEVA_API int32_t sieva_test(const sieva_request *request, int32_t *done);

/* Waits until the work has ended, for timeout_ms milliseconds at most; for ever if that is negative. SIEVA_PENDING when
 * the time is up, else what the work came to: SIEVA_OK or its error, whose message is then this thread's. */
SIEVA_API int32_t sieva_wait(const sieva_request *request, int64_t timeout_ms);

/* Asks the work to stop; it ends with the error cancelled, unless it ended before. Other requests go on. */
SIEVA_API int32_t sieva_cancel(const sieva_request *request);

/* The number of hits found, of values or bytes read, of tasks made, of rows of a result. SIEVA_PENDING before the end; the work's error if it failed. */
SIEVA_API int32_t sieva_request_count(const sieva_request *request, uint64_t *count);

/* The selection found, a new handle each time. SIEVA_PENDING before the end; the work's error if it failed. */
SIEVA_API int32_t sieva_request_selection(const sieva_request *request, sieva_selection **selection);

/* The source that was opened, a new handle each time. SIEVA_PENDING before the end; the work's error if it failed. */
SIEVA_API int32_t sieva_request_source(const sieva_request *request, sieva_source **source);

/* The query, the tasks, what a task found, the result, the search that came of it: as sieva_request_source(). */
SIEVA_API int32_t sieva_request_query(const sieva_request *request, sieva_query **query);
SIEVA_API int32_t sieva_request_tasks(const sieva_request *request, sieva_tasks **tasks);
SIEVA_API int32_t sieva_request_merge(const sieva_request *request, sieva_merge **merge);
SIEVA_API int32_t sieva_request_result(const sieva_request *request, sieva_result **result);
SIEVA_API int32_t sieva_request_search(const sieva_request *request, sieva_search **search);

/* The text that came of it; text, capacity and needed as in sieva_query_explain(). */
SIEVA_API int32_t sieva_request_text(const sieva_request *request, char *text, uint64_t capacity, uint64_t *needed);

/* Cancels the work if it has not ended, waits for its end, and frees the request. */
SIEVA_API void sieva_request_free(sieva_request *request);

/* ---- Catalogs and tags -------------------------------------------------------------------------------------------------------- */

/* Opens a catalog: a path, "sqlite:PATH" or "postgresql://USER@HOST/DATABASE"; NULL: what $SIEVA_CATALOG says, else the
 * user's own. It is made where there is none, unless read_only is not 0. *catalog is to be closed by
 * sieva_catalog_close(). Errors: file-not-found, unknown-format (a database of something else), unsupported (a newer
 * one), io-error. */
SIEVA_API int32_t sieva_catalog_open(const char *url, int32_t read_only, sieva_catalog **catalog);

/* Closes a catalog. Its searches go on working until they are freed. */
SIEVA_API void sieva_catalog_close(sieva_catalog *catalog);

/* Registers count paths: files, directories with all that is under them, patterns and URLs; known sources that have not
 * changed are not opened again. They are put into collection, made where it is not there; NULL: into none. options (may
 * be NULL): threads, store. *added is set unless it is NULL. Errors: file-not-found for a path that is nothing,
 * permission-denied (read only), io-error. A file that cannot be read is counted in *added. */
SIEVA_API int32_t sieva_catalog_add(const sieva_catalog *catalog, const char *const *paths, uint64_t count, const char *collection, const sieva_options *options, sieva_added *added);

/* Sets a tag, in the place of one of the same key, on the object at path (NULL or "": the whole source) of a registered
 * source. *value is of the given type (enum sieva_type; for SIEVA_STR value is the const char * itself). It holds for
 * all that is under the object and has no value of its own. The source is not changed.
 * Errors: file-not-found (not registered), unknown-array (no such object), permission-denied (read only). */
SIEVA_API int32_t sieva_tag_set(const sieva_catalog *catalog, const char *source, const char *path, const char *key, int32_t type, const void *value);

/* Removes a tag of the very object; one that is not there is no error. Errors: as sieva_tag_set(). */
SIEVA_API int32_t sieva_tag_remove(const sieva_catalog *catalog, const char *source, const char *path, const char *key);

/* The type of the value that a key has for an object: SIEVA_BOOL, SIEVA_I64, SIEVA_U64, SIEVA_F64 or SIEVA_STR. The
 * object's own tag holds, else its attribute, else those of the nearest group above. Errors: file-not-found,
 * unknown-array, unknown-attribute. */
SIEVA_API int32_t sieva_tag_type(const sieva_catalog *catalog, const char *source, const char *path, const char *key, int32_t *type);

/* That value, a number, as type, which must hold it exactly. Errors: as sieva_tag_type(), type-mismatch. */
SIEVA_API int32_t sieva_tag_read(const sieva_catalog *catalog, const char *source, const char *path, const char *key, int32_t type, void *value);

/* That value, a text; text, capacity and needed as in sieva_query_explain(). Errors: as sieva_tag_type(), type-mismatch. */
SIEVA_API int32_t sieva_tag_text(const sieva_catalog *catalog, const char *source, const char *path, const char *key, char *text, uint64_t capacity, uint64_t *needed);

/* The number of an object's own tags. Errors: file-not-found, unknown-array. */
SIEVA_API int32_t sieva_tag_count(const sieva_catalog *catalog, const char *source, const char *path, uint64_t *count);

/* The key of its own tag number index (from 0 on); key, capacity and needed as in sieva_query_explain(). */
SIEVA_API int32_t sieva_tag_key(const sieva_catalog *catalog, const char *source, const char *path, uint64_t index, char *key, uint64_t capacity, uint64_t *needed);

/* The objects whose attributes and tags satisfy a condition such as "RADEG = 153.17 AND DECDEG = 23.06" (NULL: all); no
 * source is opened. kinds: enum sieva_kind. collection: only of its sources; NULL: of all. limit: at most so many; 0:
 * all. *objects is to be freed by sieva_objects_free(). Errors: syntax-error, unknown-attribute (no such collection). */
SIEVA_API int32_t sieva_tag_query(const sieva_catalog *catalog, const char *condition, int32_t kinds, const char *collection, uint64_t limit, sieva_objects **objects);

/* How many sieva_tag_query() would find without limit. */
SIEVA_API int32_t sieva_tag_nhits(const sieva_catalog *catalog, const char *condition, int32_t kinds, const char *collection, uint64_t *nhits);

/* The number of objects. */
SIEVA_API int32_t sieva_objects_count(const sieva_objects *objects, uint64_t *count);

/* Object number index (from 0 on), in the order of sources and of their trees. Errors: invalid-value. */
SIEVA_API int32_t sieva_objects_describe(const sieva_objects *objects, uint64_t index, sieva_object *object);

/* Frees what was found. */
SIEVA_API void sieva_objects_free(sieva_objects *objects);

/* ---- Searches in collections ------------------------------------------------------------------------------------------------------ */

/* Elements of a collection's objects: condition is on their attributes and tags, and on their arrays by name, such as
 * "RADEG = 153.17 AND flux BETWEEN 0 AND 20" (NULL: none). The catalog answers what is on attributes and tags here, at
 * once; files are opened later, and only those with objects that are left. An object is the group that holds the arrays
 * of the condition, or array: the array whose elements are meant, by its path in the objects, needed where the condition
 * names none. options may be NULL; dims of it are not used. *search is to be freed by sieva_search_free().
 * Errors: unknown-attribute (no such collection), syntax-error, unknown-array (a name that is neither key nor array),
 * ambiguous-name (tag(NAME) is the key, "NAME" in double quotes the array), unsupported (no array is named). */
SIEVA_API int32_t sieva_search_create(const sieva_catalog *catalog, const char *collection, const char *condition, const char *array, const sieva_options *options, sieva_search **search);

/* The number of objects that the catalog left. */
SIEVA_API int32_t sieva_search_count(const sieva_search *search, uint64_t *objects);

/* Object number index (from 0 on), in the order of sources and of their trees; its path is that of its group. */
SIEVA_API int32_t sieva_search_object(const sieva_search *search, uint64_t index, sieva_object *object);

/* The number of hits in all objects. They are counted once, by several threads. Errors: of reading, told with the
 * object; type-mismatch. */
SIEVA_API int32_t sieva_search_nhits(const sieva_search *search, uint64_t *nhits);

/* The hits of each of objects objects from number first on, for which nhits has room; 0 of one that lacks an array.
 * Errors: as sieva_search_nhits(). */
SIEVA_API int32_t sieva_search_hits(const sieva_search *search, uint64_t first, uint64_t objects, uint64_t *nhits);

/* The query of object number index, to be freed by sieva_query_free(): what can be asked of a query can be asked of it.
 * Names of arrays are looked for in the object's group first. Errors: unknown-array where it lacks an array; of opening. */
SIEVA_API int32_t sieva_search_query(const sieva_search *search, uint64_t index, sieva_query **query);

/* The values of array (a name within the objects, or an expression) at the hits of objects objects from number first
 * on, one object's behind the other's: as many as sieva_search_hits() says of each. type, values, capacity, missing and
 * count as in sieva_read(). Errors: as of sieva_read(); stale-source where hits are no longer those that were counted. */
SIEVA_API int32_t sieva_search_read(const sieva_search *search, const char *array, uint64_t first, uint64_t objects, int32_t type, void *values, uint64_t capacity, uint8_t *missing, uint64_t *count);

/* The histogram of the values of array at the hits of all objects: bins equal bins from low to high, as
 * numpy.histogram; both NaN: from the least to the greatest value. counts has room for bins numbers, edges for
 * bins + 1. */
SIEVA_API int32_t sieva_search_histogram(const sieva_search *search, const char *array, uint64_t bins, double low, double high, uint64_t *counts, double *edges);

/* Starts sieva_search_nhits() in a thread of its own; sieva_request_count() then gives the number. The search may be
 * freed meanwhile. *request is to be freed by sieva_request_free(). */
SIEVA_API int32_t sieva_search_start(const sieva_search *search, sieva_request **request);

/* Frees a search; its queries and requests stay. */
SIEVA_API void sieva_search_free(sieva_search *search);

/* ---- Collections as sources ------------------------------------------------------------------------------------------------------- */

/* Opens a collection of a catalog as a source, whose queries belong to session (NULL: to none). A plan of it is asked as one of a
 * file is: sieva_plan_sql(), _query(), _tasks(), sieva_task_run(), sieva_merge_query(), _result(), sieva_result_open(), _of_plan();
 * of a query of it there are sieva_query_nhits(), _selection(), _plan(), _explain(), _stats() and _set_options(); values are read at
 * its selections. All else that takes a source or a query is unsupported: an object alone has it, by sieva_selection_of_object() or
 * sieva_search_query(). Names in a SELECT are keys, or arrays by their path within an object; a FROM may be left out. Results are
 * "arrow", "parquet", "csv", "json" or "table".
 * The objects of a plan are those that the catalog tells of when that sieva_plan is first asked of this source. With catalog NULL no
 * catalog is opened: such a source runs tasks, and takes selections by their bytes, which carry all that is needed; what asks the
 * catalog is unsupported. options may be NULL; dims and manifest of it are not used. *source is to be closed by sieva_close(), before
 * or after the catalog. Errors: unknown-attribute (no such collection). */
SIEVA_API int32_t sieva_collection_open(const sieva_session *session, const sieva_catalog *catalog, const char *collection, const sieva_options *options, sieva_source **source);

#ifdef __cplusplus
}
#endif

#endif
