/* What the tests of collections share: objects that they write, and the values in them. */
#ifndef STARS_H
#define STARS_H

#include "suite.h"

/* Objects 0 to FILES - 1 are netCDF files, the others groups of a Zarr directory. */
enum { FILES = 12, GROUPS = 10, OBJECTS = FILES + GROUPS, LENGTH = 100, ARRAYS = 3 };

/* Bytes of a file before its values. */
enum { HEAD = 8 + 20 + 8 + 28 + 24 + 8 + ARRAYS * 36 };

extern char directory[512];

static inline float flux(int object, int i) { return (float)((object * 7919 + i * 104729) % 10000) / 100; }
static inline float ivar(int object, int i) { return (float)(object * 1000 + i); }
static inline int is_meant(int object) { return object % 3 == 0; }
static inline int is_hit(int object, int i) { return flux(object, i) >= 20 && flux(object, i) <= 40; }

/* The number of the object that is meant. */
static inline int number_of(const sieva_object *object)
{
    const char *file = strstr(object->source, "star-");
    return file ? atoi(file + 5) : atoi(object->path + strlen("fiber"));
}

void test_gathered(const sieva_catalog *catalog);

#endif
