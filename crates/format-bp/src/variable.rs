//! Variables of BP files as arrays: their types and shapes, and which of them are none.

use std::ffi::c_int;

use sieva_types::{DType, Result};

use crate::abi::{GLOBAL_ARRAY, GLOBAL_VALUE, JOINED_ARRAY};
use crate::file::{File, Handle};
use crate::library::Api;

/// More dimensions than any array has.
const MOST_DIMS: usize = 64;

/// A variable that is an array here.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The name in the file, with the slashes that it may begin or end with.
    pub name: String,
    /// The same in all steps.
    pub shape: Vec<u64>,
    /// The type of its elements.
    pub dtype: DType,
    /// In how many steps it is.
    pub steps: usize,
}

impl Variable {
    /// Whether steps are its first dimension.
    pub fn has_steps(&self) -> bool {
        self.steps > 1
    }

    /// What the library says of a variable.
    ///
    /// # Errors
    /// Outside: what the library could not tell. Inside: why it is no array.
    pub fn of(file: &File, api: &Api, name: &str) -> Result<std::result::Result<Self, String>> {
        let handle = file.variable(api, name)?;
        // SAFETY: the handle is one of this file, here and below.
        let kind = file.text(|text, len| unsafe { (api.variable_type_string)(text, len, handle.0) })?;
        let dtype = match dtype_of(&kind) {
            Ok(dtype) => dtype,
            Err(why) => return Ok(Err(why)),
        };
        let (mut shape_id, mut steps): (c_int, usize) = (-1, 0);
        // SAFETY: as above.
        file.check(unsafe { (api.variable_shapeid)(&raw mut shape_id, handle.0) }, "asked for a kind")?;
        // SAFETY: as above.
        file.check(unsafe { (api.variable_steps)(&raw mut steps, handle.0) }, "asked for its steps")?;
        let shape = shape(file, api, handle)?;
        if ![GLOBAL_VALUE, GLOBAL_ARRAY, JOINED_ARRAY].contains(&shape_id)
            || (shape_id != GLOBAL_VALUE && shape.is_empty())
        {
            let what = ["GlobalValue", "GlobalArray", "JoinedArray", "LocalValue", "LocalArray"];
            let what = usize::try_from(shape_id).ok().and_then(|id| what.get(id)).unwrap_or(&"Unknown");
            return Ok(Err(format!("is a {what}: its blocks have no places in one array")));
        }
        if steps == 0 {
            return Ok(Err("is in no step".into()));
        }
        let shape = match shape_id {
            GLOBAL_VALUE => Ok(shape),
            _ => common_shape(file, api, handle, steps)?,
        };
        Ok(shape.map(|shape| Self { name: name.into(), shape, dtype, steps }))
    }
}

/// The shape that an array has in all steps.
///
/// # Errors
/// Outside: what the library could not tell. Inside: that there is none.
fn common_shape(
    file: &File,
    api: &Api,
    handle: Handle,
    steps: usize,
) -> Result<std::result::Result<Vec<u64>, String>> {
    file.select_steps(api, handle, 0, 1)?;
    let first = shape(file, api, handle)?;
    for step in 1..steps {
        file.select_steps(api, handle, step, 1)?;
        let here = shape(file, api, handle)?;
        if here != first {
            return Ok(Err(format!(
                "has shape {first:?} in its first step and {here:?} in step {step}: it is no one array"
            )));
        }
    }
    Ok(Ok(first))
}

fn shape(file: &File, api: &Api, handle: Handle) -> Result<Vec<u64>> {
    let mut rank = 0;
    // SAFETY: the handle is one of this file, and `shape` has as many entries as it has dimensions.
    file.check(unsafe { (api.variable_ndims)(&raw mut rank, handle.0) }, "asked for dimensions")?;
    if rank > MOST_DIMS {
        return Err(file.failed("asked for dimensions: there are too many"));
    }
    let mut shape = vec![0_usize; rank];
    if rank > 0 {
        // SAFETY: as above.
        let told = unsafe { (api.variable_shape)(shape.as_mut_ptr(), handle.0) };
        file.check(told, "asked for a shape")?;
    }
    Ok(shape.into_iter().map(|n| n as u64).collect())
}

/// The type of elements that the library calls so, or why it is none.
pub fn dtype_of(kind: &str) -> std::result::Result<DType, String> {
    Ok(match kind {
        "int8_t" | "char" => DType::I8,
        "uint8_t" => DType::U8,
        "int16_t" => DType::I16,
        "uint16_t" => DType::U16,
        "int32_t" => DType::I32,
        "uint32_t" => DType::U32,
        "int64_t" => DType::I64,
        "uint64_t" => DType::U64,
        "float" => DType::F32,
        "double" => DType::F64,
        "string" => DType::Str,
        "float complex" | "double complex" => {
            return Err("is of complex numbers, which have no order".into());
        }
        "long double" => return Err("is of long doubles, which no type here holds".into()),
        other => return Err(format!("is of type '{other}', which has no plain values")),
    })
}
