//! Regions: boxes of positions, as conditions on positions, so that what lies outside is never read.

use sieva::ast::{CompareOp, Expr, Literal};
use sieva::{Bx, Error, ErrorKind, Result, Schema};
use std::ffi::c_char;

use crate::given;
use crate::query::QueryHandle;
use crate::status::{guarded, invalid};

/// Most boxes of a region: each takes a kilobyte or two while a query is made of it.
const MAX_BOXES: u64 = 1 << 18;

/// A condition that holds at every position of an array, and has its dimensions.
///
/// # Errors
/// `unsupported` where a dimension cannot be named.
pub fn whole(schema: &Schema, array: usize) -> Result<Expr> {
    let info = &schema.arrays[array];
    within(schema, &info.dims, &Bx::whole(&info.shape))
}

/// The condition that a position lies in one of the boxes, along `dims`.
///
/// A box around all of them comes first: it is what tiles are cut from.
fn region(schema: &Schema, dims: &[usize], boxes: &[Bx]) -> Result<Expr> {
    match boxes {
        [] => Ok(Expr::Literal(Literal::Bool(false))),
        [one] => within(schema, dims, one),
        [first, others @ ..] => {
            let around = others.iter().fold(first.clone(), |a, b| hull(&a, b));
            let each = boxes.iter().map(|b| within(schema, dims, b)).collect::<Result<Vec<_>>>()?;
            Ok(Expr::and([within(schema, dims, &around)?, Expr::or(each)]))
        }
    }
}

/// The condition that a position lies in a box along `dims`.
fn within(schema: &Schema, dims: &[usize], bx: &Bx) -> Result<Expr> {
    let mut parts = Vec::with_capacity(2 * dims.len());
    for (d, &dim) in dims.iter().enumerate() {
        let place = position(schema, dim)?;
        let bound = |op, at: u64| Expr::Compare {
            op,
            left: Box::new(place.clone()),
            right: Box::new(Expr::Literal(Literal::Int(at.into()))),
        };
        // Both, even where they say nothing: they give the rows this dimension.
        parts.extend([bound(CompareOp::GtEq, bx.start[d]), bound(CompareOp::Lt, bx.end(d))]);
    }
    Ok(Expr::and(parts))
}

/// `idx(dimension)`.
fn position(schema: &Schema, dim: usize) -> Result<Expr> {
    let path = &schema.dims[dim].path;
    if schema.dims.iter().position(|d| d.path == *path) != Some(dim) {
        return Err(Error::new(ErrorKind::Unsupported, format!("two dimensions are called '{path}'")));
    }
    let args = vec![Expr::name(path.as_str())];
    Ok(Expr::Call { function: "idx".into(), args, distinct: false, star: false })
}

/// The smallest box around both; an empty one counts for nothing.
fn hull(a: &Bx, b: &Bx) -> Bx {
    if a.is_empty() {
        return b.clone();
    }
    if b.is_empty() {
        return a.clone();
    }
    let start: Vec<u64> = a.start.iter().zip(&b.start).map(|(x, y)| *x.min(y)).collect();
    let shape = (0..a.rank()).map(|d| a.end(d).max(b.end(d)) - start[d]).collect();
    Bx::new(start, shape)
}

/// A box of the caller, which must lie within `shape`.
///
/// # Errors
/// `invalid-value`, naming the dimension.
pub fn checked_box(start: &[u64], count: &[u64], shape: &[u64], of: &str) -> Result<Bx> {
    for (d, &n) in shape.iter().enumerate() {
        if start[d].checked_add(count[d]).is_none_or(|end| end > n) {
            return Err(invalid(format!(
                "start {} and count {} along dimension {d} do not lie in '{of}' of shape {shape:?}",
                start[d], count[d]
            )));
        }
    }
    Ok(Bx::new(start.to_vec(), count.to_vec()))
}

/// `sieva_query_set_region`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_query_set_region(
    query: *mut QueryHandle,
    array: *const c_char,
    boxes: u64,
    rank: u32,
    starts: *const u64,
    counts: *const u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let query = unsafe { given::handle(query, "query") }?;
        let file = query.file()?;
        let schema = file.source.schema();
        let (dims, of) = if array.is_null() {
            (query.own_dims()?, "the query's rows")
        } else {
            // SAFETY: as above.
            let info = &schema.arrays[unsafe { file.array(array) }?];
            (info.dims.clone(), info.path.as_str())
        };
        let shape: Vec<u64> = dims.iter().map(|&d| schema.dims[d].len).collect();
        check_rank(rank, shape.len(), of)?;
        if boxes > MAX_BOXES {
            return Err(invalid(format!("a region of {boxes} boxes, at most {MAX_BOXES} are possible")));
        }
        let n = boxes * u64::from(rank);
        // SAFETY: as above.
        let (starts, counts) =
            unsafe { (given::values(starts, n, "starts")?, given::values(counts, n, "counts")?) };
        let mut all = Vec::new();
        for i in 0..boxes as usize {
            let at = i * shape.len()..(i + 1) * shape.len();
            all.push(checked_box(&starts[at.clone()], &counts[at], &shape, of)?);
        }
        query.restrict(Some(region(schema, &dims, &all)?))
    })
}

/// `sieva_query_clear_region`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_query_clear_region(query: *mut QueryHandle) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        unsafe { given::handle(query, "query") }?.restrict(None)
    })
}

/// Whether the caller's rank is that of the array.
///
/// # Errors
/// `dimension-mismatch`.
pub fn check_rank(given: u32, expected: usize, of: &str) -> Result<()> {
    if given as usize == expected {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::DimensionMismatch,
        format!("a box of rank {given} for '{of}', which has rank {expected}"),
    ))
}
