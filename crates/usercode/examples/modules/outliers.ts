// A filter: rows whose value lies more than three from zero.
//
// asc outliers.ts -O3 --runtime stub --use abort= -o outliers.wasm

const FLOAT64 = 10;
const UINT8 = 2;
const result = memory.data(16, 16);

export function sieva_alloc(bytes: usize): usize {
  return heap.alloc(bytes);
}

// A column is described by its type, the addresses of its values and of their validity, and its length, of 32 bits each:
// docs/reference/user-code.md.
export function sieva_filter(columns: usize, count: u32): usize {
  assert(count == 1 && load<u32>(columns) == FLOAT64);
  const values = load<u32>(columns, 4), valid = load<u32>(columns, 8), rows = load<u32>(columns, 12);
  // A byte of each row takes the place of values that were read.
  for (let row: u32 = 0; row < rows; row++) {
    const there = valid == 0 || load<u8>(valid + row) != 0;
    const value = load<f64>(values + 8 * row);
    store<u8>(values + row, u8(there && abs(value) > 3));
  }
  store<u32>(result, UINT8);
  store<u32>(result, values, 4);
  store<u32>(result, 0, 8);
  store<u32>(result, rows, 12);
  return result;
}
