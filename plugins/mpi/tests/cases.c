/*
 * Asks a list of cases of all ranks, and compares each answer with that of one process, bit by bit; rank 0 tells what came out.
 *
 *   cases LIST
 *
 * A case in the list is lines of a word and the rest: `case NAME`, `file PATH`, `dims LINE` (any number), `valid_range`, `cross`,
 * `where CONDITION` or `sql SELECT`, `read ARRAY` (any number), `out PATH` (the rows of a SELECT as an Arrow file), `end`.
 */
#include "check.h"

#include <math.h>

enum { COLUMNS = 32, LINE = 1 << 16 };

struct asked {
    char name[256], file[4096], dims[8192], text[LINE], out[4096], reads[COLUMNS][256];
    int is_select, columns;
    sieva_options options;
};

/* One process's own source, which rank 0 compares with. */
static sieva_source *alone;

/* Reads the next case; 0 at the end. */
static int next(FILE *list, struct asked *asked)
{
    static char line[LINE];
    sieva_options fresh = SIEVA_OPTIONS_INIT;
    memset(asked, 0, sizeof *asked);
    asked->options = fresh;
    while (fgets(line, sizeof line, list)) {
        line[strcspn(line, "\n")] = '\0';
        char *rest = strchr(line, ' ');
        if (rest != NULL)
            *rest++ = '\0';
        else
            rest = line + strlen(line);
        if (!strcmp(line, "end")) {
            asked->options.dims = asked->dims[0] ? asked->dims : NULL;
            return 1;
        }
        if (!strcmp(line, "case"))
            strcpy(asked->name, rest);
        else if (!strcmp(line, "file"))
            strcpy(asked->file, rest);
        else if (!strcmp(line, "dims"))
            strcat(strcat(asked->dims, asked->dims[0] ? "\n" : ""), rest);
        else if (!strcmp(line, "valid_range"))
            asked->options.valid_range = 1;
        else if (!strcmp(line, "cross"))
            asked->options.cross = 1;
        else if (!strcmp(line, "out"))
            strcpy(asked->out, rest);
        else if (!strcmp(line, "read") && asked->columns < COLUMNS)
            strcpy(asked->reads[asked->columns++], rest);
        else
            asked->is_select = !strcmp(strcpy(asked->text, rest), rest) && !strcmp(line, "sql");
    }
    return 0;
}

/* What an array is read as; numbers that are no array's, such as coordinates of positions, as float64. */
static int32_t type_of(const sieva_source *source, const char *array)
{
    uint64_t index;
    sieva_array found;
    if (sieva_array_find(source, array, &index) != SIEVA_OK || sieva_array_describe(source, index, &found) != SIEVA_OK)
        return SIEVA_F64;
    return found.value_type;
}

static void check_values(sieva_mpi_query *query, const sieva_selection *expected, const char *array, int32_t type, uint64_t n)
{
    uint64_t first, count, got = 0;
    char *own = room(n, 8), *all = room(n, 8), *theirs = room(n, 8);
    uint8_t *missing = room(n, 1), *marks = room(n, 1), *own_marks = room(n, 1);
    OK(sieva_mpi_query_share(query, &first, &count));
    OK(sieva_mpi_read(query, array, SIEVA_MPI_EVERYWHERE, type, all, n, marks, &got));
    EXPECT(got == n);
    OK(sieva_mpi_read(query, array, SIEVA_MPI_SHARED, type, own, count, own_marks, &got));
    EXPECT(got == count);
    uint64_t width = type == SIEVA_I64 || type == SIEVA_U64 || type == SIEVA_F64 ? 8 : type == SIEVA_I16 || type == SIEVA_U16 ? 2 : type == SIEVA_BOOL || type == SIEVA_I8 || type == SIEVA_U8 ? 1 : 4;
    EXPECT(!memcmp(own, all + first * width, count * width) && !memcmp(own_marks, marks + first, count));
    if (expected != NULL) {
        OK(sieva_read(expected, array, type, theirs, n, missing, &got));
        EXPECT(got == n && !memcmp(all, theirs, n * width) && !memcmp(marks, missing, n));
    }
    int last = ranks - 1;
    memset(all, 0, n * 8);
    OK(sieva_mpi_read(query, array, last, type, here == last ? theirs : NULL, here == last ? n : 0, here == last ? missing : NULL, &got));
    EXPECT(got == (here == last ? n : 0));
    EXPECT(here != last || (!memcmp(own, theirs + first * width, count * width) && !memcmp(own_marks, missing + first, count)));
    free(own), free(all), free(theirs), free(missing), free(marks), free(own_marks);
}

static void check_texts(sieva_mpi_query *query, const sieva_selection *expected, const char *array, uint64_t n)
{
    uint64_t count = 0, needed = 0, size = 0;
    OK(sieva_mpi_read_texts(query, array, SIEVA_MPI_EVERYWHERE, NULL, 0, NULL, &count, &needed));
    EXPECT(count == n);
    char *all = room(needed, 1), *theirs = room(needed, 1);
    uint64_t *offsets = room(n + 1, 8), *ends = room(n + 1, 8);
    OK(sieva_mpi_read_texts(query, array, SIEVA_MPI_EVERYWHERE, all, needed, offsets, &count, &size));
    EXPECT(size == needed && offsets[0] == 0 && offsets[n] == needed);
    if (expected != NULL) {
        OK(sieva_read_texts(expected, array, 0, n, theirs, needed, ends, &size));
        EXPECT(size == needed && !memcmp(all, theirs, needed) && !memcmp(offsets, ends, (n + 1) * 8));
    }
    uint64_t first, share, own_count, own_needed;
    OK(sieva_mpi_query_share(query, &first, &share));
    OK(sieva_mpi_read_texts(query, array, SIEVA_MPI_SHARED, NULL, 0, NULL, &own_count, &own_needed));
    EXPECT(own_count == share && own_needed == offsets[first + share] - offsets[first]);
    memset(ends, 0, (n + 1) * 8);
    OK(sieva_mpi_read_texts(query, array, SIEVA_MPI_SHARED, theirs, own_needed, ends, &own_count, &own_needed));
    EXPECT(!memcmp(theirs, all + offsets[first], own_needed) && ends[share] == own_needed);
    int last = ranks - 1;
    OK(sieva_mpi_read_texts(query, array, last, here == last ? theirs : NULL, here == last ? needed : 0, here == last ? ends : NULL, &count, &size));
    EXPECT(here != last || (count == n && !memcmp(theirs, all, needed) && !memcmp(ends, offsets, (n + 1) * 8)));
    free(all), free(theirs), free(offsets), free(ends);
}

static uint64_t *positions_of(const sieva_selection *selection, uint64_t *n)
{
    OK(sieva_selection_nhits(selection, n));
    uint64_t *positions = room(*n, 8), got = 0;
    OK(sieva_selection_positions(selection, 0, *n, positions, &got));
    EXPECT(got == *n);
    return positions;
}

/* Positions everywhere, at one rank and by shares. Returns what one process finds, on rank 0. */
static sieva_selection *check_positions(sieva_mpi_query *query, const sieva_query *one, uint64_t *n)
{
    sieva_selection *all = NULL, *mine = NULL, *expected = NULL, *nobodys = NULL;
    uint64_t own, first, count, theirs_n, sum = 0;
    OK(sieva_mpi_query_selection(query, SIEVA_MPI_EVERYWHERE, &all));
    OK(sieva_mpi_query_selection(query, SIEVA_MPI_SHARED, &mine));
    OK(sieva_mpi_query_selection(query, 0, &nobodys));
    EXPECT((nobodys != NULL) == (here == 0));
    sieva_selection_free(nobodys);
    uint64_t *positions = positions_of(all, n), *shares = positions_of(mine, &own);
    OK(sieva_mpi_query_share(query, &first, &count));
    EXPECT(own == count && !memcmp(shares, positions + first, own * 8));
    /* max / mean is 1.01 at most where there are hits enough: no rank has more than one beyond its part. */
    EXPECT(sum_of(own) == *n && most_of(own) == (*n + (uint64_t)ranks - 1) / (uint64_t)ranks);
    if (one != NULL) {
        OK(sieva_query_selection(one, &expected));
        uint64_t *theirs = positions_of(expected, &theirs_n);
        EXPECT(theirs_n == *n && !memcmp(theirs, positions, *n * 8));
        free(theirs);
        for (uint64_t i = 0; i < *n; i++)
            sum += positions[i];
        printf("%s hits %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", what, *n, *n ? positions[0] : 0, *n ? positions[*n - 1] : 0, sum);
    }
    free(positions), free(shares);
    sieva_selection_free(all);
    sieva_selection_free(mine);
    return expected;
}

/* The histogram of an array is that of one process; so is the error where it has none. */
static void check_histogram(sieva_mpi_query *query, const sieva_query *one, const char *array)
{
    uint64_t counts[7] = {0}, theirs[7] = {0};
    double edges[8] = {0}, limits[8] = {0};
    int32_t status = sieva_mpi_query_histogram(query, array, 7, NAN, NAN, counts, edges);
    if (one == NULL)
        return;
    int32_t expected = sieva_query_histogram(one, array, 7, theirs, limits);
    EXPECT(status == expected);
    if (status == SIEVA_OK)
        EXPECT(!memcmp(counts, theirs, sizeof counts) && !memcmp(edges, limits, sizeof edges));
}

static void check_hits(sieva_mpi_source *source, sieva_mpi_query *query, const struct asked *asked, const sieva_query *one)
{
    uint64_t n = 0;
    sieva_selection *expected = check_positions(query, one, &n);
    for (int i = 0; i < asked->columns; i++) {
        int32_t type = type_of(sieva_mpi_source_here(source), asked->reads[i]);
        if (type == SIEVA_STR)
            check_texts(query, expected, asked->reads[i], n);
        else
            check_values(query, expected, asked->reads[i], type, n);
        check_histogram(query, one, asked->reads[i]);
    }
    sieva_selection_free(expected);
}

/* All bytes of a result. */
static unsigned char *bytes_of(const sieva_result *result, uint64_t *size)
{
    uint64_t got = 0;
    OK(sieva_result_size(result, size));
    unsigned char *bytes = room(*size, 1);
    OK(sieva_result_read(result, 0, bytes, *size, &got));
    EXPECT(got == *size);
    return bytes;
}

/* The rows as a file: at rank 0, where they are compared and written, and everywhere. */
static void check_rows(sieva_mpi_query *query, const struct asked *asked, const sieva_plan *plan)
{
    sieva_result_options options = SIEVA_RESULT_OPTIONS_INIT;
    sieva_result *result = NULL, *whole = NULL, *copy = NULL;
    options.format = "arrow";
    OK(sieva_mpi_query_result(query, &options, 0, &result));
    EXPECT((result != NULL) == (here == 0));
    OK(sieva_mpi_query_result(query, &options, SIEVA_MPI_EVERYWHERE, &copy));
    uint64_t size = 0, other = 0;
    unsigned char *everywhere = copy == NULL ? NULL : bytes_of(copy, &size);
    if (here == 0 && result != NULL) {
        unsigned char *found = bytes_of(result, &size), *expected;
        OK(sieva_result_of_plan(alone, plan, NULL, &options, &whole));
        expected = bytes_of(whole, &other);
        EXPECT(size == other && !memcmp(found, expected, size) && !memcmp(everywhere, expected, size));
        FILE *out = fopen(asked->out, "wb");
        EXPECT(out != NULL && fwrite(found, 1, size, out) == size && fclose(out) == 0);
        printf("%s rows\n", what);
        free(found), free(expected);
        sieva_result_free(whole);
    }
    free(everywhere);
    sieva_result_free(copy);
    sieva_result_free(result);
}

/* The error of a case, which is to come; told in the words that the program gets. */
static void tell_error(int32_t status)
{
    int32_t rank = sieva_mpi_error_rank();
    EXPECT(status == sieva_mpi_error_code() && rank >= 0 && rank < ranks);
    if (here == 0)
        printf("%s error %s %s\n", what, sieva_error_name(status), sieva_mpi_error_message());
}

static int32_t ask(sieva_mpi_source *source, const struct asked *asked)
{
    sieva_mpi_query *query = NULL;
    sieva_plan *plan = NULL;
    sieva_query *one = NULL;
    uint64_t n = 0, expected = 0;
    int32_t status = sieva_mpi_query_text(source, asked->text, &query);
    if (status == SIEVA_OK)
        status = sieva_mpi_query_nhits(query, &n);
    sieva_result *rows = NULL;
    if (status == SIEVA_OK)
        status = sieva_mpi_query_result(query, NULL, 0, &rows);
    sieva_result_free(rows);
    if (status != SIEVA_OK) {
        sieva_mpi_query_free(query);
        return status;
    }
    if (here == 0) {
        OK(sieva_plan_sql(alone, asked->text, &plan));
        OK(sieva_plan_query(alone, plan, NULL, &one));
        OK(sieva_query_nhits(one, &expected));
        EXPECT(n == expected);
    }
    if (asked->is_select)
        check_rows(query, asked, plan);
    else
        check_hits(source, query, asked, one);
    sieva_query_free(one);
    sieva_plan_free(plan);
    sieva_mpi_query_free(query);
    return SIEVA_OK;
}

int main(int argc, char **argv)
{
    static struct asked asked;
    begin(&argc, &argv);
    FILE *list = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (list == NULL) {
        fprintf(stderr, "usage: cases LIST\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
        return 2;
    }
    while (next(list, &asked)) {
        sieva_mpi_source *source = NULL;
        what = asked.name;
        int32_t status = sieva_mpi_open(MPI_COMM_WORLD, asked.file, &asked.options, &source);
        if (status == SIEVA_OK && here == 0)
            OK(sieva_open(asked.file, &asked.options, &alone));
        if (status == SIEVA_OK)
            status = ask(source, &asked);
        if (status != SIEVA_OK)
            tell_error(status);
        sieva_mpi_close(source);
        sieva_close(alone);
        alone = NULL;
    }
    fclose(list);
    return end();
}
