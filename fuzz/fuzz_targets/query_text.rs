//! Any text as a condition, an expression and a query: what is understood is printed and understood again alike,
//! and can be bound to a source of many types.
#![no_main]

use std::fmt::Display;

use libfuzzer_sys::fuzz_target;
use sieva_fuzz::{check_error, small_source};
use sieva_plan::Plan;
use sieva_query::ast::{Name, Select};
use sieva_query::bind::{BindOptions, resolve};
use sieva_query::logical::{plan_rows, plan_select};
use sieva_query::parse;
use sieva_query::values::ValueType;
use sieva_types::{ErrorKind, Result};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let source = small_source();
    let schema = source.schema();
    let known = |name: &Name| resolve(schema, &name.text).is_ok();
    let subquery = |select: &Select| {
        let value_type = if select.distinct { ValueType::Str } else { ValueType::F64 };
        Ok((Plan::default(), Some(value_type)))
    };
    for valid_range in [false, true] {
        let options = BindOptions { valid_range, cross: !valid_range, subqueries: &subquery };
        if let Some(tree) = check(text, &parse::parse_condition) {
            plan_rows(schema, &[], Some(&tree), None, &options).err().inspect(check_error);
        }
        if let Some(tree) = check(text, &|t| parse::parse_expression_with(t, &known)) {
            plan_rows(schema, &[], None, Some(&[tree]), &options).err().inspect(check_error);
        }
        if let Some(select) = check(text, &|t| parse::parse_select_with(t, &known)) {
            plan_select(schema, &select, &options).err().inspect(check_error);
        }
    }
});

/// The tree of a text, whose printed form is that of the same tree.
fn check<T: PartialEq + Display + std::fmt::Debug>(
    text: &str,
    parse: &dyn Fn(&str) -> Result<T>,
) -> Option<T> {
    let tree = parse(text).inspect_err(check_syntax).ok()?;
    let printed = tree.to_string();
    match parse(&printed) {
        Ok(again) => assert_eq!(tree, again, "{printed}"),
        // A tree near the limit may be refused: parentheses are added.
        Err(e) => assert!(e.message().contains("nested deeper"), "{e}: {printed}"),
    }
    Some(tree)
}

fn check_syntax(e: &sieva_types::Error) {
    check_error(e);
    assert_eq!(e.kind(), ErrorKind::Syntax, "{e}");
}
