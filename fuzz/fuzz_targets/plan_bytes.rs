//! A plan of any bytes, with a checksum that fits: what is read has one form, which bytes, JSON and text give back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sieva_fuzz::check_error;
use sieva_plan::Plan;
use sieva_query::logical::select_of;
use sieva_query::parse::parse_select;
use sieva_types::ErrorKind;
use xxhash_rust::xxh3::xxh3_64;

fuzz_target!(|body: &[u8]| {
    let mut bytes = b"SVPL\x01".to_vec();
    bytes.extend_from_slice(&xxh3_64(body).to_le_bytes());
    bytes.extend_from_slice(body);
    let plan = match Plan::from_bytes(&bytes) {
        Ok(plan) => plan,
        Err(e) => {
            check_error(&e);
            assert_eq!(e.kind(), ErrorKind::InvalidValue, "{e}");
            return;
        }
    };
    assert_eq!(plan.canonical(), plan);
    let written = plan.to_bytes().expect("a plan that was read");
    assert_eq!(Plan::from_bytes(&written).expect("what was written"), plan);
    assert_eq!(Plan::from_json(&plan.to_json()).expect("what was written").canonical(), plan);
    if let Ok(select) = select_of(&plan) {
        // Functions have any names here: some are keywords, which no text spells.
        if let Ok(again) = parse_select(&select.to_string()) {
            assert_eq!(again.to_string(), select.to_string());
        }
    }
});
