//! Tests of the language of `find`.

use super::*;
use proptest::prelude::*;

fn ok(text: &str) -> Filter {
    parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn texts_become_filters() {
    let eq = |k: &str, v: f64| Filter::equal(k, v);
    assert_eq!(
        ok("RADEG = 153.17 AND DECDEG = 23.06"),
        Filter::And(vec![eq("RADEG", 153.17), eq("DECDEG", 23.06)])
    );
    assert_eq!(
        ok("a=1 or b = 2.5e-3 and not c <> 'it''s'"),
        Filter::Or(vec![
            Filter::equal("a", 1i64),
            Filter::And(vec![
                eq("b", 2.5e-3),
                Filter::Not(Box::new(Filter::compare("c", Comparison::Ne, "it's")))
            ])
        ])
    );
    assert_eq!(ok("-5 < \"DATE-OBS\""), Filter::compare("DATE-OBS", Comparison::Gt, -5i64));
    assert_eq!(
        ok("x NOT BETWEEN 1 AND +2"),
        negated(Filter::Between("x".into(), 1i64.into(), 2i64.into()), true)
    );
    assert_eq!(ok("u = 18446744073709551615"), Filter::equal("u", u64::MAX));
    assert_eq!(
        ok("((x IN (1, 'a', TRUE)))"),
        Filter::In("x".into(), vec![1i64.into(), "a".into(), true.into()])
    );
    assert_eq!(ok("x IS NOT NULL"), negated(Filter::IsNull("x".into()), true));
    assert_eq!(ok("EXISTS \"a\"\"b\""), Filter::Exists("a\"b".into()));
    assert_eq!(ok("x LIKE 'a%' "), Filter::Like("x".into(), "a%".into()));
    assert_eq!(ok("x not glob 'a*'"), negated(Filter::Glob("x".into(), "a*".into()), true));
    assert_eq!(ok("x=.5"), eq("x", 0.5));
}

#[test]
fn an_error_says_where_and_what() {
    let e = parse("RADEG 153.17").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Syntax);
    let expected = "expected one of = != < <= > >= BETWEEN IN LIKE GLOB IS, got a value, at character 7\n  \
                    RADEG 153.17\n        ^";
    assert_eq!(e.message(), expected);
    assert!(e.hint_text().is_some());
    for (text, part) in [
        ("", "expected a key, got the end, at character 1"),
        ("a = ", "expected a number"),
        ("a = 1 b = 2", "expected AND, OR or the end, got 'b', at character 7"),
        ("(a = 1", "expected ')'"),
        ("a = 'x", "a quote that does not end, at character 5"),
        ("a = b", "got 'b'"),
        ("a = 1.2.3", "'1.2.3' is not a number"),
        ("a = 1; DROP TABLE objects", "unexpected ';'"),
        ("x BETWEEN 1 OR 2", "expected AND and the upper bound"),
        ("and = 1", "expected a key"),
        ("x like 5", "expected a pattern"),
        ("é = 1 é", "at character 7"),
    ] {
        let e = parse(text).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Syntax, "{text}");
        assert!(e.message().contains(part), "{text}: {e}");
    }
    assert_eq!(parse("a = 99999999999999999999").unwrap_err().kind(), ErrorKind::Overflow);
    assert_eq!(parse("a = 1e999").unwrap_err().kind(), ErrorKind::Overflow);
}

#[test]
fn depth_and_length_are_bounded() {
    for deep in ["(".repeat(100_000), "NOT ".repeat(100_000), "a=1 AND ".repeat(20_000)] {
        let e = parse(&deep).unwrap_err();
        assert!(e.message().contains("more than 21 levels or 10000 comparisons"), "{e}");
    }
    let nested = format!("{}a = 1 OR b = 2{}", "(c = 1 AND NOT ".repeat(10), ")".repeat(10));
    crate::filter::plan(&ok(&nested)).unwrap();
    assert_eq!(parse(&"x".repeat(2 << 20)).unwrap_err().kind(), ErrorKind::Syntax);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in r#"([a-c(),=<>! '"0-9.eé+-]|AND|OR|NOT|IN|IS|NULL|LIKE|BETWEEN|EXISTS){0,30}"#) {
        if let Ok(filter) = parse(&text) {
            prop_assert!(crate::filter::plan(&filter).is_ok());
        }
    }
}
