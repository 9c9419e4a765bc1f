//! Groups: steps that a program has in memory.

use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use sieva::{AttrValue, Bx, DType, MemoryArrays, MemoryValues, Result};
use sieva_share::Producer;

use crate::given::{self, Out};
use crate::group::{GroupHandle, of, texts};
use crate::group_passes::{ProduceOptions, Produced, give, size_of_given};
use crate::source::first_thread;
use crate::status::{guarded, invalid};
use crate::types::dtype_of;

/// `sieva_step`.
pub struct StepHandle {
    name: String,
    arrays: Mutex<MemoryArrays>,
}

impl StepHandle {
    fn change<R>(&self, change: impl FnOnce(&mut MemoryArrays) -> R) -> R {
        change(&mut self.arrays.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Memory of the caller, who leaves it as it is while steps that have it are produced.
struct Lent {
    bytes: *const u8,
    len: usize,
}

// SAFETY: it is read only, while the caller promises that nobody writes to it.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: the caller's promise, of bytes that are not NULL.
        unsafe { std::slice::from_raw_parts(self.bytes, self.len) }
    }
}

/// `sieva_step_create`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_step_create(name: *const c_char, step: *mut *mut StepHandle) -> i32 {
    guarded(|| {
        first_thread();
        let out = Out::handle(step, "step")?;
        // SAFETY: the promises of sieva.h.
        let name = unsafe { given::text(name, "name") }?.to_owned();
        // SAFETY: as above.
        unsafe { out.set(Box::new(StepHandle { name, arrays: Mutex::default() })) };
        Ok(())
    })
}

/// `sieva_step_free`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_step_free(step: *mut StepHandle) {
    // SAFETY: the promises of sieva.h.
    unsafe { given::free(step) }
}

/// `sieva_step_array`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_step_array(
    step: *mut StepHandle,
    path: *const c_char,
    r#type: i32,
    rank: u32,
    shape: *const u64,
    dims: *const *const c_char,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (step, path, shape, dims) = unsafe {
            let (step, path) = (given::handle(step, "step")?, given::text(path, "path")?);
            let shape = given::values(shape, rank.into(), "shape")?;
            let named = (!dims.is_null()).then(|| texts(dims, rank.into(), "dims", "a dimension"));
            (step, path, shape, named.transpose()?)
        };
        let dtype = dtype_of(r#type)?;
        step.change(|arrays| arrays.array(path, dtype, &shape, dims))
    })
}

/// `sieva_step_block`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_step_block(
    step: *mut StepHandle,
    path: *const c_char,
    start: *const u64,
    count: *const u64,
    values: *const c_void,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (step, path) = unsafe { (given::handle(step, "step")?, given::text(path, "path")?) };
        step.change(|arrays| {
            let Some((dtype, shape)) = arrays.type_and_shape(path) else {
                // It says why.
                return arrays.block(path, Bx::whole(&[]), MemoryValues::Texts(Arc::default()));
            };
            let rank = shape.len() as u64;
            let bx = match (start.is_null(), count.is_null()) {
                (true, true) => Bx::whole(shape),
                // SAFETY: the promises of sieva.h.
                (false, false) => unsafe {
                    Bx::new(given::values(start, rank, "start")?, given::values(count, rank, "count")?)
                },
                _ => return Err(invalid("one of start and count is NULL").hint("give both, or neither")),
            };
            let n = if bx.is_within(shape) { bx.len() } else { 0 };
            // SAFETY: as above.
            let values = unsafe { lent(dtype, values, n) }?;
            arrays.block(path, bx, values)
        })
    })
}

/// `n` values of the caller: numbers where they are, texts as copies.
///
/// # Safety
/// The pointer must lead to so many values, which stay as they are while they are read.
unsafe fn lent(dtype: DType, values: *const c_void, n: u64) -> Result<MemoryValues> {
    if dtype == DType::Str {
        // SAFETY: the caller's promise.
        let copied = unsafe { texts(values.cast(), n, "values", "a text") }?;
        return Ok(MemoryValues::Texts(copied.into()));
    }
    if n > 0 && values.is_null() {
        return Err(invalid(format!("values is NULL, {n} values are expected")));
    }
    let bytes = n.saturating_mul(dtype.size() as u64);
    let len = given::in_memory::<u8>(bytes, "values")?;
    Ok(MemoryValues::Bytes(Arc::new(Lent { bytes: values.cast(), len })))
}

/// `sieva_step_attribute`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_step_attribute(
    step: *mut StepHandle,
    name: *const c_char,
    r#type: i32,
    count: u64,
    values: *const c_void,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (step, name) = unsafe { (given::handle(step, "step")?, given::text(name, "name")?) };
        // SAFETY: as above.
        let value = unsafe { attribute(dtype_of(r#type)?, values, count) }?;
        step.change(|arrays| arrays.attribute(name, value));
        Ok(())
    })
}

/// The value of an attribute.
///
/// # Safety
/// The pointer must lead to `n` values of that type.
unsafe fn attribute(dtype: DType, values: *const c_void, n: u64) -> Result<AttrValue> {
    macro_rules! ints {
        ($t:ty) => {
            // SAFETY: the caller's promise.
            unsafe { given::values(values.cast::<$t>(), n, "values") }?.into_iter().map(i128::from).collect()
        };
    }
    macro_rules! floats {
        ($t:ty) => {
            // SAFETY: the caller's promise.
            unsafe { given::values(values.cast::<$t>(), n, "values") }?.into_iter().map(f64::from).collect()
        };
    }
    Ok(match dtype {
        DType::Str => {
            // SAFETY: as above.
            let mut all = unsafe { texts(values.cast(), n, "values", "a text") }?;
            match all.len() {
                1 => AttrValue::Text(all.remove(0)),
                _ => AttrValue::Texts(all),
            }
        }
        DType::F32 => AttrValue::Floats(dtype, floats!(f32)),
        DType::F64 => AttrValue::Floats(dtype, floats!(f64)),
        DType::Bool | DType::U8 => AttrValue::Ints(dtype, ints!(u8)),
        DType::I8 => AttrValue::Ints(dtype, ints!(i8)),
        DType::I16 => AttrValue::Ints(dtype, ints!(i16)),
        DType::I32 => AttrValue::Ints(dtype, ints!(i32)),
        DType::I64 => AttrValue::Ints(dtype, ints!(i64)),
        DType::U16 => AttrValue::Ints(dtype, ints!(u16)),
        DType::U32 => AttrValue::Ints(dtype, ints!(u32)),
        DType::U64 => AttrValue::Ints(dtype, ints!(u64)),
        DType::F16 => return Err(invalid("a value of type SIEVA_F16 has no C type: give it as SIEVA_F32")),
    })
}

/// `sieva_step_leave_out`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_step_leave_out(
    step: *mut StepHandle,
    path: *const c_char,
    why: *const c_char,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (step, path, why) =
            unsafe { (given::handle(step, "step")?, given::text(path, "path")?, given::text(why, "why")?) };
        step.change(|arrays| arrays.leave_out(path, why))
    })
}

/// `sieva_group_register`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_group_register(group: *const GroupHandle, producer: *const c_char) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (group, name) = unsafe { (of(group)?, given::text(producer, "producer")?) };
        Producer::register_memory(group, name).map(drop)
    })
}

/// `sieva_group_produce_step`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_group_produce_step(
    group: *const GroupHandle,
    producer: *const c_char,
    step: *const StepHandle,
    options: *const ProduceOptions,
    produced: *mut Produced,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (handle, name, step, options, size) = unsafe {
            let (handle, step) = (given::handle(group, "group")?, given::handle(step, "step")?);
            let (name, options) = (given::text(producer, "producer")?, ProduceOptions::read(options)?);
            let size = size_of_given(produced, "produced", size_of::<Produced>())?;
            (handle, name, step, options, size)
        };
        let arrays = step.change(|arrays| arrays.clone());
        let done = Producer::open(&handle.group, name)?.offer(&step.name, &arrays, &options)?;
        // SAFETY: as above.
        unsafe { give(handle.produced(&done, size), produced, size) };
        Ok(())
    })
}

/// `sieva_group_end`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_group_end(group: *const GroupHandle, producer: *const c_char) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (group, name) = unsafe { (of(group)?, given::text(producer, "producer")?) };
        Producer::open(group, name)?.end()
    })
}

/// `sieva_group_is_over`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_group_is_over(
    group: *const GroupHandle,
    producer: *const c_char,
    over: *mut i32,
) -> i32 {
    guarded(|| {
        let out = Out::new(over, "over")?;
        // SAFETY: the promises of sieva.h.
        let (group, name) = unsafe { (of(group)?, given::optional_text(producer, "producer")?) };
        let is_over = group.is_over(name)?;
        // SAFETY: as above.
        unsafe { out.set(i32::from(is_over)) };
        Ok(())
    })
}
