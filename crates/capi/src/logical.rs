//! Logical plans: questions as data, that are sent, compared and asked elsewhere.

use std::ffi::c_char;
use std::sync::Arc;

use sieva::{Plan, plan_text};

use crate::given::{self, Out};
use crate::options::Options;
use crate::query::QueryHandle;
use crate::result::own_or;
use crate::source::SourceHandle;
use crate::status::guarded;

/// `sieva_plan`.
pub struct PlanHandle(pub Arc<Plan>);

impl PlanHandle {
    fn new(plan: Plan) -> Box<Self> {
        Box::new(Self(Arc::new(plan)))
    }
}

/// `sieva_query_plan`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_query_plan(query: *const QueryHandle, plan: *mut *mut PlanHandle) -> i32 {
    guarded(|| {
        let out = Out::handle(plan, "plan")?;
        // SAFETY: the promises of sieva.h.
        let made = unsafe { given::handle(query, "query") }?.plan()?;
        // SAFETY: as above.
        unsafe { out.set(PlanHandle::new(made)) };
        Ok(())
    })
}

/// `sieva_plan_sql`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_plan_sql(
    source: *const SourceHandle,
    sql: *const c_char,
    plan: *mut *mut PlanHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(plan, "plan")?;
        // SAFETY: the promises of sieva.h.
        let (source, sql) = unsafe { (&given::handle(source, "source")?.0, given::text(sql, "sql")?) };
        let made = source.plan(sql)?;
        // SAFETY: as above.
        unsafe { out.set(Box::new(PlanHandle(made))) };
        Ok(())
    })
}

/// `sieva_plan_from_bytes`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_plan_from_bytes(
    bytes: *const u8,
    count: u64,
    plan: *mut *mut PlanHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(plan, "plan")?;
        // SAFETY: the promises of sieva.h.
        let bytes = unsafe { given::values(bytes, count, "bytes") }?;
        let read = Plan::from_bytes(&bytes)?;
        // SAFETY: as above.
        unsafe { out.set(PlanHandle::new(read)) };
        Ok(())
    })
}

/// `sieva_plan_from_json`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_plan_from_json(json: *const c_char, plan: *mut *mut PlanHandle) -> i32 {
    guarded(|| {
        let out = Out::handle(plan, "plan")?;
        // SAFETY: the promises of sieva.h.
        let read = Plan::from_json(unsafe { given::text(json, "json") }?)?;
        // SAFETY: as above.
        unsafe { out.set(PlanHandle::new(read.canonical())) };
        Ok(())
    })
}

/// `sieva_plan_bytes`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_plan_bytes(
    plan: *const PlanHandle,
    bytes: *mut u8,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        let place = Out::new(needed, "needed")?;
        // SAFETY: the promises of sieva.h.
        let made = unsafe { given::handle(plan, "plan") }?.0.to_bytes()?;
        // SAFETY: as above.
        unsafe { given::put_bytes(&made, (bytes, capacity), place) }
    })
}

/// `sieva_plan_json`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_plan_json(
    plan: *const PlanHandle,
    text: *mut c_char,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        unsafe { given::put_text(&given::handle(plan, "plan")?.0.to_json(), text, capacity, needed) }
    })
}

/// `sieva_plan_text`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_plan_text(
    plan: *const PlanHandle,
    text: *mut c_char,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        unsafe { given::put_text(&plan_text(&given::handle(plan, "plan")?.0)?, text, capacity, needed) }
    })
}

/// `sieva_plan_id`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_plan_id(
    plan: *const PlanHandle,
    text: *mut c_char,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        unsafe { given::put_text(&given::handle(plan, "plan")?.0.id()?, text, capacity, needed) }
    })
}

/// `sieva_plan_query`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_plan_query(
    source: *const SourceHandle,
    plan: *const PlanHandle,
    options: *const Options,
    query: *mut *mut QueryHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(query, "query")?;
        // SAFETY: the promises of sieva.h.
        let (source, plan) =
            unsafe { (&given::handle(source, "source")?.0, &given::handle(plan, "plan")?.0) };
        // SAFETY: as above.
        let options = unsafe { own_or(source, options) }?;
        let made = QueryHandle::of_plan(source, plan, options);
        // SAFETY: as above.
        unsafe { out.set(made) };
        Ok(())
    })
}

/// `sieva_plan_free`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_plan_free(plan: *mut PlanHandle) {
    // SAFETY: the promises of sieva.h.
    unsafe { given::free(plan) }
}
