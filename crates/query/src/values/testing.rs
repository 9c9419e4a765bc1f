//! Short ways to write vectors in tests.
use super::*;

pub(crate) fn ints(v: &[i64]) -> Vector {
    Values::I64(v.to_vec()).into()
}

pub(crate) fn unsigned(v: &[u64]) -> Vector {
    Values::U64(v.to_vec()).into()
}

pub(crate) fn floats(v: &[f64]) -> Vector {
    Values::F64(v.to_vec()).into()
}

pub(crate) fn bools(v: &[Option<bool>]) -> Vector {
    let values = Values::Bool(v.iter().map(|x| x.unwrap_or(true)).collect());
    Vector::new(values, Some(Mask::from_fn(v.len(), |i| v[i].is_some()))).unwrap()
}

pub(crate) fn texts(v: &[&str]) -> Vector {
    Values::Str(v.iter().collect()).into()
}

pub(crate) fn constant(value: Scalar) -> Vector {
    Vector::constant(&value).unwrap()
}

/// The vector with the given rows missing.
pub(crate) fn without(mut vector: Vector, rows: &[usize]) -> Vector {
    let n = vector.len();
    let valid = vector.valid.get_or_insert_with(|| Mask::ones(n));
    rows.iter().for_each(|&i| valid.clear_range(i, 1));
    vector
}
