//! A plan in JSON of any text: a plan or an error, and a plan comes back from bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sieva_fuzz::check_error;
use sieva_plan::Plan;
use sieva_types::ErrorKind;

fuzz_target!(|text: &str| {
    match Plan::from_json(text) {
        Ok(plan) => {
            assert_eq!(Plan::from_json(&plan.to_json()).expect("what was written"), plan);
            let bytes = plan.to_bytes().expect("a plan that was read");
            assert_eq!(Plan::from_bytes(&bytes).expect("what was written"), plan.canonical());
        }
        Err(e) => {
            check_error(&e);
            assert_eq!(e.kind(), ErrorKind::InvalidValue, "{e}");
        }
    }
});
