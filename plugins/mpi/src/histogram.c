/*
 * Histograms of the values at the hits, as numpy's: the edges are its `linspace`, a value on an edge belongs to the bin above, and
 * the last bin has its upper edge in it. Each rank reads the values of its share, piece by piece; counts are added up.
 */
#include "bytes.h"
#include "error.h"
#include "shares.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Values of a piece, and the most bins, as in sieva's SQL. */
enum { PIECE = 1 << 18, MOST_BINS = 1 << 20 };

/* Values of a share as float64, as many at a time as there is room for. */
struct pieces {
    const sieva_mpi_query *query;
    const char *array;
    int32_t type; /* what they are read as */
    void *values;
    uint8_t *missing;
};

static double number(const struct pieces *pieces, uint64_t i)
{
    switch (pieces->type) {
    case SIEVA_I64:
        return (double)((const int64_t *)pieces->values)[i];
    case SIEVA_U64:
        return (double)((const uint64_t *)pieces->values)[i];
    default:
        return ((const double *)pieces->values)[i];
    }
}

/* Reads a piece as the first type that holds its values: those of integers of 64 bits need not fit float64. */
static int32_t read_piece(struct pieces *pieces, uint64_t first, uint64_t *count)
{
    static const int32_t types[] = {SIEVA_F64, SIEVA_I64, SIEVA_U64};
    int32_t status = SIEVA_ERROR_TYPE_MISMATCH;
    for (size_t i = 0; i < sizeof types / sizeof *types && status == SIEVA_ERROR_TYPE_MISMATCH; i++) {
        pieces->type = types[i];
        status = sieva_read_batch(pieces->query->mine, pieces->array, first, pieces->type, pieces->values, PIECE, pieces->missing, count);
    }
    return said(status);
}

/* What is done with each value. */
typedef void (*taking)(void *context, double value);

static int32_t each_value(struct pieces *pieces, taking take, void *context)
{
    uint64_t count = 0;
    /* Of no hits at all, the name is still to be right. */
    if (pieces->query->count == 0 && pieces->query->total > 0)
        return SIEVA_OK;
    int32_t status = read_piece(pieces, 0, &count);
    for (uint64_t first = 0; status == SIEVA_OK && count > 0;) {
        for (uint64_t i = 0; i < count; i++) {
            double value = number(pieces, i);
            if (!pieces->missing[i] && !isnan(value))
                take(context, value);
        }
        first += count;
        if (first >= pieces->query->count)
            break;
        status = read_piece(pieces, first, &count);
    }
    return status;
}

struct range {
    double low, high;
};

static void widen(void *context, double value)
{
    struct range *range = context;
    range->low = value < range->low ? value : range->low;
    range->high = value > range->high ? value : range->high;
}

/* The range of all values: (0, 1) of none, as numpy has it. */
static int32_t find_range(const struct world *world, struct pieces *pieces, struct range *range)
{
    double ends[2];
    MPI_Request request;
    range->low = INFINITY;
    range->high = -INFINITY;
    int32_t status = agree(world, each_value(pieces, widen, range));
    if (status != SIEVA_OK)
        return status;
    ends[0] = -range->low;
    ends[1] = range->high;
    MPI_Iallreduce(MPI_IN_PLACE, ends, 2, MPI_DOUBLE, MPI_MAX, world->comm, &request);
    wait_for(&request);
    range->low = -ends[0];
    range->high = ends[1];
    if (range->low > range->high) {
        range->low = 0;
        range->high = 1;
    }
    return SIEVA_OK;
}

/* The bins of a histogram. */
struct bins {
    struct range range;
    double step; /* width of a bin; 0 if it is too small for a float */
    uint64_t count;
    uint64_t *counts;
};

static double edge(const struct bins *bins, uint64_t i)
{
    if (i == bins->count)
        return bins->range.high;
    if (bins->step == 0)
        return (double)i / (double)bins->count * (bins->range.high - bins->range.low) + bins->range.low;
    return (double)i * bins->step + bins->range.low;
}

static void count_value(void *context, double value)
{
    struct bins *bins = context;
    const struct range *range = &bins->range;
    uint64_t last = bins->count - 1;
    if (!(range->low <= value && value <= range->high))
        return;
    /* No number where the range is too narrow for a float: bin 0, then. */
    double place = (value - range->low) / (range->high - range->low) * (double)bins->count;
    uint64_t bin = place >= (double)last ? last : place > 0 ? (uint64_t)place : 0;
    /* The place is rounded; the edges decide. */
    if (bin > 0 && value < edge(bins, bin))
        bin--;
    if (bin < last && value >= edge(bins, bin + 1))
        bin++;
    bins->counts[bin]++;
}

/* The bins that a range makes: one without extent is widened by a half to both sides. */
static int32_t make_bins(struct bins *bins)
{
    struct range *range = &bins->range;
    if (range->low > range->high || !isfinite(range->high - range->low))
        return fail(SIEVA_ERROR_INVALID_VALUE, "the range of a histogram is finite and goes from low to high, got %g to %g", range->low,
                    range->high);
    if (range->low == range->high) {
        range->low -= 0.5;
        range->high += 0.5;
    }
    bins->step = (range->high - range->low) / (double)bins->count;
    for (uint64_t i = 0; i < bins->count; i++)
        bins->counts[i] = 0;
    return SIEVA_OK;
}

static int32_t count_all(const struct world *world, struct pieces *pieces, struct bins *bins, double *edges)
{
    MPI_Request request;
    int32_t status = SIEVA_OK;
    if (isnan(bins->range.low) && isnan(bins->range.high))
        status = find_range(world, pieces, &bins->range);
    if (status == SIEVA_OK)
        status = agree(world, make_bins(bins));
    if (status == SIEVA_OK)
        status = agree(world, each_value(pieces, count_value, bins));
    if (status != SIEVA_OK)
        return status;
    MPI_Iallreduce(MPI_IN_PLACE, bins->counts, (int)bins->count, MPI_UINT64_T, MPI_SUM, world->comm, &request);
    wait_for(&request);
    for (uint64_t i = 0; i <= bins->count; i++)
        edges[i] = edge(bins, i);
    return SIEVA_OK;
}

int32_t sieva_mpi_query_histogram(sieva_mpi_query *query, const char *array, uint64_t bins, double low, double high, uint64_t *counts, double *edges)
{
    if (query == NULL)
        return refuse(SIEVA_ERROR_INVALID_VALUE, "query is NULL: a handle of sieva_mpi_query_text() is expected");
    const struct world *world = &query->source->world;
    struct pieces pieces = {query, array, SIEVA_F64, malloc(PIECE * sizeof(double)), malloc(PIECE)};
    struct bins made = {{low, high}, 0, bins, counts};
    int32_t status = SIEVA_OK;
    if (bins == 0 || bins > MOST_BINS || counts == NULL || edges == NULL)
        status = fail(SIEVA_ERROR_INVALID_VALUE, "%" PRIu64 " bins%s: 1 to %d, and room for them, are expected", bins,
                      counts == NULL || edges == NULL ? " at NULL" : "", (int)MOST_BINS);
    else if (pieces.values == NULL || pieces.missing == NULL)
        status = fail_memory(PIECE * (sizeof(double) + 1), "values of a histogram");
    status = agree(world, status);
    if (status == SIEVA_OK)
        status = share_out(query);
    if (status == SIEVA_OK)
        status = count_all(world, &pieces, &made, edges);
    free(pieces.values);
    free(pieces.missing);
    return status;
}
