/* The file that the suite asks about, written without any library. */
#include "suite.h"

#include <math.h>

struct ocean ocean;

struct column columns[NTYPES] = {
    { "i8", SIEVA_I8, 1, 1, ocean.i8 },     { "i16", SIEVA_I16, 3, 2, ocean.i16 },
    { "i32", SIEVA_I32, 4, 4, ocean.i32 },  { "i64", SIEVA_I64, 10, 8, ocean.i64 },
    { "u8", SIEVA_U8, 7, 1, ocean.u8 },     { "u16", SIEVA_U16, 8, 2, ocean.u16 },
    { "u32", SIEVA_U32, 9, 4, ocean.u32 },  { "u64", SIEVA_U64, 11, 8, ocean.u64 },
    { "f32", SIEVA_F32, 5, 4, ocean.f32 },  { "f64", SIEVA_F64, 6, 8, ocean.f64 },
};

static void fill(void)
{
    static const double odd[] = { -0.0, 0.0, INFINITY, -INFINITY, NAN, 1.7, 5e-324, -1e308 };
    uint64_t state = 1;
    for (int i = 0; i < N; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u; /* Knuth, MMIX */
        uint64_t bits = state >> 11 ^ state << 40;
        ocean.i8[i] = (int8_t)bits;
        ocean.i16[i] = (int16_t)(bits % 1000);
        ocean.i32[i] = (int32_t)(bits % 200000) - 100000;
        /* Neighbours that float64 cannot tell apart. */
        ocean.i64[i] = (i % 2 ? -1 : 1) * ((INT64_C(1) << 53) + (int64_t)(bits % 7));
        ocean.u8[i] = (uint8_t)bits;
        ocean.u16[i] = (uint16_t)bits;
        ocean.u32[i] = (uint32_t)bits;
        ocean.u64[i] = UINT64_MAX - bits % 5;
        ocean.f32[i] = i % 37 == 0 ? (float)odd[i / 37 % 8] : (float)(bits % 30000) / 1000;
        ocean.f64[i] = i % 31 == 0 ? odd[i / 31 % 8] : (double)(bits % 1000000) / 7;
    }
    for (int y = 0; y < NY; y++)
        snprintf(ocean.label[y], sizeof ocean.label[y], "L%d", y % 10 + y / 10 * 100);
}

/* The lowest `size` bytes of a number, the highest first. */
static void put(FILE *file, uint64_t value, int size)
{
    for (int i = size - 1; i >= 0; i--)
        fputc((int)(value >> (8 * i) & 0xff), file);
}

static void put_text(FILE *file, const char *text, size_t n)
{
    fwrite(text, 1, n, file);
    for (; n % 4; n++)
        fputc(0, file);
}

static void put_name(FILE *file, const char *name)
{
    put(file, strlen(name), 8);
    put_text(file, name, strlen(name));
}

static void put_text_attribute(FILE *file, const char *name, const char *text)
{
    put_name(file, name);
    put(file, 2, 4);
    put(file, strlen(text), 8);
    put_text(file, text, strlen(text));
}

static void put_attributes(FILE *file, int column)
{
    if (strcmp(columns[column].name, "i16") != 0) {
        put(file, 0, 12);
        return;
    }
    put(file, 0x0c, 4);
    put(file, 3, 8);
    put_text_attribute(file, "units", "degC");
    put_name(file, "_FillValue");
    put(file, 3, 4);
    put(file, 1, 8);
    put(file, 7, 2);
    put(file, 0, 2);
    put_name(file, "limits");
    put(file, 11, 4);
    put(file, 2, 8);
    put(file, 3, 8);
    put(file, UINT64_MAX, 8);
}

static void put_values(FILE *file, const struct column *column)
{
    for (int i = 0; i < N; i++) {
        uint64_t bits = 0;
        const unsigned char *value = (const unsigned char *)column->values + (size_t)i * column->size;
        /* The machine is little-endian: the first byte is the lowest. */
        for (size_t b = 0; b < column->size; b++)
            bits |= (uint64_t)value[b] << (8 * b);
        put(file, bits, (int)column->size);
    }
}

/* Writes the head, with arrays that begin behind `head` bytes; returns its length. */
static long put_head(FILE *file, uint64_t head)
{
    static const struct { const char *name; uint64_t length; } dims[] = {
        { "z", NZ }, { "y", NY }, { "x", NX }, { "len", LABEL },
    };
    rewind(file);
    put_text(file, "CDF\005", 4);
    put(file, 0, 8);
    put(file, 0x0a, 4);
    put(file, 4, 8);
    for (int d = 0; d < 4; d++) {
        put_name(file, dims[d].name);
        put(file, dims[d].length, 8);
    }
    put(file, 0x0c, 4);
    put(file, 1, 8);
    put_text_attribute(file, "title", "an ocean");
    put(file, 0x0b, 4);
    put(file, NTYPES + 1, 8);
    uint64_t begin = head;
    for (int c = 0; c < NTYPES; c++) {
        put_name(file, columns[c].name);
        put(file, 3, 8);
        for (uint64_t d = 0; d < 3; d++)
            put(file, d, 8);
        put_attributes(file, c);
        put(file, columns[c].nc_type, 4);
        put(file, N * columns[c].size, 8);
        put(file, begin, 8);
        begin += N * columns[c].size;
    }
    put_name(file, "label");
    put(file, 2, 8);
    put(file, 1, 8);
    put(file, 3, 8);
    put(file, 0, 12);
    put(file, 2, 4);
    put(file, NY * LABEL, 8);
    put(file, begin, 8);
    return ftell(file);
}

void write_ocean(const char *path)
{
    FILE *file = fopen(path, "wb");
    if (!file) {
        perror(path);
        exit(2);
    }
    fill();
    /* The length of the head does not depend on the offsets in it. */
    put_head(file, (uint64_t)put_head(file, 0));
    for (int c = 0; c < NTYPES; c++)
        put_values(file, &columns[c]);
    for (int y = 0; y < NY; y++)
        fwrite(ocean.label[y], 1, LABEL, file);
    if (fclose(file)) {
        perror(path);
        exit(2);
    }
}
