/* A catalog, tags and searches over objects that the program writes itself: collection DIRECTORY. */
#define _POSIX_C_SOURCE 200809L
#include "stars.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sys/stat.h>

int failures;

enum { BINS = 7 };

static const double RADEG = 153.17;
char directory[512];

static float place(int object, int i) { return (float)(object * LENGTH + i); }

static const char *path_of(const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static FILE *create(const char *name)
{
    FILE *file = fopen(path_of(name), "wb");
    if (!file) {
        perror(name);
        exit(2);
    }
    return file;
}

static void put(FILE *file, uint64_t bits, int size)
{
    for (int i = size - 1; i >= 0; i--)
        fputc((int)(bits >> (8 * i) & 0xff), file);
}

static void put_name(FILE *file, const char *name)
{
    size_t n = strlen(name);
    put(file, n, 4);
    fwrite(name, 1, n, file);
    for (; n % 4; n++)
        fputc(0, file);
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

/* A netCDF-3 file (format specification, appendix of the netCDF user's guide) of flux and ivar along x, which goes on
 * from file to file. */
static void write_file(int object)
{
    static const char *const names[ARRAYS] = { "flux", "ivar", "x" };
    static float (*const values[ARRAYS])(int, int) = { flux, ivar, place };
    char name[32];
    uint64_t radeg;
    double degrees = is_meant(object) ? RADEG : object;
    memcpy(&radeg, &degrees, 8);
    snprintf(name, sizeof name, "star-%02d.nc", object);
    FILE *file = create(name);
    put(file, 0x43444601, 4), put(file, 0, 4);
    put(file, 0x0a, 4), put(file, 1, 4), put_name(file, "x"), put(file, LENGTH, 4);
    put(file, 0x0c, 4), put(file, 2, 4);
    put_name(file, "RADEG"), put(file, 6, 4), put(file, 1, 4), put(file, radeg, 8);
    put_name(file, "fiber"), put(file, 4, 4), put(file, 1, 4), put(file, (uint64_t)object, 4);
    put(file, 0x0b, 4), put(file, ARRAYS, 4);
    for (uint32_t array = 0; array < ARRAYS; array++) {
        put_name(file, names[array]);
        put(file, 1, 4), put(file, 0, 4), put(file, 0, 8), put(file, 5, 4);
        put(file, 4 * LENGTH, 4), put(file, HEAD + array * 4 * LENGTH, 4);
    }
    EXPECT(ftell(file) == HEAD);
    for (int array = 0; array < ARRAYS; array++)
        for (int i = 0; i < LENGTH; i++)
            put(file, bits_of(values[array](object, i)), 4);
    fclose(file);
    /* What is a while old is kept in the catalog. */
    const struct timespec times[2] = { { 1700000000, 0 }, { 1700000000, 0 } };
    EXPECT(utimensat(AT_FDCWD, path_of(name), times, 0) == 0);
}

static void write_text(const char *name, const char *text)
{
    FILE *file = create(name);
    fputs(text, file);
    fclose(file);
}

/* An array of a Zarr 2 group, in one chunk. */
static void write_zarr_array(int object, const char *array, float (*value)(int, int))
{
    char name[128];
    snprintf(name, sizeof name, "plate.zarr/fiber%d/%s", object, array);
    mkdir(path_of(name), 0777);
    snprintf(name, sizeof name, "plate.zarr/fiber%d/%s/.zarray", object, array);
    write_text(name, "{\"zarr_format\": 2, \"shape\": [100], \"chunks\": [100], \"dtype\": \">f4\", \"compressor\": null,"
                     " \"fill_value\": 0, \"order\": \"C\", \"filters\": null}");
    snprintf(name, sizeof name, "plate.zarr/fiber%d/%s/.zattrs", object, array);
    write_text(name, "{\"_ARRAY_DIMENSIONS\": [\"x\"]}");
    snprintf(name, sizeof name, "plate.zarr/fiber%d/%s/0", object, array);
    FILE *file = create(name);
    for (int i = 0; i < LENGTH; i++)
        put(file, bits_of(value(object, i)), 4);
    fclose(file);
}

static void write_zarr(void)
{
    char name[128], text[64];
    mkdir(path_of("plate.zarr"), 0777);
    write_text("plate.zarr/.zgroup", "{\"zarr_format\": 2}");
    for (int object = FILES; object < OBJECTS; object++) {
        snprintf(name, sizeof name, "plate.zarr/fiber%d", object);
        mkdir(path_of(name), 0777);
        snprintf(name, sizeof name, "plate.zarr/fiber%d/.zgroup", object);
        write_text(name, "{\"zarr_format\": 2}");
        snprintf(name, sizeof name, "plate.zarr/fiber%d/.zattrs", object);
        snprintf(text, sizeof text, "{\"RADEG\": %.17g, \"fiber\": %d}", is_meant(object) ? RADEG : object, object);
        write_text(name, text);
        write_zarr_array(object, "flux", flux);
        write_zarr_array(object, "ivar", ivar);
    }
}

static sieva_catalog *test_catalog(void)
{
    sieva_catalog *catalog;
    sieva_added added;
    char url[600], files[600], zarr[600];
    const char *paths[] = { files, zarr };
    snprintf(url, sizeof url, "sqlite:%s/catalog.sqlite", directory);
    snprintf(files, sizeof files, "%s/star-*.nc", directory);
    snprintf(zarr, sizeof zarr, "%s/plate.zarr", directory);
    EXPECT(sieva_catalog_open(url, 1, &catalog) == SIEVA_ERROR_FILE_NOT_FOUND);
    OK(sieva_catalog_open(url, 0, &catalog));
    EXPECT(sieva_catalog_add(catalog, paths, 0, NULL, NULL, NULL) == SIEVA_ERROR_INVALID_VALUE);
    OK(sieva_catalog_add(catalog, paths, 2, "stars", NULL, &added));
    EXPECT(added.added == FILES + 1 && added.unchanged == 0 && added.damaged == 0 && added.unreadable == 0);
    /* Roots, groups, arrays. */
    EXPECT(added.objects == (FILES + 1) + GROUPS + 3 * FILES + 2 * GROUPS);
    OK(sieva_catalog_add(catalog, paths, 2, "stars", NULL, &added));
    EXPECT(added.added == 0 && added.objects == 0);
    const char *none = "no/such/file.nc";
    EXPECT(sieva_catalog_add(catalog, &none, 1, NULL, NULL, NULL) == SIEVA_ERROR_FILE_NOT_FOUND);
    return catalog;
}

static void test_tags(sieva_catalog *catalog)
{
    char source[600], text[16];
    snprintf(source, sizeof source, "%s/plate.zarr", directory);
    const char *group = "fiber12", *array = "fiber12/flux";
    const uint64_t large = UINT64_MAX;
    const int16_t small = -7;
    const float half = 0.5f;
    const uint8_t yes = 1;
    int32_t type;
    uint64_t n, u64;
    int64_t i64;
    double f64;
    uint8_t flag;
    OK(sieva_tag_set(catalog, source, group, "large", SIEVA_U64, &large));
    OK(sieva_tag_set(catalog, source, group, "small", SIEVA_I16, &small));
    OK(sieva_tag_set(catalog, source, group, "half", SIEVA_F32, &half));
    OK(sieva_tag_set(catalog, source, group, "good", SIEVA_BOOL, &yes));
    OK(sieva_tag_set(catalog, source, group, "class", SIEVA_STR, "QSO"));
    /* All hold for what is below; what is nearer holds more. */
    OK(sieva_tag_set(catalog, source, array, "class", SIEVA_STR, "GALAXY"));
    OK(sieva_tag_type(catalog, source, array, "large", &type));
    EXPECT(type == SIEVA_U64);
    OK(sieva_tag_read(catalog, source, array, "large", SIEVA_U64, &u64));
    OK(sieva_tag_read(catalog, source, array, "small", SIEVA_I64, &i64));
    OK(sieva_tag_read(catalog, source, array, "half", SIEVA_F64, &f64));
    OK(sieva_tag_read(catalog, source, array, "good", SIEVA_BOOL, &flag));
    EXPECT(u64 == large && i64 == small && f64 == half && flag == 1);
    EXPECT(sieva_tag_read(catalog, source, array, "large", SIEVA_I64, &i64) == SIEVA_ERROR_TYPE_MISMATCH);
    EXPECT(sieva_tag_read(catalog, source, array, "class", SIEVA_I64, &i64) == SIEVA_ERROR_TYPE_MISMATCH);
    OK(sieva_tag_text(catalog, source, array, "class", text, sizeof text, &n));
    EXPECT(!strcmp(text, "GALAXY") && n == sizeof "GALAXY");
    EXPECT(sieva_tag_text(catalog, source, array, "class", text, 3, &n) == SIEVA_ERROR_INVALID_VALUE);
    OK(sieva_tag_remove(catalog, source, array, "class"));
    OK(sieva_tag_remove(catalog, source, array, "class"));
    OK(sieva_tag_text(catalog, source, array, "class", text, sizeof text, NULL));
    EXPECT(!strcmp(text, "QSO"));
    /* An attribute of the file is read as a tag is, and a tag hides it. */
    OK(sieva_tag_read(catalog, source, group, "fiber", SIEVA_I64, &i64));
    EXPECT(i64 == 12);
    OK(sieva_tag_set(catalog, source, group, "fiber", SIEVA_I16, &small));
    OK(sieva_tag_read(catalog, source, group, "fiber", SIEVA_I64, &i64));
    EXPECT(i64 == small);
    OK(sieva_tag_remove(catalog, source, group, "fiber"));
    OK(sieva_tag_count(catalog, source, group, &n));
    EXPECT(n == 5);
    int seen = 0;
    for (uint64_t i = 0; i < n; i++) {
        OK(sieva_tag_key(catalog, source, group, i, text, sizeof text, NULL));
        seen += !strcmp(text, "large") || !strcmp(text, "class") || !strcmp(text, "good");
    }
    EXPECT(seen == 3);
    EXPECT(sieva_tag_key(catalog, source, group, n, text, sizeof text, NULL) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_tag_type(catalog, source, group, "none", &type) == SIEVA_ERROR_UNKNOWN_ATTRIBUTE);
    EXPECT(sieva_tag_set(catalog, source, "none", "k", SIEVA_I16, &small) == SIEVA_ERROR_UNKNOWN_ARRAY);
    EXPECT(sieva_tag_count(catalog, source, "none", &n) == SIEVA_ERROR_UNKNOWN_ARRAY);
    EXPECT(sieva_tag_count(catalog, "elsewhere.nc", NULL, &n) == SIEVA_ERROR_FILE_NOT_FOUND);
    EXPECT(sieva_tag_set(catalog, source, NULL, "k", 0, &small) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_tag_set(NULL, source, NULL, "k", SIEVA_I16, &small) == SIEVA_ERROR_INVALID_VALUE);
    OK(sieva_tag_set(catalog, source, NULL, "whole", SIEVA_I16, &small));
    OK(sieva_tag_nhits(catalog, "whole = -7", SIEVA_ARRAYS, NULL, &n));
    EXPECT(n == 2 * GROUPS);
    OK(sieva_tag_nhits(catalog, "class = 'QSO' AND half = 0.5", SIEVA_ARRAYS, "stars", &n));
    EXPECT(n == 2);
}

static void test_found(sieva_catalog *catalog)
{
    sieva_objects *objects, *unmade = NULL;
    sieva_object object;
    uint64_t n;
    int seen[OBJECTS] = { 0 };
    OK(sieva_tag_query(catalog, "RADEG = 153.17", SIEVA_ARRAYS, NULL, 0, &objects));
    OK(sieva_objects_count(objects, &n));
    for (uint64_t i = 0; i < n; i++) {
        OK(sieva_objects_describe(objects, i, &object));
        EXPECT(object.kind == SIEVA_ARRAYS && *object.path);
        seen[number_of(&object)]++;
    }
    EXPECT(sieva_objects_describe(objects, n, &object) == SIEVA_ERROR_INVALID_VALUE);
    sieva_objects_free(objects);
    for (int i = 0; i < OBJECTS; i++)
        EXPECT(seen[i] == (is_meant(i) ? i < FILES ? 3 : 2 : 0));
    OK(sieva_tag_query(catalog, "RADEG = 153.17", SIEVA_ARRAYS, "stars", 3, &objects));
    OK(sieva_objects_count(objects, &n));
    EXPECT(n == 3);
    sieva_objects_free(objects);
    OK(sieva_tag_nhits(catalog, NULL, SIEVA_OBJECTS, NULL, &n));
    EXPECT(n == (FILES + 1) + GROUPS + 3 * FILES + 2 * GROUPS);
    OK(sieva_tag_nhits(catalog, "fiber >= 15", SIEVA_GROUPS, NULL, &n));
    EXPECT(n == OBJECTS - 15);
    EXPECT(sieva_tag_query(catalog, "RADEG >", SIEVA_ARRAYS, NULL, 0, &unmade) == SIEVA_ERROR_SYNTAX_ERROR);
    EXPECT(sieva_tag_query(catalog, NULL, 4, NULL, 0, &unmade) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_tag_query(catalog, NULL, 1, "none", 0, &unmade) == SIEVA_ERROR_UNKNOWN_ATTRIBUTE);
    EXPECT(unmade == NULL);
    sieva_objects_free(NULL);
}

/* Hits of one object through its own query: positions, and ivar there. */
static void test_one(const sieva_search *search, uint64_t index, int object, uint64_t expected)
{
    sieva_query *query;
    sieva_selection *selection;
    uint64_t n, positions[LENGTH], got;
    float values[LENGTH];
    OK(sieva_search_query(search, index, &query));
    OK(sieva_query_nhits(query, &n));
    EXPECT(n == expected);
    OK(sieva_query_selection(query, &selection));
    sieva_query_free(query);
    OK(sieva_selection_positions(selection, 0, LENGTH, positions, &got));
    EXPECT(got == expected);
    OK(sieva_read(selection, "ivar", SIEVA_F32, values, LENGTH, NULL, &got));
    uint64_t k = 0;
    for (int i = 0; i < LENGTH; i++)
        if (is_hit(object, i)) {
            EXPECT(positions[k] == (uint64_t)i && values[k] == ivar(object, i));
            k++;
        }
    EXPECT(k == got);
    OK(sieva_read(selection, "ivar + flux", SIEVA_F64, (double[LENGTH]){ 0 }, LENGTH, NULL, &got));
    sieva_selection_free(selection);
}

static void test_histogram(const sieva_search *search)
{
    uint64_t counts[BINS], expected[BINS] = { 0 };
    double edges[BINS + 1], low = 1e9, high = -1e9;
    for (int pass = 0; pass < 2; pass++) {
        const double from = pass ? 22 : NAN, to = pass ? 35 : NAN;
        OK(sieva_search_histogram(search, "flux", BINS, from, to, counts, edges));
        memset(expected, 0, sizeof expected);
        for (int o = 0; o < OBJECTS; o++)
            for (int i = 0; i < LENGTH; i++)
                if (is_meant(o) && is_hit(o, i)) {
                    const double v = flux(o, i);
                    low = fmin(low, v), high = fmax(high, v);
                    for (int b = 0; b < BINS; b++)
                        expected[b] += v >= edges[b] && (v < edges[b + 1] || (b == BINS - 1 && v == edges[BINS]));
                }
        EXPECT(edges[0] == (pass ? 22 : low) && edges[BINS] == (pass ? 35 : high));
        EXPECT(!memcmp(counts, expected, sizeof counts));
    }
    EXPECT(sieva_search_histogram(search, "flux", BINS, 3, 2, counts, edges) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_search_histogram(search, "flux", BINS, 0, 1, NULL, edges) == SIEVA_ERROR_INVALID_VALUE);
}

static void *ask(void *search)
{
    uint64_t n = 0, *result = malloc(sizeof *result);
    if (sieva_search_nhits(search, &n) != SIEVA_OK)
        n = UINT64_MAX;
    *result = n;
    return result;
}

/* What is asked of catalogs and searches in the form that starts it. */
static void test_forms_started(const sieva_catalog *catalog)
{
    enum { ROOM = OBJECTS * LENGTH };
    sieva_request *request;
    sieva_search *search = NULL;
    sieva_query *query = NULL;
    sieva_added added;
    const char *path = directory;
    float *values = calloc(ROOM, sizeof *values), *others = calloc(ROOM, sizeof *others);
    uint64_t counts[BINS], bins[BINS], n = 0, got = 0;
    double edges[BINS + 1], ends[BINS + 1];
    OK(sieva_start_catalog_add(catalog, &path, 1, "stars", NULL, &added, &request));
    OK(sieva_wait(request, -1));
    OK(sieva_request_count(request, &n));
    sieva_request_free(request);
    EXPECT(n == added.added + added.replaced + added.unchanged && added.unchanged > 0);
    OK(sieva_start_search_create(catalog, "stars", "flux BETWEEN 20 AND 40", NULL, NULL, &request));
    OK(sieva_wait(request, -1));
    OK(sieva_request_search(request, &search));
    OK(sieva_request_count(request, &n));
    sieva_request_free(request);
    EXPECT(n == OBJECTS);
    OK(sieva_search_read(search, "ivar", 0, n, SIEVA_F32, values, ROOM, NULL, &got));
    OK(sieva_start_search_read(search, "ivar", 0, n, SIEVA_F32, others, ROOM, NULL, &request));
    OK(sieva_wait(request, -1));
    OK(sieva_request_count(request, &n));
    sieva_request_free(request);
    EXPECT(n == got && n > 0 && !memcmp(values, others, n * sizeof *values));
    OK(sieva_search_histogram(search, "flux", BINS, 0, 100, counts, edges));
    OK(sieva_start_search_histogram(search, "flux", BINS, 0, 100, bins, ends, &request));
    OK(sieva_wait(request, -1));
    OK(sieva_request_count(request, &got));
    sieva_request_free(request);
    EXPECT(got == n && !memcmp(counts, bins, sizeof counts) && !memcmp(edges, ends, sizeof edges));
    OK(sieva_start_search_query(search, 1, &request));
    sieva_search_free(search);
    OK(sieva_wait(request, -1));
    OK(sieva_request_query(request, &query));
    sieva_request_free(request);
    OK(sieva_query_nhits(query, &got));
    EXPECT(got > 0 && got < LENGTH);
    sieva_query_free(query);
    EXPECT(sieva_start_search_create(catalog, NULL, NULL, NULL, NULL, &request) == SIEVA_ERROR_INVALID_VALUE);
    free(values);
    free(others);
}

static void test_search(sieva_catalog *catalog)
{
    enum { THREADS = 4 };
    sieva_search *search;
    sieva_object object;
    uint64_t objects, n, total = 0, meant = 0, got;
    sieva_options options = SIEVA_OPTIONS_INIT;
    options.threads = 2;
    const char *condition = "RADEG = 153.17 AND flux BETWEEN 20 AND 40";
    OK(sieva_search_create(catalog, "stars", condition, NULL, &options, &search));
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++)
        EXPECT(pthread_create(&threads[t], NULL, ask, search) == 0);
    OK(sieva_search_count(search, &objects));
    uint64_t *hits = calloc(objects, sizeof *hits);
    OK(sieva_search_hits(search, 0, objects, hits));
    for (uint64_t i = 0; i < objects; i++) {
        OK(sieva_search_object(search, i, &object));
        const int number = number_of(&object);
        uint64_t expected = 0;
        for (int k = 0; k < LENGTH; k++)
            expected += (uint64_t)is_hit(number, k);
        EXPECT(is_meant(number) && object.kind == SIEVA_GROUPS && hits[i] == expected);
        test_one(search, i, number, expected);
        total += expected;
    }
    for (int o = 0; o < OBJECTS; o++)
        meant += (uint64_t)is_meant(o);
    EXPECT(objects == meant);
    for (int t = 0; t < THREADS; t++) {
        void *result;
        pthread_join(threads[t], &result);
        EXPECT(*(uint64_t *)result == total);
        free(result);
    }
    /* All values, two objects at a time. */
    float *values = calloc(2 * LENGTH, sizeof *values);
    for (uint64_t first = 0; first + 2 <= objects; first += 2) {
        uint64_t at = 0;
        OK(sieva_search_read(search, "ivar", first, 2, SIEVA_F32, values, 2 * LENGTH, NULL, &got));
        EXPECT(got == hits[first] + hits[first + 1]);
        for (uint64_t i = first; i < first + 2; i++) {
            OK(sieva_search_object(search, i, &object));
            for (int k = 0; k < LENGTH; k++)
                if (is_hit(number_of(&object), k))
                    EXPECT(values[at++] == ivar(number_of(&object), k));
        }
    }
    EXPECT(sieva_search_read(search, "ivar", 0, 2, SIEVA_F32, values, 1, NULL, &got) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_search_read(search, "none", 0, 1, SIEVA_F32, values, LENGTH, NULL, &got) == SIEVA_ERROR_UNKNOWN_ARRAY);
    EXPECT(sieva_search_hits(search, 1, objects, hits) == SIEVA_ERROR_INVALID_VALUE);
    EXPECT(sieva_search_object(search, objects, &object) == SIEVA_ERROR_INVALID_VALUE);
    sieva_query *query = NULL;
    EXPECT(sieva_search_query(search, objects, &query) == SIEVA_ERROR_INVALID_VALUE && query == NULL);
    free(values);
    free(hits);
    test_histogram(search);
    sieva_search_free(search);

    test_forms_started(catalog);
    /* In the background; by an array alone; what cannot be asked. */
    sieva_request *request;
    OK(sieva_search_create(catalog, "stars", "RADEG = 153.17", "flux", NULL, &search));
    OK(sieva_search_start(search, &request));
    OK(sieva_wait(request, -1));
    OK(sieva_request_count(request, &got));
    sieva_search_free(search);
    sieva_request_free(request);
    EXPECT(got == meant * LENGTH);
    OK(sieva_search_create(catalog, "stars", NULL, "flux", NULL, &search));
    OK(sieva_search_start(search, &request));
    OK(sieva_cancel(request));
    const int32_t status = sieva_wait(request, -1);
    EXPECT(status == SIEVA_OK || status == SIEVA_ERROR_CANCELLED);
    sieva_request_free(request);
    OK(sieva_search_nhits(search, &n));
    EXPECT(n == (uint64_t)OBJECTS * LENGTH);
    sieva_search_free(search);
    search = NULL;
    EXPECT(sieva_search_create(catalog, "none", "flux > 1", NULL, NULL, &search) == SIEVA_ERROR_UNKNOWN_ATTRIBUTE);
    EXPECT(sieva_search_create(catalog, "stars", "flux >", NULL, NULL, &search) == SIEVA_ERROR_SYNTAX_ERROR);
    EXPECT(sieva_search_create(catalog, "stars", "fluks > 1", NULL, NULL, &search) == SIEVA_ERROR_UNKNOWN_ARRAY);
    EXPECT(sieva_search_create(catalog, "stars", "RADEG > 1", NULL, NULL, &search) == SIEVA_ERROR_UNSUPPORTED);
    EXPECT(strstr(sieva_error_hint(), "give the array") != NULL && search == NULL);
    sieva_search_free(NULL);
}

/* A pattern is many files as one source. */
static void test_pattern(void)
{
    sieva_source *source;
    sieva_query *query;
    uint64_t n, expected = 0;
    OK(sieva_open(path_of("star-*.nc"), NULL, &source));
    OK(sieva_query_text(source, "flux BETWEEN 20 AND 40", &query));
    OK(sieva_query_nhits(query, &n));
    for (int o = 0; o < FILES; o++)
        for (int i = 0; i < LENGTH; i++)
            expected += (uint64_t)is_hit(o, i);
    EXPECT(n == expected);
    sieva_query_free(query);
    sieva_close(source);
    EXPECT(sieva_open(path_of("moon-*.nc"), NULL, &source) == SIEVA_ERROR_FILE_NOT_FOUND);
}

int main(int argc, char **argv)
{
    if (argc != 2 || strlen(argv[1]) >= sizeof directory) {
        fprintf(stderr, "usage: collection DIRECTORY\n");
        return 2;
    }
    snprintf(directory, sizeof directory, "%s", argv[1]);
    for (int object = 0; object < FILES; object++)
        write_file(object);
    write_zarr();
    test_pattern();
    sieva_catalog *catalog = test_catalog();
    test_tags(catalog);
    test_found(catalog);
    test_search(catalog);
    test_gathered(catalog);
    sieva_catalog_close(catalog);
    sieva_catalog_close(NULL);
    printf("%d failures\n", failures);
    return failures > 0;
}
