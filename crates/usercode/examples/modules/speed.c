/* A map of two columns: the speed of a wind from its components, missing where one of them is.
 *
 * clang --target=wasm32 -O3 -nostdlib -Wl,--no-entry -o speed.wasm speed.c
 */

typedef unsigned char u8;
typedef unsigned int u32;

/* A column as the host describes it: docs/reference/user-code.md. */
typedef struct {
    u32 type, data, valid, count;
} column;

enum { FLOAT32 = 9, FLOAT64 = 10 };

extern u8 __heap_base;

/* Memory is given from the end of the data on, one piece after the other. */
__attribute__((export_name("sieva_alloc"))) u32 sieva_alloc(u32 bytes) {
    static u32 next = 0;
    if (next == 0) next = (u32)&__heap_base;
    u32 at = (next + 15) & ~15u, end = at + bytes, there = __builtin_wasm_memory_size(0) << 16;
    if (end < at) return 0;
    if (end > there && __builtin_wasm_memory_grow(0, (end - there + 65535) >> 16) == (__SIZE_TYPE__)-1) return 0;
    next = end;
    return at;
}

static double value(const column *of, u32 row) {
    return of->type == FLOAT32 ? ((float *)of->data)[row] : ((double *)of->data)[row];
}

static int is_there(const column *of, u32 row) {
    return of->valid == 0 || ((u8 *)of->valid)[row] != 0;
}

__attribute__((export_name("sieva_map"))) u32 sieva_map(const column *columns, u32 count) {
    static column result;
    static u32 room;
    if (count != 2) __builtin_trap();
    for (u32 i = 0; i < count; i++)
        if (columns[i].type != FLOAT32 && columns[i].type != FLOAT64) __builtin_trap();
    u32 rows = columns[0].count;
    /* Pieces are of about the same length, so that room is made once. */
    if (rows > room) {
        result.data = sieva_alloc(8 * rows);
        result.valid = sieva_alloc(rows);
        if (result.data == 0 || result.valid == 0) __builtin_trap();
        room = rows;
    }
    for (u32 row = 0; row < rows; row++) {
        double u = value(&columns[0], row), v = value(&columns[1], row);
        ((double *)result.data)[row] = __builtin_sqrt(u * u + v * v);
        ((u8 *)result.valid)[row] = is_there(&columns[0], row) && is_there(&columns[1], row);
    }
    result.type = FLOAT64;
    result.count = rows;
    return (u32)&result;
}
